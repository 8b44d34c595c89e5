"""A model that gives one number per text, under training: a reward model."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from trainer.config import RecipeConfig
from trainer.inference.reward_models import ScalarPass, up_to_padding

from .sharding import ModelShare
from .trained import Trained


class Scorer(Trained):
    """The model of `load_scalar` with its head; the head is trained whole, beside the adapters."""

    def __init__(self, model: Any, config: RecipeConfig, share: ModelShare | None = None) -> None:
        self._padding = model.config.pad_token_id
        super().__init__(model, config, share, "SEQ_CLS")

    def _spread(self) -> None:
        self._pass = ScalarPass(self._model)

    def read(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """The tokens up to where the score is read: transformers takes the last token that is not padding."""
        return up_to_padding(tokens, self._padding)

    def scores(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Scores [B] in float32 or wider, on the CPU; with gradient if gradients are enabled. Texts are as `read` returned them."""
        score_B: Tensor = self._pass(texts)
        return score_B.cpu()
