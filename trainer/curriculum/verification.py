"""Self-verification (LongCat-Flash-Thinking-2601, 2026): the policy judges its own responses, whose worth is known."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from trainer.seeding import derive_seed

_SCORE = re.compile(r"score\s*[:=]\s*\**\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_MOST = 10


class Candidate(NamedTuple):
    """A response that may be judged. `score` is its known worth, from 0 to 1."""

    group: int
    place: int
    score: float


def hardest(candidates: Sequence[Candidate], wanted: int, seed: int, step: int) -> list[Candidate]:
    """The responses that are judged: one of each group, those of the lowest mean score first, then a second one of each, and so on.

    Within a group chance decides, so that good responses to hard prompts are judged as often as bad ones.
    """
    groups: dict[int, list[Candidate]] = defaultdict(list)
    for each in candidates:
        groups[each.group].append(each)
    for number, group in groups.items():
        chance = random.Random(derive_seed(seed, "verified", step, number))  # noqa: S311 - a draw, no secret
        chance.shuffle(group)
    order = sorted(
        groups, key=lambda number: (sum(each.score for each in groups[number]) / len(groups[number]), number)
    )
    rounds = max((len(group) for group in groups.values()), default=0)
    found = [groups[number][turn] for turn in range(rounds) for number in order if turn < len(groups[number])]
    return found[:wanted]


def question(prompt: str, response: str) -> str:
    """The question to the policy about its own response."""
    return (
        f"Here is a task, and an answer to it.\n\nTask:\n{prompt}\n\nAnswer:\n{response or '(nothing)'}\n\n"
        "How good is the answer? Check it against everything that the task asks for. End with a line 'Score: N', where N is from 0 "
        f"(worthless) to {_MOST} (perfect)."
    )


def read_score(text: str) -> float | None:
    """The last score that the text names, from 0 to 1; None if it names none or the score is above the largest."""
    found = _SCORE.findall(text)
    value = float(found[-1]) / _MOST if found else None
    return value if value is not None and value <= 1 else None


def worth(judged: float | None, known: float, tied: float) -> float:
    """The reward of a judgement: `(1 - |judged - known|) (1 - tied + tied known)`; 0 if the judgement names no score.

    The second factor ties the reward to the quality of what was judged. To see that a response is worthless earns less than to
    see that a response is good.
    """
    return 0.0 if judged is None else (1 - abs(judged - known)) * (1 - tied + tied * known)
