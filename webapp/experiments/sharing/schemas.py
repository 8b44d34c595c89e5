"""Links as programs read and make them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Schema

from webapp.core.requests.openapi import StrictIn

from ..models import ShareLink
from ..table import comparing
from . import queries, services
from .models import MAX_NAME

PLAIN = ("id", "name", "created_at", "first_opened_at", "last_opened_at", "expires_at", "run_count", "shows")


class ShareLinkIn(StrictIn):
    runs: list[Annotated[int, Field(ge=1, lt=2**63)]] = Field(
        min_length=1, max_length=comparing.MOST_RUNS, description="Run ids, in the order of the page"
    )
    baseline: int | None = Field(
        None, ge=1, lt=2**63, description="One of the runs: the others are compared with its seeds"
    )
    name: str = Field(
        "", max_length=MAX_NAME, description="For the list of links; people who open the link do not see it"
    )
    days: int | None = Field(
        services.DAYS,
        ge=1,
        le=services.MOST_DAYS,
        description="Days for which the link works; null: until it is revoked",
    )


class ShareLinkOut(Schema):
    id: int
    name: str
    created_by: str = Field(description="The person who made it. The link works as long as this person may share here")
    created_at: datetime
    first_opened_at: datetime | None
    last_opened_at: datetime | None = Field(description="To the minute")
    expires_at: datetime | None
    run_count: int = Field(description="Runs that it shows; deleted ones are gone from it")
    shows: str = Field(description="comparison or report")
    page: str | None = Field(
        description="The page of the workspace that shows the same; null if all runs of a comparison were deleted"
    )


class ShareLinkMade(ShareLinkOut):
    url: str = Field(description="Shown only now")


class ShareLinkList(Schema):
    items: list[ShareLinkOut]
    next: str | None


def links_json(links: Sequence[ShareLink]) -> list[dict[str, Any]]:
    """Like `ShareLinkOut` has it, of rows of `queries.links`."""
    listed = queries.listed(links)
    return [
        {
            **{name: getattr(row, name) for name in PLAIN},
            "created_by": str(row.created_by),
            "page": listed[row.pk].page or None,
        }
        for row in links
    ]


def told_made(link: ShareLink, secret: str) -> dict[str, Any]:
    """Like `ShareLinkMade` has it."""
    (row,) = links_json(list(queries.links(link.workspace_id).filter(pk=link.pk)))
    return {**row, "url": services.address(secret)}
