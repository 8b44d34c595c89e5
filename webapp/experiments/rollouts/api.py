"""Rollouts of a run over the API, datasets made of them, and what goes to annotation."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Status

from trainer.contracts.rollout_examples import WantedResponses
from webapp.accounts.access import require
from webapp.accounts.models import Role

from .. import access
from ..parameters import RunId, Step, router, run_of
from . import datasets, sending, sent, serializers
from . import queries as rollouts
from .schemas import (
    FacetsOut,
    RolloutDatasetIn,
    RolloutDatasetOut,
    RolloutFilters,
    RolloutList,
    RolloutPreviewIn,
    RolloutPreviewOut,
)
from .sending_schemas import SendIn, SendOut, SentList


@router.get("/runs/{run_id}/rollouts", response=RolloutList, summary="Sampled responses with their verdicts")
def list_rollouts(
    request: HttpRequest,
    run_id: RunId,
    wanted: Query[RolloutFilters],
    sort: rollouts.Sort | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> dict[str, Any]:
    """Without `step`, filters look at the newest 20,000 rollouts; `oldest_step` then says how far back that was."""
    found = rollouts.rollouts(run_of(request, run_id), wanted.filters(), sort=sort, cursor=cursor, limit=limit)
    return {
        "items": [serializers.rollout(row) for row in found.items],
        "next": found.next,
        "oldest_step": found.oldest_step,
    }


@router.get("/runs/{run_id}/rollouts/facets", response=FacetsOut, summary="What rollouts can be filtered by")
def rollout_facets(
    request: HttpRequest, run_id: RunId, step: Step | None = None, counted: bool = True
) -> dict[str, Any]:
    """With `counted=false` the `count` of each step is null, and the answer comes soon however many rollouts there are."""
    return rollouts.facets(run_of(request, run_id), step, counted)


@router.post(
    "/runs/{run_id}/rollouts/dataset",
    response={202: RolloutDatasetOut},
    summary="Make a dataset of a run's responses",
)
def make_dataset(request: HttpRequest, run_id: RunId, payload: RolloutDatasetIn) -> Status[dict[str, Any]]:
    """One example per prompt, with the responses, their rewards in `meta.rewards`, the model and the steps. A worker gathers them: follow
    `GET imports/{import_id}`. Its `origin` says how many responses there are, how many were left out, and why."""
    membership = require(request, Role.RESEARCHER)
    given = payload.model_dump()
    name = given.pop("name")
    job = datasets.start(membership, access.run_read(membership, run_id), WantedResponses(**given), name)
    return Status(202, {"import_id": job.pk, "dataset": job.dataset_name})


@router.post(
    "/runs/{run_id}/rollouts/dataset/preview",
    response=RolloutPreviewOut,
    summary="What the filters of a dataset of responses leave out",
)
def preview_dataset(request: HttpRequest, run_id: RunId, payload: RolloutPreviewIn) -> dict[str, Any]:
    """Makes nothing. The filters work in a fixed order, each on what the previous one left. `cases` of each are listed with the reason."""
    given = payload.model_dump(exclude={"name", "cases", "of", "after"})
    found = datasets.preview(run_of(request, run_id), WantedResponses(**given))
    cases = {step.key: payload.cases if payload.of in ("", step.key) else 0 for step in found.steps}
    return serializers.rollout_preview(found, cases, payload.after if payload.of else 0)


@router.post(
    "/runs/{run_id}/rollouts/annotate",
    response={200: SendOut, 201: SendOut},
    summary="Send rollouts to annotation",
)
def send_rollouts(request: HttpRequest, run_id: RunId, payload: SendIn) -> Status[dict[str, Any]]:
    """The rollouts that `groups` names, or the first `most` that fit `filters`, become examples of `project`, whose kind must be `kind`;
    or of the dataset `dataset`, for a project that you set up with `POST /projects` next. 201 if something is new, 200 if all was there."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    chosen = payload.rollouts(run)
    prepared = sending.prepare(run, payload.kind, chosen, sending.prompts(run, chosen))
    if payload.project is not None:
        found = sending.send(membership, run, prepared, payload.project)
        return Status(201 if found.new else 200, serializers.sent_to_project(found))
    version, new = sending.begin(membership, run, prepared, payload.dataset)
    return Status(201 if new else 200, serializers.sent_to_dataset(prepared, version, new))


@router.get(
    "/runs/{run_id}/rollouts/sent",
    response=SentList,
    summary="Which rollouts people are asked about, and their answers",
)
def sent_rollouts(
    request: HttpRequest, run_id: RunId, phase: Literal["train", "eval"] = "train", step: Step | None = None
) -> dict[str, Any]:
    """The newest 500 examples. Answers stand without their authors. An example without tasks waits for its project."""
    found = sent.sent(run_of(request, run_id), phase, step)
    return {"items": [serializers.sent_example(each) for each in found], "next": None}
