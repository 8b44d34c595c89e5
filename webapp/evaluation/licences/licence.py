"""The licence of a judge version: what is known of how well it agrees with labels, before it is used in training.

It comes from finished evaluations that asked exactly this version: judge audits (pairs), criterion audits (graded criteria) and, for judges
that rate, reward benchmarks. No judge is asked again. If an older evaluation lacks a number, a worker computes it from its stored cases and
the labels of its dataset. A number that nobody measured is shown as unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.db.models import F, Q
from pydantic import TypeAdapter

from trainer.contracts.plurals import with_noun
from trainer.metrics.estimate import undefined_estimate
from webapp.core.tasks import enqueue
from webapp.judging.models import JudgeVersion

from .. import queries, serializers
from .. import report as r
from ..models import Evaluation
from ..recipes import RECIPES

SOURCES = ("judge_audit", "criterion_audit", "reward_benchmark")
AGAIN = tuple(name for name in SOURCES if RECIPES[name].known_again)
MEASURED_BY = {
    **dict.fromkeys(("pairwise", "pairwise_rubric"), "judge_audit"),
    **dict.fromkeys(("criterion", "checklist"), "criterion_audit"),
    "pointwise": "reward_benchmark",
}
"""The kind of a judge -> the evaluation that compares it with labels."""
SHOWN = 3  # evaluations, the newest
FEW = 30  # labels: below it an interval says little
SECONDS = 30  # for which a licence is kept in the cache
ASKED_S = 600  # a worker that has not answered by then is asked again
NOT_STORED = "what this evaluation has stored does not say"
ONE_LABEL = "each response has one label, so that people cannot be compared with each other"
Cell = dict[str, Any]


@dataclass(frozen=True)
class LicenceEvidence:
    """The findings of one evaluation. `measures` are (what, cell of a report) with n and interval; `place` is below, within or above the
    range of people among themselves; if it is empty, `place_why` says why it is unknown. `data` names the dataset version, `dataset` is its
    form in the API. `waiting`: a worker computes what is missing."""

    evaluation: int
    name: str
    recipe: str
    data: str
    ended_at: datetime | None
    measures: list[tuple[str, Cell]]
    place: str = ""
    place_why: str = ""
    dataset: dict[str, Any] | None = None
    waiting: bool = False


KNOWN = TypeAdapter(list[LicenceEvidence])


@dataclass(frozen=True)
class Licence:
    """The facts about one version of a judge; the newest evaluations first. `warnings` are reasons for caution, in words."""

    version: str
    kind: str
    known: list[LicenceEvidence] = field(default_factory=list)

    @property
    def recipe(self) -> str:
        """The evaluation that would measure it; empty if there is none for its kind."""
        return MEASURED_BY.get(self.kind, "")

    @property
    def warnings(self) -> list[str]:
        if not self.known:
            return [
                "Nobody has compared this judge with labels of people. It may reward something that people do not want."
            ]
        newest, found = self.known[0], []
        value, n = newest.measures[0][1].get("value"), newest.measures[0][1].get("n")
        if value is None:
            found.append("Its newest comparison gave no number.")
        elif n is not None and n < FEW:
            found.append(f"Its newest comparison has only {with_noun(n, 'labels')}.")
        if newest.place == "below":
            found.append("People agree with each other more often than with this judge.")
        return found


def licences(workspace_id: int, versions: Iterable[JudgeVersion]) -> dict[int, Licence]:
    """The licences by the version's id. One query for all that were not asked for just now."""
    found = {row.pk: Licence(str(row), row.judge.kind) for row in versions}
    keys = {f"licence:{workspace_id}:{pk}": pk for pk in found}
    stored = {key: KNOWN.validate_json(text) for key, text in cache.get_many(keys).items()}
    missing = [pk for key, pk in keys.items() if key not in stored]
    read = _read(workspace_id, missing) if missing else {}
    if read:
        cache.set_many(
            {f"licence:{workspace_id}:{pk}": KNOWN.dump_json(known).decode() for pk, known in read.items()}, SECONDS
        )
    for key, pk in keys.items():
        found[pk].known.extend(stored[key] if key in stored else read[pk])
    return found


