"""Functions for several families: parts of an input, or the reason why they are missing; and answers by the numbers of items."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainer.contracts import Criterion

from ..answers import Reading
from ..inputs import InputProblem, JudgeInput
from ..templates import conversation

MOST_NAMED = 5  # items that an answer passed over
VARIABLES = {
    "conversation": "the prompt: every turn so far",
    "response": "the response that is judged",
    "criterion": "the criterion, one statement about a response",
    "criteria": "the rubric's criteria, numbered",
    "reference": "the example's reference answer, or empty",
    "response_a": "the response shown first",
    "response_b": "the response shown second",
}


def pick(*names: str) -> dict[str, str]:
    return {name: VARIABLES[name] for name in names}


def prompt_of(given: JudgeInput) -> str:
    if not given.conversation:
        raise InputProblem("the example has no prompt")
    return conversation(given.conversation)


def judged_criteria(given: JudgeInput) -> tuple[Criterion, ...]:
    """The criteria that need a judge. Criteria with a verifier are decided by their program alone."""
    if not given.criteria:
        raise InputProblem("the rubric has no criteria")
    return tuple(criterion for criterion in given.criteria if criterion.verifier is None)


def responses_of(given: JudgeInput) -> Iterator[tuple[str, str]]:
    if not given.responses:
        raise InputProblem("the example has no response")
    yield from given.responses.items()


def texts(found: Sequence[str], what: str) -> Sequence[str]:
    if not found:
        raise InputProblem(f"there are no {what}")
    return found


def by_number(items: Sequence[Mapping[str, Any]], keys: Sequence[Any], what: str) -> Reading:
    """`items` carry a `number` from 1: {"items": {key: item}, "missing": [keys]}.

    A number that does not exist, or that is answered twice with different content, counts as not answered.
    """
    found: dict[Any, dict[str, Any]] = {}
    contradicted, unknown = set(), 0
    for item in items:
        rest = {name: value for name, value in item.items() if name != "number"}
        if not 1 <= item["number"] <= len(keys):
            unknown += 1
            continue
        key = keys[item["number"] - 1]
        if key in found and found[key] != rest:
            contradicted.add(key)
        found.setdefault(key, rest)
    for key in contradicted:
        del found[key]
    missing = [key for key in keys if key not in found]
    places = {key: place for place, key in enumerate(keys, 1)}
    problems = [
        _listed("no answer", what, [places[key] for key in missing if key not in contradicted]),
        _listed("two answers", what, [places[key] for key in missing if key in contradicted]),
        f"{unknown} answers on a {what} that was not asked about" if unknown else "",
    ]
    return Reading({"items": found, "missing": missing} if found else None, "; ".join(filter(None, problems)))


def _listed(how: str, what: str, places: Sequence[int]) -> str:
    """A text that names a few of the places: a judge that was cut may have passed over hundreds."""
    if not places:
        return ""
    if len(places) <= MOST_NAMED:
        return f"{how} on {what} {', '.join(map(str, places))}"
    return f"{how} on {what} {', '.join(map(str, places[:MOST_NAMED]))} and {len(places) - MOST_NAMED:,} more"
