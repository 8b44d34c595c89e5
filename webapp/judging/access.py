"""Permissions of judging: each function returns a row of the caller's workspace, or answers 404. Annotators see no judges or verdicts."""

from typing import TypeVar

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role

from .models import Judge, JudgeVersion, Trial, Verdict

Row = TypeVar("Row")
READER = Role.REVIEWER
WRITER = Role.RESEARCHER


def may_read(membership: Membership) -> Membership:
    return at_least(membership, READER)


def may_write(membership: Membership) -> Membership:
    return at_least(membership, WRITER)


def judge_read(membership: Membership, judge_id: int) -> Judge:
    return _judge(may_read(membership), judge_id)


def judge_write(membership: Membership, judge_id: int) -> Judge:
    return _judge(may_write(membership), judge_id)


def version_read(membership: Membership, judge_id: int, number: int) -> JudgeVersion:
    rows = JudgeVersion.objects.filter(judge__workspace_id=may_read(membership).workspace_id, judge_id=judge_id)
    rows = rows.select_related("judge", "endpoint", "created_by")
    return _found(rows.filter(number=number).first(), "version of this judge")


def verdict_read(membership: Membership, verdict_id: int) -> Verdict:
    rows = Verdict.objects.filter(version__judge__workspace_id=may_read(membership).workspace_id)
    return _found(rows.select_related("version__judge", "version__endpoint").filter(id=verdict_id).first(), "verdict")


def trial_read(membership: Membership, trial_id: int) -> Trial:
    rows = Trial.objects.filter(workspace_id=may_read(membership).workspace_id)
    rows = rows.select_related("judge", "endpoint", "before", "after")
    return _found(rows.filter(id=trial_id).first(), "trial")


def _judge(membership: Membership, judge_id: int) -> Judge:
    rows = Judge.objects.filter(workspace_id=membership.workspace_id).select_related("fixed_dataset", "created_by")
    return _found(rows.filter(id=judge_id).first(), "judge")


def _found(row: Row | None, what: str) -> Row:
    if row is None:
        raise Http404(f"no such {what}")
    return row
