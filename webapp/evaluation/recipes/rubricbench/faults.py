"""Kinds of a judge's faults: it values other things than the human rubric, or it has the right rubric and does not apply it (RubricBench,
2026)."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from trainer.contracts import Criterion
from trainer.metrics.estimate import proportion

from ... import report as r
from ..base import JudgedQuestion
from .judged_pairs import HUMAN, SELF, SeenPair

INVERSION = "value inversion"
EXECUTION = "execution failure"
AGAINST = "against its own checks"


def favoured_responses(answers: Iterable[JudgedQuestion], criteria: dict[str, tuple[Criterion, ...]]) -> dict[str, int]:
    """Pair -> which response the judge's own checks of the criteria favour, by points: -1 A, 0 neither, 1 B.

    With both orders, by the mean of the two. A pair is left out if the judge skipped a criterion.
    """
    leads: dict[str, list[float | None]] = {}
    for answer in answers:
        key = answer.subject["example"]
        leads.setdefault(key, []).append(_lead(answer, criteria[key]))
    found = {}
    for key, each in leads.items():
        known = [lead for lead in each if lead is not None]
        if len(known) == len(each):
            lead = fmean(known)
            found[key] = (lead > 0) - (lead < 0)
    return found


def _lead(answer: JudgedQuestion, criteria: Sequence[Criterion]) -> float | None:
    """Points of the pair's B minus those of its A, in either order of showing."""
    items = (answer.parsed or {}).get("items", {})
    checked = [(criterion.points, items.get(criterion.id)) for criterion in criteria]
    if not checked or any(item is None for _, item in checked):
        return None
    lead = float(sum(points * (item["b_meets"] - item["a_meets"]) for points, item in checked if item))
    return -lead if answer.subject["order"] == "swapped" else lead


def faults(each: SeenPair) -> list[str]:
    """Tags of one pair.

    Value inversion: by its own rubric the judge prefers the response that its checks of the human rubric put below the
    other. Execution failure: by the human rubric it chooses the wrong response; `against its own checks`, although these
    favour the right one.
    """
    found = []
    own, human, leaning = each.verdicts.get(SELF), each.verdicts.get(HUMAN), each.leaning
    if own and leaning and own == -leaning:
        found.append(INVERSION)
    if human and human != each.label:
        found.append(EXECUTION)
        if leaning == each.label:
            found.append(AGAINST)
    return found


def table(seen: Sequence[SeenPair]) -> r.Table:
    """The table of faults. A pair whose checks or verdict are missing is counted as missing."""
    tags = {each.pair.key: faults(each) for each in seen}
    compared = [each for each in seen if each.verdicts.get(SELF) and each.leaning]
    decided = [each for each in seen if each.verdicts.get(HUMAN)]
    failed = [each for each in decided if EXECUTION in tags[each.pair.key]]
    checked = [each for each in failed if each.leaning is not None]
    rows = []
    kinds = [
        (EXECUTION, decided, len(seen), "wrong with the human rubric; of pairs with a choice"),
        (AGAINST, checked, len(failed), "of these: its checks of the items favour the right response"),
    ]
    if SELF in seen[0].verdicts:
        words = "with its own rubric it prefers the response that its checks of the human rubric put below"
        kinds.insert(0, (INVERSION, compared, len(seen), words))
    for tag, of, whole, meaning in kinds:
        share = proportion(sum(tag in tags[each.pair.key] for each in of), len(of), whole - len(of), "no such pair")
        rows.append([r.text(tag.capitalize()), r.estimate(share, tag), r.text(meaning)])
    return r.table("Where it goes wrong", ["Fault", "Share", "Meaning"], rows)
