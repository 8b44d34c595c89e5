"""Reports are shared: a link is made, and later shows a newer version. The link does not show later changes of the report by itself."""

from django.db import transaction

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.experiments.models import ShareLink
from webapp.experiments.sharing import services as links
from webapp.experiments.sharing.models import MAX_NAME
from webapp.experiments.table import comparing

from .. import queries as reports
from ..models import ReportPage, ReportPageVersion, SharedReport
from . import queries
from .queries import REPORT


@transaction.atomic
def share(
    membership: Membership, report: ReportPage, name: str = "", days: int | None = links.DAYS
) -> tuple[ShareLink, str]:
    """A new link to the newest version, with the runs that it shows now, and its secret, which cannot be read again. The report is the
    membership's. Raises what `links.made` raises, Conflict if the report is archived, Invalid if it shows too many runs."""
    link, secret = links.made(membership, REPORT, name or report.title[:MAX_NAME], days)
    version, runs = _shows(membership, report)
    SharedReport.objects.create(link=link, version=version)
    links.open_runs(link, runs)
    detail = {"report": report.pk, "version": version.number, "runs": list(runs)}
    audit.record(membership, membership.user, "share_link.made", link, name=link.name, days=days, **detail)
    return link, secret


@transaction.atomic
def show_newest(membership: Membership, row: SharedReport) -> ReportPageVersion:
    """The link shows the newest version of its report from now on, with the runs that this shows now."""
    link = row.link
    row.version, runs = _shows(membership, row.version.report)
    row.save(update_fields=["version"])
    links.open_runs(link, runs)
    detail = {"report": row.version.report_id, "version": row.version.number, "runs": list(runs)}
    audit.record(membership, membership.user, "share_link.changed", link, name=link.name, **detail)
    return row.version


def _shows(membership: Membership, report: ReportPage) -> tuple[ReportPageVersion, tuple[int, ...]]:
    report = ReportPage.objects.select_for_update(no_key=True).get(pk=report.pk)
    if report.archived_at:
        raise Conflict("This report is archived, so no link shows it. Restore it first.", "report_archived")
    version = reports.newest(report)
    runs = queries.contents(membership, version).runs
    if len(runs) > comparing.MOST_RUNS:
        most = f"at most {comparing.MOST_RUNS:,} runs; these are {len(runs):,}"
        raise Invalid("This report shows too many runs for a link.", {"report": most})
    return version, runs
