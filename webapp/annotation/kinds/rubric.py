"""Rubric authoring: criteria of a good answer, written from the instruction alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from pydantic import model_validator

from trainer.contracts import Rubric
from trainer.contracts.plurals import with_noun
from trainer.verifiers import VerifierError, check_spec

from . import example_labels
from .base import Content, Groups, Problems, Subject, TaskKind
from .records import MAX_CRITERIA, Answered, Settings
from .table import GivenAnswer
from .values import numbered, plain


class RubricAnswer(Answered):
    rubric: Rubric

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if len(self.rubric.criteria) > MAX_CRITERIA:
            raise ValueError(f"a rubric has at most {MAX_CRITERIA} criteria")
        return self


class Authoring(TaskKind):
    name = "rubric"
    place = 2
    title = "Rubric authoring"
    text = "People read only the instruction and write what a good answer must have. Then they see their rubric tested on answers."
    unit = "an instruction"
    needs = ("examples",)
    answer = RubricAnswer
    heading = "Criterion"
    template = "annotation/answers/rubric.html"
    items_name = "criteria"
    by_meaning = True
    labelled = True
    writes_rubric = True
    responses_after = True
    picture = """
    <path d="M2 6h16M2 12h12M2 18h15M2 24h9" fill="none" stroke="currentColor" stroke-opacity=".4" stroke-width="2"
      stroke-linecap="round"/>
    <rect x="25" y="1" width="38" height="11" rx="3" fill="currentColor" fill-opacity=".1" stroke="currentColor" stroke-width="1.5"/>
    <rect x="25" y="16" width="38" height="11" rx="3" fill="none" stroke="currentColor" stroke-opacity=".45" stroke-width="1.5"/>
    <rect x="25" y="31" width="38" height="11" rx="3" fill="none" stroke="currentColor" stroke-opacity=".45" stroke-width="1.5"
      stroke-dasharray="3 2.5"/>
    <path d="M30 6.5h18M30 21.5h14" fill="none" stroke="currentColor" stroke-opacity=".5" stroke-width="2" stroke-linecap="round"/>
    <path d="M54 6.5h4M56 4.5v4M54 21.5h4M56 19.5v4M42 36.5h4M44 34.5v4" fill="none" stroke="currentColor" stroke-width="1.6"
      stroke-linecap="round"/>"""

    def subjects(self, content: Content) -> list[Subject]:
        return [{}]

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        fields = {}
        for index, criterion in enumerate(record.rubric.criteria):
            if not criterion.text.strip():
                fields[f"rubric.criteria.{index}.text"] = "must not be empty"
            if criterion.verifier is not None:
                try:
                    check_spec(criterion.verifier)
                except VerifierError as error:
                    fields[f"rubric.criteria.{index}.verifier.{error.field}"] = error.message
        return fields

    def says(self, content: Content) -> str:
        return with_noun(len(self.items(content)), "criteria")

    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        return {
            "criteria": lambda content: "\n".join(f"{one['points']:g} {one['text']}" for one in self.items(content))
        }

    def items(self, content: Content) -> list[Any]:
        return list(content["rubric"]["criteria"])

    def judgement(self, content: Content) -> Any:
        return sorted((plain(each["text"]), each["points"]) for each in self.items(content))

    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        found = shared_items(self, contents, groups)
        return {"rubric": {"criteria": numbered(found)}, "note": ""} if found else None

    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        return {"rubric": {"criteria": numbered(kept)}, "note": ""}

    def right(self, settings: Settings, given: Content, known: Content) -> bool | None:
        return None

    def bare(self, content: Content) -> dict[str, Any]:
        return {"rubric": content["rubric"]}

    def from_labels(self, subject: Content, content: Content, least: int) -> dict[str, Any] | None:
        """The example's rubric, if it has one."""
        return {"rubric": content["rubric"]} if example_labels.criteria(content) else None

    def note(self, content: Content, what: str) -> dict[str, Any]:
        return {"rubric": content["rubric"]} if what == "answers" else {}


def shared_items(kind: TaskKind, contents: Sequence[Content], groups: Groups) -> list[Any]:
    """The items that more than half of the answers have, each in the words of the first."""
    shared = [min(group) for group in groups if 2 * len(group) > len(contents)]
    return [kind.items(contents[answer])[index] for answer, index in sorted(shared)]


KIND = Authoring()
