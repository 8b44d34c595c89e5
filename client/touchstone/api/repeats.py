"""The group `repeats` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import TypedDict

from ..calling import Group
from .shared import RepeatOut


class RepeatsOut(TypedDict):
    items: list[RepeatOut]


class Repeats(Group):
    def all(self) -> RepeatsOut:
        """Runs that are launched again by the clock. All repeats of the workspace, the newest one first."""
        return self._json(RepeatsOut, "GET", "/repeats")

    def pause(self, repeat_id: int) -> RepeatOut:
        """Pause a repeated run. Runs that were launched continue."""
        return self._json(RepeatOut, "POST", f"/repeats/{repeat_id}/pause", again=True)

    def resume(self, repeat_id: int) -> RepeatOut:
        """Resume a paused repeated run. Times during the pause are left out."""
        return self._json(RepeatOut, "POST", f"/repeats/{repeat_id}/resume")

    def remove(self, repeat_id: int) -> None:
        """Delete a repeated run. The runs that it has launched stay."""
        self._nothing("DELETE", f"/repeats/{repeat_id}")
