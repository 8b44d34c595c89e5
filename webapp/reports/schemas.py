"""Requests and responses of reports in the API."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Path, Schema
from pydantic import ConfigDict, Field

from webapp.experiments.schemas import Named
from webapp.experiments.sharing import services as links
from webapp.experiments.sharing.models import MAX_NAME
from webapp.experiments.sharing.schemas import ShareLinkOut

from .models import ReportPage, ReportPageVersion

Id = Path[Annotated[int, Field(ge=1, lt=2**63)]]
Number = Path[Annotated[int, Field(ge=1, lt=2**31)]]
_Row = Annotated[int, Field(ge=1, lt=2**63)]
BODY = "Markdown, with blocks for charts, tables and rollouts: see docs/reports.md"


class ReportPageBrief(Schema):
    id: int
    title: str
    version: int = Field(description="The number of the newest version")
    experiment: Named | None
    project: Named | None
    created_at: datetime
    saved_at: datetime
    archived_at: datetime | None


class ReportPageList(Schema):
    items: list[ReportPageBrief]
    next: str | None


class ReportPageOut(ReportPageBrief):
    body: str = Field(description=BODY)
    saved_by: str | None = Field(description="Null once their account was erased")


class ReportVersionBrief(Schema):
    number: int
    title: str
    restored_from: int | None
    saved_by: str | None = Field(description="Null once their account was erased")
    saved_at: datetime


class ReportVersionList(Schema):
    items: list[ReportVersionBrief]
    next: str | None


class ReportVersionOut(ReportVersionBrief):
    body: str = Field(description=BODY)


class ReportPageIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "title": "Scaffolds help",
                "body": "## What we saw\n\n```chart\nmetric: eval/rubric_score\nquery: tag:ablation\n```",
            }
        },
    )

    title: Annotated[str, Field(max_length=500)]
    body: Annotated[str, Field(description=BODY)] = ""
    experiment: _Row | None = None
    project: _Row | None = None


class ReportPageChange(Schema):
    """Absent fields stay as they are."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"base": 3, "title": "Scaffolds help a lot"}}
    )

    base: Annotated[int | None, Field(ge=1, lt=2**31, description="The version that you have read")] = None
    title: Annotated[str | None, Field(max_length=500)] = None
    body: Annotated[str | None, Field(description=BODY)] = None
    experiment: _Row | None = None
    project: _Row | None = None
    archived: bool | None = None


class ReportShareIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"name": "For the paper", "days": 30}})

    name: str = Field(
        "", max_length=MAX_NAME, description="For the list of links; people who open the link do not see it"
    )
    days: int | None = Field(
        links.DAYS, ge=1, le=links.MOST_DAYS, description="Days for which the link works; null: until it is revoked"
    )


class ReportShareOut(ShareLinkOut):
    version: int = Field(description="The version that it shows")


class ReportShareMade(ReportShareOut):
    url: str = Field(description="Shown only now")


class ReportShareList(Schema):
    items: list[ReportShareOut]
    next: str | None


def page_json(row: ReportPage) -> dict[str, Any]:
    return {
        "id": row.pk,
        "title": row.title,
        "version": row.newest,
        "experiment": row.experiment,
        "project": row.project,
        "created_at": row.created_at,
        "saved_at": row.written_at,
        "archived_at": row.archived_at,
    }


def told_version(row: ReportPageVersion) -> dict[str, Any]:
    return {
        "number": row.number,
        "title": row.title,
        "restored_from": row.restored_from,
        "saved_by": str(row.created_by) if row.created_by else None,
        "saved_at": row.created_at,
    }
