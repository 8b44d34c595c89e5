"""Repeated runs, as OpenAPI shows them."""

from datetime import datetime, time
from typing import Annotated

from ninja import Schema
from pydantic import ConfigDict, Field


class RepeatIn(Schema):
    """Either `every_hours`, or `at` and perhaps `weekday`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"at": "02:00", "zone": "Europe/Vienna", "newest_data": True}}
    )

    every_hours: Annotated[int, Field(ge=1, lt=2**15)] | None = None
    at: time | None = Field(None, description="A time of the day by the clock of `zone`, such as 02:00")
    weekday: Annotated[int, Field(ge=0, le=6)] | None = Field(None, description="0 is Monday; null: on every day")
    zone: str = Field("UTC", max_length=64, description="Name of a time zone, such as Europe/Vienna")
    ends_at: datetime | None = Field(None, description="No launch after it; null: until it is deleted")
    newest_data: bool = Field(False, description="Train on the newest version of the dataset each time")


class RepeatTimeOut(Schema):
    due: datetime
    outcome: str = Field(description="launched, left_out (the run before it was not over) or refused")
    reason: str
    missed: int = Field(description="Earlier times at which no worker ran; no run was launched for them")
    run: int | None


class RepeatOut(Schema):
    id: int
    run: int = Field(description="The run that is launched again")
    rhythm: str
    every_hours: int | None
    at: str | None
    weekday: int | None
    zone: str
    ends_at: datetime | None
    newest_data: bool
    state: str = Field(description="waiting, paused or ended")
    next_at: datetime | None = Field(description="The next launch; null if it is paused or has ended")
    times: list[RepeatTimeOut] = Field(description="The last times, the newest one first")
    created_at: datetime


class RepeatsOut(Schema):
    items: list[RepeatOut]
