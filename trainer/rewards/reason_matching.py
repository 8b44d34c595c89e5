"""How far each reason of a judgement, or item of a rubric, is each of people's: numbers in [0, 1] (METHODS 3 and 4). Torch-free.

A matcher knows how alike texts are and from where on two say the same, its border. Scores put that border at 0.5, so that one
threshold serves every matcher. Axes: H human ones, M a model's, N texts.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .alignment import WORDS, WORDS_THRESHOLD, words_similarity

Floats = NDArray[np.float64]
Lists = tuple[Sequence[str], Sequence[str]]
"""People's, and a model's."""
Kind = Literal["reasons", "items"]
"""What the lists are of: reasons for a verdict, or items of rubrics."""


class Matcher(Protocol):
    """`key` names it beside its results."""

    key: str

    def scores(self, lists: Sequence[Lists], of: Kind) -> list[Floats]:
        """[H, M] in [0, 1] for each pair of lists; above 0.5 it takes the two for the same."""
        ...


class WordsMatcher:
    """By the words that both have: it knows no synonym, and costs nothing."""

    key = WORDS

    def scores(self, lists: Sequence[Lists], of: Kind) -> list[Floats]:
        found = []
        for human, model in lists:
            similarity_NN = words_similarity([*human, *model])
            found.append(bordered(similarity_NN[: len(human), len(human) :], WORDS_THRESHOLD))
        return found


def bordered(similarity: Floats, border: float) -> Floats:
    """Similarities up to 1 as scores: 0 and below is 0, the border is 0.5, 1 is 1, linear in between.

    Raises ValueError for a border that is not between 0 and 1.
    """
    if not 0 < border < 1:
        raise ValueError(f"a border of {border} leaves no room on one side")
    low, high = 0.5 * similarity / border, 0.5 + 0.5 * (similarity - border) / (1 - border)
    scores: Floats = np.clip(np.where(similarity <= border, low, high), 0.0, 1.0)
    return scores
