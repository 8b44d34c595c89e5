"""Where independent answers to one task meet: how far apart they are, what all of them say, what most of them say.

Pure functions of answers as they are stored (the subject's frame). Each knows the six kinds of task; nothing here
invents a judgement: where no value has more than half of the answers behind it, there is no majority.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import mean, median
from typing import Any

from pydantic import ValidationError

from .kinds import ANSWERS

Content = Mapping[str, Any]
Groups = Sequence[Sequence[tuple[int, int]]]  # of (answer, index of the item in it)
ITEM_KINDS = frozenset({"rubric", "rationale"})  # what is said counts, not a value chosen
STEPS = 6  # from -3 to 3


def items(kind: str, content: Content) -> list[Any]:
    """The parts of an answer that are matched by meaning: criteria or reasons."""
    found: list[Any] = content["rubric"]["criteria"] if kind == "rubric" else content.get("reasons", [])
    return found


def agreement(kind: str, contents: Sequence[Content], groups: Groups = ()) -> float | None:
    """Mean over pairs of answers of 1 - distance, in [0, 1]; None with fewer than two answers.

    Tasks ordered by it stand as if ordered by a chance-corrected coefficient: the disagreement expected by chance is
    one constant of the project.
    """
    if len(contents) < 2:
        return None
    if kind in ITEM_KINDS:
        return _shared_items([len(items(kind, content)) for content in contents], groups)
    distance = DISTANCES[kind]
    return 1 - mean(distance(one, two) for one, two in combinations(contents, 2))


def _shared_items(sizes: Sequence[int], groups: Groups) -> float:
    """Mean over pairs of answers of 2 x matched / (items of both): the structural F1 of RubricBench, both ways."""
    together = Counter(pair for group in groups for pair in combinations(sorted(answer for answer, _ in group), 2))
    shares = []
    for one, two in combinations(range(len(sizes)), 2):
        size = sizes[one] + sizes[two]
        shares.append(2 * together[one, two] / size if size else 1.0)
    return mean(shares)


def _strengths(one: int | None, two: int | None) -> float:
    """Steps apart, half; opposite sides, the other half."""
    if one is None or two is None:
        return float(one is not two)
    return abs(one - two) / (2 * STEPS) + abs(_sign(one) - _sign(two)) / 4


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _pairwise(one: Content, two: Content) -> float:
    if one.get("verdict") != two.get("verdict"):
        return 1.0
    apart = [_strengths(one.get("strength"), two.get("strength"))]
    names = {*one.get("dimensions", {}), *two.get("dimensions", {})}
    apart += [_strengths(one["dimensions"].get(name), two["dimensions"].get(name)) for name in sorted(names)]
    return mean(apart)


def _grading(one: Content, two: Content) -> float:
    first, second = _grades(one), _grades(two)
    return mean(float(first.get(name) != second.get(name)) for name in {*first, *second})


def _grades(content: Content) -> dict[str, str]:
    return {grade["criterion"]: grade["verdict"] for grade in content["grades"]}


def _ranking(one: Content, two: Content) -> float:
    """Half the mean difference of the order of each two responses (Kendall's distance, ties counted half)."""
    first, second = _orders(one), _orders(two)
    if not first or not second:
        return float(one.get("verdict") != two.get("verdict"))
    return mean(abs(first.get(pair, 0) - second.get(pair, 0)) / 2 for pair in {*first, *second})


def _orders(content: Content) -> dict[tuple[str, str], int]:
    """{(one, two): -1 when one stands before two, 0 when they are equal, 1}; pairs in alphabetical order."""
    place = {side: tier for tier, sides in enumerate(content.get("tiers", [])) for side in sides}
    return {(one, two): _sign(place[one] - place[two]) for one, two in combinations(sorted(place), 2)}


def _rating(one: Content, two: Content) -> float:
    """d / (1 + d) for d steps apart: the first step says most. A missing rating is as far as can be."""
    apart = []
    for name in {*one["ratings"], *two["ratings"]}:
        first, second = one["ratings"].get(name), two["ratings"].get(name)
        missing = first is None or second is None
        apart.append(float(first is not second) if missing else abs(first - second) / (1 + abs(first - second)))
    return mean(apart)


DISTANCES = {"pairwise": _pairwise, "grading": _grading, "ranking": _ranking, "rating": _rating}


def judged(kind: str, content: Content) -> Any:
    """The judgement in an answer, without notes, reasons and spans: two answers with equal ones say the same."""
    if kind == "pairwise":
        return content.get("verdict"), content.get("strength"), sorted(content.get("dimensions", {}).items())
    if kind == "grading":
        return sorted(_grades(content).items())
    if kind == "ranking":
        return content.get("verdict"), [sorted(tier) for tier in content.get("tiers", [])]
    if kind == "rating":
        return sorted(content["ratings"].items())
    if kind == "rubric":
        return sorted((_plain(each["text"]), each["points"]) for each in items(kind, content))
    return sorted(_plain(each["text"]) for each in items(kind, content))


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".!")


def unanimous(kind: str, contents: Sequence[Content], groups: Groups = ()) -> dict[str, Any] | None:
    """What two or more answers all say, or None. Reasons of all are kept, one for each meaning."""
    if len(contents) < 2 or any(judged(kind, content) != judged(kind, contents[0]) for content in contents[1:]):
        return None
    return _with_reasons(kind, dict(contents[0]), contents, groups, range(len(contents)))


