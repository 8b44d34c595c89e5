"""People's grades and matches of the responses and reasons of a run, over the API."""

from typing import Any

from django.http import HttpRequest
from ninja import Status

from webapp.accounts.access import require
from webapp.core.database.paging import Limit

from .. import access
from ..parameters import RunId, router, run_of
from . import human_grades, reason_matches, serializers
from .schemas import GradedList, PeopleOut, ReasonsMatchedIn, ReasonsOut


@router.get(
    "/runs/{run_id}/reasons", response=ReasonsOut, summary="The agreement of a run's matcher of reasons with people"
)
def run_reasons(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """The matchers' agreement with people, and the judgement that waits to be matched, without the matcher's result."""
    return serializers.reasons(run_of(request, run_id))


@router.post("/runs/{run_id}/reasons", response={201: ReasonsOut}, summary="Match the reasons of a judgement")
def match_reasons(request: HttpRequest, run_id: RunId, payload: ReasonsMatchedIn) -> Status[dict[str, Any]]:
    """409 if somebody has matched it meanwhile. The response has the next one."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    pairs = [f"{human}-{model}" for human, model in payload.matches]
    reason_matches.save(membership, run, payload.judgement, pairs)
    return Status(201, serializers.reasons(run))


@router.get("/runs/{run_id}/people", response=PeopleOut, summary="The agreement of people with a run's judge")
def run_people(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """People's grades of the responses that `people.share` has drawn so far. The interval counts responses, not criteria."""
    return serializers.people(human_grades.agreement(run_of(request, run_id)))


@router.get("/runs/{run_id}/people/cases", response=GradedList, summary="Verdicts of judge and people, case by case")
def run_people_cases(
    request: HttpRequest, run_id: RunId, cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    """Every response that was drawn, in the order they came, with the verdicts of its criteria. People are counted, not
    named."""
    found, following = human_grades.cases(run_of(request, run_id), cursor, limit)
    return {"items": [serializers.graded(each) for each in found], "next": following}
