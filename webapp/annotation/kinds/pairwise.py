"""Pairwise preference: which of two responses is better, by how much, and for which reasons."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median
from typing import Any, Literal, Self

from pydantic import Field as Limits
from pydantic import model_validator

from . import example_labels, reasons
from .base import Content, Groups, Problems, Subject, TaskKind
from .fields import Field
from .records import MAX_REASONS, Answered, Name, Reason, Settings, Strength
from .table import AnswerRow, GivenAnswer, item_rows
from .values import (
    NONE,
    STRENGTHS,
    STRENGTHS_BY_NUMBER,
    WITHOUT_STRENGTH,
    majority_strength,
    most,
    number,
    sign,
    written,
)

STEPS = 6  # from -3 to 3
SIDES = {"-1": "A better", "0": "same", "1": "B better", "both_bad": "both bad"}
BETTER = {1: "slightly better", 2: "better", 3: "much better"}
_STRENGTH = "SELECT '' AS item, answer.content ->> 'strength' AS value"
_DIRECTION = """
    SELECT '' AS item, CASE answer.content ->> 'verdict' WHEN 'both_bad' THEN 'both_bad'
        WHEN 'cannot_assess' THEN NULL ELSE sign((answer.content ->> 'strength')::int)::int::text END AS value
"""
_DIMENSION = "SELECT '' AS item, answer.content -> 'dimensions' ->> %s AS value"


class PairwiseAnswer(Answered):
    """`strength` -3 (the first side is much better) .. 3 (the second is); None if the pair was not compared."""

    verdict: Literal["compared", "both_bad", "cannot_assess"] = "compared"
    strength: Strength | None = None
    dimensions: dict[Name, Strength | None] = Limits(default_factory=dict)
    reasons: tuple[Reason, ...] = Limits(default=(), max_length=MAX_REASONS)

    @model_validator(mode="after")
    def _strength_iff_compared(self) -> Self:
        if self.verdict == "compared" and self.strength is None:
            raise ValueError("choose one of the seven steps, or say why there is no choice")
        if self.verdict == "cannot_assess" and self.strength is not None:
            raise ValueError("a pair that cannot be assessed has no strength")
        return self


class Pairwise(TaskKind):
    name = "pairwise"
    place = 1
    title = "Pairwise preference"
    text = "Two answers side by side. Which is better, by how much, and for which reasons?"
    unit = "a pair of responses"
    needs = ("responses",)
    answer = PairwiseAnswer
    template = "annotation/answers/pairwise.html"
    compares = True
    items_name = "reasons"
    labelled = True
    suggested = True
    # strength counts by its sign
    units_sql = """CROSS JOIN LATERAL (SELECT '' AS unit, CASE WHEN a.content->>'verdict' = 'compared'
        THEN sign((a.content->>'strength')::int)::text ELSE a.content->>'verdict' END AS value) u"""
    picture = """
    <rect x="1" y="1" width="29" height="30" rx="3" fill="none" stroke="currentColor" stroke-opacity=".45" stroke-width="1.5"/>
    <rect x="34" y="1" width="29" height="30" rx="3" fill="currentColor" fill-opacity=".1" stroke="currentColor" stroke-width="1.5"/>
    <path d="M6 8h19M6 14h15M6 20h17M39 8h19M39 14h19M39 20h12M39 26h15" fill="none" stroke="currentColor" stroke-opacity=".4"
      stroke-width="2" stroke-linecap="round"/>
    <g fill="currentColor"><circle cx="8" cy="39" r="2" opacity=".3"/><circle cx="16" cy="39" r="2" opacity=".3"/>
      <circle cx="24" cy="39" r="2" opacity=".3"/><circle cx="32" cy="39" r="2" opacity=".3"/>
      <circle cx="40" cy="39" r="2" opacity=".3"/><circle cx="48" cy="39" r="3.6"/>
      <circle cx="56" cy="39" r="2" opacity=".3"/></g>"""

    def subjects(self, content: Content) -> list[Subject]:
        """The pairs that its preferences name, else neighbouring responses. In a study: its first pair, once in each arm."""
        pairs, arms = example_labels.pairs(content), example_labels.arms(content)
        return [{**pair, "arm": arm} for pair in pairs[:1] for arm in arms] if arms else pairs

    def criteria(self, subject: Content, content: Content) -> list[dict[str, Any]]:
        """The criteria of a study's arm. Only their words differ from those of the other arm."""
        given = example_labels.arms(content).get(subject.get("arm", ""), ())
        return [
            {"id": str(number), "text": one["text"], "points": 1 if one["points"] > 0 else -1}
            for number, one in enumerate(given, 1)
        ]

    def view_of_example(self, subject: Content, content: Content) -> dict[str, Any] | None:
        strength = example_labels.judge_strength(subject, content)
        return None if strength is None else {"verdict": "compared", "strength": round(strength)}

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        fields = reasons.complaints(record, view)
        unknown = [name for name in record.dimensions if name not in settings.dimensions]
        fields |= {f"dimensions.{name}": "is not asked for here" for name in unknown}
        if settings.reasons == "none" and record.reasons:
            fields["reasons"] = "are not asked for in this project"
        if settings.reasons == "required" and record.verdict == "compared" and not record.reasons and not gold:
            fields["reasons"] = "are required: give at least one"
        return fields

    def renamed(self, content: dict[str, Any], name: Callable[[str], str], *, swapped: bool) -> dict[str, Any]:
        moved = reasons.renamed(content, name)
        if swapped:
            moved["strength"] = _turned(moved.get("strength"))
            if "dimensions" in moved:
                moved["dimensions"] = {key: _turned(value) for key, value in moved["dimensions"].items()}
        return moved

    def says(self, content: Content) -> str:
        return WITHOUT_STRENGTH.get(content["verdict"]) or STRENGTHS[str(content["strength"])]

    def words(self, content: Content, subject: Content) -> str:
        """A sentence that names the side by its id."""
        if content.get("verdict") == "cannot_assess":
            return "Cannot assess"
        strength = content.get("strength")
        if not strength:
            return "Both bad" if content.get("verdict") == "both_bad" else "Neither is better"
        side = subject["b"] if strength > 0 else subject["a"]
        words = f"{side} is {BETTER[abs(strength)]}"
        return f"Both bad; {words}" if content.get("verdict") == "both_bad" else words

    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        found: dict[str, Callable[[Content], Any]] = {
            "verdict": lambda content: content.get("verdict"),
            "strength": lambda content: content.get("strength"),
        }
        found |= {f"dimension:{name}": _dimension(name) for name in settings.dimensions}
        return {**found, "reasons": lambda content: "\n".join(each["text"] for each in content.get("reasons", ()))}

    def items(self, content: Content) -> list[Any]:
        return list(content.get("reasons", []))

    def judgement(self, content: Content) -> Any:
        return content.get("verdict"), content.get("strength"), sorted(content.get("dimensions", {}).items())

    def distance(self, one: Content, two: Content) -> float:
        if one.get("verdict") != two.get("verdict"):
            return 1.0
        strengths = one.get("strength"), two.get("strength")
        # which of two bad responses is less bad is not asked
        apart = [0.0 if None in strengths and one.get("verdict") == "both_bad" else _apart(*strengths)]
        names = {*one.get("dimensions", {}), *two.get("dimensions", {})}
        apart += [_apart(one["dimensions"].get(name), two["dimensions"].get(name)) for name in sorted(names)]
        return mean(apart)

    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        """The majority for a side (or a verdict); its degree is the median of the people who chose that side."""
        verdict = most([content.get("verdict") for content in contents], len(contents))
        if verdict is None:
            return None
        behind = [place for place, content in enumerate(contents) if content.get("verdict") == verdict]
        strength = None
        if verdict == "compared":
            strength = majority_strength([contents[place].get("strength") for place in behind], len(contents))
            if strength is None:
                return None
            behind = [place for place in behind if sign(contents[place]["strength"]) == sign(strength)]
        names = sorted({name for content in contents for name in content.get("dimensions", {})})
        dimensions = {
            name: majority_strength([content.get("dimensions", {}).get(name) for content in contents], len(contents))
            for name in names
        }
        content = {"verdict": verdict, "strength": strength, "dimensions": dimensions, "note": ""}
        return _with_reasons(content, contents, groups, set(behind))

    def united(self, content: dict[str, Any], contents: Sequence[Content], groups: Groups) -> dict[str, Any]:
        """The answer with the reasons of all, one for each meaning."""
        return _with_reasons(content, contents, groups, set(range(len(contents))))

    def rows(
        self, settings: Settings, subject: Content, example: Content, answers: Sequence[GivenAnswer], groups: Any
    ) -> list[AnswerRow]:
        given = {each.id: _value(each.content) for each in answers}
        options = STRENGTHS | WITHOUT_STRENGTH
        found = [AnswerRow("strength", "choice", "Preference", options, given, drop="cannot_assess", strength=True)]
        for name in settings.dimensions:
            values = {each.id: written(each.content.get("dimensions", {}).get(name)) for each in answers}
            options = STRENGTHS | {NONE: "cannot assess"}
            found.append(AnswerRow(f"dimension:{name}", "choice", name, options, values, drop=NONE, strength=True))
        return [*found, *item_rows(answers, groups, self.items)]

    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        strength = values.pop("strength")
        dimensions = {row.partition(":")[2]: number(value) for row, value in values.items()}
        compared = strength not in WITHOUT_STRENGTH
        verdict = {"verdict": "compared" if compared else strength, "strength": int(strength) if compared else None}
        return {**verdict, "dimensions": dimensions, "reasons": kept, "note": ""}

    def fields(self, settings: Settings) -> list[Field]:
        found = [
            Field("strength", "Preference strength", "ordinal", _STRENGTH, shown=STRENGTHS_BY_NUMBER),
            Field("direction", "Direction", "nominal", _DIRECTION, shown=SIDES),
        ]
        return found + [
            Field(f"dimension:{name}", name, "ordinal", _DIMENSION, (name,), STRENGTHS_BY_NUMBER)
            for name in settings.dimensions
        ]

    def right(self, settings: Settings, given: Content, known: Content) -> bool | None:
        return _winner(given) == _winner(known)

    def bare(self, content: Content) -> dict[str, Any]:
        return {name: content[name] for name in ("verdict", "strength") if name in content}

    def from_labels(self, subject: Content, content: Content, least: int) -> dict[str, Any] | None:
        """The judgement of at least `least` people about this pair, if they all agree on the winner; the median of their strengths.
        Preferences by judges are left out, because they are a model's view."""
        sides = {subject["a"], subject["b"]}
        about = [one for one in content.get("preferences", ()) if {one["a"], one["b"]} == sides]
        given = [one for one in about if not example_labels.is_judge(one)]
        verdicts = {one.get("verdict", "compared") for one in given}
        if len(given) < max(least, 1) or len(verdicts) != 1:
            return None
        if verdicts != {"compared"}:
            return {"verdict": verdicts.pop(), "strength": None}
        strengths = [one["strength"] if one["a"] == subject["a"] else -one["strength"] for one in given]
        if len({sign(strength) for strength in strengths}) != 1:
            return None
        return {"verdict": "compared", "strength": _rounded(median(strengths))}

    def at_odds(
        self, subject: Content, judged: Content | None, content: Content, answers: Sequence[Content]
    ) -> float | None:
        """The distance between the judge (without `judged`, the judges in the dataset) and the people's mean, as a share of the largest
        possible."""
        judge = example_labels.judge_strength(subject, content) if judged is None else judged["strength"]
        people = example_labels.human_strengths(subject, content)
        people += [answer["strength"] for answer in answers if answer.get("strength") is not None]
        return abs(judge - sum(people) / len(people)) / STEPS if people and judge is not None else None

    def same_as(self, content: Content, suggested: Content) -> list[bool]:
        strength = content.get("strength")
        return [] if strength is None else [sign(strength) == sign(suggested["strength"])]

    def preferences(self, content: Content, subject: Content, example: Content, rater: str) -> list[dict[str, Any]]:
        parts = {name: content[name] for name in ("verdict", "strength", "reasons")}
        return [{"a": subject["a"], "b": subject["b"], "rater": rater, **parts}]

    def note(self, content: Content, what: str) -> dict[str, Any]:
        return {"dimensions": content["dimensions"]} if content.get("dimensions") else {}


