"""Alarms, as OpenAPI shows them."""

from datetime import datetime

from ninja import Schema
from pydantic import Field


class AlarmResponseOut(Schema):
    group: int
    index: int
    response: str = Field(description="The beginning of the response; empty if it is gone")
    reward: float | None


class AlarmOut(Schema):
    """More responses than usual show behaviour that games the reward, or several steps taught nothing (`flat`) or badly (`entropy`, `dead`,
    `mismatch`). An alarm asks people to look, and proves nothing."""

    id: int
    signal: str
    subject: str = Field(
        description="The part of the reward or the phrase, where the signal has several; of `flat` and `dead` the reason; else empty"
    )
    role: str = Field(description="The role that wrote the responses, in a run that trains several roles; else empty")
    step: int
    since: int = Field(
        description="The step from which on the share was above the usual; of `held_out` the first of the turn; of alarms about steps the first of the row"
    )
    share: float = Field(
        description="Of the responses of the step; of `held_out` how far training lies above the held-out panel; of `flat` how many solved "
        "their prompt; of `entropy` and `dead` what is left of the value of the first steps, or the share of tokens with a gradient; of `mismatch` the "
        "share of tokens about which sampler and trainer disagree"
    )
    before: float = Field(description="The same of the first steps; of `held_out` in the first turn")
    value: float | None = Field(
        description="Of `entropy` (nats per token), `dead` (norm, or share of tokens) and `mismatch` (share of tokens): the measured value; else null"
    )
    usual: float | None = Field(
        description="The value to which `value` is compared: that of the first steps; for `mismatch` the part that rounding explains; else null"
    )
    paid: float | None = Field(
        description="The z value of the test whether the reward pays for it; null if that was not tested"
    )
    part: str = Field(description="The part of the reward that pays, where it is clear; else empty")
    criterion: str = Field(description="The criterion that pays, where it is clear; else empty")
    time: datetime
    title: str
    told: str = Field(description="The alarm in words")
    help: str = Field(description="The page of the help that says more; with .md before the # it is Markdown")
    responses: list[AlarmResponseOut]
    asked: int = Field(description="Responses that were sent to people")
    left_out: int = Field(description="Number of responses about which nobody can be asked")
    why: str = Field(description="Why the first of them cannot; else empty")


class AlarmList(Schema):
    items: list[AlarmOut]
    next: str | None


class AlarmAskedOut(Schema):
    sent: int = Field(description="Responses that were not sent before")
