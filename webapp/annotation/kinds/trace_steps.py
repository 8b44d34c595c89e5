"""Steps of an agent's trace: each step is correct or not, with a reason, at least up to the first error.

The first error is the first step that is not correct, as in process supervision. After it the agent works with a wrong state, so later
verdicts are optional. Results of tools and messages of others are read, not judged.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any, Literal

from pydantic import Field as Limits

from trainer.contracts import TraceStep
from trainer.contracts.base import Record

from .base import Content, Groups, Problems, Subject, TaskKind
from .fields import Field
from .records import Answered, Settings, Text
from .table import AnswerRow, GivenAnswer, Undecided
from .values import NONE, most

VERDICTS = {"correct": "correct", "incorrect": "incorrect", "cannot_assess": "cannot assess"}
MAX_STEPS = 500  # of a trace that people judge
EXCERPT = 160  # characters of a step in a reviewer's row
_VERDICT = """
    SELECT judged ->> 'step' AS item, nullif(judged ->> 'verdict', 'cannot_assess') AS value
    FROM jsonb_array_elements(answer.content -> 'steps') AS judged
"""
_FIRST_ERROR = "SELECT '' AS item, coalesce(answer.content ->> 'first_error', 'none') AS value"


class StepVerdict(Record):
    """One step of the agent by its number in the trace, from 1."""

    step: int = Limits(ge=1, le=100_000)
    verdict: Literal["correct", "incorrect", "cannot_assess"]
    reason: Text = ""


class TraceAnswer(Answered):
    """A verdict on every step of the agent up to the first error, or on all steps if there is none; `first_error` is its number."""

    steps: tuple[StepVerdict, ...] = Limits(min_length=1, max_length=MAX_STEPS)
    first_error: int | None = None


class TraceSteps(TaskKind):
    name = "trace_steps"
    place = 8
    title = "Steps of a trace"
    text = "The steps of an agent: people say of each step whether it is correct, and mark the first error."
    unit = "a trace with steps"
    needs = ("responses",)
    answer = TraceAnswer
    heading = "Step"
    only_noted = True
    units_sql = """CROSS JOIN LATERAL (SELECT s->>'step' AS unit, s->>'verdict' AS value
        FROM jsonb_array_elements(a.content->'steps') s
        UNION ALL SELECT 'first_error', coalesce(a.content->>'first_error', 'none')) u"""
    picture = """
    <path d="M8 7v30" fill="none" stroke="currentColor" stroke-opacity=".35" stroke-width="1.5"/>
    <path d="M20 7h36M20 22h28M20 37h20" fill="none" stroke="currentColor" stroke-opacity=".35" stroke-width="2"
      stroke-linecap="round"/>
    <circle cx="8" cy="7" r="5" fill="var(--surface, #fff)" stroke="currentColor" stroke-width="1.5"/>
    <path d="m5.800 7 1.600 1.700 2.900-3.200" fill="none" stroke="currentColor" stroke-width="1.600" stroke-linecap="round"
      stroke-linejoin="round"/>
    <circle cx="8" cy="22" r="5" fill="currentColor" fill-opacity=".12" stroke="currentColor" stroke-width="1.500"/>
    <path d="m6.200 20.200 3.600 3.600m0-3.600-3.600 3.600" fill="none" stroke="currentColor" stroke-width="1.600"
      stroke-linecap="round"/>
    <circle cx="8" cy="37" r="5" fill="var(--surface, #fff)" stroke="currentColor" stroke-opacity=".4" stroke-width="1.500"
      stroke-dasharray="2.500 2"/>"""

    def subjects(self, content: Content) -> list[Subject]:
        """Each response that is a trace with at least one step of the agent."""
        found = [(one["id"], _steps(one)) for one in content.get("responses", ()) if one.get("steps")]
        return [{"response": side} for side, steps in found if _judged(steps) and len(steps) <= MAX_STEPS]

    def material(self, subject: Content, content: Content) -> dict[str, Any]:
        """`steps`: the number, title, kind and text of each, whether its tool failed, and whether it is the agent's."""
        return {
            "steps": [
                {
                    "number": number,
                    "title": step.title,
                    "kind": step.kind,
                    "text": step.text,
                    "failed": step.failed,
                    "judged": step.by_agent,
                }
                for number, step in enumerate(_of_subject(subject, content), 1)
            ]
        }

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        wanted = [step["number"] for step in view["material"]["steps"] if step["judged"]]
        fields: Problems = {}
        seen: dict[int, str] = {}
        for index, one in enumerate(record.steps):
            if one.step not in wanted:
                fields[f"steps.{index}.step"] = f"names step {one.step}, which is not a step of the agent"
            elif one.step in seen:
                fields[f"steps.{index}.step"] = "is judged twice"
            seen[one.step] = one.verdict
        first = _first_error(seen)
        if record.first_error != first:
            where = (
                f"is step {first}: the first one that is not correct" if first else "must be empty: no step is wrong"
            )
            fields["first_error"] = where
        lacking = [number for number in wanted if number not in seen and (first is None or number < first)]
        if lacking:
            until = "up to the first error " if first else ""
            fields["steps"] = f"every step {until}needs a verdict; missing: {', '.join(map(str, lacking))}"
        return fields

    def says(self, content: Content) -> str:
        first = content["first_error"]
        return f"first error at step {first}" if first else f"no error in {len(content['steps'])} steps"

    def facts(self, content: Content, subject: Content) -> list[tuple[str, str]]:
        told = [
            (f"Step {one['step']}", VERDICTS[one["verdict"]] + (f": {one['reason']}" if one.get("reason") else ""))
            for one in content["steps"]
        ]
        return [*told, ("First error", f"step {content['first_error']}" if content["first_error"] else "none")]

    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        def listed(verdict: str) -> Callable[[Content], str]:
            return lambda content: " ".join(str(s["step"]) for s in content["steps"] if s["verdict"] == verdict)

        return {
            "first_error": lambda content: content["first_error"] or "none",
            **{verdict: listed(verdict) for verdict in VERDICTS},
        }

    # ---- several answers ----

    def judgement(self, content: Content) -> Any:
        """The verdicts up to the first error: verdicts after it do not change the judgement of the trace."""
        return sorted(_until(content).items())

    def distance(self, one: Content, two: Content) -> float:
        """Half for another first error; half for the share of steps with different verdicts, of those that both judged up to the later
        first error."""
        first, second = _verdicts(one), _verdicts(two)
        last = max(one["first_error"] or MAX_STEPS, two["first_error"] or MAX_STEPS)
        both = [step for step in first if step in second and step <= last]
        apart = mean(float(first[step] != second[step]) for step in both) if both else 1.0
        return (apart + float(one["first_error"] != two["first_error"])) / 2

    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        """The first error needs more than half of the answers, and so does the verdict on each step up to it. Later verdicts are taken if
        more than half agree."""
        first = most([content["first_error"] or 0 for content in contents], len(contents))
        if first is None:
            return None
        given = [_verdicts(content) for content in contents]
        verdicts = {}
        for step in sorted({step for one in given for step in one}):
            verdict = most([one.get(step) for one in given], len(given))
            if verdict is not None:
                verdicts[step] = verdict
            elif not first or step <= first:
                return None
        return _content(verdicts, contents) if (_first_error(verdicts) or 0) == first else None

    def rows(
        self, settings: Settings, subject: Content, example: Content, answers: Sequence[GivenAnswer], groups: Any
    ) -> list[AnswerRow]:
        """One row for each step of the agent; the first error follows from the rows."""
        options = {**VERDICTS, NONE: "not judged"}
        verdicts = {each.id: _verdicts(each.content) for each in answers}
        return [
            AnswerRow(
                f"step:{number}",
                "choice",
                _label(number, step),
                options,
                {answer: given.get(number, NONE) for answer, given in verdicts.items()},
                drop="cannot_assess",
            )
            for number, step in enumerate(_of_subject(subject, example), 1)
            if step.by_agent
        ]

    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        """The reasons are from the first person who gave this verdict with a reason."""
        given = {int(row.partition(":")[2]): verdict for row, verdict in values.items()}
        verdicts = {step: verdict for step, verdict in given.items() if verdict != NONE}
        first = _first_error(verdicts)
        for step, verdict in given.items():
            if verdict == NONE and (first is None or step < first):
                raise Undecided(f"step:{step}", "needs a verdict: no step before it is wrong")
        return _content(verdicts, [each.content for each in answers])

    def fields(self, settings: Settings) -> list[Field]:
        shown = {"correct": "correct", "incorrect": "incorrect"}
        return [
            Field("verdict", "Verdict on each step", "nominal", _VERDICT, shown=shown, items="step"),
            Field("first_error", "First error, by its step", "nominal", _FIRST_ERROR),
        ]

    # ---- gold, the dataset ----

    def right(self, settings: Settings, given: Content, known: Content) -> bool | None:
        """Right if the first error is the known one, and so is the verdict on each step up to it."""
        same = given["first_error"] == known["first_error"]
        return same and _until(known).items() <= _verdicts(given).items()

    def bare(self, content: Content) -> dict[str, Any]:
        steps = [{"step": one["step"], "verdict": one["verdict"]} for one in content["steps"]]
        return {"steps": steps, "first_error": content["first_error"]}

    def note(self, content: Content, what: str) -> dict[str, Any]:
        reasons = {str(one["step"]): one["reason"] for one in content["steps"] if one.get("reason")}
        verdicts = {str(step): verdict for step, verdict in _verdicts(content).items()}
        found = {"steps": verdicts, "first_error": content["first_error"]}
        return found | ({"reasons": reasons} if reasons else {})

    def summary(self, given: Sequence[tuple[Content, Content]]) -> dict[str, Any]:
        """`first_errors`: for each response, how many people named which step; "none" for those who found no error."""
        counts: dict[str, Counter[str]] = {}
        for subject, content in given:
            counts.setdefault(subject["response"], Counter())[str(content["first_error"] or "none")] += 1
        return {"first_errors": {side: dict(sorted(count.items())) for side, count in sorted(counts.items())}}


