"""The group `retention` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ..calling import Group


class CheckpointPreviewOut(TypedDict):
    days: int
    runs: int
    checkpoints: int
    bytes: int
    kept: list[KeptCheckpoints]
    whole: bool


class CheckpointRuleIn(TypedDict):
    on: bool
    days: NotRequired[int]


class CheckpointRuleOut(TypedDict):
    on: bool
    days: int
    deleted: int
    deleted_bytes: int


class KeptCheckpoints(TypedDict):
    checkpoints: int
    why: str


class Retention(Group):
    def all(self) -> CheckpointRuleOut:
        """The rule that deletes checkpoints."""
        return self._json(CheckpointRuleOut, "GET", "/retention")

    def change(self, body: CheckpointRuleIn) -> CheckpointRuleOut:
        """Switch the rule that deletes checkpoints on or off. Ask for the preview first. While `on` is false,
        nothing more is deleted.
        """
        return self._json(CheckpointRuleOut, "PUT", "/retention", body=body)

    def preview(self, *, days: int | None = None) -> CheckpointPreviewOut:
        """Checkpoints that a rule would delete now. Counts and deletes nothing."""
        return self._json(CheckpointPreviewOut, "GET", "/retention/preview", query={"days": days})
