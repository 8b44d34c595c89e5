"""Rating on scales: one response at a time, on scales that the project names."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any

from . import example_labels
from .base import Content, Groups, Problems, Subject, TaskKind
from .fields import Field
from .records import Answered, Name, Settings
from .table import AnswerRow, GivenAnswer
from .values import NONE, most, number, written

NEAR = 1  # on a scale of more than three values, the neighbouring one is right too
_SCALE = "SELECT '' AS item, answer.content -> 'ratings' ->> %s AS value"


class RatingAnswer(Answered):
    """A value for every scale of the project; None: cannot assess."""

    ratings: dict[Name, int | None]


class Rating(TaskKind):
    name = "rating"
    place = 5
    title = "Rating on scales"
    text = "People rate one answer at a time on scales that you name, such as helpfulness from 1 to 5."
    unit = "a response"
    needs = ("responses",)
    answer = RatingAnswer
    heading = "Scale"
    only_noted = True
    units_sql = """CROSS JOIN LATERAL (SELECT key AS unit, coalesce(value, 'cannot_assess') AS value
        FROM jsonb_each_text(a.content->'ratings')) u"""
    picture = """
    <path d="M3 8h58M3 22h58M3 36h58" fill="none" stroke="currentColor" stroke-opacity=".3" stroke-width="2" stroke-linecap="round"/>
    <path d="M3 8h41M3 22h25M3 36h50" fill="none" stroke="currentColor" stroke-opacity=".8" stroke-width="2" stroke-linecap="round"/>
    <g fill="currentColor"><circle cx="44" cy="8" r="5"/><circle cx="28" cy="22" r="5"/><circle cx="53" cy="36" r="5"/></g>"""

    def subjects(self, content: Content) -> list[Subject]:
        """One subject for each response."""
        return [{"response": side} for side in example_labels.response_ids(content)]

    def problems(self, settings: Settings) -> Problems:
        return {} if settings.scales else {"scales": "name at least one scale"}

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        scales = {scale.name: scale for scale in settings.scales}
        fields = {f"ratings.{name}": "is not asked for here" for name in record.ratings if name not in scales}
        for name, scale in scales.items():
            value = record.ratings.get(name)
            if name not in record.ratings:
                fields[f"ratings.{name}"] = "needs a value, or `cannot assess`"
            elif value is not None and not scale.low <= value <= scale.high:
                fields[f"ratings.{name}"] = f"must be between {scale.low} and {scale.high}"
        return fields

    def says(self, content: Content) -> str:
        return ", ".join(f"{name} {'–' if value is None else value}" for name, value in content["ratings"].items())

    def facts(self, content: Content, subject: Content) -> list[tuple[str, str]]:
        return [(name, "cannot assess" if value is None else str(value)) for name, value in content["ratings"].items()]

    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        def rated(name: str) -> Callable[[Content], int | None]:
            return lambda content: content["ratings"].get(name)

        return {f"scale:{scale.name}": rated(scale.name) for scale in settings.scales}

    def judgement(self, content: Content) -> Any:
        return sorted(content["ratings"].items())

    def distance(self, one: Content, two: Content) -> float:
        """d / (1 + d) for d steps between the values: the first step counts most. A missing rating has the largest distance."""
        apart = []
        for name in {*one["ratings"], *two["ratings"]}:
            first, second = one["ratings"].get(name), two["ratings"].get(name)
            missing = first is None or second is None
            apart.append(float(first is not second) if missing else abs(first - second) / (1 + abs(first - second)))
        return mean(apart)

    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        ratings = {}
        for name in contents[0]["ratings"]:
            given = [content["ratings"].get(name) for content in contents]
            ratings[name] = most(given, len(contents))
            if ratings[name] is None and 2 * given.count(None) <= len(given):
                return None  # no majority, not even for "cannot assess"
        return {"ratings": ratings, "note": ""}

    def rows(
        self, settings: Settings, subject: Content, example: Content, answers: Sequence[GivenAnswer], groups: Any
    ) -> list[AnswerRow]:
        found = []
        for scale in settings.scales:
            steps = range(scale.low, scale.high + 1)
            options = {str(value): f"{value} {scale.labels.get(value, '')}".strip() for value in steps}
            values = {each.id: written(each.content["ratings"].get(scale.name)) for each in answers}
            options |= {NONE: "cannot assess"}
            found.append(AnswerRow(f"scale:{scale.name}", "choice", scale.name, options, values, drop=NONE))
        return found

    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        return {"ratings": {row.partition(":")[2]: number(value) for row, value in values.items()}, "note": ""}

    def fields(self, settings: Settings) -> list[Field]:
        return [Field(f"scale:{s.name}", s.name, "ordinal", _SCALE, (s.name,), s.labels) for s in settings.scales]

    def right(self, settings: Settings, given: Content, known: Content) -> bool | None:
        """By the scales on which the project asks for a value: others may have been removed or renamed since the answer became known."""
        asked = {scale.name for scale in settings.scales} & known["ratings"].keys()
        if not asked:
            return None
        return all(_near(settings, name, given["ratings"].get(name), known["ratings"][name]) for name in asked)

    def note(self, content: Content, what: str) -> dict[str, Any]:
        return {"ratings": content["ratings"]}


def _near(settings: Settings, name: str, given: int | None, known: int | None) -> bool:
    if given is None or known is None:
        return given == known
    scale = next((scale for scale in settings.scales if scale.name == name), None)
    near = NEAR if scale and scale.high - scale.low > 2 else 0
    return abs(given - known) <= near


KIND = Rating()
