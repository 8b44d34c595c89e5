"""The rows on which a report rests, kept for lineage: runs and rollouts that its blocks show, runs and evaluations to which its text links."""

import logging
import re
from collections.abc import Iterator
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from webapp.accounts.models import Membership, Role
from webapp.evaluation.models import Evaluation

from . import language, queries, sources, tables
from .access import ReportReader
from .language import ReportBlock, ReportWords
from .models import ReportPage, ReportSource

logger = logging.getLogger(__name__)
LINK = re.compile(r"(?<!/v1)/(runs|evaluations)/(\d{1,18})\b")
AGAIN = timedelta(hours=1)
AT_ONCE = 50

Origin = tuple[int | None, int | None, int | None]
"""The ids of a run, an evaluation and a rollout; a rollout comes with its run."""


def store_origins(membership: Membership, report: ReportPage, body: str) -> None:
    """Stores on which rows this text rests for this reader. The caller holds the lock of the report, or has just made it."""
    wanted = rows_by_block(ReportReader(membership), body)
    there = {(row.run_id, row.evaluation_id, row.rollout_id): row.pk for row in report.sources.all()}
    ReportSource.objects.filter(pk__in=[pk for origin, pk in there.items() if origin not in wanted]).delete()
    ReportSource.objects.bulk_create(
        ReportSource(report=report, run_id=run, evaluation_id=evaluation, rollout_id=rollout)
        for run, evaluation, rollout in wanted - there.keys()
    )
    ReportPage.objects.filter(pk=report.pk).update(sources_at=timezone.now())


def rows_by_block(reader: ReportReader, body: str) -> set[Origin]:
    """The rows that each block shows now; a block that shows nothing names nothing."""
    named: set[Origin] = set()
    for part in language.pieces(body):
        if isinstance(part, ReportWords):
            named |= _linked(reader, part.text)
        elif not part.problems:
            named |= set(_shown(reader, part))
    return named


def look_again() -> None:
    """Looks again at reports that were looked at longest ago: a query may find other runs by now."""
    due = Q(sources_at=None) | Q(sources_at__lt=timezone.now() - AGAIN)
    rows = ReportPage.objects.filter(due, archived_at=None).order_by(F("sources_at").asc(nulls_first=True), "pk")
    for report_id in rows.values_list("pk", flat=True)[:AT_ONCE]:
        try:
            _again(report_id)
        except Exception:  # one report must not keep the others waiting, in this round or in the next ones
            logger.exception("the origins of report %s could not be looked at", report_id)
            ReportPage.objects.filter(pk=report_id).update(sources_at=timezone.now())


@transaction.atomic
def _again(report_id: int) -> None:
    report = ReportPage.objects.select_for_update(no_key=True).filter(pk=report_id).first()
    if report is None:
        return
    newest = queries.newest(report)
    members = Membership.objects.filter(workspace_id=report.workspace_id, user__is_active=True)
    writer = members.filter(user=newest.created_by).exclude(role=Role.ANNOTATOR).first()
    if reader := writer or members.filter(role=Role.OWNER).order_by("pk").first():
        store_origins(reader, report, newest.body)


def _shown(reader: ReportReader, block: ReportBlock) -> Iterator[Origin]:
    if block.kind == "rollout":
        yield from _rollout(reader, block)
        return
    try:
        if block.kind == "chart":
            yield from ((run, None, None) for run in sources.block_runs(reader, block).ids)
        else:
            _, facts = tables.table(reader, block)
            yield from ((run, None, None) for row in facts["rows"] for run in row.ids)
    except sources.NothingToShow:
        return


def _rollout(reader: ReportReader, block: ReportBlock) -> Iterator[Origin]:
    run = reader.runs.filter(pk=block.given["run"]).first()
    row = queries.rollout(run, block.given) if run else None
    if run and row:
        yield run.pk, None, None
        yield run.pk, None, row.pk


def _linked(reader: ReportReader, text: str) -> set[Origin]:
    named: dict[str, set[int]] = {"runs": set(), "evaluations": set()}
    for kind, number in LINK.findall(text):
        named[kind].add(int(number))
    runs = reader.runs.filter(pk__in=named["runs"]).values_list("pk", flat=True)
    ours = Evaluation.objects.filter(workspace_id=reader.membership.workspace_id, pk__in=named["evaluations"])
    linked: set[Origin] = {(run, None, None) for run in runs}
    return linked | {(None, evaluation, None) for evaluation in ours.values_list("pk", flat=True)}
