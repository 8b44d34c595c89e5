"""Sends uploaded files to the operator's virus scanner: clamd, if CLAMD names one.

Each file goes to clamd in pieces, by its command INSTREAM, before any view sees it.
"""

import logging
import socket
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from .problems import error_body
from .requests.middleware import ViewGuard
from .views import problem

logger = logging.getLogger(__name__)
PIECE = 1 << 16
PATIENCE_S = 60.0  # until clamd is reached, and for each piece
SCAN_S = 600.0  # clamd answers once it has seen all of a file: above its MaxScanTime, which is 120 s where clamd.conf does not say
LONGEST_ANSWER = 4096
FOUND = "The virus scanner found {what} in {name}. Nothing of it was kept."
UNSCANNED = "The virus scanner did not check {name}, and this installation does not accept unchecked files. Try again later, or ask the person who runs it."


class NotScanned(Exception):
    """The scanner is down, or did not take the file; the message says which."""


def scan(address: str, pieces: Iterable[bytes]) -> str:
    """The finding of clamd at `address` about a file, in its words; empty if it found nothing. Raises NotScanned."""
    try:
        with _connected(address) as line:
            line.sendall(b"zINSTREAM\0")
            for piece in pieces:
                for at in range(0, len(piece), PIECE):
                    part = piece[at : at + PIECE]
                    line.sendall(len(part).to_bytes(4, "big") + part)
            line.sendall(bytes(4))
            line.settimeout(SCAN_S)
            answer = _answer(line)
    except OSError as error:  # it hangs up on a file above its StreamMaxLength, and may have said so first
        raise NotScanned(f"{address}: {error}") from error
    said = answer.removeprefix("stream: ")
    if said == "OK":
        return ""
    if said.endswith(" FOUND"):
        return said.removesuffix(" FOUND")
    raise NotScanned(f"{address}: {answer or 'no answer'}")


def _connected(address: str) -> socket.socket:
    parts = urlsplit(address)
    if parts.scheme == "unix":
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(PATIENCE_S)
        try:
            line.connect(parts.path)
        except OSError:
            line.close()
            raise
        return line
    return socket.create_connection((parts.hostname or "", parts.port or 3310), timeout=PATIENCE_S)


def _answer(line: socket.socket) -> str:
    found = b""
    while not found.endswith(b"\0") and len(found) < LONGEST_ANSWER and (more := line.recv(LONGEST_ANSWER)):
        found += more
    return found.rstrip(b"\0\n").decode(errors="replace")


class ScanMiddleware(ViewGuard):
    """Refuses a request whose file the scanner does not let pass. Behind those that know who asks and send strangers away; who comes
    without a session and with a token that is none sends 5.5 MB at most (`bodies`)."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: object, kwargs: object
    ) -> HttpResponse | None:
        return refused(request)


def refused(request: HttpRequest) -> HttpResponse | None:
    """The answer to a request whose file the scanner does not let pass."""
    if not settings.CLAMD or request.content_type != "multipart/form-data":
        return None
    for file in (each for name in request.FILES for each in request.FILES.getlist(name)):
        if why := _refusal(settings.CLAMD, file):
            return _refused(request, *why)
    return None


def _refusal(address: str, file: "UploadedFile[bytes]") -> tuple[str, int] | None:
    """The reason why the file is not taken, and the status that goes with it."""
    name = repr(file.name)
    try:
        what = scan(address, file.chunks())
    except NotScanned as error:
        taken = settings.CLAMD_AWAY == "take"
        logger.warning("%s %s unseen: %s", "took" if taken else "refused", name, error)
        return None if taken else (UNSCANNED.format(name=file.name), 503)
    finally:
        file.seek(0)
    if not what:
        return None
    logger.warning("refused %s: the virus scanner found %s", name, what)
    return FOUND.format(what=what, name=file.name), 422


def _refused(request: HttpRequest, why: str, status: int) -> HttpResponse:
    answer = error_body(request, "file_refused" if status == 422 else "not_scanned", why)
    if request.path.startswith("/api/v1/"):
        return JsonResponse(answer, status=status)
    if request.headers.get("HX-Request"):  # told in a corner of the page; 422 would be put into the form's place
        return JsonResponse(answer, status=400)
    return problem(request, status, "The file was not accepted", why)
