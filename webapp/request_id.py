"""The id of the request that is answered, or that asked for the task that is carried out."""

from contextvars import ContextVar

NOBODY = "-"

current_request_id: ContextVar[str] = ContextVar("current_request_id", default=NOBODY)
