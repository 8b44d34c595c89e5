"""Rollouts of a run over the API, datasets made of them, and what goes to annotation."""

from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from ninja import Query, Status

from trainer.contracts.rollout_examples import WantedResponses
from webapp.accounts.access import require
from webapp.accounts.models import Role
from webapp.core.database.paging import Limit

from .. import access
from ..parameters import RunId, Step, router, run_of
from . import datasets, episodes, prompts, sending, sent_to_annotation, serializers
from . import queries as rollouts
from .episode_schemas import HitList, TurnList, TurnTextOut
from .schemas import (
    FacetsOut,
    PromptSteps,
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
    from_step: Step | None = None,
) -> dict[str, Any]:
    """Without `step`, filters look at the newest 20,000 rollouts; `oldest_step` then says how far back that was. `text` is searched for in
    all rollouts of the run that are indexed, and in the newest that are not; `waiting` says how many that leaves out. `previous` is a cursor
    too: it leads to the page before this one, in the same order; a search for `text` has none. `from_step` begins the order `newest` at a step."""
    run = run_of(request, run_id)
    found = rollouts.rollouts(run, wanted.filters(), sort=sort, cursor=cursor, limit=limit, from_step=from_step)
    return {
        "items": [serializers.rollout(row) for row in found.items],
        "next": found.next,
        "previous": found.previous,
        "oldest_step": found.oldest_step,
        "waiting": found.waiting,
        "indexed": found.indexed,
    }


@router.get("/runs/{run_id}/rollouts/facets", response=FacetsOut, summary="The filters of rollouts")
def rollout_facets(
    request: HttpRequest, run_id: RunId, step: Step | None = None, counted: bool = True
) -> dict[str, Any]:
    """With `counted=false` the `count` of each step is null, and the answer comes soon however many rollouts there are."""
    return rollouts.facets(run_of(request, run_id), step, counted)


@router.get("/runs/{run_id}/rollouts/prompt", response=PromptSteps, summary="One prompt through training")
def prompt_steps(
    request: HttpRequest,
    run_id: RunId,
    example_key: Annotated[str, Query(max_length=200)],
    phase: Literal["train", "eval"] = "train",
    lengths: bool = True,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=prompts.MOST)] = 50,
) -> dict[str, Any]:
    """Each step at which it was sampled, the newest first, with the rewards of its responses. The responses themselves are in
    `GET /runs/{run_id}/rollouts` with the same `example_key`. Lengths are read from the responses: with them a page has at most
    100 steps; without them, `lengths=false`, at most 2,000."""
    return prompts.steps(run_of(request, run_id), example_key, phase, lengths=lengths, cursor=cursor, limit=limit)


@router.post(
    "/runs/{run_id}/rollouts/dataset",
    response={202: RolloutDatasetOut},
    summary="Create a dataset from a run's responses",
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
    summary="Responses that the filters of a dataset leave out",
)
def preview_dataset(request: HttpRequest, run_id: RunId, payload: RolloutPreviewIn) -> dict[str, Any]:
    """Nothing is written. The filters work in a fixed order, each on what the previous one left. `cases` of each are listed with the reason."""
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
    summary="The rollouts about which people are asked, and their answers",
)
def sent_rollouts(
    request: HttpRequest, run_id: RunId, phase: Literal["train", "eval"] = "train", step: Step | None = None
) -> dict[str, Any]:
    """The newest 500 examples. Answers stand without their authors. An example without tasks waits for its project."""
    found = sent_to_annotation.sent(run_of(request, run_id), phase, step)
    return {"items": [serializers.sent_example(each) for each in found], "next": None}


@router.get(
    "/runs/{run_id}/rollouts/{rollout_id}/turns",
    response=TurnList,
    summary="The turns of an episode, without their texts",
)
def episode_turns(
    request: HttpRequest,
    run_id: RunId,
    rollout_id: RunId,
    cursor: Annotated[str | None, Query(pattern=r"^\d{1,9}$", description="The number of the first turn")] = None,
    limit: Limit = 100,
) -> dict[str, Any]:
    """The answer has no texts, so it comes as soon for an episode of any size. A response in one go has no turns."""
    rollout = access.rollout_read(require(request), run_id, rollout_id)
    return serializers.turns(episodes.page(rollout, int(cursor or 0), limit))


@router.get(
    "/runs/{run_id}/rollouts/{rollout_id}/turns/{number}", response=TurnTextOut, summary="The text of a turn, in parts"
)
def episode_turn(
    request: HttpRequest, run_id: RunId, rollout_id: RunId, number: Step, part: Step = 0
) -> dict[str, Any]:
    found = episodes.text(access.rollout_read(require(request), run_id, rollout_id), number, part)
    if found is None:
        raise Http404("no such part of a turn")
    return vars(found)


@router.get(
    "/runs/{run_id}/rollouts/{rollout_id}/search",
    response=HitList,
    summary="Turns of an episode that contain a text",
)
def episode_search(
    request: HttpRequest, run_id: RunId, rollout_id: RunId, q: Annotated[str, Query(min_length=1, max_length=200)]
) -> dict[str, Any]:
    """The first 200 turns that have it in their text, in any case, or in the name of their tool."""
    hits, more = episodes.search(access.rollout_read(require(request), run_id, rollout_id), q)
    return {"items": [vars(each) for each in hits], "more": more}
