"""Rationale to atomic reasons: people split a free explanation into single reasons, each linked to its passage."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import Field as Limits

from trainer.contracts.plurals import with_noun

from . import example_labels, reasons
from .base import Content, Groups, Problems, Subject, TaskKind
from .records import MAX_REASONS, MAX_TEXT, Answered, Reason, Settings
from .rubric import shared_items
from .table import GivenAnswer
from .values import plain


class RationaleAnswer(Answered):
    """A rationale split into atomic reasons. `source` is the text as given, of any length, or as this person wrote it."""

    source: str = ""
    reasons: tuple[Reason, ...] = Limits(min_length=1, max_length=MAX_REASONS)


class Rationale(TaskKind):
    name = "rationale"
    place = 6
    title = "Rationale to atomic reasons"
    text = "People split a free explanation of a preference into single reasons, and link each reason to the text that it is about."
    unit = "a preference with its explanation"
    needs = ("responses",)
    answer = RationaleAnswer
    heading = "Reason"
    template = "annotation/answers/rationale.html"
    items_name = "reasons"
    by_meaning = True
    labelled = True
    picture = """
    <rect x="1" y="5" width="24" height="34" rx="3" fill="none" stroke="currentColor" stroke-opacity=".45" stroke-width="1.5"/>
    <path d="M6 12h14M6 18h14M6 24h14M6 30h9" fill="none" stroke="currentColor" stroke-opacity=".4" stroke-width="2"
      stroke-linecap="round"/>
    <path d="M25 14c8 0 5-7 12-7M25 22h12M25 30c8 0 5 7 12 7" fill="none" stroke="currentColor" stroke-opacity=".6"
      stroke-width="1.5"/>
    <g fill="currentColor" fill-opacity=".1" stroke="currentColor" stroke-width="1.5"><rect x="38" y="2" width="25" height="10"
      rx="5"/><rect x="38" y="17" width="25" height="10" rx="5"/><rect x="38" y="32" width="25" height="10" rx="5"/></g>"""

    def subjects(self, content: Content) -> list[Subject]:
        """Each preference with reasons or a `meta.rationale` text, else each pair, without a text. `preference` says that a text is given.
        Its words may name the sides, so the sides are then shown in the dataset's order."""
        listed = enumerate(content.get("preferences", ()))
        named = [{"a": one["a"], "b": one["b"], "preference": index} for index, one in listed]
        given = [subject for subject in named if example_labels.rationale(subject, content)]
        if given:
            return given
        pairs = example_labels.pairs(content)
        if pairs and example_labels.rationale({"preference": None}, content):
            return [{**pairs[0], "preference": None}]
        return pairs

    def rationale(self, subject: Content, content: Content) -> str | None:
        return example_labels.rationale(subject, content)

    def check(self, record: Any, settings: Settings, view: Content, *, gold: bool) -> Problems:
        fields = reasons.complaints(record, view)
        if view["rationale"] is None and not record.source.strip() and not gold:
            fields["source"] = "write the rationale that the reasons come from"
        if view["rationale"] is None and len(record.source) > MAX_TEXT:
            fields["source"] = f"has more than {MAX_TEXT:,} characters"
        return fields

    def completed(self, content: dict[str, Any], view: Content) -> dict[str, Any]:
        """The answer with the text that the server has, not the text that the browser sent."""
        return content if view["rationale"] is None else {**content, "source": view["rationale"]}

    def renamed(self, content: dict[str, Any], name: Callable[[str], str], *, swapped: bool) -> dict[str, Any]:
        return reasons.renamed(content, name)

    def says(self, content: Content) -> str:
        return with_noun(len(content["reasons"]), "reasons")

    def columns(self, settings: Settings) -> Mapping[str, Callable[[Content], Any]]:
        return {"reasons": lambda content: "\n".join(each["text"] for each in content.get("reasons", ()))}

    def items(self, content: Content) -> list[Any]:
        return list(content.get("reasons", []))

    def judgement(self, content: Content) -> Any:
        return sorted(plain(each["text"]) for each in self.items(content))

    def majority(self, contents: Sequence[Content], groups: Groups) -> dict[str, Any] | None:
        found = shared_items(self, contents, groups)
        return {"source": contents[0].get("source", ""), "reasons": found, "note": ""} if found else None

    def assemble(
        self, values: dict[str, str], kept: list[dict[str, Any]], subject: Content, answers: Sequence[GivenAnswer]
    ) -> dict[str, Any]:
        return {"source": answers[0].content.get("source", ""), "reasons": kept, "note": ""}

    def right(self, settings: Settings, given: Content, known: Content) -> bool | None:
        return None

    def bare(self, content: Content) -> dict[str, Any]:
        return {"reasons": [{"text": reason["text"]} for reason in content["reasons"]]}

    def from_labels(self, subject: Content, content: Content, least: int) -> dict[str, Any] | None:
        """The reasons of its preference, if there are any."""
        index, preferences = subject.get("preference"), content.get("preferences", ())
        if index is None or index >= len(preferences) or not preferences[index].get("reasons"):
            return None
        return self.bare(preferences[index])

    def preferences(self, content: Content, subject: Content, example: Content, rater: str) -> list[dict[str, Any]]:
        judged = self.explained(subject, example)
        if judged is None:
            return []
        sides: dict[str, Any] = {name: judged[name] for name in ("a", "b", "strength", "verdict") if name in judged}
        return [{**sides, "rater": rater, "reasons": content["reasons"]}]

    def explained(self, subject: Content, example: Content) -> dict[str, Any] | None:
        """The preference as it was when the task was made; None if the person was given none."""
        index = subject.get("preference")
        if index is None:
            return None
        found: dict[str, Any] = example["preferences"][index]
        return found

    def note(self, content: Content, what: str) -> dict[str, Any]:
        return {"rationale": content.get("source", ""), "reasons": content["reasons"]}


KIND = Rationale()
