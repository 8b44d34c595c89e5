"""Supervised fine-tuning."""

from trainer.config.objectives.knobs import SftParameters

from . import terms
from .batch import ObjectiveBatch, ObjectiveResult


def sft(batch: ObjectiveBatch, params: SftParameters) -> ObjectiveResult:
    """-aggregate[ log pi ] over the tokens of the mask; by default the mean over all tokens of the step.

    The mask is the turn-level loss mask: 1 on the turns to learn, 0 on the user's, tools' and wrong turns, which stay in
    the context (GLM-5, 2026).
    """
    loss = -terms.aggregate(batch.logp, batch, params.aggregation, params.max_tokens)
    nll = terms.masked_mean(-batch.logp.detach(), batch.mask_BT)
    return ObjectiveResult(loss, {"nll": nll, "tokens": batch.mask_BT.sum()}, weight=batch.mask_BT)
