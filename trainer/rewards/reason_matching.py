"""Measures how similar each reason of a judgement, or item of a rubric, is to each of people's: numbers in [0, 1]. It needs no torch.

A matcher measures how similar texts are. Its border is the similarity from which two texts say the same. Scores put this border at 0.5,
so that one threshold serves every matcher. Axes: H human texts, M texts of a model, N texts.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .alignment import WORDS, WORDS_THRESHOLD, words_similarity

Floats = NDArray[np.float64]
Lists = tuple[Sequence[str], Sequence[str]]
"""The texts of people, and those of a model."""
Kind = Literal["reasons", "items"]
"""The content of the lists: reasons for a verdict, or items of rubrics."""


class Matcher(Protocol):
    """`key` is the matcher's name beside its results."""

    key: str

    def scores(self, lists: Sequence[Lists], of: Kind) -> list[Floats]:
        """Scores [H, M] in [0, 1] for each pair of lists. Above 0.5 two texts say the same."""
        ...


class WordsMatcher:
    """A matcher by common words: it knows no synonyms, and costs nothing."""

    key = WORDS

    def scores(self, lists: Sequence[Lists], of: Kind) -> list[Floats]:
        found = []
        for human, model in lists:
            similarity_NN = words_similarity([*human, *model])
            found.append(bordered(similarity_NN[: len(human), len(human) :], WORDS_THRESHOLD))
        return found


def bordered(similarity: Floats, border: float) -> Floats:
    """Turns similarities up to 1 into scores: 0 and less gives 0, the border 0.5, and 1 gives 1, linear in between.

    Raises ValueError for a border that is not between 0 and 1.
    """
    if not 0 < border < 1:
        raise ValueError(f"a border of {border} leaves no room on one side")
    low, high = 0.5 * similarity / border, 0.5 + 0.5 * (similarity - border) / (1 - border)
    scores: Floats = np.clip(np.where(similarity <= border, low, high), 0.0, 1.0)
    return scores
