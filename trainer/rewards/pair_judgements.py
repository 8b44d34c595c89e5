"""Judgements of two answers: the question for one, and how its answer is read. It needs no torch, and no text raises.

A judgement has reasons in order of importance, then one of five verdicts (GenRM). Question and answer are those of judges of the kind
`pairwise` with five verdicts in the same form, so that a model that is trained on them is such a judge at once.
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
    """A judgement that was read. `strength`: -2 (the answer shown first is much better) to 2; None if no verdict can be read, and `problem`
    says why. `well_formed`: the text has the form that was asked for, and nothing else."""

    reasons: tuple[str, ...]
    strength: int | None
    problem: str = ""
    well_formed: bool = False


def question(prompt: Sequence[Message], first: str, second: str, form: JudgementForm) -> tuple[Message, ...]:
    """The question to a judge about two answers, in the order in which they are shown."""
    given = JudgeInput("", tuple(prompt), {"first": first, "second": second})
    return tuple(Message(**message) for message in expand(SPECS[form], "", given)[0].request.messages)


def read_pair_judgement(text: str, form: JudgementForm, cut: bool = False) -> PairJudgement:
    """`cut`: the limit of tokens ended the text, so JSON counts only if it is whole."""
    return _read_json(text, cut) if form == "json" else _read_lines(text)


def _read_json(text: str, cut: bool) -> PairJudgement:
    reading = read(SPECS["json"], {}, text, complete=not cut)
    if reading.parsed is None:
        return PairJudgement((), None, reading.problem)
    reasons = tuple(reason.strip() for reason in reading.parsed["reasons"])
    return PairJudgement(reasons, reading.parsed["strength"], "", bool(reasons) and _is_json(text))


def _is_json(text: str) -> bool:
    """Whether the text is only the object, with the reasons before the verdict that follows from them."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and list(found) == ["reasons", "verdict"]


def _read_lines(text: str) -> PairJudgement:
    found = read_lines(text)
    strength = None if found.verdict is None else STRENGTHS[found.verdict]
    return PairJudgement(found.reasons, strength, found.problem, found.whole)
