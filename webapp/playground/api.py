"""Trying models: the checkpoints of a run that can be asked, and pairs of answers that people shall compare."""

from typing import Annotated, Any, Literal, Self

from django.http import HttpRequest
from django.urls import reverse
from ninja import Path, Router, Schema, Status
from pydantic import ConfigDict, Field, model_validator

from trainer.contracts import Message
from webapp.accounts.access import require
from webapp.annotation import access as annotation
from webapp.datasets import access as datasets
from webapp.experiments import access as experiments

from . import offers, pairs, scoring

router = Router(tags=["try it"])
Id = Annotated[int, Path(ge=1, lt=2**63)]
RowId = Annotated[int, Field(ge=1, lt=2**63)]


class TriedMessage(Schema):
    role: Literal["system", "user", "assistant"]
    content: str = Field(max_length=100_000)


class Sampling(Schema):
    model_config = ConfigDict(extra="forbid")

    temperature: Annotated[float | None, Field(ge=0, le=5)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    max_new_tokens: Annotated[int | None, Field(ge=1, le=32_768)] = None
    seed: Annotated[int | None, Field(ge=0, lt=2**31)] = None


class TriedAnswer(Schema):
    model_config = ConfigDict(extra="forbid")

    model: RowId
    text: str = Field(max_length=100_000)
    sampling: Sampling = Sampling()

    def tried(self) -> pairs.Tried:
        return pairs.Tried(self.model, self.text, self.sampling.model_dump(exclude_none=True))


class PairIn(Schema):
    """Without `project` and `new_project` the newest project that collects pairs takes it, or a new one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "messages": [{"role": "user", "content": "Name three colours."}],
                "a": {"model": 1, "text": "Red, green and blue."},
                "b": {"model": 2, "text": "Red."},
            }
        },
    )

    messages: list[TriedMessage] = Field(min_length=1, max_length=100)
    a: TriedAnswer
    b: TriedAnswer
    example: RowId | None = Field(None, description="The example whose prompt it is: the pair stays on its side")
    project: RowId | None = None
    new_project: str = Field("", max_length=120, description="A name: a project is set up and opened")

    @model_validator(mode="after")
    def _one_project(self) -> Self:
        if self.project is not None and self.new_project.strip():
            raise ValueError("give either project or new_project")
        return self


class PairOut(Schema):
    project: int
    project_name: str
    task: int
    tasks: int = Field(description="Of the project")
    made: bool = Field(description="False where this pair was sent before")
    url: str


class ScoreIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"example": 1, "text": "Red."}})

    example: RowId = Field(description="Whose rubric it is")
    text: str = Field(max_length=100_000)


class ScoredCriterion(Schema):
    text: str
    points: float
    met: bool | None = Field(description="Null where no verifier decides")
    note: str


class ScoreOut(Schema):
    score: float | None = Field(description="Met over positive points, of the criteria that are decided")
    missing: int
    partial: bool
    criteria: list[ScoredCriterion]


class CheckpointOut(Schema):
    id: int
    step: int
    model: int | None = Field(description="To be asked under this number; null until it is exported")
    export: str


class RunOffer(Schema):
    id: int
    name: str
    base: int
    models: list[int]
    checkpoints: list[CheckpointOut]


@router.post("/try/pairs", response={200: PairOut, 201: PairOut}, summary="Have people compare two answers")
def send_pair(request: HttpRequest, payload: PairIn) -> Status[dict[str, Any]]:
    """The same pair again is the same task (200)."""
    membership = annotation.may_write(require(request))
    project, task, made = pairs.send(
        membership,
        [Message(role=each.role, content=each.content) for each in payload.messages],
        (payload.a.tried(), payload.b.tried()),
        example=payload.example,
        project=payload.project,
        new_project=payload.new_project,
    )
    project.refresh_from_db(fields=["tasks_total"])
    told = {
        "project": project.pk,
        "project_name": project.name,
        "task": task.pk,
        "tasks": project.tasks_total,
        "made": made,
        "url": reverse("project", args=[project.pk]),
    }
    return Status(201 if made else 200, told)


@router.post("/try/scores", response=ScoreOut, summary="Score a text by the rubric of an example")
def score(request: HttpRequest, payload: ScoreIn) -> dict[str, Any]:
    """By its verifiers; criteria without one are missing and leave the sums."""
    membership = experiments.may_write(require(request))
    return scoring.by_rubric(datasets.example_read(membership, payload.example), payload.text)


@router.get("/try/runs/{run_id}", response=RunOffer, summary="What of a run can be tried")
def run_offer(request: HttpRequest, run_id: Id) -> dict[str, Any]:
    """Its kept checkpoints; one without `model` is exported first (POST to `export`), by a job of the cluster."""
    return offers.of_run(experiments.run_read(require(request), run_id))
