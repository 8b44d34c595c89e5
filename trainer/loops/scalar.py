"""A model that gives one number per text, under training: a reward model."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config import RecipeConfig
from trainer.inference.prefix import PrefixTree

from .sharding import Share
from .trained import Trained


class ScalarPass(nn.Module):
    """From texts as tokens to their scores [B], shared prefixes once: the answers to one prompt share it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, texts: Sequence[Sequence[int]]) -> Tensor:
        tree = PrefixTree.of(texts).to(self.model.device)
        hidden_ND = self.model.model(**tree.model_inputs(), use_cache=False).last_hidden_state[0]
        last_B = torch.stack([path[-1] for path in tree.paths])
        score_B: Tensor = self.model.score(hidden_ND[last_B])[:, 0]
        return score_B.to(torch.promote_types(score_B.dtype, torch.float32))


class Scorer(Trained):
    """The model of `load_scalar` with its head, which is trained whole beside the adapters."""

    def __init__(self, model: Any, config: RecipeConfig, share: Share | None = None) -> None:
        self._padding = model.config.pad_token_id
        super().__init__(model, config, share, "SEQ_CLS")

    def _spread(self) -> None:
        self._pass = ScalarPass(self._model)

    def read(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """A text up to where its score is read: transformers goes by the last token that is not padding, whatever it says."""
        end = len(tokens)
        while end > 1 and tokens[end - 1] == self._padding:
            end -= 1
        return tuple(tokens[:end])

    def scores(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """[B] in float32 or wider, on the CPU; with gradient where it is enabled. Texts are as `read` gave them."""
        score_B: Tensor = self._pass(texts)
        return score_B.cpu()
