"""Evaluations over the API. Reading needs the role reviewer, changing anything researcher."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import File, Header, Path, Query, Router, Status
from ninja.files import UploadedFile
from pydantic import Field

from webapp.accounts.access import require
from webapp.accounts.models import Membership
from webapp.core import audit, once
from webapp.core.model_schemas import schema_of
from webapp.core.openapi import sends
from webapp.core.paging import Limit, page
from webapp.core.problems import Conflict, Invalid
from webapp.core.strict_query import OneOf
from webapp.datasets.models import DatasetVersion
from webapp.judging import access as judging

from . import access, asking, export, leaders, leaking, licence, queries, results, serializers, services, studies
from . import schemas as s
from .models import Evaluation, Recording
from .recipes import RECIPES

router = Router(tags=["evaluations"])
EvaluationId = Path[Annotated[int, Field(ge=1, lt=2**63)]]
Number = Path[Annotated[int, Field(ge=1, lt=2**31)]]
State = Annotated[str, OneOf(tuple(Evaluation.State.values))]
RecipeName = Annotated[str, OneOf(tuple(RECIPES))]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=64,
        description="Sent again with the same body, it answers with the same evaluation; else 422",
    ),
]


@router.get(
    "/judges/{judge_id}/versions/{number}/licence",
    response=s.LicenceOut,
    summary="What is known about a judge version on labels of people",
)
def judge_licence(request: HttpRequest, judge_id: EvaluationId, number: Number) -> dict[str, Any]:
    row = judging.version_read(require(request), judge_id, number)
    return licence.as_json(licence.licences(row.judge.workspace_id, [row])[row.pk])


@router.get("/evaluations/recipes", response=s.EvaluationRecipeList, summary="What an evaluation can find out")
def recipes(request: HttpRequest) -> dict[str, Any]:
    access.may_read(require(request))
    return {"items": list(RECIPES.values()), "next": None}


@router.get("/evaluations/recipes/{name}/schema", response=dict[str, Any], summary="JSON Schema of a recipe's config")
def recipe_schema(request: HttpRequest, name: str) -> dict[str, Any]:
    access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    return schema_of(RECIPES[name].schema)


@router.get(
    "/evaluations/recordings", response=s.RecordingList, summary="Recorded verdicts and scores that were sent in"
)
def recordings(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    found = page(queries.recordings(access.may_read(require(request)).workspace_id), cursor, limit)
    return {"items": [serializers.recording(row) for row in found.items], "next": found.next}


@router.post("/evaluations/recordings", response={201: s.RecordingOut}, summary="Send recorded verdicts or scores in")
def store_recording(request: HttpRequest, file: File[UploadedFile]) -> Status[dict[str, Any]]:
    """JSON lines {"judge", "pair", "group", "label", "given", "swapped"}; null is a missing verdict, `swapped` is the
    verdict as said. Or scores: {"model", "example", "response", "score"}; null is a missing score. The same file again is the same recording."""
    membership = access.may_write(require(request))
    content = file.read(services.MAX_RECORDING + 1)
    row = services.store_recording(membership, (file.name or "")[:100].replace("\0", ""), content)
    return Status(201, serializers.recording(row))


@router.get("/evaluations", response=s.EvaluationList, summary="Evaluations, newest first")
def evaluations(
    request: HttpRequest,
    cursor: str | None = None,
    limit: Limit = 50,
    state: State | None = None,
    recipe: RecipeName | None = None,
) -> dict[str, Any]:
    membership = access.may_read(require(request))
    found = page(queries.filtered(membership.workspace_id, state=state or "", recipe=recipe or ""), cursor, limit)
    known = queries.headlines([row.pk for row in found.items])
    items = [serializers.evaluation(row, headline=known.get(row.pk), full=False) for row in found.items]
    return {"items": items, "next": found.next}


@router.post("/evaluations", response={201: s.EvaluationFull}, summary="Start an evaluation")
def create(request: HttpRequest, payload: s.EvaluationIn, idempotency_key: Key = None) -> Status[dict[str, Any]]:
    """422 with every field that is wrong, before anything is queued."""
    membership = access.may_write(require(request))
    row = services.create(
        membership,
        recipe=payload.recipe,
        config=payload.config,
        dataset=_version(membership, payload.dataset),
        recording=_recording(membership, payload.recording),
        name=payload.name,
        key=once.key(idempotency_key, payload.model_dump()),
    )
    return Status(201, serializers.evaluation(row))


@router.get("/evaluations/{int:evaluation_id}", response=s.EvaluationFull, summary="One evaluation with its results")
def evaluation(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    return serializers.evaluation(_read(request, evaluation_id))


@router.get(
    "/evaluations/{int:evaluation_id}/results",
    response=results.ResultsOut,
    summary="What it found, number by number",
)
def show_results(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    """By `recipe`: each section holds numbers of one shape, with n, interval and what is missing. 409 (`no_results`) before it
    has found anything."""
    return results.of(_found(_read(request, evaluation_id)))


@router.get(
    "/evaluations/{int:evaluation_id}/results/csv",
    summary="The same as CSV, a line for each number",
    openapi_extra=sends("text/csv"),
)
def results_csv(request: HttpRequest, evaluation_id: EvaluationId) -> HttpResponse:
    """Text that a spreadsheet would run begins with an apostrophe."""
    membership, row = require(request), _found(_read(request, evaluation_id))
    audit.record(membership, membership.user, "evaluation.exported", row, format="csv")
    return export.as_csv(row)


@router.get(
    "/evaluations/{int:evaluation_id}/leaks",
    response=s.EvaluationLeaks,
    summary="What its models were trained on of what they are tried on",
)
def leaks(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    """Of models of the registry and of runs; nobody knows what a model elsewhere has seen."""
    row = _read(request, evaluation_id)
    recipe = RECIPES.get(row.recipe)
    found = leaking.told(row.workspace_id, recipe, row.config, row.dataset_version) if recipe else leaking.NOTHING
    return {"leaks": found["leaks"], "near": [each.json() for each in found["near"]]}


@router.patch("/evaluations/{int:evaluation_id}", response=s.EvaluationFull, summary="Rename an evaluation")
def rename(request: HttpRequest, evaluation_id: EvaluationId, payload: s.RenameIn) -> dict[str, Any]:
    membership = require(request)
    return serializers.evaluation(
        services.rename(membership, access.evaluation_write(membership, evaluation_id), payload.name)
    )


@router.delete("/evaluations/{int:evaluation_id}", response={204: None}, summary="Delete one that is over")
def delete(request: HttpRequest, evaluation_id: EvaluationId) -> Status[None]:
    membership = require(request)
    services.delete(membership, access.evaluation_write(membership, evaluation_id))
    return Status(204, None)


@router.post("/evaluations/{int:evaluation_id}/pause", response=s.EvaluationFull, summary="Pause; nothing is lost")
def pause(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    return _move(request, evaluation_id, Evaluation.State.PAUSED)


@router.post(
    "/evaluations/{int:evaluation_id}/resume", response=s.EvaluationFull, summary="Go on after a pause or failure"
)
def resume(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    return _move(request, evaluation_id, Evaluation.State.QUEUED)


@router.post("/evaluations/{int:evaluation_id}/cancel", response=s.EvaluationFull, summary="Cancel for good")
def cancel(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    return _move(request, evaluation_id, Evaluation.State.CANCELLED)


@router.post("/evaluations/{int:evaluation_id}/rerun", response={201: s.EvaluationFull}, summary="The same again")
def rerun(
    request: HttpRequest, evaluation_id: EvaluationId, resample: bool = False, idempotency_key: Key = None
) -> Status[dict[str, Any]]:
    """From its stored config. What a judge has answered before is not asked again, unless `resample` asks for new samples;
    the earlier ones are kept."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    row = services.rerun(membership, row, idempotency_key, resample=resample)
    return Status(201, serializers.evaluation(row))


