"""A request makes its row once, however often the request arrives: it carries a key, and has the same content each time.

The row that is made keeps both (`launch_key`, unique with `created_by`, and `launch_digest`), so a second click, tab or delivery gets the
row of the first, and a key that comes back with another request is refused instead of answered with what it never asked for.
"""

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

from django.db.models import Model, QuerySet

from ..problems import Conflict, Invalid

if TYPE_CHECKING:
    from webapp.accounts.models import User

Row = TypeVar("Row", bound=Model)
Made = TypeVar("Made")


class WithKey(Protocol):
    key: str


class Key(NamedTuple):
    """The key, and the SHA-256 of the request's content."""

    text: str
    digest: str


class KeyReused(Invalid):
    """The key came back with another request: a retry must be the same request, a new one needs a new key."""

    def __init__(self) -> None:
        super().__init__(
            "This key was used for another request.",
            {
                "Idempotency-Key": "was sent before with a different request. Send the same request again, or use another key"
            },
            code="key_reused",
        )


def key(text: str | None, *asked: object) -> Key | None:
    """The key of a request in the words in which it asks; None if it came without one."""
    if not text:
        return None
    return Key(text, hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest())


def sent(form: WithKey, make: Callable[[], Made]) -> Made:
    """The row that `make` makes for the key of the form. If a person went back to a sent form and changed it, the key is a new one."""
    try:
        return make()
    except KeyReused:
        form.key = uuid4().hex
        return make()


def row_of_key(mine: QuerySet[Row], key: Key | None) -> Row | None:
    """The row among `mine` (one person's, in one workspace) that this key has made. Raises KeyReused if that request was another one."""
    row: Any = mine.filter(launch_key=key.text).first() if key else None
    if row is not None and key and row.launch_digest not in ("", key.digest):  # of older rows it is not known
        raise KeyReused
    found: Row | None = row
    return found


def made_meanwhile(model: type[Row], user: "User", mine: QuerySet[Row], key: Key | None) -> Row | None:
    """After an IntegrityError: what another request with this key has made at the same moment; None: the error is about something else.

    Raises KeyReused, and Conflict if this person has used the key in another workspace.
    """
    if found := row_of_key(mine, key):
        return found
    if key and model._default_manager.filter(created_by=user, launch_key=key.text).exists():
        raise Conflict("You used this key in another workspace. Send another key.", "key_in_use")
    return None
