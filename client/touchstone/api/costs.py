"""The group `costs` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypedDict

from ..calling import Group


class CostAmountOut(TypedDict):
    value: float | None
    unknown: int


class CostOut(TypedDict):
    """`hours` of processes, `gpu_hours`, `tokens` and `money` of models behind endpoints, `minutes` of
    annotators.
    """

    kind: str
    id: int
    name: str
    url: str
    hours: CostAmountOut
    gpu_hours: CostAmountOut
    tokens: CostAmountOut
    money: CostAmountOut
    minutes: CostAmountOut


class Costs(Group):
    def all(
        self,
        *,
        by: Literal["month", "project", "run", "person"] | None = None,
        month: str | None = None,
        sort: Literal["hours", "gpu_hours", "tokens", "money", "minutes"] | None = None,
        run: int | None = None,
        page_size: int | None = None,
    ) -> Iterator[CostOut]:
        """Costs of work, by month, project, piece of work or person. The same numbers as the page of costs. Work
        that is under way counts up to the moment of the first page, on all pages of a list.
        """
        return self._pages(
            CostOut, "/costs", query={"by": by, "month": month, "sort": sort, "run": run, "limit": page_size}
        )
