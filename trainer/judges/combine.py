"""Answers are combined: un-swapped, from both orders, from votes, into verdicts on criteria. Missing stays missing."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from trainer.contracts import Verdict

Value = TypeVar("Value", bound=Hashable)
PairKey = tuple[str, str, str]
ResponseKey = tuple[str, str]
_UNSWAPPED = {
    "A": "B",
    "B": "A",
    "A better": "B better",
    "B better": "A better",
    "A much better": "B much better",
    "B much better": "A much better",
}


class JudgeOutcome(Protocol):
    """An outcome of the engine, or a stored verdict."""

    @property
    def subject(self) -> Mapping[str, Any]: ...
    @property
    def parsed(self) -> Mapping[str, Any] | None: ...
    @property
    def raw(self) -> str: ...
    @property
    def problem(self) -> str: ...


@dataclass(frozen=True)
class Vote(Generic[Value]):
    """If `value` is None, there was no vote (`votes` 0), or several values share the first place (`drawn`)."""

    value: Value | None
    drawn: bool
    votes: int
    missing: int


def majority(values: Sequence[Value | None]) -> Vote[Value]:
    """The most frequent value of the votes. None is a missing vote."""
    cast = [value for value in values if value is not None]
    missing = len(values) - len(cast)
    if not cast:
        return Vote(None, False, 0, missing)
    (first, most), *others = Counter(cast).most_common(2)
    drawn = bool(others) and others[0][1] == most
    return Vote(None if drawn else first, drawn, len(cast), missing)


def unswapped(parsed: Mapping[str, Any], order: str) -> dict[str, Any]:
    """A pairwise answer in terms of the pair: "A", `a_meets` and a negative strength mean the pair's `a`.

    The texts of reasons stay as they were written, with the names that the judge saw.
    """
    turned = dict(parsed)
    if order == "given":
        return turned
    turned["verdict"] = _UNSWAPPED.get(parsed["verdict"], parsed["verdict"])
    turned["strength"] = -parsed["strength"]
    if "gatekeeper" in parsed:
        turned["gatekeeper"] = _turned(parsed["gatekeeper"])
        turned["items"] = {key: _turned(item) for key, item in parsed["items"].items()}
    return turned


def _turned(item: Mapping[str, Any]) -> dict[str, Any]:
    return {**item, "a_meets": item["b_meets"], "b_meets": item["a_meets"]}


@dataclass(frozen=True)
class PairVerdict:
    """A judge's verdict on a pair, un-swapped: -1 `a` is better, 0 tie, 1 `b` is better, None missing.

    `given` and `swapped` are the majorities of the two orders; None also if the order was not asked. `verdict`: if one order was asked,
    its majority; if both were, their common value, 0 if they differ, None if one is missing. `consistent` is None unless both orders
    have a verdict. `strength`: the mean of all votes, -2 to 2. `votes` and `missing` count calls.
    """

    given: int | None
    swapped: int | None
    verdict: int | None
    consistent: bool | None
    strength: float | None
    votes: int
    missing: int


def pair_verdicts(said: Iterable[JudgeOutcome]) -> dict[PairKey, PairVerdict]:
    """The verdict on each pair, by (example, a, b), from all calls about it: both orders and every vote."""
    grouped: dict[PairKey, dict[str, list[int | None]]] = defaultdict(lambda: defaultdict(list))
    for each in said:
        subject, order = each.subject, each.subject["order"]
        strength = None if each.parsed is None else int(unswapped(each.parsed, order)["strength"])
        grouped[subject["example"], subject["a"], subject["b"]][order].append(strength)
    return {key: _pair(orders) for key, orders in grouped.items()}


def _pair(orders: Mapping[str, Sequence[int | None]]) -> PairVerdict:
    sides: dict[str, int | None] = {}
    for order, strengths in orders.items():
        vote = majority([None if s is None else (s > 0) - (s < 0) for s in strengths])
        sides[order] = 0 if vote.drawn else vote.value
    given, swapped = sides.get("given"), sides.get("swapped")
    cast = [strength for strengths in orders.values() for strength in strengths if strength is not None]
    consistent = None if given is None or swapped is None else given == swapped
    if len(sides) == 1:
        verdict = next(iter(sides.values()))
    else:
        verdict = None if consistent is None else given if consistent else 0
    asked = sum(len(strengths) for strengths in orders.values())
    mean = sum(cast) / len(cast) if cast else None
    return PairVerdict(given, swapped, verdict, consistent, mean, len(cast), asked - len(cast))


def criterion_verdicts(said: Iterable[JudgeOutcome]) -> dict[ResponseKey, tuple[Verdict, ...]]:
    """The verdicts on all criteria that were asked about, by (example, response), from calls of `criterion` or `checklist`.

    The majority of the votes decides; an even split gives no verdict. `note` is an explanation from the winning side, or the reason why
    there
    is no verdict.
    """
    grouped: dict[ResponseKey, dict[str, list[tuple[bool | None, str, str]]]] = defaultdict(lambda: defaultdict(list))
    for each in said:
        subject = each.subject
        votes = grouped[subject["example"], subject["response"]]
        for criterion in subject["criteria"] if "criteria" in subject else [subject["criterion"]]:
            item = _item(each.parsed, criterion, "criteria" in subject)
            if item is None:
                votes[criterion].append((None, each.problem or "no answer on this criterion", each.raw))
            else:
                votes[criterion].append((bool(item["met"]), str(item["explanation"]), each.raw))
    return {
        key: tuple(_verdict(criterion, votes) for criterion, votes in criteria.items())
        for key, criteria in grouped.items()
    }


def _item(parsed: Mapping[str, Any] | None, criterion: str, listed: bool) -> Mapping[str, Any] | None:
    if parsed is None or not listed:
        return parsed
    found: Mapping[str, Any] | None = parsed["items"].get(criterion)
    return found


def _verdict(criterion: str, votes: Sequence[tuple[bool | None, str, str]]) -> Verdict:
    vote = majority([met for met, _, _ in votes])
    if vote.drawn:
        note, raw = f"{vote.votes} votes are evenly split", votes[0][2]
    else:
        _, note, raw = next(each for each in votes if each[0] == vote.value)
    return Verdict(criterion_id=criterion, met=vote.value, source="judge", note=note, raw=raw)


def criterion_ratings(said: Iterable[JudgeOutcome]) -> dict[ResponseKey, dict[str, float | None]]:
    """The mean rating 1..10 of each criterion, by (example, response), over the votes of `likert` calls; None: missing."""
    grouped: dict[ResponseKey, dict[str, list[int]]] = {}
    for each in said:
        subject = each.subject
        ratings = grouped.setdefault((subject["example"], subject["response"]), {})
        for criterion in subject["criteria"]:
            item = _item(each.parsed, criterion, True)
            ratings.setdefault(criterion, []).extend([] if item is None else [item["rating"]])
    return {
        key: {name: sum(found) / len(found) if found else None for name, found in ratings.items()}
        for key, ratings in grouped.items()
    }
