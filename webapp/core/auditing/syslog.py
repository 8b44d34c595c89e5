"""The audit log on another machine: entries go to a receiver of syslog once they are sealed, where AUDIT_SYSLOG names one.

RFC 5424, as JSON with the place in the chain and its digest, so the receiver can tell whether the end of the log was cut off here. A
stream carries each message with its length (RFC 6587), and over TLS as RFC 5425 has it; a datagram carries one. What was not taken is
sent again: an entry may arrive twice, and never not at all over tcp and tls.
"""

import json
import logging
import socket
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from urllib.parse import urlsplit

from django.conf import settings

from ..database import locks
from ..models import AuditEntry, AuditSeal, AuditSent
from . import audit

logger = logging.getLogger(__name__)
AT_A_TIME = 500
PATIENCE_S = 10.0  # until the receiver is reached, for each message, and until it has read to the end
ROUND_S = 40.0  # of a round that begins every minute
PRIORITY = 13 * 8 + 6  # facility: log audit; severity: informational
LONGEST = 8_000  # bytes: a receiver cuts what is longer, or takes the rest for another message (rsyslog, beyond 8,096)
PORTS = {"udp": 514, "tcp": 601, "tls": 6514}


def send(address: str, wait_s: float = ROUND_S) -> int:
    """Sends what is sealed and not sent yet, oldest first, for `wait_s`; how many entries that were. One process at a time.

    A receiver that is away is told of in the log and on the administrators' page, and asked again in the next round.
    """
    with locks.exclusive(locks.Work.AUDIT_SYSLOG, 0) as ours:
        if not ours:
            return 0
        sent, _ = AuditSent.objects.get_or_create(pk=AuditSent.ONLY)
        count, until = 0, time.monotonic() + wait_s
        try:
            while time.monotonic() < until and (seals := _next(sent.seal)):
                _deliver(address, [message(seal) for seal in seals])
                count += len(seals)
                sent.seal, sent.problem = seals[-1].pk, ""
                sent.save()
        except OSError as error:
            logger.warning("the audit log was not sent to %s: %s", address, error)
            sent.problem = str(error)[:300]
            sent.save()
        return count


@dataclass(frozen=True)
class ReceiverStanding:
    """The number of sealed entries that the receiver has not been sent, and why the last round failed; empty if it did not."""

    waiting: int
    problem: str


def receiver_standing() -> ReceiverStanding:
    sent = AuditSent.objects.filter(pk=AuditSent.ONLY).first() or AuditSent()
    return ReceiverStanding(AuditSeal.objects.filter(id__gt=sent.seal).count(), sent.problem)


def message(seal: AuditSeal) -> bytes:
    """The message, without the entry's detail if that is too long."""
    entry = seal.entry
    known = audit.entry_json(entry) | {"workspace": entry.workspace_id, "seal": seal.pk, "digest": seal.digest}
    found = _line(entry, known)
    if len(found) > LONGEST:
        found = _line(entry, known | {"detail": None, "cut": True})
    return found


def _line(entry: AuditEntry, known: dict[str, object]) -> bytes:
    at = entry.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    name = urlsplit(settings.ENV.public_url or "").hostname or socket.gethostname()
    return f"<{PRIORITY}>1 {at} {name} touchstone - {entry.action[:32]} - {json.dumps(known)}".encode()


def _next(after: int) -> list[AuditSeal]:
    rows = AuditSeal.objects.filter(id__gt=after).select_related("entry__actor", "entry__seal").order_by("id")
    return list(rows[:AT_A_TIME])


def _datagrams(address: str) -> bool:
    return urlsplit(address).scheme in ("udp", "unix")


def _deliver(address: str, messages: Iterable[bytes]) -> None:
    """Raises OSError if they were not taken."""
    with _connected(address) as line:
        if _datagrams(address):
            for each in messages:
                line.send(each)
            return
        for each in messages:
            line.sendall(b"%d %s" % (len(each), each))
        _read_to_the_end(line)


def _read_to_the_end(line: socket.socket) -> None:
    """Waits until the receiver hangs up, as it does once it has read everything: a line that breaks earlier raises OSError. One that
    never hangs up is believed."""
    with suppress(TimeoutError, ssl.SSLError):
        if isinstance(line, ssl.SSLSocket):
            line = line.unwrap()
        line.shutdown(socket.SHUT_WR)
        while line.recv(1024):
            pass


def _connected(address: str) -> socket.socket:
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    if not _datagrams(address):
        line = socket.create_connection((host, port), timeout=PATIENCE_S)
        return line if parts.scheme == "tcp" else _over_tls(line, host)
    if parts.scheme == "unix":
        family, there = socket.AF_UNIX, parts.path
    else:
        family, _, _, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]  # type: ignore[assignment]
    line = socket.socket(family, socket.SOCK_DGRAM)
    try:
        line.settimeout(PATIENCE_S)
        line.connect(there)
    except OSError:
        line.close()
        raise
    return line


def _over_tls(line: socket.socket, host: str) -> ssl.SSLSocket:
    try:
        return ssl.create_default_context().wrap_socket(line, server_hostname=host)
    except OSError:
        line.close()
        raise
