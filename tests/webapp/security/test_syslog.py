"""The audit log on another machine: the messages that a receiver of syslog gets. A small server is the receiver here."""

import json
import re
import socket
import ssl
import threading
from contextlib import suppress

import pytest
from pydantic import ValidationError

from tests.team import browser
from webapp.core.auditing import audit, chain, syslog
from webapp.core.models import AuditSeal
from webapp.environment import Environment
from workers import audit as worker

from .connections import accept_connections

pytestmark = pytest.mark.django_db
HEADER = re.compile(rb"<110>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S+ touchstone - (\S+) - (\{.*\})", re.DOTALL)


class Receiver:
    """Reads streams to their end, like receivers do. `deaf` closes the connection without reading."""

    def __init__(self, over=lambda line: line) -> None:
        self.read: list[bytes] = []
        self.deaf = False
        self._over = over
        self.line = socket.socket()
        self.line.bind(("127.0.0.1", 0))
        self.line.listen()
        self.port = self.line.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for client in accept_connections(self.line):
            with suppress(OSError), self._over(client) as stream:
                if self.deaf:  # unread data makes the closing side report an error
                    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                    continue
                with stream.makefile("rb") as file:
                    self.read += framed(file)

    def told(self) -> list[dict]:
        return [json.loads(HEADER.fullmatch(each)[2]) for each in self.read]


def framed(file):
    """Messages with their lengths: RFC 6587, 3.4.1."""
    size = b""
    while byte := file.read(1):
        if byte == b" ":
            yield file.read(int(size))
            size = b""
        else:
            size += byte


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.line.close()


@pytest.fixture
def entries(team):
    """Sealed entries whose text has a letter beyond ASCII and a line break."""
    for number in range(5):
        audit.record(team.workspace, team.owner.user, "thing.done", team.workspace, number=number, said="é\n<1>")
    chain.seal()
    return list(AuditSeal.objects.order_by("id"))


def test_every_sealed_entry_arrives_once_in_its_order_with_its_digest(team, entries, receiver):
    address = f"tcp://127.0.0.1:{receiver.port}"
    assert syslog.send(address) == len(entries) and syslog.send(address) == 0
    told = receiver.told()
    assert [row["seal"] for row in told] == [each.pk for each in entries]
    assert [row["digest"] for row in told][-1] == chain.head()
    last = told[-1]
    assert (last["actor"], last["action"], last["workspace"]) == ("ada@example.org", "thing.done", team.workspace.pk)
    assert last["detail"] == {"number": 4, "said": "é\n<1>"}
    assert not any(b"\n" in each for each in receiver.read)  # receivers that read lines see one
    audit.record(team.workspace, None, "thing.done", team.workspace)
    assert syslog.send(address) == 0  # it is not sealed yet
    chain.seal()
    assert syslog.send(address) == 1 and len(receiver.read) == len(entries) + 1


def test_what_was_not_taken_is_sent_again(team, entries, receiver):
    address = f"tcp://127.0.0.1:{receiver.port}"
    receiver.deaf = True
    assert syslog.send(address) == 0
    assert syslog.receiver_standing().waiting == len(entries) and syslog.receiver_standing().problem
    receiver.deaf = False
    assert syslog.send(address) == len(entries) == len(receiver.read)
    assert syslog.receiver_standing() == syslog.ReceiverStanding(0, "")


def test_a_receiver_that_is_away_keeps_nothing_waiting(entries, caplog):
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
    assert syslog.send(f"tcp://127.0.0.1:{port}") == 0
    assert "was not sent" in caplog.text and "refused" in syslog.receiver_standing().problem


