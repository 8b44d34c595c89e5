"""Reads of reports and their versions."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import F, QuerySet

from webapp.accounts.models import Membership
from webapp.annotation.models import Project
from webapp.experiments.models import Experiment, Rollout, Run

from .models import ReportPage, ReportPageVersion, ReportSource


def reports(workspace_id: int, *, archived: bool | None = None) -> "QuerySet[ReportPage]":
    """None: both those in use and those that are archived."""
    rows = ReportPage.objects.filter(workspace_id=workspace_id).select_related("experiment", "project", "created_by")
    return rows if archived is None else rows.filter(archived_at__isnull=not archived)


def versions(report: ReportPage) -> "QuerySet[ReportPageVersion]":
    """Newest first."""
    return ReportPageVersion.objects.filter(report=report).select_related("created_by").order_by("-number")


def newest(report: ReportPage) -> ReportPageVersion:
    """The newest version, which people read."""
    found = ReportPageVersion.objects.select_related("created_by").get(report=report, number=report.newest)
    found.report = report
    return found


def newest_of(rows: list[ReportPage]) -> dict[int, ReportPageVersion]:
    """The newest versions by the ids of their reports."""
    found = ReportPageVersion.objects.filter(report__in=rows, number=F("report__newest"))
    return {row.report_id: row for row in found.select_related("created_by")}


def runs_shown(run_ids: Collection[int]) -> set[int]:
    """Keeps the runs that the newest version of some report shows."""
    shown = ReportSource.objects.filter(run__in=run_ids).values_list("run_id", flat=True)
    return {run_id for run_id in shown if run_id}


def rollout(run: Run, given: Mapping[str, Any]) -> Rollout | None:
    """The rollout of a run that the lines of a block name."""
    place = {"group": given["prompt"] - 1, "index": given.get("response", 1) - 1}
    return Rollout.objects.filter(run=run, step=given["step"], phase=given.get("phase", "train"), **place).first()


def experiments(membership: Membership) -> "QuerySet[Experiment]":
    return Experiment.objects.filter(workspace_id=membership.workspace_id).order_by("name")


def projects(membership: Membership) -> "QuerySet[Project]":
    return Project.objects.filter(workspace_id=membership.workspace_id).order_by("name")
