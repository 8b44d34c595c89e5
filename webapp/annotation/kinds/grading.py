"""Criterion grading: one response beside its rubric, each criterion met, not met, or not assessable."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any, Literal

from pydantic import Field as Limits

from trainer.contracts.base import Record
from webapp.datasets.formats.grades import MET, graded

from . import example_labels
from .base import Content, Groups, Problems, Subject, TaskKind
from .fields import Field
from .reasons import beyond
from .records import Answered, Name, Settings, Text
from .table import AnswerRow, GivenAnswer
from .values import most

MAX_GRADED = 500  # criteria of a rubric by which people grade
VERDICTS = {"met": "met", "not_met": "not met", "cannot_assess": "cannot assess"}
_VERDICT = """
    SELECT grade ->> 'criterion' AS item, nullif(grade ->> 'verdict', 'cannot_assess') AS value
    FROM jsonb_array_elements(answer.content -> 'grades') AS grade
"""


class CriterionGrade(Record):
    """One criterion of the rubric by its id; the span counts characters of the response."""

    criterion: Name
    verdict: Literal["met", "not_met", "cannot_assess"]
    start: int | None = Limits(default=None, ge=0)
    end: int | None = Limits(default=None, ge=0)
    note: Text = ""


class GradingAnswer(Answered):
    """Every criterion of the rubric exactly once (checked against the example on submission)."""

    grades: tuple[CriterionGrade, ...] = Limits(min_length=1, max_length=MAX_GRADED)


class Grading(TaskKind):
    name = "grading"
    place = 3
    title = "Criterion grading"
    text = "One answer beside its rubric. Each criterion is met, not met, or cannot be judged."
    unit = "a response with its rubric"
    needs = ("rubrics", "responses")
    answer = GradingAnswer
    heading = "Criterion"
    template = "annotation/answers/grading.html"
    suggested = True
    only_noted = True
    by_rubric = True
    units_sql = """CROSS JOIN LATERAL (SELECT g->>'criterion' AS unit, g->>'verdict' AS value
        FROM jsonb_array_elements(a.content->'grades') g) u"""
    picture = """
    <rect x="1" y="1" width="26" height="42" rx="3" fill="none" stroke="currentColor" stroke-opacity=".45" stroke-width="1.5"/>
    <path d="M6 8h16M6 14h12M6 20h16M6 26h9M6 32h14" fill="none" stroke="currentColor" stroke-opacity=".4" stroke-width="2"
      stroke-linecap="round"/>
    <path d="M45 7h17M45 22h17M45 37h12" fill="none" stroke="currentColor" stroke-opacity=".45" stroke-width="2"
      stroke-linecap="round"/>
    <circle cx="37" cy="7" r="5" fill="currentColor" fill-opacity=".12" stroke="currentColor" stroke-width="1.5"/>
    <path d="m34.8 7 1.6 1.7 2.9-3.2" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"
      stroke-linejoin="round"/>
    <circle cx="37" cy="22" r="5" fill="none" stroke="currentColor" stroke-opacity=".6" stroke-width="1.5"/>
    <path d="m35.2 20.2 3.6 3.6m0-3.6-3.6 3.6" fill="none" stroke="currentColor" stroke-opacity=".7" stroke-width="1.6"
      stroke-linecap="round"/>
    <circle cx="37" cy="37" r="5" fill="none" stroke="currentColor" stroke-opacity=".4" stroke-width="1.5" stroke-dasharray="2.5 2"/>
    """

    def subjects(self, content: Content) -> list[Subject]:
        """Each response, if there is a rubric of at most MAX_GRADED criteria."""
        if not 0 < len(example_labels.criteria(content)) <= MAX_GRADED:
            return []
        return [{"response": side} for side in example_labels.response_ids(content)]

    def criteria(self, subject: Content, content: Content) -> list[dict[str, Any]]:
        return example_labels.criteria(content)

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        wanted = [one["id"] for one in view["criteria"]]
        text = view["responses"][0]["text"]
        fields, seen = {}, set()
        for index, grade in enumerate(record.grades):
            if grade.criterion not in wanted:
                fields[f"grades.{index}.criterion"] = f"names {grade.criterion!r}, which is not in the rubric"
            elif grade.criterion in seen:
                fields[f"grades.{index}.criterion"] = "is graded twice"
            seen.add(grade.criterion)
            if (grade.start is None) != (grade.end is None) or (grade.end is not None and grade.end <= grade.start):
                fields[f"grades.{index}.end"] = "a span needs start < end"
            elif grade.end is not None and grade.end > len(text):
                fields[f"grades.{index}.end"] = beyond(text)
        if missing := [str(number) for number, name in enumerate(wanted, 1) if name not in seen]:
            fields["grades"] = f"every criterion needs a verdict; missing: {', '.join(missing)}"
        return fields

    def says(self, content: Content) -> str:
        counts = Counter(grade["verdict"] for grade in content["grades"])
        return f"{counts['met']} of {len(content['grades'])} met"

    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        def listed(verdict: str) -> Callable[[Content], str]:
            return lambda content: " ".join(g["criterion"] for g in content["grades"] if g["verdict"] == verdict)

        return {verdict: listed(verdict) for verdict in VERDICTS}

    def judgement(self, content: Content) -> Any:
        return sorted(_grades(content).items())

    def distance(self, one: Content, two: Content) -> float:
        first, second = _grades(one), _grades(two)
        return mean(float(first.get(name) != second.get(name)) for name in {*first, *second})

    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        names = [grade["criterion"] for grade in contents[0]["grades"]]
        verdicts = {name: most([_grades(content).get(name) for content in contents], len(contents)) for name in names}
        if None in verdicts.values():
            return None
        grades = []
        for name in names:
            given = (grade for content in contents for grade in content["grades"] if grade["criterion"] == name)
            grades.append(next(grade for grade in given if grade["verdict"] == verdicts[name]))
        return {"grades": grades, "note": ""}

    def rows(
        self, settings: Settings, subject: Content, example: Content, answers: Sequence[GivenAnswer], groups: Any
    ) -> list[AnswerRow]:
        texts = {each["id"]: each["text"] for each in (example.get("rubric") or {}).get("criteria", ())}
        verdicts = {each.id: _grades(each.content) for each in answers}
        names = texts or dict.fromkeys(name for given in verdicts.values() for name in given)
        found = []
        for name in names:
            values = {answer: given[name] for answer, given in verdicts.items() if name in given}
            found.append(
                AnswerRow(f"criterion:{name}", "choice", texts.get(name, name), VERDICTS, values, drop="cannot_assess")
            )
        return found

    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        """The evidence is from the first person who gave this verdict."""
        grades = []
        for row, verdict in values.items():
            name = row.partition(":")[2]
            given = (grade for each in answers for grade in each.content["grades"] if grade["criterion"] == name)
            empty = {"criterion": name, "verdict": verdict, "start": None, "end": None, "note": ""}
            grades.append(next((dict(grade) for grade in given if grade["verdict"] == verdict), empty))
        return {"grades": grades, "note": ""}

    def fields(self, settings: Settings) -> list[Field]:
        shown = {"met": "met", "not_met": "not met"}
        return [Field("verdict", "Verdict on each criterion", "nominal", _VERDICT, shown=shown, items="criterion")]

    def right(self, settings: Settings, given: Content, known: Content) -> bool | None:
        return _grades(known).items() <= _grades(given).items()

    def bare(self, content: Content) -> dict[str, Any]:
        return {"grades": [{"criterion": g["criterion"], "verdict": g["verdict"]} for g in content["grades"]]}

    def at_odds(
        self, subject: Content, judged: Content | None, content: Content, answers: Sequence[Content]
    ) -> float | None:
        """The share of criteria on which most people disagree with the judge."""
        votes, differ = graded(content.get("meta", {})), []
        for answer in answers:
            for grade in answer["grades"]:
                if grade["verdict"] in MET:
                    votes.setdefault((subject["response"], grade["criterion"]), []).append(MET[grade["verdict"]])
        for grade in judged["grades"] if judged else ():
            given = votes.get((subject["response"], grade["criterion"]), [])
            if 2 * sum(given) != len(given):
                differ.append((2 * sum(given) > len(given)) != (grade["verdict"] == "met"))
        return sum(differ) / len(differ) if differ else None

    def same_as(self, content: Content, suggested: Content) -> list[bool]:
        given, judged = _grades(content), _grades(suggested)
        return [given[name] == judged[name] for name in judged if given.get(name, "cannot_assess") != "cannot_assess"]

    def note(self, content: Content, what: str) -> dict[str, Any]:
        return {"grades": _grades(content)}


def _grades(content: Content) -> dict[str, str]:
    return {grade["criterion"]: grade["verdict"] for grade in content["grades"]}


KIND = Grading()
