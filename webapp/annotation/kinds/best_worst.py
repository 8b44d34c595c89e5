"""Best-worst scaling: people choose the best and the worst of a few responses.

Finn and Louviere (1992); the design and the counting follow Kiritchenko and Mohammad (2017), who find it more reliable than ratings for the
same effort. One answer about n responses orders 2n - 3 of their pairs.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from string import ascii_uppercase
from typing import Any, Literal

from . import example_labels
from .base import Content, Groups, Problems, Subject, TaskKind
from .fields import Field
from .records import MAX_RESPONSES, Answered, Settings, Side, subject_sides
from .table import AnswerRow, GivenAnswer, Undecided
from .values import most, preference

TOGETHER = 4  # responses in a task, if an example has more than AT_ONCE
AT_ONCE = 5
STEPS = (0, 1, 2, 4)  # of the ring: among seven responses every two then meet equally often
CANNOT = "cannot_assess"


class BestWorstAnswer(Answered):
    """`best` and `worst` are two responses; None if the verdict is `cannot_assess`."""

    verdict: Literal["chosen", "cannot_assess"] = "chosen"
    best: Side | None = None
    worst: Side | None = None


class BestWorst(TaskKind):
    name = "best_worst"
    place = 7
    title = "Best and worst"
    text = "People choose the best and the worst of a few answers. This takes less effort than an order and is steadier than ratings."
    unit = "two responses to an instruction"
    needs = ("responses",)
    answer = BestWorstAnswer
    compares = True
    units_sql = """CROSS JOIN LATERAL (VALUES ('best', coalesce(a.content->>'best', 'cannot_assess')),
        ('worst', coalesce(a.content->>'worst', 'cannot_assess'))) AS u(unit, value)"""
    picture = """
    <rect x="1" y="1" width="29" height="19" rx="3" fill="currentColor" fill-opacity=".12" stroke="currentColor" stroke-width="1.5"/>
    <rect x="34" y="1" width="29" height="19" rx="3" fill="none" stroke="currentColor" stroke-opacity=".35" stroke-width="1.5"/>
    <rect x="1" y="24" width="29" height="19" rx="3" fill="none" stroke="currentColor" stroke-opacity=".35" stroke-width="1.5"/>
    <rect x="34" y="24" width="29" height="19" rx="3" fill="none" stroke="currentColor" stroke-opacity=".7" stroke-width="1.5"
      stroke-dasharray="3 2.5"/>
    <path d="M39 8h19M39 13h12M6 31h19M6 36h12" fill="none" stroke="currentColor" stroke-opacity=".3" stroke-width="2"
      stroke-linecap="round"/>
    <path d="m10 13 5.500-6 5.500 6M43 31l5.500 6 5.500-6" fill="none" stroke="currentColor" stroke-width="2"
      stroke-linecap="round" stroke-linejoin="round"/>"""

    def subjects(self, content: Content) -> list[Subject]:
        """One task with all responses if they are few; else one task for each response, with three others on the ring, so that each
        response is in four tasks."""
        ids = example_labels.response_ids(content)[:MAX_RESPONSES]
        if len(ids) <= AT_ONCE:
            return [{"responses": ids}] if len(ids) > 1 else []
        return [{"responses": [ids[(start + step) % len(ids)] for step in STEPS]} for start in range(len(ids))]

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        chosen = {"best": record.best, "worst": record.worst}
        if record.verdict == CANNOT:
            message = "must be empty if the responses cannot be assessed"
            return {name: message for name, side in chosen.items() if side is not None}
        shown = [one["letter"] for one in view["responses"]]
        fields = {name: f"choose the {name} response" for name, side in chosen.items() if side is None}
        for name, side in chosen.items():
            if side is not None and side not in shown:
                fields[name] = f"names {side!r}; shown are {', '.join(shown)}"
        if not fields and record.best == record.worst:
            fields["worst"] = "must be a different response than the best one"
        return fields

    def renamed(self, content: dict[str, Any], name: Callable[[str], str], *, swapped: bool) -> dict[str, Any]:
        return {**content, **{part: name(content[part]) for part in ("best", "worst") if content.get(part)}}

    def says(self, content: Content) -> str:
        return "cannot assess" if content["verdict"] == CANNOT else f"best {content['best']}, worst {content['worst']}"

    def facts(self, content: Content, subject: Content) -> list[tuple[str, str]]:
        if content.get("verdict") == CANNOT:
            return [("Judgement", "cannot assess")]
        return [("Best", content["best"]), ("Worst", content["worst"])]

    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        return {
            "verdict": lambda content: content.get("verdict"),
            "best": lambda content: content.get("best"),
            "worst": lambda content: content.get("worst"),
        }

    def judgement(self, content: Content) -> Any:
        return content.get("verdict"), content.get("best"), content.get("worst")

    def distance(self, one: Content, two: Content) -> float:
        """Half for another best, half for another worst."""
        if one.get("verdict") != two.get("verdict"):
            return 1.0
        return mean(float(one[part] != two[part]) for part in _PARTS)

    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        """Best and worst each need more than half of the answers. One response cannot be both, because no person says so."""
        verdict = most([content.get("verdict") for content in contents], len(contents))
        best, worst = (most([content.get(part) for content in contents], len(contents)) for part in ("best", "worst"))
        if verdict is None or (verdict == "chosen" and None in (best, worst)):
            return None
        return _content(None if verdict == CANNOT else best, None if verdict == CANNOT else worst)

    def rows(
        self, settings: Settings, subject: Content, example: Content, answers: Sequence[GivenAnswer], groups: Any
    ) -> list[AnswerRow]:
        letters = {side: ascii_uppercase[place] for place, side in enumerate(subject_sides(subject))}
        options = letters | {CANNOT: "cannot assess"}
        given = {part: {each.id: each.content.get(part) or CANNOT for each in answers} for part in ("best", "worst")}
        return [
            AnswerRow(part, "choice", part.title(), options, given[part], drop=CANNOT) for part in ("best", "worst")
        ]

    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        best, worst = (values[part] for part in _PARTS)
        if CANNOT in (best, worst):
            if best != worst:
                raise Undecided("worst", "choose both, or mark both as impossible to assess")
            return _content(None, None)
        if best == worst:
            raise Undecided("worst", "must be a different response than the best one")
        return _content(best, worst)

    def fields(self, settings: Settings) -> list[Field]:
        """The fields give responses by their position in the task, so that a confusion matrix has few values."""
        return [Field(part, f"{part.title()} response, by its place", "nominal", _place(part)) for part in _PARTS]

    def preferences(self, content: Content, subject: Content, example: Content, rater: str) -> list[dict[str, Any]]:
        """The best response before all others, all others before the worst one; nothing about the rest."""
        return [preference(first, second, -1, rater) for first, second in ordered(content, subject_sides(subject))]

    def note(self, content: Content, what: str) -> dict[str, Any]:
        return {"best": content["best"], "worst": content["worst"]}

    def summary(self, given: Sequence[tuple[Content, Content]]) -> dict[str, Any]:
        """Scores of an example's responses: see `scores`."""
        return {"scores": scores(given)}


