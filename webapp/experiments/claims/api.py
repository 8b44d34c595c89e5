"""Claims of papers over the API: methods, launching a study, its verdict. Reading needs the role reviewer, launching researcher."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Path, Router, Schema, Status
from pydantic import ConfigDict, Field

from trainer.metrics.claims import PLANS, RULE
from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.datasets.api.references import DatasetRef

from .. import access, queries
from ..launch.schemas import choice
from ..models import ClaimStudy
from ..parameters import LaunchKey
from . import services, views

router = Router(tags=["claims"])
StudyId = Path[Annotated[int, Field(ge=1, lt=2**63)]]


class ClaimMethodOut(Schema):
    name: str
    title: str
    what: str
    claim: str
    paper: str
    link: str = Field(description="The form that tries it, filled in")
    seconds: float | None = Field(
        description="Seconds of one run with the defaults, by the last runs here; null: not yet known"
    )
    plans: list[str] = Field(description="The plans that test its claim")


class ClaimMethodList(Schema):
    items: list[ClaimMethodOut]
    next: str | None


class ClaimStudyIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"plan": "rationale", "seeds": 5}},
    )

    plan: str
    dataset: DatasetRef | None = Field(
        None,
        description="If dataset and model are left out, both are those of the plan's constructed task, which is made here if it does not exist",
    )
    model: str | None = Field(None, description="Name in the model registry")
    seeds: int = Field(5, description="2 to 20: every arm runs with each of them")
    config: dict[str, Any] | None = Field(
        None,
        description="All settings that the arms share; null: the plan's. Fields that you leave out have the recipe's defaults, not the plan's",
    )


class ClaimStudyOut(Schema):
    id: int
    plan: str
    title: str
    state: Literal["waiting", "launched", "refused"] = Field(
        description="waiting: for its task to be made; refused: its runs could not be launched, see `problem`"
    )
    problem: str
    runs: int = Field(description="Number of runs; while the study waits for its task, the number that it will launch")
    finished: int
    created_at: datetime


class ClaimStudyList(Schema):
    items: list[ClaimStudyOut]
    next: str | None


class ClaimPartOut(Schema):
    part: str
    measure: str
    better: str
    worse: str | None
    margin: float = Field(description="The smallest amount that would matter")
    verdict: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    missing: int


class ClaimOut(Schema):
    claim: str
    verdict: str = Field(
        description="After correction for the number of claims: holds, does not hold here, not decided"
    )
    verdict_uncorrected: str
    p_holm: float
    parts: list[ClaimPartOut]


class ClaimStudyRunOut(Schema):
    run: int | None = Field(description="null: it waits for another run of the study, and is not launched yet")
    arm: str
    seed: int
    state: str = Field(
        description="The state of the run; if the run is not launched yet: waiting, refused or cancelled"
    )
    why: str = Field(description="The reason why it waits, or why it was not launched")
    measures: dict[str, float | None] = Field(description="Empty until the run has finished")


class ClaimStepsOut(Schema):
    done: int
    total: int
    seconds_left: float | None = Field(description="null: no pace is known yet")


class ClaimMakingOut(Schema):
    job: int = Field(description="Under `/weights-jobs`")
    state: str
    phase: str
    steps: ClaimStepsOut | None = Field(
        description="Steps of the job that teaches the model; null: the job does not teach now"
    )
    problem: str


class ClaimStandingOut(ClaimStudyOut):
    making: ClaimMakingOut | None = Field(description="The job that makes the task for which it waits")
    rule: str
    changed: bool = Field(description="The plan's rule of decision has changed since the study was launched")
    claims: list[ClaimOut]
    table: list[ClaimStudyRunOut]


@router.get("/claims/methods", response=ClaimMethodList, summary="Methods, their claims, and what they cost here")
def methods(request: HttpRequest) -> dict[str, Any]:
    membership = access.may_read(require(request))
    items = [
        {**vars(card.method), "link": card.link, "seconds": card.seconds, "plans": list(card.method.plans)}
        for card in views.cards(membership.workspace_id)
    ]
    return {"items": items, "next": None}


@router.get("/claims", response=ClaimStudyList, summary="Studies of claims, newest first")
def studies(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    membership = access.may_read(require(request))
    found = page(queries.studies(membership.workspace_id), cursor, limit)
    items = [_study(row, row.run_count, row.finished_count) for row in found.items]  # type: ignore[attr-defined]
    return {"items": items, "next": found.next}


@router.post("/claims", response={201: ClaimStandingOut}, summary="Launch every arm of a claim with several seeds")
def launch(request: HttpRequest, payload: ClaimStudyIn, idempotency_key: LaunchKey = None) -> Status[dict[str, Any]]:
    """All runs or none: 422 with every field that is wrong.

    Without `dataset` and `model`, a job makes the examples of the plan's constructed task and teaches a small model for it, once for the
    workspace; the runs are launched when both are there. `state` and `making` show the progress.
    """
    study = services.launch(
        access.may_write(require(request)),
        payload.plan,
        dataset=None if payload.dataset is None else choice(payload.dataset),
        model=payload.model,
        seeds=payload.seeds,
        config=payload.config,
        key=idempotency_key,
    )
    return Status(201, _standing(study))


@router.get("/claims/{study_id}", response=ClaimStandingOut, summary="The state of a study, and its verdict")
def study(request: HttpRequest, study_id: StudyId) -> dict[str, Any]:
    return _standing(access.study_read(require(request), study_id))


@router.post("/claims/{study_id}/again", response=ClaimStandingOut, summary="Try a failed study again")
def again(request: HttpRequest, study_id: StudyId) -> dict[str, Any]:
    """Retries a study whose task could not be made, or whose runs were refused. Any other study stays as it is."""
    membership = require(request)
    return _standing(services.again(membership, access.study_write(membership, study_id)))


def _study(row: ClaimStudy, launched: int, finished: int) -> dict[str, Any]:
    return {
        "id": row.pk,
        "plan": row.plan,
        "title": PLANS[row.plan].title,
        "state": row.state,
        "problem": row.problem,
        "runs": launched if row.state == ClaimStudy.State.LAUNCHED else services.planned(row),
        "finished": finished,
        "created_at": row.created_at,
    }


def _standing(row: ClaimStudy) -> dict[str, Any]:
    found = services.standing_of(row)
    shown = [
        {
            "claim": each.claim.text,
            "verdict": each.corrected,
            "verdict_uncorrected": each.verdict,
            "p_holm": each.adjusted,
            "parts": [
                {**vars(part.part), "part": part.part.text, "verdict": part.verdict, **vars(part.difference)}
                for part in each.parts
            ],
        }
        for each in found.results
    ]
    table = [
        {
            "run": cell.run and cell.run.pk,
            "arm": line.arm.name,
            "seed": cell.seed,
            "state": cell.state,
            "why": cell.why,
            "measures": cell.measures,
        }
        for line in found.rows
        for cell in line.cells
    ]
    job = found.making
    making = job and {"job": job.pk, "state": job.state, "phase": job.phase, "steps": job.steps, "problem": job.problem}
    beside = {"making": making, "rule": RULE, "changed": found.changed, "claims": shown, "table": table}
    return _study(row, len(table), found.finished) | beside
