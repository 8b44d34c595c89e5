"""A model that gives one number per text, under training: a reward model."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from trainer.config import RecipeConfig
from trainer.inference.reward_models import ScalarPass, up_to_padding

from .sharding import ModelShare
from .trained import Trained


class Scorer(Trained):
    """The model of `load_scalar` with its head, which is trained whole beside the adapters."""

    def __init__(self, model: Any, config: RecipeConfig, share: ModelShare | None = None) -> None:
        self._padding = model.config.pad_token_id
        super().__init__(model, config, share, "SEQ_CLS")

    def _spread(self) -> None:
        self._pass = ScalarPass(self._model)

    def read(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """A text up to where its score is read: transformers goes by the last token that is not padding, whatever it says."""
        return up_to_padding(tokens, self._padding)

    def scores(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """[B] in float32 or wider, on the CPU; with gradient where it is enabled. Texts are as `read` gave them."""
        score_B: Tensor = self._pass(texts)
        return score_B.cpu()
