"""Links as programs read and make them."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from ..models import ShareLink
from ..table import comparing
from . import services
from .models import MAX_NAME


class ShareLinkIn(Schema):
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
        services.DAYS, ge=1, le=services.MOST_DAYS, description="Until then it works; null: until it is withdrawn"
    )


class ShareLinkOut(Schema):
    id: int
    name: str
    created_by: str = Field(description="Who made it. It works as long as they may share here")
    created_at: datetime
    first_opened_at: datetime | None
    last_opened_at: datetime | None = Field(description="To the minute")
    expires_at: datetime | None
    run_count: int = Field(description="Runs that it shows; deleted ones are gone from it")

    @staticmethod
    def resolve_created_by(row: ShareLink) -> str:
        return str(row.created_by)


class ShareLinkMade(ShareLinkOut):
    url: str = Field(description="Shown only now")


class ShareLinkList(Schema):
    items: list[ShareLinkOut]
    next: str | None
