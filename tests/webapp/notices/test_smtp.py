"""Mail over SMTP itself: a small server takes it, refuses it, and is not there."""

import socketserver
import threading
from collections.abc import Iterator
from email import message_from_string, policy

import pytest

from webapp.core.network import mail


class MailServer(socketserver.ThreadingTCPServer):
    """Takes mail without TLS and keeps it in `letters`. To recipients that begin with a number it answers with that number."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.letters: list[tuple[list[str], str]] = []


class _Talk(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        recipients: list[str] = []
        self.say("220 sink")
        while line := self.rfile.readline().decode().strip():
            verb = line.split(":")[0].upper()
            if verb == "RCPT TO":
                address = line.partition("<")[2].partition(">")[0]
                if address[:3].isdigit():
                    self.say(f"{address[:3]} not here")
                    continue
                recipients.append(address)
            if verb == "DATA":
                self.say("354 go on")
                body = iter(lambda: self.rfile.readline().decode(), ".\r\n")
                self.server.letters.append((recipients, "".join(body)))
            self.say("221 bye" if verb == "QUIT" else "250 ok")

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def server(settings) -> Iterator[MailServer]:
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address[:2]
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        yield server
        server.shutdown()


def test_a_mail_arrives_as_it_was_written(server):
    text = "Hello Zoë,\n\n.a line that begins with a dot\n" + "x" * 2000 + "\n"
    headers = {"Message-ID": "<notices.7@example.org>", "Auto-Submitted": "auto-generated"}
    mail.send("ann@example.org", "Läufe: 评分 failed", text, headers)
    ((recipients, raw),) = server.letters
    found = message_from_string(raw.replace("\r\n..", "\r\n."), policy=policy.default)
    assert recipients == ["ann@example.org"] and found["To"] == "ann@example.org"
    assert found["Subject"] == "Läufe: 评分 failed" and found["Message-ID"] == "<notices.7@example.org>"
    assert found["Auto-Submitted"] == "auto-generated"
    assert found.get_content().replace("\r\n", "\n") == text


@pytest.mark.parametrize(("address", "for_good"), [("550@example.org", True), ("450@example.org", False)])
def test_an_address_that_is_refused_is_told_apart_from_a_server_that_is_busy(server, address, for_good):
    with pytest.raises(mail.NotSent) as told:
        mail.send(address, "s", "t")
    assert told.value.for_good is for_good and "not here" in told.value.message
    assert server.letters == []


def test_a_server_that_is_away_is_no_reason_for_good(server, settings):
    server.shutdown()
    server.server_close()
    with pytest.raises(mail.NotSent) as told:
        mail.send("ann@example.org", "s", "t")
    assert not told.value.for_good


def test_a_name_of_a_host_that_is_not_ascii_is_sent(server):
    mail.send("ann@bücher.example", "s", "t")
    assert server.letters[0][0] == ["ann@xn--bcher-kva.example"]
