"""Artifacts, as OpenAPI shows them."""

from datetime import datetime

from ninja import Schema
from pydantic import Field

from webapp.core.requests.openapi import StrictIn

from ..schemas import Named


class ArtifactOut(Schema):
    id: int
    step: int
    role: str
    path: str
    bytes: int
    digest: str
    created_at: datetime
    present: bool = Field(description="False if the files are gone")
    model: Named | None = Field(description="The model of the registry that these files are")
    download: str | None = Field(description="The address of the files; null if they are gone")


class ArtifactList(Schema):
    items: list[ArtifactOut]
    next: str | None


class TrainedJudgeIn(StrictIn):
    name: str = Field("", max_length=120, description="Name of the judge; empty: the name of the model")
