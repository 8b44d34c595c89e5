"""Reads judgements by a rubric: the decision, and the problems of the form. No text raises.

A judgement explains every criterion, then justifies the whole, then decides once
(Rubric-ARM, 2026; its format reward).
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, ValidationError

from trainer.judges.answers import AnswerSchema, without_thinking

Form = Literal["rubric_arm", "touchstone"]
Choice = Literal["A", "B"]


@dataclass(frozen=True)
class ReadJudgement:
    """`verdict` is the decision if there is exactly one, even if the form is wrong."""

    verdict: Choice | None
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def read_judgement(text: str, criteria: int, form: Form | None = None) -> ReadJudgement:
    """The judgement in `text`, after any thinking aloud, by a rubric with this many criteria.

    `rubric_arm`: for "Response A" and "Response B" a line "Criterion N: explanation" for each criterion, then "Final
    Judgment" with a line "Justification: ..." and, last of all, "Winner: Response A" or "B". `touchstone`: a JSON object
    {"criteria": [{number, explanation, a_meets, b_meets}], "justification": ..., "verdict": "A" or "B"} in that order,
    where "gatekeeper" may come first. With the `form` None a text that begins with a brace is read as JSON.
    """
    spoken = without_thinking(text)
    if form is None:
        form = "touchstone" if spoken.startswith("{") else "rubric_arm"
    return _read_json(spoken, criteria) if form == "touchstone" else _read_text(spoken, criteria)


# Rubric-ARM

_RESPONSE = re.compile(r"[-*#\s]*response\s+([AB])[-*#:\s]*", re.I)
_CRITERION = re.compile(r"[-*\s]*criterion\s+(\d{1,6})\s*(?:\[[^\]]*\])?[*:\s]*(?:justification\s*[*:]+\s*)?(.*)", re.I)
_FINAL = re.compile(r"[-*#\s]*final\s+judge?ment[-*#:\s]*", re.I)
_JUSTIFIED = re.compile(r"[-*\s]*justification\s*[*:]+\s*(.*)", re.I)
_WINNER = re.compile(r"[-*#\s]*winner\s*[*:]+\s*(.*)", re.I)
_CHOSEN = re.compile(r"[*\s]*response\s+([AB])[*.\s]*", re.I)


@dataclass
class _JudgementText:
    """The parts of a judgement that have been read: explanations by response and criterion, then the end."""

    explained: dict[str, dict[int, list[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    justification: list[str] = field(default_factory=list)
    winners: list[str] = field(default_factory=list)
    final: bool = False
    after: bool = False
    place: tuple[str, int] = ("", 0)
    """The response and the criterion to which the lines belong; 0: none."""

    def take(self, line: str) -> None:
        if winner := _WINNER.fullmatch(line):
            self.winners.append(winner[1].strip())
            self.after = False
            return
        self.after = bool(self.winners)
        if _FINAL.fullmatch(line):
            self.final, self.place = True, ("", 0)
        elif self.final:
            found = _JUSTIFIED.fullmatch(line)
            self.justification.append((found[1] if found else line).strip())
        elif response := _RESPONSE.fullmatch(line):
            self.place = (response[1].upper(), 0)
        elif (criterion := _CRITERION.fullmatch(line)) and self.place[0]:
            self.place = (self.place[0], int(criterion[1]))
            self.explained[self.place[0]][self.place[1]].append(criterion[2].strip())
        elif self.place[1]:
            self.explained[self.place[0]][self.place[1]][-1] += f" {line}"


def _read_text(text: str, criteria: int) -> ReadJudgement:
    read = _JudgementText()
    for line in filter(None, map(str.strip, text.splitlines())):
        read.take(line)
    choices = [_CHOSEN.fullmatch(winner) for winner in read.winners]
    verdict: Choice | None = None
    if len(choices) == 1 and choices[0]:
        verdict = "A" if choices[0][1].upper() == "A" else "B"
    return ReadJudgement(verdict, tuple(_text_problems(read, criteria, verdict)))


def _text_problems(read: _JudgementText, criteria: int, verdict: Choice | None) -> Iterator[str]:
    for response in ("A", "B"):
        found = read.explained[response]
        explanations = [(number, text) for number, texts in found.items() for text in texts]
        yield from (f"response {response}: {each}" for each in _criteria_problems(explanations, criteria))
    if not read.final:
        yield "there is no final judgment"
    elif not any(read.justification):
        yield "the final judgment has no justification"
    yield from _decision_problems(read, verdict)


def _decision_problems(read: _JudgementText, verdict: Choice | None) -> Iterator[str]:
    if not read.winners:
        yield "there is no decision: no line “Winner: Response A” or “B”"
    elif len(read.winners) > 1:
        yield f"there are {len(read.winners)} decisions"
    elif verdict is None:
        yield f"the winner is neither Response A nor Response B: {read.winners[0][:60]}"
    if read.after:
        yield "something follows the decision"


# Ours


class _Met(AnswerSchema):
    number: int
    explanation: str
    a_meets: bool
    b_meets: bool


class _Judged(AnswerSchema):
    criteria: list[_Met]
    justification: str
    verdict: Literal["A", "B"]


class _Keeper(AnswerSchema):
    number: int = Field(ge=0)
    explanation: str
    a_meets: bool
    b_meets: bool


_ORDER = ["gatekeeper", "criteria", "justification", "verdict"]


def _read_json(text: str, criteria: int) -> ReadJudgement:
    pairs: list[tuple[str, Any]] = []

    def outermost(found: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = found  # the outermost object is complete last
        return dict(found)

    try:
        raw = json.loads(text, object_pairs_hook=outermost)
    except (ValueError, RecursionError) as error:
        return ReadJudgement(None, (f"the output is not JSON: {error}",))
    if not isinstance(raw, dict):
        return ReadJudgement(None, ("the output is not a JSON object",))
    names = [name for name, _ in pairs]
    said = raw.get("verdict")
    verdict: Choice | None = said if names.count("verdict") == 1 and said in ("A", "B") else None
    return ReadJudgement(verdict, tuple(_json_problems(raw, names, criteria)))


def _json_problems(raw: Mapping[str, Any], names: list[str], criteria: int) -> Iterator[str]:
    expected = [name for name in _ORDER if name != "gatekeeper" or name in raw]
    if names != expected:
        yield f"expected the keys {', '.join(expected)}, each once and in this order; found {', '.join(names)[:200]}"
    try:
        judged = _Judged.model_validate(raw, strict=True)
        if "gatekeeper" in raw:
            _Keeper.model_validate(raw["gatekeeper"], strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        yield f"{'.'.join(map(str, first['loc'])) or 'gatekeeper'}: {first['msg']}"
        return
    yield from _criteria_problems([(each.number, each.explanation) for each in judged.criteria], criteria)
    if not judged.justification.strip():
        yield "the justification is empty"


def _criteria_problems(explanations: Iterable[tuple[int, str]], criteria: int) -> Iterator[str]:
    """Problems if a criterion is not explained exactly once, or has no words of its own."""
    listed = [(number, " ".join(text.split())) for number, text in explanations]
    times = Counter(number for number, _ in listed)
    missing = [number for number in range(1, criteria + 1) if not times[number]]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        yield f"no word on criterion {', '.join(map(str, missing[:5]))}{more}"
    first: dict[str, int] = {}
    for number, text in listed:
        if not 1 <= number <= criteria:
            yield f"criterion {number} is not in the rubric, which has {criteria}"
        elif times[number] > 1:
            yield f"criterion {number} is handled {times[number]} times"
            times[number] = 1
        if not text:
            yield f"criterion {number} has no explanation"
        elif first.setdefault(text.lower(), number) != number:
            yield f"criterion {number} has the explanation of criterion {first[text.lower()]}"
