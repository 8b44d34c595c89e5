"""The group `notices` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NotRequired, TypedDict

from ..calling import Group


class NoticeOut(TypedDict):
    """`about` and `subject` are the kind and the id of its thing; `href` is its page, which no longer exists if
    the thing was deleted.
    """

    id: int
    event: str
    title: str
    text: str
    about: str
    subject: int
    href: str
    created_at: str
    read_at: str | None


class NoticeSettingsIn(TypedDict):
    own: NotRequired[bool | None]
    mail: NotRequired[Literal["never", "trouble", "all"] | None]


class NoticeSettingsOut(TypedDict):
    """`own`: what you launch is watched unless you say otherwise. `mail`: the notices that come by mail."""

    own: bool
    mail: Literal["never", "trouble", "all"]


class ReadIn(TypedDict):
    """`ids`, or all of them."""

    ids: NotRequired[list[int] | None]
    all: NotRequired[bool]


class ReadOut(TypedDict):
    read: int
    unread: int


class WatchIn(TypedDict):
    kind: Literal[
        "run", "sweep", "project", "dataset", "judge", "model", "evaluation", "import", "curation", "weights_job"
    ]
    id: int
    on: NotRequired[bool]


class WatchOut(TypedDict):
    kind: str
    id: int
    on: bool
    name: str


class Notices(Group):
    def all(self, *, unread: bool | None = None, page_size: int | None = None) -> Iterator[NoticeOut]:
        """Your notices, newest first."""
        return self._pages(NoticeOut, "/notices", query={"unread": unread, "limit": page_size})

    def read(self, body: ReadIn) -> ReadOut:
        """Mark notices as read."""
        return self._json(ReadOut, "POST", "/notices/read", body=body, again=True)

    def settings(self) -> NoticeSettingsOut:
        """The settings of your notices."""
        return self._json(NoticeSettingsOut, "GET", "/notices/settings")

    def change_settings(self, body: NoticeSettingsIn) -> NoticeSettingsOut:
        """Change how you get notices."""
        return self._json(NoticeSettingsOut, "POST", "/notices/settings", body=body, again=True)

    def watches(self, *, page_size: int | None = None) -> Iterator[WatchOut]:
        """Things that you watch, and things that you do not watch."""
        return self._pages(WatchOut, "/watches", query={"limit": page_size})

    def watch(self, body: WatchIn) -> WatchIn:
        """Watch a run, an evaluation, a project, a dataset or another thing, or stop watching it."""
        return self._json(WatchIn, "POST", "/watches", body=body, again=True)