@router.get("/evaluations/{int:evaluation_id}/cases", response=s.CaseList, summary="The cases behind a number")
def cases(
    request: HttpRequest,
    evaluation_id: EvaluationId,
    tag: Annotated[
        list[str], Query(description="Only cases that carry all of these", max_length=queries.MAX_TAGS)
    ] = [],  # noqa: B006
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    found = queries.cases(_read(request, evaluation_id), tag, cursor, limit)
    return {"items": [serializers.case(row) for row in found.items], "next": found.next}


@router.get("/evaluations/{int:evaluation_id}/cases/{number}", response=s.CaseOut, summary="One case")
def case(request: HttpRequest, evaluation_id: EvaluationId, number: Number) -> dict[str, Any]:
    return serializers.case(access.case_read(require(request), evaluation_id, number))


@router.get("/evaluations/{int:evaluation_id}/export", summary="Everything in one file", response=dict[str, Any])
def export_json(request: HttpRequest, evaluation_id: EvaluationId) -> StreamingHttpResponse | HttpResponse:
    """The evaluation as above with all its `cases`."""
    membership, row = require(request), _read(request, evaluation_id)
    audit.record(membership, membership.user, "evaluation.exported", row)
    return export.as_json(row)


@router.get(
    "/evaluations/{int:evaluation_id}/report", summary="A self-contained HTML report", openapi_extra=sends("text/html")
)
def export_html(request: HttpRequest, evaluation_id: EvaluationId) -> HttpResponse:
    membership, row = require(request), _read(request, evaluation_id)
    audit.record(membership, membership.user, "evaluation.exported", row, format="html")
    return export.as_html(row)


@router.post("/evaluations/{int:evaluation_id}/tasks", response={201: s.TasksOut}, summary="Ask people about cases")
def make_tasks(request: HttpRequest, evaluation_id: EvaluationId, payload: s.TasksIn) -> Status[dict[str, Any]]:
    """The examples behind the cases that carry all of `tags` become a dataset and an open project on it."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    project = asking.make_tasks(
        membership, row, payload.tags, name=payload.name, kind=payload.kind, overlap=payload.overlap
    )
    return Status(201, {"project": project.pk, "dataset": project.version.dataset_id})


@router.get(
    "/evaluations/{int:evaluation_id}/studies",
    response=s.StudyList,
    summary="Studies made from a RubricBench evaluation",
)
def study_list(
    request: HttpRequest, evaluation_id: EvaluationId, cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    found = page(studies.studies(_read(request, evaluation_id)), cursor, limit)
    return {"items": [serializers.study(project) for project in found.items], "next": found.next}


@router.post(
    "/evaluations/{int:evaluation_id}/studies", response={201: s.TasksOut}, summary="Have people judge by either rubric"
)
def make_study(request: HttpRequest, evaluation_id: EvaluationId, payload: s.StudyIn) -> Status[dict[str, Any]]:
    """An open project in two arms on the pairs that the model wrote a rubric for; nobody sees a pair in both. Its answers
    are read by an evaluation of recipe `study` on the same dataset."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    project = studies.make(membership, row, name=payload.name, people=payload.people, tags=payload.tags)
    return Status(201, {"project": project.pk, "dataset": project.version.dataset_id})


@router.get("/leaderboards", response=s.BoardList, summary="Benchmarks that something was measured on")
def leaderboards(request: HttpRequest) -> dict[str, Any]:
    """The one measured last first. A benchmark is a recipe on data with settings; its rows compare."""
    found = leaders.boards(access.may_read(require(request)).workspace_id)
    return {"items": [serializers.board(each) for each in found], "next": None}


@router.get("/leaderboards/{benchmark}", response=s.BoardOut, summary="One leaderboard, the best first")
def leaderboard(request: HttpRequest, benchmark: str) -> dict[str, Any]:
    found = leaders.board(access.may_read(require(request)).workspace_id, benchmark.replace("\0", ""))
    if found is None:
        raise Http404("no such benchmark")
    return serializers.board(found)


def _read(request: HttpRequest, evaluation_id: int) -> Evaluation:
    return access.evaluation_read(require(request), evaluation_id)


def _found(row: Evaluation) -> Evaluation:
    """Raises Conflict where it has found nothing."""
    if row.results is None or row.recipe not in RECIPES:
        raise Conflict(f"This evaluation has found nothing; it is {row.state}.", "no_results")
    return row


def _move(request: HttpRequest, evaluation_id: int, to: str) -> dict[str, Any]:
    membership = require(request)
    return serializers.evaluation(services.move(membership, access.evaluation_write(membership, evaluation_id), to))


def _version(membership: Membership, choice: s.EvaluationDatasetIn | None) -> DatasetVersion | None:
    if choice is None:
        return None
    rows = DatasetVersion.objects.filter(dataset__workspace=membership.workspace, dataset_id=choice.id)
    if choice.version is not None:
        rows = rows.filter(number=choice.version)
    found = rows.select_related("dataset").order_by("-number").first()
    if found is None:
        raise Invalid("There is no such dataset.", {"dataset": "this workspace has no such dataset or version"})
    return found


def _recording(membership: Membership, recording_id: int | None) -> Recording | None:
    if recording_id is None:
        return None
    found = queries.recordings(membership.workspace_id).filter(id=recording_id).first()
    if found is None:
        raise Invalid("There is no such recording.", {"recording": "this workspace has no such recording"})
    return found
