"""The group `lineage` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypedDict

from ..calling import Group, quote_part


class GraphBoxOut(TypedDict):
    kind: str
    id: int | None
    count: int
    name: str
    note: str
    url: str
    column: int


class GraphLineOut(TypedDict):
    above: int
    below: int
    count: int


class LineageGraphOut(TypedDict):
    boxes: list[GraphBoxOut]
    lines: list[GraphLineOut]
    whole: bool


class LineageOut(TypedDict):
    start: NodeOut
    way: Literal["down", "up"]
    counts: dict[str, int]
    again: dict[str, int]
    whole: bool
    people_named: bool


class NodeOut(TypedDict):
    kind: str
    id: int
    name: str
    url: str
    direct: bool


class Lineage(Group):
    def get(
        self,
        what: Literal[
            "person",
            "guidelines",
            "answer",
            "example",
            "project",
            "publication",
            "version",
            "judge",
            "job",
            "run",
            "model",
            "evaluation",
            "study",
            "rollout",
            "report",
        ],
        what_id: int,
        *,
        way: Literal["down", "up"] | None = None,
    ) -> LineageOut:
        """Rows that were made from a row, or rows on which it is based. `down` leads from a person, an answer,
        an example or a version to everything that was made of it; `up` leads back to the people.
        """
        return self._json(LineageOut, "GET", f"/lineage/{quote_part(what)}/{what_id}", query={"way": way})

    def rows(
        self,
        what: Literal[
            "person",
            "guidelines",
            "answer",
            "example",
            "project",
            "publication",
            "version",
            "judge",
            "job",
            "run",
            "model",
            "evaluation",
            "study",
            "rollout",
            "report",
        ],
        what_id: int,
        *,
        of: Literal[
            "person",
            "guidelines",
            "answer",
            "example",
            "project",
            "publication",
            "version",
            "judge",
            "job",
            "run",
            "model",
            "evaluation",
            "study",
            "rollout",
            "report",
        ],
        way: Literal["down", "up"] | None = None,
        page_size: int | None = None,
    ) -> Iterator[NodeOut]:
        """The rows of one kind, newest first."""
        return self._pages(
            NodeOut, f"/lineage/{quote_part(what)}/{what_id}/rows", query={"of": of, "way": way, "limit": page_size}
        )

    def graph(
        self,
        what: Literal[
            "person",
            "guidelines",
            "answer",
            "example",
            "project",
            "publication",
            "version",
            "judge",
            "job",
            "run",
            "model",
            "evaluation",
            "study",
            "rollout",
            "report",
        ],
        what_id: int,
        *,
        steps: int | None = None,
    ) -> LineageGraphOut:
        """The graph around a row. Many rows of a kind stand together. `column` is negative for rows on which the
        start rests, and positive for rows that were made from it.
        """
        return self._json(
            LineageGraphOut, "GET", f"/lineage/{quote_part(what)}/{what_id}/graph", query={"steps": steps}
        )
