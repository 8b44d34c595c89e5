"""The group `experiments` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NotRequired, TypedDict

from ..calling import Group


class ExperimentIn(TypedDict):
    name: str
    description: NotRequired[str]


class ExperimentOut(TypedDict):
    id: int
    name: str
    description: str
    runs: int
    created_at: str


class Experiments(Group):
    def all(self, *, page_size: int | None = None) -> Iterator[ExperimentOut]:
        """Experiments, newest first."""
        return self._pages(ExperimentOut, "/experiments", query={"limit": page_size})

    def create(self, body: ExperimentIn) -> ExperimentOut:
        """Create an experiment."""
        return self._json(ExperimentOut, "POST", "/experiments", body=body)
