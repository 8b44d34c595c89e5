"""Ranking: several responses from best to worst, ties allowed; or only the best of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import mean
from string import ascii_uppercase
from typing import Any, Literal

from pydantic import Field as Limits

from . import example_labels
from .base import Content, Groups, Problems, Subject, TaskKind
from .fields import Field
from .records import MAX_RESPONSES, Answered, Settings, Side, subject_sides
from .table import AnswerRow, GivenAnswer, Undecided
from .values import most, preference, sign

PAIRS = {"-1": "first better", "0": "equal", "1": "second better"}
_PLACED = """
    SELECT tier.place, side FROM jsonb_array_elements(answer.content -> 'tiers') WITH ORDINALITY AS tier(sides, place),
        jsonb_array_elements_text(tier.sides) AS side
"""
_PAIRS = f"""
    SELECT one.side || ' / ' || two.side AS item, sign(one.place - two.place)::int::text AS value
    FROM ({_PLACED}) AS one JOIN ({_PLACED}) AS two ON one.side < two.side COLLATE "C"
"""  # noqa: S608  constants
_BEST = """
    SELECT '' AS item, (SELECT place::text
        FROM jsonb_array_elements_text(task.subject -> 'responses') WITH ORDINALITY AS listed(side, place)
        WHERE side = answer.content -> 'tiers' -> 0 ->> 0) AS value
