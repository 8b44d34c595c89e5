"""Trials of drafts and comparisons of versions over the API. Reading needs the role reviewer, starting one researcher."""

from django.http import HttpRequest
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.inference.endpoints.access import endpoint_read

from .. import access
from ..models import Trial
from ..parameters import Id
from . import schemas as s
from . import services

router = Router()


@router.post("/judge-trials", response={201: s.TrialOut}, summary="Try a draft on examples")
def try_draft(request: HttpRequest, payload: s.TrialIn) -> Status[Trial]:
    """Nothing enters the verdict store. Ask for the trial until its state is finished or failed."""
    membership = access.may_write(require(request))
    made = services.start_trial(
        membership,
        spec=payload.spec,
        endpoint=endpoint_read(membership, payload.endpoint),
        examples=payload.examples,
        extra=services.Extra(**payload.extra.dict()),
        judge=None if payload.judge is None else access.judge_write(membership, payload.judge),
    )
    return Status(201, made)


@router.post("/judges/{judge_id}/comparisons", response={201: s.TrialOut}, summary="Compare two versions")
def compare(request: HttpRequest, judge_id: Id, payload: s.ComparisonIn) -> Status[Trial]:
    membership = require(request)
    row = access.judge_write(membership, judge_id)
    made = services.start_comparison(
        membership,
        row,
        before=access.version_read(membership, judge_id, payload.before),
        after=access.version_read(membership, judge_id, payload.after),
        extra=services.Extra(**payload.extra.dict()),
    )
    return Status(201, made)


@router.get("/judge-trials/{trial_id}", response=s.TrialOut, summary="One trial or comparison")
def trial(request: HttpRequest, trial_id: Id) -> Trial:
    return access.trial_read(require(request), trial_id)
