"""Leaderboards: who did how well on the same data with the same settings."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F

from . import queries
from .models import Evaluation
from .recipes import RECIPES
from .recipes.base import Recipe

State = Evaluation.State
MAX_EVALUATIONS = 500


@dataclass(frozen=True)
class Row:
    """One judge or model; of several measurements the newest stands."""

    name: str
    cell: dict[str, Any]
    evaluation: Evaluation
    judge: int | None = None
    judge_version: int | None = None


@dataclass
class Board:
    """`settings` are what all rows share: the config without what was tried."""

    benchmark: str
    recipe: Recipe
    newest: Evaluation
    evaluations: int = 0
    rows: list[Row] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        hidden = {*self.recipe.schema.tried, *self.recipe.schema.spared}
        return {name: value for name, value in self.newest.config.items() if name not in hidden}


def boards(workspace_id: int) -> list[Board]:
    """Every benchmark with its rows, the one measured last first. One query."""
    rows = queries.listed(workspace_id).defer(None).defer("recording__content", "results").filter(state=State.FINISHED)
    return _collected(rows.annotate(entries=F("results__entries")).order_by("-id")[:MAX_EVALUATIONS])


def board(workspace_id: int, benchmark: str) -> Board | None:
    rows = queries.evaluations(workspace_id).defer("recording__content", "results")
    rows = rows.filter(state=State.FINISHED, benchmark=benchmark).order_by("-id")
    found = _collected(rows.annotate(entries=F("results__entries"))[:MAX_EVALUATIONS])
    return found[0] if found else None


def _collected(evaluations: Any) -> list[Board]:
    found: dict[str, Board] = {}
    seen: dict[str, set[str]] = defaultdict(set)
    for row in evaluations:
        recipe = RECIPES.get(row.recipe)
        if recipe is None or not row.entries:
            continue
        mine = found.setdefault(row.benchmark, Board(row.benchmark, recipe, row))
        mine.evaluations += 1
        for entry in row.entries:
            if entry["name"] not in seen[row.benchmark]:
                seen[row.benchmark].add(entry["name"])
                mine.rows.append(Row(entry["name"], entry["cell"], row, entry["judge"], entry["judge_version"]))
    for each in found.values():
        each.rows.sort(key=lambda row: (row.cell.get("value") is None, -(row.cell.get("value") or 0.0), row.name))
    return list(found.values())
