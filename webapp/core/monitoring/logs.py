"""The log: it adds the id of the request, and leaves out secrets in addresses, and tracebacks of refused requests."""

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime

from trainer import tracing
from webapp.request_id import NOBODY, current_request_id

current_person: ContextVar[str] = ContextVar("current_person", default=NOBODY)  # the id of the account
BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]")  # a tab does no harm
IN_ADDRESS = re.compile(r"/(sign-in/link|invite|join|verify|personal-data|shared)/[A-Za-z0-9_~.%-]+")


def asked_by() -> str:
    """The id of the request that is answered or whose task is carried out; empty if nobody asked."""
    asked = current_request_id.get()
    return "" if asked == NOBODY else asked


def hidden(text: str) -> str:
    """`text` without the secrets: "/invite/..." instead of "/invite/Xb3"."""
    return IN_ADDRESS.sub(r"/\1/...", text)


class RequestIdFilter(logging.Filter):
    """Puts on every log record the id of the request as `request_id`, who asked as `person` (the account's id, or "-"), and the id
    of the trace as `trace`, which is empty if there is none.

    Django tells of a refused request when the answer is made and the context is gone, and gives the request along.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        if not hasattr(record, "request_id"):
            record.request_id = getattr(request, "id", None) or current_request_id.get()
        if not hasattr(record, "person"):
            record.person = _person(request) or current_person.get()
        if not hasattr(record, "trace"):
            record.trace = getattr(request, "trace", "") or tracing.trace_id()
        return True


def _person(request: object) -> str:
    """The person of the membership under which a page or a token acts. Asking the session here could fail, and would cost a query."""
    membership = getattr(request, "membership", None)
    return str(membership.user_id) if membership is not None else ""


class OneLine(logging.Filter):
    """Line breaks and other control characters of a message are written as escapes: who chooses an address or a header must
    not be able to write lines into the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage().rstrip("\n")
        if BREAKS.search(text):
            record.msg, record.args = BREAKS.sub(lambda found: repr(found[0])[1:-1], text), ()
        return True


class JsonLines(logging.Formatter):
    """One JSON object a line, a traceback within it, for programs that gather logs."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "request": getattr(record, "request_id", NOBODY),
            "person": getattr(record, "person", NOBODY),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if trace := getattr(record, "trace", ""):
            told["trace"] = trace
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            told["traceback"] = record.exc_text
        return json.dumps(told, ensure_ascii=False, default=str)


class NoSecrets(logging.Filter):
    """Removes secrets from the message and from its arguments."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if (clean := hidden(text)) != text:
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            record.exc_text = hidden(logging.Formatter().formatException(record.exc_info))
        return True


class Refusals(logging.Filter):
    """A refused request is one line: where in the code it was refused is known, and strangers could flood the log with it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR and record.name.startswith("django.request"):
            record.exc_info = record.exc_text = None
        return True
