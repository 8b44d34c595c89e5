"""Shared parts of the API of runs: its router, and the parameters that several operations take."""

from collections.abc import Sequence
from typing import Annotated

from django.http import HttpRequest
from ninja import Header, Path, Query, Router
from pydantic import Field

from webapp.accounts.access import require

from . import access
from .models import Run

# one router, for the methods of one address may lie in several rooms
router = Router(tags=["runs"])
RunId = Path[Annotated[int, Field(ge=1, lt=2**63)]]
Step = Annotated[int, Field(ge=0, lt=2**31)]
Key = Annotated[str, Field(min_length=1, max_length=250)]
# ninja cannot have a parameter called `keys`
JoinedKeys = Annotated[str | None, Query(alias="keys", description="Metric keys, separated by commas")]
EachKey = Annotated[
    list[Key],
    Query(
        alias="key",
        max_length=200,
        description="A metric key, as often as you like: also one that has a comma, which `keys` cannot name",
    ),
]
LaunchKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=64,
        description="If you send the key again with the same body, you get the same run; with another body, 422",
    ),
]


def run_of(request: HttpRequest, run_id: int) -> Run:
    """The run, if the caller may read it; else 404."""
    return access.run_read(require(request), run_id)


def keys_of(joined: str | None, each: Sequence[str]) -> list[str] | None:
    """The keys of both parameters, each once; None if neither was given."""
    if joined is None and not each:
        return None
    parts = [key.strip() for key in (joined or "").split(",") if key.strip()]
    return list(dict.fromkeys([*parts, *each]))
