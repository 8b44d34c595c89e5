"""Fetching is authorisation: a report of the caller's workspace, or 404; a role that is too low is refused.

The content of its blocks is fetched by the rules of each kind of content, for the reader (`showing`).
"""

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role

from . import queries
from .models import ReportPage, ReportPageVersion

READER = Role.REVIEWER  # annotators must not see what models answer: it would colour their judgement
WRITER = Role.RESEARCHER


def may_read(membership: Membership) -> Membership:
    return at_least(membership, READER)


def may_write(membership: Membership) -> Membership:
    return at_least(membership, WRITER)


def report_read(membership: Membership, report_id: int) -> ReportPage:
    found = queries.reports(may_read(membership).workspace_id).filter(pk=report_id).first()
    if found is None:
        raise Http404("no such report")
    return found


def report_write(membership: Membership, report_id: int) -> ReportPage:
    return report_read(may_write(membership), report_id)


def version_read(membership: Membership, report_id: int, number: int) -> ReportPageVersion:
    report = report_read(membership, report_id)
    found = queries.versions(report).filter(number=number).first()
    if found is None:
        raise Http404("no such version of this report")
    found.report = report
    return found
