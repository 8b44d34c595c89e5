"""The parts of a report that an opened link may read, and the links of a report that its writers may change."""

from django.http import Http404

from webapp.accounts.models import Membership
from webapp.experiments.sharing.access import NothingShared, OpenedLink

from .. import access
from ..access import ReportReader
from ..models import ReportPageVersion, SharedReport
from . import queries


def shared_write(membership: Membership, report_id: int, link_id: int) -> SharedReport:
    """A link of the report that nobody has revoked, or 404."""
    found = queries.shared(access.report_write(membership, report_id)).filter(link=link_id).first()
    if found is None:
        raise Http404("no such link of this report")
    return found


def opened_version(opened: OpenedLink) -> ReportPageVersion:
    """The version that an opened link shows now. Raises NothingShared if the report is archived."""
    held = SharedReport.objects.select_related("version__report")
    # of the link's own workspace again: a row that names another's report would show nothing
    ours = held.filter(version__report__workspace_id=opened.link.workspace_id, version__report__archived_at=None)
    row = ours.filter(link=opened.link).first()
    if row is None:
        raise NothingShared
    return row.version


def reader(opened: OpenedLink) -> ReportReader:
    return ReportReader(opened.maker, frozenset(run.pk for run in opened.runs))
