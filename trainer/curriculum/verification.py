"""Self-verification (LongCat-Flash-Thinking-2601, 2026): the policy judges its own responses, against what they are known to be
worth."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from trainer.seeding import derive_seed

_SCORE = re.compile(r"score\s*[:=]\s*\**\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_MOST = 10


class Candidate(NamedTuple):
    """A response that may be judged. `score`: what it is known to be worth, from 0 to 1."""

    group: int
    place: int
    score: float


def hardest(candidates: Sequence[Candidate], wanted: int, seed: int, step: int) -> list[Candidate]:
    """Which responses are judged: of the groups with the lowest mean score first, one of each at random, then a second of each.

    Chance decides within a group, so that good responses to hard prompts are judged as often as bad ones.
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
    """What the policy is asked about its own response."""
    return (
        f"Here is a task, and an answer to it.\n\nTask:\n{prompt}\n\nAnswer:\n{response or '(nothing)'}\n\n"
        "How good is the answer? Check it against everything that the task asks for. End with a line 'Score: N', where N is from 0 "
        f"(worthless) to {_MOST} (perfect)."
    )


def read_score(text: str) -> float | None:
    """From 0 to 1: the last score that the text names; None where it names none within bounds."""
    found = _SCORE.findall(text)
    value = float(found[-1]) / _MOST if found else None
    return value if value is not None and value <= 1 else None


def worth(judged: float | None, known: float, tied: float) -> float:
    """The reward of a judgement: `(1 - |judged - known|) (1 - tied + tied known)`; 0 where it names no score.

    The second factor ties it to the quality of what was judged: seeing that a response is worthless earns less than having written
    one that is good and seeing that.
    """
    return 0.0 if judged is None else (1 - abs(judged - known)) * (1 - tied + tied * known)
