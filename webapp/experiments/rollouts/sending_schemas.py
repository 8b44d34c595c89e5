"""Bodies of the API by which rollouts are sent to annotation."""

from typing import Annotated, Literal, Self

from ninja import Schema
from pydantic import ConfigDict, Field, model_validator

from ..models import Rollout, Run
from . import sending
from .queries import Sort
from .schemas import RolloutFilters

Place = Annotated[int, Field(ge=0, lt=2**31)]


class GroupIn(Schema):
    """A group of responses by its place in the run; all of them, or those that `index` names."""

    model_config = ConfigDict(extra="forbid")

    step: Place
    phase: Literal["train", "eval"] = "train"
    group: Place
    index: Annotated[list[Place], Field(max_length=200)] = []


class SendIn(Schema):
    """The rollouts, the question to people, and the place where they are asked: a project, or one that is made of the dataset next."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"kind": "pairwise", "project": 7, "groups": [{"step": 40, "group": 0, "index": [1, 3]}]}
        },
    )

    kind: Literal["pairwise", "grading", "ranking", "rating", "best_worst", "trace_steps"]
    groups: Annotated[list[GroupIn], Field(max_length=sending.MOST)] = []
    filters: RolloutFilters | None = Field(None, description="Instead of `groups`: as `GET rollouts` takes them")
    sort: Sort | None = None
    most: Annotated[
        int,
        Field(
            ge=1, le=sending.MOST, description="With `filters`: the number of rollouts, from the beginning of the list"
        ),
    ] = 20
    project: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    dataset: Annotated[str, Field(max_length=120)] = ""

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if bool(self.groups) == (self.filters is not None):
            raise ValueError("either `groups` or `filters` says which rollouts are sent")
        if bool(self.dataset) == (self.project is not None):
            raise ValueError("either `project` or `dataset` says where they are sent")
        return self

    def rollouts(self, run: Run) -> list[Rollout]:
        if self.filters is not None:
            return sending.listed(run, self.filters.filters(), self.sort, self.most)
        return sending.named(run, [sending.ChosenGroup(g.step, g.phase, g.group, tuple(g.index)) for g in self.groups])


class SendOut(Schema):
    project: int | None
    dataset: int
    version: int = Field(description="The version of the dataset that holds them")
    new: int = Field(description="Examples that are new there")
    before: int = Field(description="Examples that were there already")
    left_out: dict[str, int] = Field(
        description="The reasons why people cannot be asked about rollouts, each with its number"
    )


class SentPlace(Schema):
    step: int
    group: int
    index: int


class AskedOut(Schema):
    project: int
    name: str
    kind: str
    task: int
    url: str
    done: int
    wanted: int | None = Field(description="People who are asked; null: everybody")
    answers: list[str] = Field(description="The current answers, in words")
    agreed: str = Field(description="The resolved judgement in words; empty if there is none yet")


class SentExampleOut(Schema):
    example: int
    key: str
    dataset: int
    rollouts: list[SentPlace]
    tasks: list[AskedOut]


class SentList(Schema):
    items: list[SentExampleOut]
    next: str | None