def _steps(response: Mapping[str, Any]) -> list[TraceStep]:
    """The steps as they are stored, without default values."""
    return [TraceStep.model_construct(**step) for step in response.get("steps", ())]


def _of_subject(subject: Content, content: Content) -> list[TraceStep]:
    known = {one["id"]: one for one in content.get("responses", ())}
    return _steps(known.get(subject["response"], {}))


def _judged(steps: Sequence[TraceStep]) -> list[int]:
    return [number for number, step in enumerate(steps, 1) if step.by_agent]


def _label(number: int, step: TraceStep) -> str:
    text = " ".join(step.text.split())
    return f"{number} {step.title}: {text[:EXCERPT]}{'…' if len(text) > EXCERPT else ''}"


def _verdicts(content: Content) -> dict[int, str]:
    return {one["step"]: one["verdict"] for one in content["steps"]}


def _first_error(verdicts: Mapping[int, str]) -> int | None:
    return min((step for step, verdict in verdicts.items() if verdict == "incorrect"), default=None)


def _until(content: Content) -> dict[int, str]:
    """The verdicts up to the first error, including it."""
    first = content["first_error"]
    return {step: verdict for step, verdict in _verdicts(content).items() if first is None or step <= first}


def _content(verdicts: Mapping[int, str], contents: Sequence[Content]) -> dict[str, Any]:
    """The answer of these verdicts, with the first reason that a person gave for each."""
    reasons: dict[tuple[int, str], str] = {}
    for content in contents:
        for one in content["steps"]:
            if one.get("reason"):
                reasons.setdefault((one["step"], one["verdict"]), one["reason"])
    steps = [
        {"step": step, "verdict": verdict, "reason": reasons.get((step, verdict), "")}
        for step, verdict in sorted(verdicts.items())
    ]
    return {"steps": steps, "first_error": _first_error(verdicts), "note": ""}


KIND = TraceSteps()
