"""Matchers that need a model, in the process that computes rewards."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainer.config.rewards.base import NARROW
from trainer.rewards.alignment import background
from trainer.rewards.reason_matching import Floats, Kind, Lists, bordered

if TYPE_CHECKING:
    from trainer.inference.embeddings import Precision

_LEAST, _MOST = 0.05, 0.95


class EmbeddingMatcher:
    """Matches texts by the cosine of sentence embeddings; the model is loaded once. Raises ModelInvalid if the model is not installed.

    The texts of one human list say different things, so their mean cosine shows how alike the subject alone makes texts. Two
    texts say the same from a measured lift above it (docs/judges.md). The model's own list has no part in that, because
    it could otherwise move the border by what it writes.
    """

    def __init__(self, precision: "Precision" = "float32") -> None:
        from trainer.inference.embeddings import Embedder

        self.key = "embeddings" if precision == "float32" else NARROW
        self._embed = Embedder(precision)

    def scores(self, lists: Sequence[Lists], of: Kind) -> list[Floats]:
        from trainer.inference.embeddings import BACKGROUND, LIFT

        texts = list(dict.fromkeys(text for both in lists for texts in both for text in texts))
        place = {text: at for at, text in enumerate(texts)}
        vectors_ND = self._embed(texts).double().numpy()
        found = []
        for human, model in lists:
            human_HD = vectors_ND[[place[text] for text in human]]
            common = background(human_HD @ human_HD.T, [0] * len(human))
            border = (BACKGROUND[of] if common is None else common) + LIFT[of]
            cosines_HM = human_HD @ vectors_ND[[place[text] for text in model]].T
            found.append(bordered(cosines_HM, min(max(border, _LEAST), _MOST)))
        return found
