"""Leaderboards: judges and models in order of their scores on the same data, with the same settings, asked in the same way.

A board is a benchmark (recipe, data, settings) and a protocol, such as the orders in which judges were asked. Rows that were measured on
other items than most are listed below, without a place.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F

from trainer.contracts.plurals import with_noun

from .. import queries
from ..models import Evaluation
from ..recipes import RECIPES
from ..recipes.audits.blocks import ASKED
from ..recipes.base import Recipe

State = Evaluation.State
MAX_EVALUATIONS = 500
Measured = tuple[dict[str, Any], Evaluation]  # an entry of a report, and the evaluation with this report
SAME = 9  # decimals: two scores are equal if they are the same when rounded to them


@dataclass(frozen=True)
class RankedRow:
    """One judge or model. If it was measured several times, the newest measurement counts. `place` is None if there is no number, or if the
    number cannot be compared; `unlike` then says why. `shared`: another row has the same place."""

    name: str
    cell: dict[str, Any]
    evaluation: Evaluation
    judge: int | None = None
    judge_version: int | None = None
    place: int | None = None
    shared: bool = False
    unlike: str = ""


@dataclass
class Board:
    """`settings` are what all rows share: the config without the compared judges or models. `siblings`: the same benchmark with other
    protocols."""

    benchmark: str
    protocol: str
    recipe: Recipe
    newest: Evaluation
    evaluations: int = 0
    rows: list[RankedRow] = field(default_factory=list)
    siblings: list["Board"] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        hidden = {*self.recipe.schema.tried, *self.recipe.schema.spared}
        return {name: value for name, value in self.newest.config.items() if name not in hidden}

    @property
    def address(self) -> str:
        return f"{self.benchmark}-{self.protocol}" if self.protocol else self.benchmark

    @property
    def asked(self) -> str:
        return ASKED.get(self.protocol, self.protocol)

    @property
    def first(self) -> list[RankedRow]:
        """The rows that share the first place."""
        return [row for row in self.rows if row.place == 1]


def boards(workspace_id: int) -> list[Board]:
    """Every benchmark with its rows, the last measured first. One query."""
    rows = queries.listed(workspace_id).defer(None).defer("recording__content", "results").filter(state=State.FINISHED)
    return _collected(rows.annotate(entries=F("results__entries")).order_by("-id")[:MAX_EVALUATIONS])


def board(workspace_id: int, address: str) -> Board | None:
    """The board of this address; for the address of a benchmark alone, the board that was measured last."""
    benchmark, _, protocol = address.partition("-")
    rows = queries.evaluations(workspace_id).defer("recording__content", "results")
    rows = rows.filter(state=State.FINISHED, benchmark=benchmark).order_by("-id")
    found = _collected(rows.annotate(entries=F("results__entries"))[:MAX_EVALUATIONS])
    for each in found:
        each.siblings = [other for other in found if other is not each]
    return next((each for each in found if not protocol or each.protocol == protocol), None)


def _collected(evaluations: Any) -> list[Board]:
    found: dict[tuple[str, str], Board] = {}
    entries: dict[tuple[str, str], dict[str, Measured]] = {}
    for row in evaluations:
        recipe = RECIPES.get(row.recipe)
        if recipe is None or not row.entries:
            continue
        counted = set()
        for entry in row.entries:
            key = (row.benchmark, entry.get("protocol", ""))
            mine = found.setdefault(key, Board(*key, recipe, row))
            mine.evaluations += key not in counted
            counted.add(key)
            entries.setdefault(key, {}).setdefault(entry["name"], (entry, row))
    for key, each in found.items():
        each.rows = list(_placed(list(entries[key].values())))
    return list(found.values())


def _placed(entries: list[Measured]) -> Iterator[RankedRow]:
    """The best first, equal scores in one place; then rows that were measured on other items than most; then rows without a number."""
    common, count = _common(entries)
    alike: list[Measured] = []
    unlike: list[Measured] = []
    for entry, evaluation in entries:
        other = common and entry.get("items") != common
        (unlike if other or entry["cell"].get("value") is None else alike).append((entry, evaluation))
    scores = Counter(_score(entry) for entry, _ in alike)
    for entry, evaluation in sorted(alike, key=lambda each: (-_score(each[0]), each[0]["name"])):
        place = 1 + sum(number for score, number in scores.items() if score > _score(entry))
        yield _row(entry, evaluation, place=place, shared=scores[_score(entry)] > 1)
    for entry, evaluation in sorted(unlike, key=lambda each: (each[0]["cell"].get("value") is None, each[0]["name"])):
        measured = entry["cell"].get("value") is not None
        yield _row(entry, evaluation, unlike=_why(entry, count) if measured else "")


def _common(entries: list[Measured]) -> tuple[str, int | None]:
    """The items on which most rows were measured, and their number; if two are equally frequent, the newest."""
    counted = Counter(entry.get("items", "") for entry, _ in entries)
    items = counted.most_common(1)[0][0]
    return items, next(entry.get("item_count") for entry, _ in entries if entry.get("items", "") == items)


def _why(entry: dict[str, Any], count: int | None) -> str:
    if not entry.get("items"):
        return "not known on which items"
    if entry["item_count"] == count:
        return f"measured on {with_noun(count or 0, 'items')} that are not those of most rows"
    return f"measured on {with_noun(entry['item_count'], 'items')}, most rows on {count or 0:,}"


def _score(entry: dict[str, Any]) -> float:
    return round(float(entry["cell"]["value"]), SAME)


def _row(entry: dict[str, Any], evaluation: Evaluation, **fields: Any) -> RankedRow:
    return RankedRow(entry["name"], entry["cell"], evaluation, entry["judge"], entry["judge_version"], **fields)
