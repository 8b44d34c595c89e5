"""Shared parts of the API of runs: its router, and the parameters that several operations take."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Header, Path, Router
from pydantic import Field

from webapp.accounts.access import require

from . import access
from .models import Run

# one router, for the methods of one address may lie in several rooms
router = Router(tags=["runs"])
RunId = Path[Annotated[int, Field(ge=1, lt=2**63)]]
Step = Annotated[int, Field(ge=0, lt=2**31)]
Key = Annotated[str, Field(min_length=1, max_length=250)]
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


def keys_of(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]