_PARTS = ("best", "worst")


def _place(part: str) -> str:
    return f"""
    SELECT '' AS item, (SELECT place::text
        FROM jsonb_array_elements_text(task.subject -> 'responses') WITH ORDINALITY AS listed(side, place)
        WHERE side = answer.content ->> '{part}') AS value
"""  # noqa: S608  constants


def _content(best: str | None, worst: str | None) -> dict[str, Any]:
    return {"verdict": CANNOT if best is None else "chosen", "best": best, "worst": worst, "note": ""}


def ordered(content: Content, sides: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs (better, worse) that an answer orders: 2n - 3 of n responses."""
    best, worst = content.get("best"), content.get("worst")
    if best is None or worst is None:
        return []
    middle = [side for side in sides if side not in (best, worst)]
    return [(best, worst), *((best, side) for side in middle), *((side, worst) for side in middle)]


def scores(given: Sequence[tuple[Content, Content]]) -> dict[str, dict[str, Any]]:
    """{response: {"shown", "counted", "strength", "why"}} of (subject, answer) pairs about one example.

    `counted` is (times best - times worst) / times shown, from -1 to 1. `strength` is the log-strength of the Bradley-Terry model of the
    pairs that the answers order, with mean 0; None with the reason `why` if it has no finite value. Answers that could not be assessed do
    not count.
    """
    shown: Counter[str] = Counter()
    count: Counter[str] = Counter()
    pairs: list[tuple[int, str, str]] = []  # the task, the better one, the worse one
    for task, (subject, content) in enumerate(given):
        sides = subject_sides(subject)
        if found := ordered(content, sides):
            shown.update(sides)
            count.update({content["best"]: 1})
            count.subtract({content["worst"]: 1})
            pairs += [(task, better, worse) for better, worse in found]
    strengths, why = _strengths(pairs)
    return {
        side: {
            "shown": shown[side],
            "counted": round(count[side] / shown[side], 4),
            "strength": strengths.get(side),
            "why": why,
        }
        for side in sorted(shown)
    }


def _strengths(pairs: Sequence[tuple[int, str, str]]) -> tuple[dict[str, float], str]:
    """(log-strengths, "") or ({}, the reason). A response that never loses or never wins has no finite strength: this is checked first,
    which saves the fit."""
    better, worse = {one for _, one, _ in pairs}, {one for _, _, one in pairs}
    if apart := sorted(better ^ worse):
        return {}, f"no finite strengths: {', '.join(apart)} won or lost every comparison"
    from trainer.metrics.ranking import Comparison, bradley_terry  # loads scipy, which web pages do without

    fitted = bradley_terry([Comparison(one, two, -1) for _, one, two in pairs], [task for task, _, _ in pairs])
    found = {each.item: each.strength.value for each in fitted.items}
    if fitted.problem or None in found.values():
        return {}, fitted.problem or "no comparison"
    return {item: round(value, 4) for item, value in found.items() if value is not None}, ""


KIND = BestWorst()
