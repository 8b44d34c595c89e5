"""A reviewer's table: independent answers side by side, and the answer that follows from the decisions.

Each kind of task makes rows (`kinds.table`). The reviewer decides every row, and `assemble` makes the consolidated answer, with a trace of
the source of each part. Pure functions.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from .. import kinds
from ..kinds.records import MAX_REASON
from ..kinds.table import AnswerRow, GivenAnswer, Undecided

Content = Mapping[str, Any]
Decision = Mapping[str, Any]  # {"action": keep|merge|edit|drop|set, "answer": id, "value": text, "item": {...}}
EDITABLE = ("text", "points", "kind", "importance")


def rows(
    kind: str, settings: kinds.Settings, subject: Content, example: Content, answers: Sequence[GivenAnswer], groups: Any
) -> list[AnswerRow]:
    """Everything to decide about one task, in the order in which it is shown."""
    return kinds.get_kind(kind).rows(settings, subject, example, answers, groups)


def agreed(row: AnswerRow, people: int) -> Decision | None:
    """The decision that nobody needs to make: everybody chose the same, or wrote the same with the same points."""
    if row.type == "choice":
        values = set(row.given.values())
        first = next(iter(row.given), None)
        return {"action": "keep", "answer": first} if len(row.given) == people and len(values) == 1 else None
    same = len({(item["text"], item.get("points")) for _, _, item in row.items}) == 1
    return {"action": "keep", "answer": row.items[0][0]} if same and len(row.items) == people else None


def assemble(
    kind: str,
    subject: Content,
    answers: Sequence[GivenAnswer],
    table: Sequence[AnswerRow],
    decisions: Mapping[str, Decision],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(content, trace) of a consolidated answer. Raises Undecided for the first row without a usable decision."""
    values: dict[str, str] = {}
    kept: list[dict[str, Any]] = []
    trace: list[dict[str, Any]] = []
    for row in table:
        decision = decisions.get(row.id)
        if decision is None:
            raise Undecided(row.id, "needs a decision")
        if row.type == "choice":
            values[row.id] = _chosen(row, decision)
            trace.append(_traced(row, decision, value=values[row.id]))
            continue
        item = _item(row, decision)
        trace.append(_traced(row, decision, of=[[answer, index] for answer, index, _ in row.items]))
        if item is not None:
            kept.append(item)
    return kinds.get_kind(kind).assemble(values, kept, subject, answers), trace


def _traced(row: AnswerRow, decision: Decision, **rest: Any) -> dict[str, Any]:
    found = {"row": row.id, "action": decision["action"], **rest}
    return {**found, **{name: decision[name] for name in ("answer", "item") if decision.get(name) is not None}}


def _chosen(row: AnswerRow, decision: Decision) -> str:
    action = decision.get("action")
    if action == "keep":
        if decision.get("answer") in row.given:
            return row.given[decision["answer"]]
        raise Undecided(row.id, "keeps the value of an answer, but this answer gives no value here")
    if action == "merge":
        most = row.most()
        if most is None:
            raise Undecided(row.id, "has no majority")
        return most
    if action == "drop" and row.drop is not None:
        return row.drop
    value = str(decision.get("value", ""))
    if action not in ("set", "edit") or (value not in row.options and not row.free):
        raise Undecided(row.id, f"must be one of {', '.join(row.options)}")
    return value


def _item(row: AnswerRow, decision: Decision) -> dict[str, Any] | None:
    action = decision.get("action")
    if action == "drop":
        return None
    if action == "merge":
        found = merged([item for _, _, item in row.items])
        if "points" not in found and len(found["text"]) > MAX_REASON:
            raise Undecided(
                row.id, f"has more than {MAX_REASON:,} characters in all wordings together: keep one, or edit"
            )
        return found
    if action == "edit":
        edited = decision.get("item")
        if not isinstance(edited, Mapping) or not str(edited.get("text", "")).strip():
            raise Undecided(row.id, "must have a text")
        return {**row.items[0][2], **{name: edited[name] for name in edited if name in EDITABLE}}
    if action == "keep":
        wanted = decision.get("answer", row.items[0][0])
        item = next((dict(item) for answer, _, item in row.items if answer == wanted), None)
        if item is not None:
            return item
    raise Undecided(row.id, "must be kept, merged, edited or dropped")


def merged(items: Sequence[Content]) -> dict[str, Any]:
    """One item made of several: a criterion has the first wording and the mean of the points, a reason all wordings."""
    first = dict(items[0])
    if "points" in first:
        points = round(mean(float(item["points"]) for item in items), 2)
        return {**first, "points": points or first["points"]}
    texts: list[str] = []
    for item in items:
        text = str(item["text"]).strip()
        if not any(text.lower() in other.lower() for other in texts):
            texts.append(text)
    return {**first, "text": "; ".join(text.rstrip(".;") for text in texts)}
