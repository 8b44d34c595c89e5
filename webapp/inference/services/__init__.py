"""All writes to models and endpoints, one module per concern."""

from .checks import start_check
from .endpoints import (
    archive,
    change_endpoint,
    create_endpoint,
    endpoint_target,
    local_target,
    mark_used,
    note_troubles,
    restore,
)
from .recorded import add_recorded
from .registry import delete, register
from .sharing import EndpointShare

__all__ = [
    "EndpointShare",
    "add_recorded",
    "archive",
    "change_endpoint",
    "create_endpoint",
    "delete",
    "endpoint_target",
    "local_target",
    "mark_used",
    "note_troubles",
    "register",
    "restore",
    "start_check",
]
