"""What the API takes and gives for projects."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from .kinds import Settings
from .models import MAX_OVERLAP

Id = Annotated[int, Field(ge=1, lt=2**63)]
Number = Annotated[int, Field(ge=1, lt=2**31)]
KindName = Literal["pairwise", "rubric", "grading", "ranking", "rating", "rationale"]
StrategyName = Literal["order", "random", "uncertainty", "disagreement"]
Overlap = Annotated[int, Field(ge=1, le=MAX_OVERLAP, description="Different people per task")]
Guidelines = Annotated[str, Field(max_length=100_000, description="Markdown")]


class DatasetIn(Schema):
    """A dataset by id or by name; without `version` its newest one."""

    id: Id | None = None
    name: str | None = Field(None, max_length=120)
    version: Number | None = None


class ProjectIn(Schema):
    name: str = Field(min_length=1, max_length=120)
    kind: KindName
    dataset: DatasetIn
    overlap: Overlap = 2
    strategy: StrategyName = "order"
    settings: dict[str, Any] = Field(
        default_factory=dict, description="See `GET projects/kinds`; defaults where left out"
    )
    guidelines: Guidelines = ""
    open: bool = Field(False, description="Open it at once instead of leaving a draft")


class ProjectChange(Schema):
    """What is left out stays; settings are merged over the present ones."""

    name: str | None = Field(None, min_length=1, max_length=120)
    overlap: Overlap | None = None
    settings: dict[str, Any] | None = None


class StateIn(Schema):
    state: Literal["open", "paused", "closed"]


class SizeIn(Schema):
    kind: KindName
    dataset: DatasetIn
    overlap: Overlap = 2


class SizeOut(Schema):
    tasks: int
    answers: int
    examples: int
    exact: bool = Field(description="False: scaled up from a sample")


class ProgressOut(Schema):
    """Gold tasks are counted apart: everybody may answer them, so they are never complete."""

    tasks: int
    complete: int
    in_work: int
    untouched: int
    seats: int
    seats_done: int
    gold: int
    fraction: float | None


class VersionOut(Schema):
    dataset_id: int
    dataset: str
    number: int
    digest: str


class ProjectOut(Schema):
    id: int
    name: str
    kind: str
    state: str
    version: VersionOut
    overlap: int
    strategy: str
    settings: Settings
    tasks_made: bool
    created_at: datetime
    progress: ProgressOut
    people: int = Field(description="Taking part and not paused")


class ProjectList(Schema):
    items: list[ProjectOut]
    next: str | None


class KindOut(Schema):
    name: str
    title: str
    text: str
    needs: list[str] = Field(description="What a version must have")
    answer: dict[str, Any] = Field(description="JSON Schema of an answer")


class KindList(Schema):
    items: list[KindOut]
    settings: dict[str, Any] = Field(description="JSON Schema of a project's settings")
    next: str | None = None


class GuidelinesIn(Schema):
    text: Guidelines


class GuidelinesOut(Schema):
    number: int
    text: str
    author: str | None
    created_at: datetime
    answers: int = Field(description="Given by people who saw this version")


class GuidelinesList(Schema):
    items: list[GuidelinesOut]
    next: str | None = None
