"""Notices and watches over the API: those of the person, in the workspace of the token."""

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.core.problems import Invalid
from webapp.core.requests.openapi import StrictIn

from . import access, queries, services, words
from .models import Notice, NoticeSettings, Watch

router = Router(tags=["notices"])
MOST_IDS = 1_000


class NoticeOut(Schema):
    """`about` and `subject` are the kind and the id of its thing; `href` is its page, which no longer exists if the thing was deleted."""

    id: int
    event: str
    title: str
    text: str
    about: str
    subject: int
    href: str
    created_at: datetime
    read_at: datetime | None

    @staticmethod
    def resolve_title(row: Notice) -> str:
        return words.title(row)

    @staticmethod
    def resolve_text(row: Notice) -> str:
        return words.text(row)

    @staticmethod
    def resolve_href(row: Notice) -> str:
        return words.href(row)


class NoticeList(Schema):
    items: list[NoticeOut]
    next: str | None


class ReadIn(StrictIn):
    """`ids`, or all of them."""

    ids: list[int] | None = Field(None, max_length=MOST_IDS)
    all: bool = False


class ReadOut(Schema):
    read: int
    unread: int = Field(description=f"Unread notices that remain, up to {queries.MANY}")


class WatchIn(StrictIn):
    kind: Literal[
        "run", "sweep", "project", "dataset", "judge", "model", "evaluation", "import", "curation", "weights_job"
    ]
    id: int
    on: bool = True


class WatchOut(Schema):
    kind: str
    id: int
    on: bool
    name: str

    @staticmethod
    def resolve_id(row: Watch) -> int:
        return row.subject_id

    @staticmethod
    def resolve_name(row: Watch) -> str:
        return row.name


class WatchList(Schema):
    items: list[WatchOut]
    next: str | None


class NoticeSettingsOut(Schema):
    """`own`: what you launch is watched unless you say otherwise. `mail`: the notices that come by mail."""

    own: bool
    mail: Literal["never", "trouble", "all"]


class NoticeSettingsIn(StrictIn):
    own: bool | None = None
    mail: Literal["never", "trouble", "all"] | None = None


@router.get("/notices", response=NoticeList, summary="Your notices, newest first")
def notices(request: HttpRequest, unread: bool = False, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.notices(access.may_read(require(request)), unread=unread), cursor, limit, "-id")


@router.post("/notices/read", response=ReadOut, summary="Mark notices as read")
def read(request: HttpRequest, payload: ReadIn) -> dict[str, int]:
    membership = access.may_read(require(request))
    if payload.all == (payload.ids is not None):
        raise Invalid("The request does not say which notices.", {"ids": "give ids, or `all`: true, and not both"})
    changed = services.mark_read(membership, payload.ids)
    return {"read": changed, "unread": queries.unread(membership)}


@router.get("/notices/settings", response=NoticeSettingsOut, summary="The settings of your notices")
def settings(request: HttpRequest) -> NoticeSettings:
    return queries.settings(access.may_read(require(request)).user_id)


@router.post("/notices/settings", response=NoticeSettingsOut, summary="Change how you get notices")
def change_settings(request: HttpRequest, payload: NoticeSettingsIn) -> NoticeSettings:
    return services.change_settings(access.may_read(require(request)), own=payload.own, mails=payload.mail)


@router.get("/watches", response=WatchList, summary="Things that you watch, and things that you do not watch")
def watches(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.watches(access.may_read(require(request))), cursor, limit, "-id")


@router.post(
    "/watches",
    response=WatchIn,
    summary="Watch a run, an evaluation, a project, a dataset or another thing, or stop watching it",
)
def watch(request: HttpRequest, payload: WatchIn) -> WatchIn:
    membership = access.may_read(require(request))
    services.watch(membership, access.subject_read(membership, payload.kind, payload.id), payload.on)
    return payload
