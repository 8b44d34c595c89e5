"""Judgements of two answers: the question that asks for one, and what an answer to it says. Torch-free; no text raises.

A judgement is reasons in order of importance, then one of five verdicts (METHODS 5, GenRM). Question and answer are those of
judges of kind `pairwise` with five verdicts in the same form, so that a model trained on them is such a judge as it stands.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainer.config.rewards.tasks import JudgementForm
from trainer.contracts import Message
from trainer.judges.calls import expand, read
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.pairwise import STRENGTHS, PairwiseSpec
from trainer.judges.reason_lines import read_lines

SPECS: Mapping[JudgementForm, PairwiseSpec] = {
    "json": PairwiseSpec(scale="five", order="given"),
    "lines": PairwiseSpec(form="lines", order="given"),
}
VERDICTS = {words: strength for words, strength in STRENGTHS.items() if words not in ("A", "B")}
WORDS_OF = {strength: words for words, strength in VERDICTS.items()}


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
    given = JudgeInput("", tuple(prompt), {"first": first, "second": second})
    return tuple(Message(**message) for message in expand(SPECS[form], "", given)[0].request.messages)


def read_pair_judgement(text: str, form: JudgementForm, cut: bool = False) -> PairJudgement:
    """`cut`: it was ended by the limit of tokens, so that JSON counts only if it happens to be whole."""
    return _read_json(text, cut) if form == "json" else _read_lines(text)


def _read_json(text: str, cut: bool) -> PairJudgement:
    reading = read(SPECS["json"], {}, text, complete=not cut)
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
    found = read_lines(text)
    strength = None if found.verdict is None else STRENGTHS[found.verdict]
    return PairJudgement(found.reasons, strength, found.problem, found.whole)
