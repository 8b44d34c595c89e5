"""The loss of answers that are learnt token by token: every learnt token of a batch counts alike."""

from collections.abc import Sequence

import torch

from trainer.objectives import REGISTRY, ObjectiveBatch

from ..learner.learner import Learner, Marked
from .fitting import Loss


class TokenLoss:
    """The loss of marked tokens, under the learner as it is."""

    def __init__(self, learner: Learner) -> None:
        self._learner, self._objective = learner, REGISTRY["sft"]
        self._params = self._objective.params(aggregation="token")

    def of(self, micro: Sequence[Marked], batch: Sequence[Marked]) -> Loss:
        """The part of a micro-batch in the loss of the batch."""
        scored = self._learner.measure(micro)
        width = max(len(part.logp_T) for part in scored)
        logp_BT = torch.stack([torch.nn.functional.pad(p.logp_T, (0, width - len(p.logp_T))) for p in scored])
        mask_BT = torch.stack([(torch.arange(width) < len(p.logp_T)).float() for p in scored])
        tokens = float(sum(len(each.places) for each in batch))
        record = ObjectiveBatch(logp_BT, mask_BT, total_sequences=float(len(batch)), total_tokens=tokens)
        return Loss(self._objective.loss(record, self._params).loss)