@pytest.mark.parametrize("scheme", ["udp", "unix"])
def test_each_datagram_is_an_entry(team, entries, scheme, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    family, place = (socket.AF_INET, ("127.0.0.1", 0)) if scheme == "udp" else (socket.AF_UNIX, "log")
    with socket.socket(family, socket.SOCK_DGRAM) as line:
        line.bind(place)
        address = f"udp://127.0.0.1:{line.getsockname()[1]}" if scheme == "udp" else "unix://log"
        assert syslog.send(address.replace("unix://log", f"unix://{tmp_path}/log")) == len(entries)
        read = [line.recv(1 << 16) for _ in entries]
    rows = [json.loads(HEADER.fullmatch(each)[2]) for each in read]
    assert [row["seal"] for row in rows] == [each.pk for each in entries]


def test_an_entry_that_receivers_would_cut_comes_without_its_detail(team, receiver):
    for size in (syslog.LONGEST - 800, syslog.LONGEST):
        audit.record(team.workspace, None, "thing.done", team.workspace, text="x" * size)
    chain.seal()
    assert syslog.send(f"tcp://127.0.0.1:{receiver.port}") == AuditSeal.objects.count()
    whole, cut = receiver.told()[-2:]
    assert whole["detail"] == {"text": "x" * (syslog.LONGEST - 800)} and "cut" not in whole
    assert cut["detail"] is None and cut["cut"]
    assert max(map(len, receiver.read)) <= syslog.LONGEST


def test_over_tls_the_certificate_is_looked_at(entries, tmp_path, monkeypatch):
    trusted = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(trusted)
    receiver = Receiver(lambda line: context.wrap_socket(line, server_side=True))
    address = f"tls://localhost:{receiver.port}"
    assert syslog.send(address) == 0 and "CERTIFICATE_VERIFY_FAILED" in syslog.receiver_standing().problem
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    assert syslog.send(address) == len(entries)
    assert [row["seal"] for row in receiver.told()] == [each.pk for each in entries]
    receiver.line.close()


def certificate(folder):
    """A certificate for localhost, with its key, in one file."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]),
    )
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now - timedelta(1), now + timedelta(1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_the_worker_seals_and_then_sends_where_a_receiver_is_named(team, entries, receiver, settings):
    audit.record(team.workspace, None, "thing.done", team.workspace)
    settings.AUDIT_SYSLOG = None
    worker.seal()
    assert receiver.read == []
    settings.AUDIT_SYSLOG = f"tcp://127.0.0.1:{receiver.port}"
    worker.seal()
    assert len(receiver.read) == len(entries) + 1


def test_administrators_see_all_workspaces_and_how_far_the_log_was_sent(team, as_owner, entries, settings):
    audit.record(team.outsider.workspace, team.outsider.user, "other.done", team.outsider.workspace)
    page = as_owner.get("/installation/audit").content.decode()
    assert "other.done" in page and "thing.done" in page and "Elsewhere" in page
    assert chain.head()[:12] in page and "sets AUDIT_SYSLOG" in page
    assert "other.done" not in as_owner.get("/installation/audit", {"action": "thing"}).content.decode()
    assert as_owner.get("/installation/audit", {"cursor": "typed"}).status_code == 200
    settings.AUDIT_SYSLOG = "tcp://127.0.0.1:9"
    syslog.send("tcp://127.0.0.1:9")
    page = as_owner.get("/installation/audit").content.decode()
    assert f"{len(entries)} to be sent" in page and "did not take the last entries" in page
    assert browser(team.outsider).get("/installation/audit").status_code == 403


@pytest.mark.parametrize(
    "address", ["http://siem:514", "tcp://", "tls://siem:0", "udp://a:b@siem", "tls://siem/x", "unix://log"]
)
def test_an_address_that_no_receiver_can_have_stops_the_start(address):
    with pytest.raises(ValidationError, match="audit_syslog"):
        Environment(audit_syslog=address, _env_file=None)


@pytest.mark.parametrize(
    "address", ["tls://siem.example.org", "tcp://10.0.0.7:601", "udp://[::1]:514", "unix:///dev/log"]
)
def test_addresses_that_a_receiver_can_have(address):
    assert Environment(audit_syslog=address, _env_file=None).audit_syslog == address
