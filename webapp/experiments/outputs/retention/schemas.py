"""The rule and its preview, as OpenAPI shows them."""

from ninja import Schema
from pydantic import Field

from webapp.core.requests.openapi import StrictIn

from .models import DAYS
from .services import LEAST, MOST


class CheckpointRuleIn(StrictIn):
    on: bool = Field(description="False: no checkpoint is deleted by itself")
    days: int = Field(DAYS, ge=LEAST, le=MOST, description="Days after the end of a run")


class CheckpointRuleOut(Schema):
    on: bool
    days: int
    deleted: int = Field(description="Checkpoints that the rule has deleted so far")
    deleted_bytes: int


class KeptCheckpoints(Schema):
    checkpoints: int
    why: str = Field(description="The checkpoints that are kept, in words")


class CheckpointPreviewOut(Schema):
    days: int
    runs: int = Field(description="Runs that would lose checkpoints")
    checkpoints: int
    bytes: int
    kept: list[KeptCheckpoints]
    whole: bool = Field(description="False if there are more old runs than one preview counts")


class KeepCheckpoints(StrictIn):
    keep: bool = Field(description="Whether no rule may delete the checkpoints of the run")
