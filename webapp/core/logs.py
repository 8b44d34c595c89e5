"""What the log adds, the id of the request, and what it leaves out: keys that stand in addresses, and how a request came to be refused."""

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime

NOBODY = "-"
# Of the request that is answered, or that asked for the task that is carried out
current_request_id: ContextVar[str] = ContextVar("current_request_id", default=NOBODY)
IN_ADDRESS = re.compile(r"/(sign-in/link|invite|join|verify|personal-data)/[A-Za-z0-9_~.%-]+")


def asked_by() -> str:
    """The id of the request that is answered or whose task is carried out; empty where nobody asked."""
    asked = current_request_id.get()
    return "" if asked == NOBODY else asked


def hidden(text: str) -> str:
    """`text` without the keys: "/invite/..." instead of "/invite/Xb3"."""
    return IN_ADDRESS.sub(r"/\1/...", text)


class RequestIdFilter(logging.Filter):
    """Puts the id of the request on every log record as `request_id`."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id"):
            record.request_id = current_request_id.get()
        return True


class JsonLines(logging.Formatter):
    """One JSON object a line, a traceback within it, for programs that gather logs."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "request": getattr(record, "request_id", "-"),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            told["traceback"] = record.exc_text
        return json.dumps(told, ensure_ascii=False, default=str)


class NoSecrets(logging.Filter):
    """Takes the keys out of the message and out of the arguments that it is made of."""

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
