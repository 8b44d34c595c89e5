"""Trying models: the checkpoints of a run that can be asked, and pairs of answers that people shall compare."""

from typing import Annotated, Any, Literal, Self

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Path, Router, Schema, Status
from pydantic import ConfigDict, Field, model_validator

from trainer.contracts import Message
from webapp.accounts.access import require
from webapp.annotation import access as annotation
from webapp.core.requests.openapi import StrictIn
from webapp.datasets import access as datasets
from webapp.experiments import access as experiments

from . import offers, pairs, scoring
from .models import TriedScore

router = Router(tags=["try it"])
Id = Annotated[int, Path(ge=1, lt=2**63)]
RowId = Annotated[int, Field(ge=1, lt=2**63)]


class TriedMessage(StrictIn):
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
    tasks: int = Field(description="Number of tasks of the project")
    made: bool = Field(description="False if this pair was sent before")
    url: str


class CriterionIn(Schema):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=5000)
    points: float = Field(1.0, ge=-1000, le=1000)


class ScoreIn(Schema):
    """By verifiers alone without `judge` and `reward_model`: then the answer comes at once."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"example": 1, "text": "Red."}})

    text: str = Field(max_length=100_000)
    example: RowId | None = Field(
        None, description="The example whose prompt the text answers, and whose rubric scores it"
    )
    messages: list[TriedMessage] = Field(
        default_factory=list, max_length=100, description="The prompt, if there is no example"
    )
    criteria: list[CriterionIn] = Field(
        default_factory=list, max_length=100, description="A rubric in place of the example's"
    )
    judge: RowId | None = Field(None, description="A judge version: criterion, checklist, likert or pointwise")
    reward_model: RowId | None = Field(None, description="A registered model that scores texts")
    tokens: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        20_000, description="The most tokens that the judge may use for it"
    )


class ScoredCriterion(Schema):
    text: str
    points: float
    met: bool | None = Field(description="Null if nothing decides the criterion")
    note: str


class ScoreOut(Schema):
    id: int | None = Field(description="Ask for the score under this number; null if verifiers gave it at once")
    state: Literal["queued", "running", "finished", "failed"]
    problem: str = Field(description="The reason why it failed")
    by: str
    score: float | None = None
    scale: str = Field(
        "rubric", description="rubric: met over positive points; rating: (rating - 1) / 9; reward: without bounds"
    )
    why: str = Field("", description="The reason why a finished score has no value")
    words: str = Field("", description="The verdict of the judge on the whole answer")
    missing: int = 0
    partial: bool = False
    criteria: list[ScoredCriterion] = Field(default_factory=list)
    verdicts: list[int] = Field(default_factory=list, description="Ids of the verdicts in the verdict store")


class CheckpointOut(Schema):
    id: int
    step: int
    model: int | None = Field(description="The id under which the model answers; null until it is exported")
    export: str


class RunOffer(Schema):
    id: int
    name: str
    base: int
    models: list[int]
    checkpoints: list[CheckpointOut]


@router.post("/try/pairs", response={200: PairOut, 201: PairOut}, summary="Ask people to compare two answers")
def send_pair(request: HttpRequest, payload: PairIn) -> Status[dict[str, Any]]:
    """Creates a task for a pair. The same pair again gives the same task, with status 200."""
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


@router.post(
    "/try/scores",
    response={200: ScoreOut, 202: ScoreOut},
    summary="Score a text by a rubric, a judge or a reward model",
)
def score(request: HttpRequest, payload: ScoreIn) -> Status[dict[str, Any]]:
    """202: a worker asks the judge or the reward model; ask for it under its number."""
    membership = experiments.may_write(require(request))
    given = payload.model_dump(exclude={"example", "messages"})
    asked = scoring.ScoreRequest(
        **given,
        example=datasets.example_read(membership, payload.example) if payload.example is not None else None,
        messages=[Message(role=each.role, content=each.content) for each in payload.messages],
    )
    found, row = scoring.start(membership, asked)
    if row is not None:
        return Status(202, _told(row))
    told = found.json() if found else {}
    return Status(200, {"id": None, "state": "finished", "problem": "", "by": "verifiers", **told})


@router.get("/try/scores/{score_id}", response=ScoreOut, summary="A score that a worker works out")
def get_score(request: HttpRequest, score_id: Id) -> dict[str, Any]:
    membership = experiments.may_read(require(request))
    rows = TriedScore.objects.select_related("judge_version__judge", "reward_model")
    return _told(get_object_or_404(rows, workspace_id=membership.workspace_id, pk=score_id))


def _told(row: TriedScore) -> dict[str, Any]:
    by = str(row.judge_version or row.reward_model)
    return {"id": row.pk, "state": row.state, "problem": row.problem, "by": by, **(row.result or {})}


@router.get("/try/runs/{run_id}", response=RunOffer, summary="Models of a run that can be tried")
def run_offer(request: HttpRequest, run_id: Id) -> dict[str, Any]:
    """The kept checkpoints of the run; one without `model` is exported first (POST to `export`), by a job of the cluster."""
    return offers.of_run(experiments.run_read(require(request), run_id))
