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
    prices,
    restore,
    reward_target,
)
from .recorded import add_recorded
from .registry import add_output, archive_model, change_model, delete, register, renew_output, restore_model
from .sharing import EndpointShare
from .trials import again as try_again

__all__ = [
    "EndpointShare",
    "add_output",
    "add_recorded",
    "archive",
    "archive_model",
    "change_endpoint",
    "change_model",
    "create_endpoint",
    "delete",
    "endpoint_target",
    "local_target",
    "mark_used",
    "note_troubles",
    "prices",
    "register",
    "renew_output",
    "restore",
    "restore_model",
    "reward_target",
    "start_check",
    "try_again",
]