"""


class RankingAnswer(Answered):
    """Tiers from best to worst; responses in one tier are equal. Best of n: two tiers, the best one and the rest."""

    tiers: tuple[tuple[Side, ...], ...] = Limits(default=(), max_length=MAX_RESPONSES)
    verdict: Literal["ranked", "cannot_assess"] = "ranked"


class Ranking(TaskKind):
    name = "ranking"
    place = 4
    title = "Ranking"
    text = "People put several answers in order, with ties if needed, or only choose the best one."
    unit = "all responses to an instruction"
    needs = ("responses",)
    answer = RankingAnswer
    heading = "Order"
    template = "annotation/answers/ranking.html"
    compares = True
    units_sql = """CROSS JOIN LATERAL (SELECT '' AS unit, coalesce((SELECT string_agg(side, ',' ORDER BY side)
        FROM jsonb_array_elements_text(a.content->'tiers'->0) side), 'cannot_assess') AS value) u"""
    picture = """
    <rect x="14" y="1" width="49" height="11" rx="3" fill="currentColor" fill-opacity=".12" stroke="currentColor" stroke-width="1.5"/>
    <rect x="14" y="16.5" width="49" height="11" rx="3" fill="none" stroke="currentColor" stroke-opacity=".5" stroke-width="1.5"/>
    <rect x="14" y="32" width="49" height="11" rx="3" fill="none" stroke="currentColor" stroke-opacity=".35" stroke-width="1.5"/>
    <path d="M20 6.5h28M20 22h20M20 37.5h24" fill="none" stroke="currentColor" stroke-opacity=".4" stroke-width="2"
      stroke-linecap="round"/>
    <g fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round">
      <path d="M4 4.5 6 3v7"/><path d="M3.5 19.5c.6-1.500 4-1.5 4 .6 0 1.6-4 2.9-4 4.9h4.2"/>
      <path d="M3.5 34.5h4l-2.3 2.8c3.6.2 2.7 4.2 0 4.2-1 0-1.7-.4-2-.9"/></g>"""

    def subjects(self, content: Content) -> list[Subject]:
        """One subject with all responses, if there are at least two."""
        ids = example_labels.response_ids(content)
        return [{"responses": ids[:MAX_RESPONSES]}] if len(ids) > 1 else []

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        if record.verdict == "cannot_assess":
            return {"tiers": "must be empty if the responses cannot be assessed"} if record.tiers else {}
        shown_letters = [one["letter"] for one in view["responses"]]
        ranked = [letter for tier in record.tiers for letter in tier]
        if unknown := sorted(set(ranked) - set(shown_letters)):
            return {"tiers": f"names {', '.join(unknown)}, which is not shown"}
        if twice := sorted({letter for letter in ranked if ranked.count(letter) > 1}):
            return {"tiers": f"{', '.join(twice)} has two places"}
        if missing := [letter for letter in shown_letters if letter not in ranked]:
            return {"tiers": f"every response needs a place; missing: {', '.join(missing)}"}
        if any(not tier for tier in record.tiers):
            return {"tiers": "a place must hold at least one response"}
        if settings.ranking == "best" and (len(record.tiers) != 2 or len(record.tiers[0]) != 1):
            return {"tiers": "choose the one best response"}
        return {}

    def renamed(self, content: dict[str, Any], name: Callable[[str], str], *, swapped: bool) -> dict[str, Any]:
        if "tiers" not in content:
            return dict(content)
        return {**content, "tiers": [[name(side) for side in tier] for tier in content["tiers"]]}

    def says(self, content: Content) -> str:
        return _order(content) or "cannot assess"

    def words(self, content: Content, subject: Content) -> str:
        return _order(content) or "Cannot assess"

    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        return {"verdict": lambda content: content.get("verdict"), "order": _order}

    def judgement(self, content: Content) -> Any:
        return content.get("verdict"), [sorted(tier) for tier in content.get("tiers", [])]

    def distance(self, one: Content, two: Content) -> float:
        """Half the mean difference of the order of each two responses (Kendall's distance, ties counted half)."""
        first, second = _orders(one), _orders(two)
        if not first or not second:
            return float(one.get("verdict") != two.get("verdict"))
        return mean(abs(first.get(pair, 0) - second.get(pair, 0)) / 2 for pair in {*first, *second})

    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        """The order of each two responses in more than half of the answers, if these orders make one ranking."""
        if most([content.get("verdict") for content in contents], len(contents)) == "cannot_assess":
            return {"verdict": "cannot_assess", "tiers": [], "note": ""}
        orders = [_orders(content) for content in contents]
        relation = {pair: most([order.get(pair) for order in orders], len(contents)) for pair in orders[0]}
        if not relation or None in relation.values():
            return None
        wins: Counter[str] = Counter()
        for (one, two), order in relation.items():
            wins[one] -= order
            wins[two] += order
        scores = sorted(set(wins.values()), reverse=True)
        tiers = [sorted(side for side in wins if wins[side] == score) for score in scores]
        found = {"verdict": "ranked", "tiers": tiers, "note": ""}
        return found if _orders(found) == relation else None  # a cycle is not a ranking

    def rows(
        self, settings: Settings, subject: Content, example: Content, answers: Sequence[GivenAnswer], groups: Any
    ) -> list[AnswerRow]:
        letters = {side: ascii_uppercase[place] for place, side in enumerate(subject_sides(subject))}
        given = {}
        for each in answers:
            tiers = [" = ".join(sorted(letters.get(side, side) for side in tier)) for tier in each.content["tiers"]]
            given[each.id] = "cannot_assess" if each.content.get("verdict") == "cannot_assess" else " > ".join(tiers)
        options = {value: value for value in dict.fromkeys(given.values())} | {"cannot_assess": "cannot assess"}
        return [AnswerRow("order", "choice", "Order, best first", options, given, drop="cannot_assess", free=True)]

    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        order = values["order"]
        if order == "cannot_assess":
            return {"tiers": [], "verdict": "cannot_assess", "note": ""}
        sides = {ascii_uppercase[place]: side for place, side in enumerate(subject_sides(subject))}
        tiers = [[sides.get(letter.strip(), letter.strip()) for letter in tier.split("=")] for tier in order.split(">")]
        if sorted(side for tier in tiers for side in tier) != sorted(sides.values()):
            raise Undecided("order", f"must name each of {', '.join(sides)} once, such as A > B = C")
        return {"tiers": tiers, "verdict": "ranked", "note": ""}

    def fields(self, settings: Settings) -> list[Field]:
        if settings.ranking == "best":
            return [Field("best", "Best response, by its place", "nominal", _BEST)]
        return [Field("pairs", "Order of each two responses", "nominal", _PAIRS, shown=PAIRS, items="pair")]

    def right(self, settings: Settings, given: Content, known: Content) -> bool | None:
        first, second = ([sorted(tier) for tier in answer["tiers"]] for answer in (given, known))
        return first[:1] == second[:1] if settings.ranking == "best" else first == second

    def preferences(self, content: Content, subject: Content, example: Content, rater: str) -> list[dict[str, Any]]:
        return [preference(one, two, order, rater) for (one, two), order in _orders(content).items()]


def _order(content: Content) -> str:
    return " > ".join(" = ".join(tier) for tier in content["tiers"])


def _orders(content: Content) -> dict[tuple[str, str], int]:
    """{(one, two): -1 if one ranks before two, 0 if they are equal, 1 otherwise}; pairs in alphabetical order."""
    place = {side: tier for tier, sides in enumerate(content.get("tiers", [])) for side in sides}
    return {(one, two): sign(place[one] - place[two]) for one, two in combinations(sorted(place), 2)}


KIND = Ranking()