def majority(kind: str, contents: Sequence[Content], groups: Groups = ()) -> dict[str, Any] | None:
    """What more than half of the answers say, part by part; None where some part has no such majority.

    On ordered scales the majority is of the side (or of a value), its degree the median of those who took it.
    """
    found = MAJORITIES[kind](contents, groups) if contents else None
    return _valid(kind, found) if found else None


def _valid(kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """For instance a rubric of which only pitfalls found a majority is none."""
    try:
        return ANSWERS[kind].model_validate(content).model_dump(mode="json")
    except ValidationError:
        return None


def _most(values: Iterable[Any], of: int) -> Any:
    """The value with more than `of` / 2 votes, else None."""
    value, votes = max(Counter(values).items(), key=lambda item: item[1], default=(None, 0))
    return value if 2 * votes > of else None


def majority_strength(values: Sequence[int | None], of: int) -> int | None:
    """The median strength of those on the side that more than half of `of` people took; None without such a side."""
    side: int | None = _most([_sign(value) for value in values if value is not None], of)
    if side is None:
        return None
    middle = median(sorted(abs(value) for value in values if value is not None and _sign(value) == side))
    return side * int(middle)  # between two steps: the more careful one


def _majority_pairwise(contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
    verdict = _most([content.get("verdict") for content in contents], len(contents))
    if verdict is None:
        return None
    behind = [place for place, content in enumerate(contents) if content.get("verdict") == verdict]
    strength = None
    if verdict == "compared":
        strength = majority_strength([contents[place].get("strength") for place in behind], len(contents))
        if strength is None:
            return None
        behind = [place for place in behind if _sign(contents[place]["strength"]) == _sign(strength)]
    names = sorted({name for content in contents for name in content.get("dimensions", {})})
    dimensions = {
        name: majority_strength([content.get("dimensions", {}).get(name) for content in contents], len(contents))
        for name in names
    }
    content = {"verdict": verdict, "strength": strength, "dimensions": dimensions, "note": ""}
    return _with_reasons("pairwise", content, contents, groups, behind)


def _with_reasons(
    kind: str, content: dict[str, Any], contents: Sequence[Content], groups: Groups, behind: Iterable[int]
) -> dict[str, Any]:
    """The reasons of those who judged so, the same reason once."""
    if kind != "pairwise":
        return content
    those = set(behind)
    kept = [min((answer, index) for answer, index in group if answer in those) for group in _of(groups, those)]
    return {**content, "reasons": [contents[answer]["reasons"][index] for answer, index in sorted(kept)]}


def _of(groups: Groups, those: set[int]) -> list[Sequence[tuple[int, int]]]:
    return [group for group in groups if any(answer in those for answer, _ in group)]


def _majority_grading(contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
    names = [grade["criterion"] for grade in contents[0]["grades"]]
    verdicts = {name: _most([_grades(content).get(name) for content in contents], len(contents)) for name in names}
    if None in verdicts.values():
        return None
    grades = []
    for name in names:
        given = (grade for content in contents for grade in content["grades"] if grade["criterion"] == name)
        grades.append(next(grade for grade in given if grade["verdict"] == verdicts[name]))
    return {"grades": grades, "note": ""}


def _majority_ranking(contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
    """The order that holds between each two responses for more than half of the answers, if it is one order."""
    if _most([content.get("verdict") for content in contents], len(contents)) == "cannot_assess":
        return {"verdict": "cannot_assess", "tiers": [], "note": ""}
    orders = [_orders(content) for content in contents]
    relation = {pair: _most([order.get(pair) for order in orders], len(contents)) for pair in orders[0]}
    if not relation or None in relation.values():
        return None
    wins: Counter[str] = Counter()
    for (one, two), sign in relation.items():
        wins[one] -= sign
        wins[two] += sign
    tiers = [sorted(side for side in wins if wins[side] == score) for score in sorted(set(wins.values()), reverse=True)]
    found = {"verdict": "ranked", "tiers": tiers, "note": ""}
    return found if _orders(found) == relation else None  # a circle is no order


def _majority_rating(contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
    ratings = {}
    for name in contents[0]["ratings"]:
        given = [content["ratings"].get(name) for content in contents]
        ratings[name] = _most(given, len(contents))
        if ratings[name] is None and 2 * given.count(None) <= len(given):
            return None  # no majority, not even for "cannot assess"
    return {"ratings": ratings, "note": ""}


def _majority_items(kind: str, contents: Sequence[Content], groups: Groups) -> list[Any]:
    shared = [min(group) for group in groups if 2 * len(group) > len(contents)]
    return [items(kind, contents[answer])[index] for answer, index in sorted(shared)]


def _majority_rubric(contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
    found = _majority_items("rubric", contents, groups)
    return {"rubric": {"criteria": numbered(found)}, "note": ""} if found else None


def _majority_rationale(contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
    found = _majority_items("rationale", contents, groups)
    return {"source": contents[0].get("source", ""), "reasons": found, "note": ""} if found else None


MAJORITIES = {
    "pairwise": _majority_pairwise,
    "rubric": _majority_rubric,
    "grading": _majority_grading,
    "ranking": _majority_ranking,
    "rating": _majority_rating,
    "rationale": _majority_rationale,
}


def numbered(criteria: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Criteria of several rubrics as one: ids that two of them share are counted on."""
    taken: set[str] = set()
    found = []
    for criterion in criteria:
        name, count = str(criterion["id"]), 1
        while name in taken:
            count += 1
            name = f"{str(criterion['id'])[:58]}-{count}"
        taken.add(name)
        found.append({**criterion, "id": name})
    return found
