"""What is known about a judge version on labels: the licence that it trains by.

It is read from finished evaluations that asked this very version: judge audits (pairs), criterion audits (graded criteria) and,
for judges that rate, reward benchmarks. Nothing is measured here, and what nobody measured is said to be unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import F, Q

from webapp.judging.models import JudgeVersion

from .models import Evaluation
from .recipes import RECIPES

SOURCES = ("judge_audit", "criterion_audit", "reward_benchmark")
MEASURED_BY = {
    **dict.fromkeys(("pairwise", "pairwise_rubric"), "judge_audit"),
    **dict.fromkeys(("criterion", "checklist"), "criterion_audit"),
    "pointwise": "reward_benchmark",
}
"""The kind of a judge -> the evaluation that compares it with labels."""
SHOWN = 3  # evaluations, the newest
FEW = 30  # labels: below it an interval says little
SECONDS = 30  # an answer is believed
Cell = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """What one evaluation found. `measures` are (what, cell of a report) with n and interval; `place` is below, within or
    above the range of people among themselves, empty where it was not measured; `data` names the dataset version."""

    evaluation: int
    name: str
    recipe: str
    data: str
    ended_at: datetime | None
    measures: list[tuple[str, Cell]]
    place: str = ""


@dataclass(frozen=True)
class Licence:
    """Of one version; the newest evaluations first. `warnings` say in words what should give pause."""

    version: str
    kind: str
    known: list[Known] = field(default_factory=list)

    @property
    def recipe(self) -> str:
        """The evaluation that would measure it; empty where there is none for its kind."""
        return MEASURED_BY.get(self.kind, "")

    @property
    def warnings(self) -> list[str]:
        if not self.known:
            return [
                "Nobody has compared this judge with labels of people. What it rewards may not be what people mean."
            ]
        newest, found = self.known[0], []
        value, n = newest.measures[0][1].get("value"), newest.measures[0][1].get("n")
        if value is None:
            found.append("Its newest comparison gave no number.")
        elif n is not None and n < FEW:
            found.append(f"Its newest comparison rests on {n} labels only.")
        if newest.place == "below":
            found.append("People agree with each other more often than with this judge.")
        return found


def licences(workspace_id: int, versions: Iterable[JudgeVersion]) -> dict[int, Licence]:
    """By the version's id. One query for all that were not asked for just now."""
    found = {row.pk: Licence(str(row), row.judge.kind) for row in versions}
    keys = {f"licence:{workspace_id}:{pk}": pk for pk in found}
    stored: dict[str, list[Known]] = cache.get_many(keys)
    missing = [pk for key, pk in keys.items() if key not in stored]
    read = _read(workspace_id, missing) if missing else {}
    if read:
        cache.set_many({f"licence:{workspace_id}:{pk}": known for pk, known in read.items()}, SECONDS)
    for key, pk in keys.items():
        found[pk].known.extend(stored[key] if key in stored else read[pk])
    return found


def _read(workspace_id: int, versions: list[int]) -> dict[int, list[Known]]:
    wanted = Q()
    for pk in versions:
        wanted |= Q(results__contains={"entries": [{"judge_version": pk}]})
    rows = Evaluation.objects.filter(
        wanted, workspace_id=workspace_id, state=Evaluation.State.FINISHED, recipe__in=SOURCES
    )
    rows = rows.annotate(entries=F("results__entries")).select_related("dataset_version__dataset")
    found: dict[int, list[Known]] = {pk: [] for pk in versions}
    for row in rows.defer("results", "config").order_by("-ended_at", "-pk"):
        for entry in row.entries:
            mine = found.get(entry.get("judge_version"))
            if mine is not None and len(mine) < SHOWN:
                mine.append(_known(row, entry))
    return found


def _known(row: Evaluation, entry: Mapping[str, Any]) -> Known:
    more = entry.get("known") or {}
    first = "Agreement" if row.recipe == "criterion_audit" else "Accuracy"
    measures = [(first, entry["cell"]), *[(words, more[key]) for key, words in MORE.items() if key in more]]
    version = row.dataset_version
    title = RECIPES[row.recipe].title
    return Known(
        row.pk, row.name, title, str(version) if version else "", row.ended_at, measures, more.get("place", "")
    )


MORE = {"kappa": "Kappa", "order_consistency": "Order consistency", "judge": "With a person", "humans": "Two people"}


def as_json(found: Licence) -> dict[str, Any]:
    """As the API gives it."""
    return {
        "version": found.version,
        "kind": found.kind,
        "measured_by": found.recipe,
        "warnings": found.warnings,
        "known": [
            {
                "evaluation": each.evaluation,
                "name": each.name,
                "data": each.data,
                "ended_at": each.ended_at,
                "human_range": each.place,
                "measures": [_measure(words, cell) for words, cell in each.measures],
            }
            for each in found.known
        ],
    }


def _measure(words: str, cell: Cell) -> dict[str, Any]:
    return {"name": words, **{key: cell.get(key) for key in ("value", "low", "high", "n", "missing")}}
