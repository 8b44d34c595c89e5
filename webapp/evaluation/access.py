"""Permissions of evaluations: each function returns a row of the caller's workspace, or answers 404. A role that is too low is refused."""

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role

from . import queries
from .models import Case, Evaluation

READER = Role.REVIEWER  # annotators must not see what judges say: it would colour their judgement
WRITER = Role.RESEARCHER


def may_read(membership: Membership) -> Membership:
    return at_least(membership, READER)


def may_write(membership: Membership) -> Membership:
    return at_least(membership, WRITER)


def evaluation_read(membership: Membership, evaluation_id: int) -> Evaluation:
    return _evaluation(may_read(membership), evaluation_id)


def evaluation_write(membership: Membership, evaluation_id: int) -> Evaluation:
    return _evaluation(may_write(membership), evaluation_id)


def case_read(membership: Membership, evaluation_id: int, number: int) -> Case:
    row = Case.objects.filter(evaluation=evaluation_read(membership, evaluation_id), number=number).first()
    if row is None:
        raise Http404("no such case")
    return row


def _evaluation(membership: Membership, evaluation_id: int) -> Evaluation:
    row = queries.evaluations(membership.workspace_id).filter(id=evaluation_id).first()
    if row is None:
        raise Http404("no such evaluation")
    return row