def _read(workspace_id: int, versions: list[int]) -> dict[int, list[LicenceEvidence]]:
    wanted = Q()
    for pk in versions:
        wanted |= Q(results__contains={"entries": [{"judge_version": pk}]})
    rows = Evaluation.objects.filter(
        wanted, workspace_id=workspace_id, state=Evaluation.State.FINISHED, recipe__in=SOURCES
    )
    rows = rows.annotate(entries=F("results__entries")).select_related("dataset_version__dataset")
    found: dict[int, list[LicenceEvidence]] = {pk: [] for pk in versions}
    for row in rows.defer("results", "config").order_by("-ended_at", "-pk"):
        for entry in row.entries:
            mine = found.get(entry.get("judge_version"))
            if mine is not None and len(mine) < SHOWN:
                mine.append(_known(row, entry))
                if mine[-1].waiting and cache.add(f"licence:asked:{row.pk}", 1, ASKED_S):
                    enqueue("workers.evaluation.work_out_licence", row.pk)
    return found


def _lacks(recipe: str, entry: Mapping[str, Any]) -> bool:
    """Whether the evaluation is too old to have all that a licence shows."""
    known = entry.get("known") or {}
    whole = "kappa" in known and ("place" in known or "place_why" in known)
    return entry.get("judge_version") is not None and not whole and RECIPES[recipe].known_again is not None


def work_out(evaluation_id: int) -> None:
    """Computes what the licences show of an older evaluation. A second call finds nothing to do."""
    rows = Evaluation.objects.filter(pk=evaluation_id, state=Evaluation.State.FINISHED, recipe__in=SOURCES)
    row = rows.select_related("dataset_version").first()
    again = RECIPES[row.recipe].known_again if row else None
    if row is None or again is None or not any(_lacks(row.recipe, each) for each in _entries(row)):
        return
    examples = queries.examples(row.dataset_version) if row.dataset_version else ()
    found = again(examples, queries.every_case(row))
    unknown = {"kappa": r.estimate(undefined_estimate(NOT_STORED), unit="points"), "place_why": NOT_STORED}
    with transaction.atomic():
        # the lock: another worker may have written the same at the same time
        held = Evaluation.objects.select_for_update(no_key=True).get(pk=row.pk)
        for entry in _entries(held):
            if _lacks(held.recipe, entry):
                entry["known"] = (entry.get("known") or {}) | found.get(entry["name"], unknown)
        held.save(update_fields=["results"])
    cache.delete_many([f"licence:{row.workspace_id}:{each.get('judge_version')}" for each in _entries(row)])


def _entries(row: Evaluation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (row.results or {}).get("entries", [])
    return found


def _known(row: Evaluation, entry: Mapping[str, Any]) -> LicenceEvidence:
    more = entry.get("known") or {}
    first = "Agreement" if row.recipe == "criterion_audit" else "Accuracy"
    measures = [(first, entry["cell"]), *[(words, more[key]) for key, words in MORE.items() if key in more]]
    version = row.dataset_version
    return LicenceEvidence(
        evaluation=row.pk,
        name=row.name,
        recipe=RECIPES[row.recipe].title,
        data=str(version) if version else "",
        ended_at=row.ended_at,
        measures=measures,
        place=more.get("place", ""),
        place_why=more.get("place_why", "" if row.recipe in AGAIN else ONE_LABEL),
        dataset=serializers.dataset(row),
        waiting=_lacks(row.recipe, entry),
    )


MORE = {"kappa": "Kappa", "order_consistency": "Order consistency", "judge": "With a person", "humans": "Two people"}


def as_json(found: Licence) -> dict[str, Any]:
    """The licence as the API gives it."""
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
                "dataset": each.dataset,
                "human_range": each.place,
                "human_range_why": each.place_why,
                "waiting": each.waiting,
                "measures": [_measure(words, cell) for words, cell in each.measures],
            }
            for each in found.known
        ],
    }


def _measure(words: str, cell: Cell) -> dict[str, Any]:
    numbers = {key: cell.get(key) for key in ("value", "low", "high", "n", "missing")}
    return {"name": words, **numbers, "why": cell.get("undefined") or cell.get("interval") or ""}
