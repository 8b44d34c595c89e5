"""The group `needs` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import Literal, TypedDict

from ..calling import Group


class AttentionItemOut(TypedDict):
    tone: Literal["bad", "warn", "info", "good"]
    title: str
    text: str
    href: str


class NeedsOut(TypedDict):
    now: list[AttentionItemOut]
    waiting: list[AttentionItemOut]
    news: list[AttentionItemOut]


class Needs(Group):
    def get(self) -> NeedsOut:
        """Things that need somebody, and work that ended well since yesterday."""
        return self._json(NeedsOut, "GET", "/needs")
