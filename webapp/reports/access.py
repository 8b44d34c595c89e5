"""Fetching is authorisation: a report of the caller's workspace, or 404; a role that is too low is refused.

The content of its blocks is fetched by the rules of each kind of content, for the reader (`block_contents`).
"""

from dataclasses import dataclass

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role
from webapp.experiments import queries as runs_queries
from webapp.experiments.models import RunQuerySet

from . import queries
from .models import ReportPage, ReportPageVersion

READER = Role.REVIEWER  # annotators must not see what models answer: it would colour their judgement
WRITER = Role.RESEARCHER


@dataclass(frozen=True)
class ReportReader:
    """The reader for whom the blocks of a report are read. People who have a link and no account read by the rights of the person who made
    it, and of the runs with the ids `only`; they are told no name of a person, and nothing about what is not there."""

    membership: Membership
    only: frozenset[int] | None = None

    @property
    def is_stranger(self) -> bool:
        return self.only is not None

    @property
    def runs(self) -> RunQuerySet:
        found = runs_queries.runs(may_read(self.membership).workspace_id)
        return found if self.only is None else found.filter(pk__in=self.only)


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
