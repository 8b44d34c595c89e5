"""The parts of reports that links show, the contents of a version now, and the words of the list about these links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from webapp.accounts.models import Membership
from webapp.experiments.models import ShareLink
from webapp.experiments.sharing.kinds import ListedLink

from .. import block_contents
from ..access import ReportReader
from ..block_contents import ShownBlock
from ..models import ReportPage, ReportPageVersion, SharedReport

REPORT = "report"


@dataclass(frozen=True)
class VersionContents:
    """The objects that a version shows now. `runs` are ids, each once, in the order of the blocks."""

    blocks: tuple[ShownBlock, ...]
    runs: tuple[int, ...]

    def of(self, kind: str) -> list[ShownBlock]:
        return [block for block in self.blocks if block.kind == kind and block.facts]


def contents(membership: Membership, version: ReportPageVersion) -> VersionContents:
    parts = block_contents.pieces_of(ReportReader(membership), version.body)
    blocks = tuple(part for part in parts if isinstance(part, ShownBlock))
    runs = dict.fromkeys(run_id for block in blocks if block.facts for run_id in _runs(block.kind, block.facts))
    return VersionContents(blocks, tuple(runs))


def _runs(kind: str, facts: Mapping[str, Any]) -> list[int]:
    if kind == "chart":
        return list(facts["ids"])
    if kind == "rollout":
        return [facts["run"].pk]
    return [run_id for row in facts["rows"] for run_id in row.ids]


def shared(report: ReportPage) -> "QuerySet[SharedReport]":
    """The links of a report that nobody has revoked, newest first."""
    rows = SharedReport.objects.select_related("link__created_by", "version__report")
    return rows.filter(version__report=report, link__withdrawn_at=None).order_by("-id")


def listed(links: Sequence[ShareLink]) -> Mapping[int, ListedLink]:
    rows = SharedReport.objects.select_related("version__report").filter(link__in=links)
    return {row.link_id: _told(row.version) for row in rows}


def _told(version: ReportPageVersion) -> ListedLink:
    page = reverse("report_version", args=[version.report_id, version.number])
    over = "its report is archived" if version.report.archived_at else ""
    return ListedLink(f"{version.title}, version {version.number}", page, over)
