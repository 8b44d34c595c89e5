"""The origins of versions, in words and as a line of descent."""

from dataclasses import dataclass
from typing import Any

from trainer.contracts.plurals import with_noun

from ..columns.filters import parse, words
from ..models import DatasetVersion

SELECTED = {
    "shortest": "without the shortest responses",
    "balance": "domains balanced",
    "hardest": "what is hard for a model kept",
    "cover": "what covers the rest kept",
    "meaning": "without near duplicates by meaning",
    "faulty": "what provokes rare faults kept",
}


@dataclass(frozen=True)
class Step:
    """A version in its line. `parent` is the number of the version from which it was made, None if it came from outside.

    `lane` is its column in the drawing, `into` are the lanes that end in it, and `past` are those that pass it.
    """

    version: DatasetVersion
    parent: int | None
    lane: int
    into: list[int]
    past: list[int]
    origin: str
    detail: list[str]
    icon: str


def line(versions: list[DatasetVersion]) -> list[Step]:
    """One step for each version. The newest comes first, so that a version is above the one from which it was made."""
    waiting: list[int | None] = []  # lane -> the number that it leads to further down
    steps = []
    for version in versions:
        parent = version.lineage.get("base")
        into = [lane for lane, number in enumerate(waiting) if number == version.number]
        past = [lane for lane, number in enumerate(waiting) if number not in (None, version.number)]
        lane = into[0] if into else next((free for free, number in enumerate(waiting) if number is None), len(waiting))
        waiting = [None if number == version.number else number for number in waiting]
        waiting += [None] * (lane + 1 - len(waiting))
        waiting[lane] = parent = parent if isinstance(parent, int) else None
        steps.append(Step(version, parent, lane, into, past, *describe(version.lineage)))
    return steps


def describe(lineage: dict[str, Any]) -> tuple[str, list[str], str]:
    """(origin of the version, what was done, icon)."""
    origin = lineage.get("from")
    if origin == "import":
        return f"Imported from {lineage.get('file', 'a file')}", [str(lineage.get("format", ""))], "upload"
    if origin == "filter":
        return f"Filtered from version {lineage.get('base')}", _filtered(lineage), "sliders-horizontal"
    if origin == "annotation":
        name = lineage.get("project_name") or f"project {lineage.get('project')}"
        return f"Annotated in {name}", _annotated(lineage), "pencil"
    if origin == "probe":
        return f"Pass rates written into version {lineage.get('base')}", _rated(lineage), "dices"
    if origin == "run":
        name = lineage.get("name")
        return f"Sampled by {name}" if name else f"Produced by run {lineage.get('run')}", _sampled(lineage), "play"
    if origin == "generated":
        return f"Responses of {lineage.get('model', 'a model')} to {lineage.get('prompts', 'prompts')}", [], "list-plus"
    if origin == "claim":
        return f"Made by the program: the task {lineage.get('task', '')} of claims", [], "flask-conical"
    if origin == "sent":
        return f"Sent to annotation from {lineage.get('name') or 'run ' + str(lineage.get('run'))}", [], "users"
    if origin == "tried":
        return "Answers compared while models were tried", [], "messages-square"
    return f"Made from {origin}" if origin else "Of unknown origin", [], "circle-dashed"


def _annotated(lineage: dict[str, Any]) -> list[str]:
    choice = lineage.get("choice", {})
    done = {"answers": ["each answer"], "resolutions": ["resolved judgements"]}.get(choice.get("what"), [])
    if least := choice.get("minimum"):
        done.append(f"agreement of {least:.0%} or more")
    return done


def _rated(lineage: dict[str, Any]) -> list[str]:
    return [*lineage.get("words", []), f"{with_noun(lineage.get('written', 0), 'examples')} have one"]


def _sampled(lineage: dict[str, Any]) -> list[str]:
    done = [with_noun(lineage["responses"], "responses")] if isinstance(lineage.get("responses"), int) else []
    return [*done, f"left out: {words}"] if (words := lineage.get("left_out_words")) else done


def _filtered(lineage: dict[str, Any]) -> list[str]:
    if found := lineage.get("found"):
        done = [SELECTED.get(found, f"without what the search for {found} found")]
    else:
        verb = "kept" if lineage.get("keep", True) else "removed"
        done = [f"{verb}: {text}" for _, text in words(parse(lineage.get("filters", {})))]
    removed = lineage.get("removed", 0)
    done.append(f"{with_noun(removed, 'examples')} removed")
    return [*done, lineage["note"]] if lineage.get("note") else done
