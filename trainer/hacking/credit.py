"""Finds the part of the reward that pays for a sign of hacking, and its criterion if a judge decides several."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from .detector import Payment
from .signals import RewardedResponse

CLEAR = 2.0
"""The z from which a part or a criterion is named."""


def credited(
    scored: Sequence[RewardedResponse], there: Collection[tuple[int, int]], trained: Sequence[str]
) -> tuple[str, str]:
    """The part and the criterion that most clearly give the responses which show a sign more than the others of their group.

    `there` has (group, index) of these responses; `trained` are the parts that the reward is made of. A name is empty if no z is clear.
    """
    parts: dict[str, list[tuple[RewardedResponse, float]]] = defaultdict(list)
    criteria: dict[str, list[tuple[RewardedResponse, float]]] = defaultdict(list)
    for each in scored:
        for name in trained:
            if (value := each.parts.get(name)) is not None:
                parts[name].append((each, value))
        for text, met in each.criteria:
            if met is not None:
                criteria[text].append((each, float(met)))
    return _clearest(parts, there), _clearest(criteria, there)


def _clearest(found: dict[str, list[tuple[RewardedResponse, float]]], there: Collection[tuple[int, int]]) -> str:
    best, name = CLEAR, ""
    for each, rows in found.items():
        groups: dict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        for scored, value in rows:
            shows, values = groups[scored.group]
            shows.append(float((scored.group, scored.index) in there))
            values.append(value)
        payment = Payment()
        payment.see(list(groups.values()))
        if (payment.z or 0.0) >= best:
            best, name = payment.z or 0.0, each
    return name