def _dimension(name: str) -> Callable[[Content], int | None]:
    return lambda content: content.get("dimensions", {}).get(name)


def _turned(strength: int | None) -> int | None:
    return None if strength is None else -strength


def _apart(one: int | None, two: int | None) -> float:
    """Half the distance is the steps between the strengths, half is for opposite sides."""
    if one is None or two is None:
        return float(one is not two)
    return abs(one - two) / (2 * STEPS) + abs(sign(one) - sign(two)) / 4


def _with_reasons(
    content: dict[str, Any], contents: Sequence[Content], groups: Groups, behind: set[int]
) -> dict[str, Any]:
    """The answer with the reasons of the people with this judgement, each reason once."""
    shared = [[(answer, index) for answer, index in group if answer in behind] for group in groups]
    kept = [min(members) for members in shared if members]
    return {**content, "reasons": [contents[answer]["reasons"][index] for answer, index in sorted(kept)]}


def _value(content: Content) -> str:
    return str(content["strength"]) if content["verdict"] == "compared" else str(content["verdict"])


def _winner(answer: Content) -> tuple[str, int | None]:
    """The verdict and the direction of a preference. The strength is left out, because it is a matter of taste; so is which of two bad
    responses is less bad."""
    strength, verdict = answer.get("strength"), answer.get("verdict", "compared")
    return verdict, None if strength is None or verdict != "compared" else sign(strength)


def _rounded(value: float) -> int:
    """Rounds halves away from zero, so that an agreed preference never becomes a tie."""
    return int(value + (0.5 if value > 0 else -0.5))


KIND = Pairwise()
