"""Judgements of two answers: the question that asks for one, and what an answer to it says. Torch-free; no text raises.

A judgement is reasons in order of importance, then one of five verdicts (METHODS 5, GenRM). In form `json` question and answer
are those of judges of kind `pairwise` with five verdicts, so that a model trained on them is such a judge as it stands. Form
`lines` is ours, for models too small for JSON:

    - a reason
    - the next one
    Verdict: A better
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.config.task_parts import JudgementForm
from trainer.contracts import Message
from trainer.judges.answers import without_thinking
from trainer.judges.calls import expand, read
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.pairwise import STRENGTHS, PairwiseSpec
from trainer.judges.templates import conversation, fenced

SPEC = PairwiseSpec(scale="five", order="given")
VERDICTS = {words: strength for words, strength in STRENGTHS.items() if words not in ("A", "B")}
_FORM = (
    "Reasons, the weightiest first, one a line behind “- ”. Then “Verdict: ” and one of: " + ", ".join(VERDICTS) + "."
)
_REASON = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+(.*\S)\s*")
_VERDICT = re.compile(r"\s*[*_#]*verdict[*_]*\s*:[*_]*\s*(.*?)[*_.\s]*", re.I)
_WORDS = {words.lower(): strength for words, strength in VERDICTS.items()}


@dataclass(frozen=True)
class PairJudgement:
    """What a judgement says. `strength`: -2 (the answer shown first is much better) to 2; None where there is no verdict
    that can be read, and `problem` says why. `well_formed`: it has the asked form and nothing else."""

    reasons: tuple[str, ...]
    strength: int | None
    problem: str = ""
    well_formed: bool = False


def question(prompt: Sequence[Message], first: str, second: str, form: JudgementForm) -> tuple[Message, ...]:
    """What a judge is asked about two answers, in the order in which they are shown."""
    if form == "json":
        given = JudgeInput("", tuple(prompt), {"first": first, "second": second})
        return tuple(Message(**message) for message in expand(SPEC, "", given)[0].request.messages)
    shown = f"{conversation(prompt)}\n{fenced('A', first)}\n{fenced('B', second)}\nWhich is better?\n{_FORM}"
    return (Message(role="user", content=shown),)


def read_pair_judgement(text: str, form: JudgementForm, cut: bool = False) -> PairJudgement:
    """`cut`: it was ended by the limit of tokens, so that JSON counts only if it happens to be whole."""
    return _read_json(text, cut) if form == "json" else _read_lines(text)


def _read_json(text: str, cut: bool) -> PairJudgement:
    reading = read(SPEC, {}, text, complete=not cut)
    if reading.parsed is None:
        return PairJudgement((), None, reading.problem)
    reasons = tuple(reason.strip() for reason in reading.parsed["reasons"])
    return PairJudgement(reasons, reading.parsed["strength"], "", bool(reasons) and _is_json(text))


def _is_json(text: str) -> bool:
    """Whether it is the object alone, with the reasons before the verdict that follows from them."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and list(found) == ["reasons", "verdict"]


def _read_lines(text: str) -> PairJudgement:
    lines = [line for line in without_thinking(text).splitlines() if line.strip()]
    verdicts = [found[1] for line in lines if (found := _VERDICT.fullmatch(line))]
    reasons = tuple(found[1] for line in lines if not _VERDICT.fullmatch(line) and (found := _REASON.fullmatch(line)))
    if len(verdicts) != 1:
        problem = f"there are {len(verdicts)} verdicts" if verdicts else "there is no line that begins with “Verdict:”"
        return PairJudgement(reasons, None, problem)
    strength = _WORDS.get(" ".join(verdicts[0].lower().split()))
    if strength is None:
        return PairJudgement(reasons, None, f"the verdict is none of the five: {verdicts[0][:60]}")
    last = _VERDICT.fullmatch(lines[-1]) is not None
    whole = bool(reasons) and last and len(reasons) == len(lines) - 1
    return PairJudgement(reasons, strength, "", whole)
