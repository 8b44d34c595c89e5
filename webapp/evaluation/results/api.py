"""The results of an evaluation over the API: numbers, cases, files. It needs the role reviewer."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router

from webapp.accounts.access import require
from webapp.core.auditing import audit
from webapp.core.database.paging import Limit
from webapp.core.problems import Conflict
from webapp.core.requests.openapi import sends

from .. import access, queries, serializers
from .. import schemas as s
from ..launch import training_leaks
from ..models import Evaluation
from ..parameters import EvaluationId, Number
from ..recipes import RECIPES
from . import export, numbers

router = Router()


@router.get(
    "/evaluations/{int:evaluation_id}/results",
    response=numbers.ResultsOut,
    summary="Results, number by number",
)
def show_results(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    """By `recipe`: each section holds numbers of one shape, with n, interval and what is missing. 409 (`no_results`) before there are
    results."""
    return numbers.numbers_of(_found(_read(request, evaluation_id)))


@router.get(
    "/evaluations/{int:evaluation_id}/results/csv",
    summary="Results as CSV, a line for each number",
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
    summary="Training data of its models that are also in its examples",
)
def leaks(request: HttpRequest, evaluation_id: EvaluationId) -> dict[str, Any]:
    """Leaks for models of the registry and of runs. The training data of models elsewhere are not known."""
    row = _read(request, evaluation_id)
    recipe = RECIPES.get(row.recipe)
    found = (
        training_leaks.of_config(row.workspace_id, recipe, row.config, row.dataset_version)
        if recipe
        else training_leaks.NOTHING
    )
    return {"leaks": found["leaks"], "near": [each.json() for each in found["near"]]}


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


@router.get(
    "/evaluations/{int:evaluation_id}/export",
    summary="An evaluation with all its cases in one file",
    response=dict[str, Any],
)
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


def _read(request: HttpRequest, evaluation_id: int) -> Evaluation:
    return access.evaluation_read(require(request), evaluation_id)


def _found(row: Evaluation) -> Evaluation:
    """The evaluation. Raises Conflict if it has no results."""
    if row.results is None or row.recipe not in RECIPES:
        raise Conflict(f"This evaluation has no results; it is {row.state}.", "no_results")
    return row
