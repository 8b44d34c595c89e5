"""DPO on the log-probabilities of pairs, Bradley-Terry on their scores."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from trainer.config.objectives.knobs import BradleyTerryParameters, DpoParameters

from ..batch import ObjectiveResult, PairBatch, ScoreBatch


def dpo(batch: PairBatch, params: DpoParameters) -> ObjectiveResult:
    """mean over pairs of -log sigmoid(beta [(c - ref_c) - (r - ref_r)]) + sft_weight NLL(chosen) (Rafailov et al., 2023).

    c, r, ref_c, ref_r are sums of log-probabilities over a response's tokens; NLL is the mean over the tokens of one
    chosen response, 0 if it has none (Rubric-ARM, 2026, adds it with weight 0.2). A pair's own margin is subtracted from the
    argument of the sigmoid (Amini et al., 2024); its weight multiplies its loss.
    """
    chosen_P, length_P = _sum(batch.chosen_PT, batch.mask_chosen_PT)
    rejected_P, _ = _sum(batch.rejected_PT, batch.mask_rejected_PT)
    ref_chosen_P, _ = _sum(batch.ref_chosen_PT.detach(), batch.mask_chosen_PT)
    ref_rejected_P, _ = _sum(batch.ref_rejected_PT.detach(), batch.mask_rejected_PT)
    reward_chosen_P = params.beta * (chosen_P - ref_chosen_P)
    reward_rejected_P = params.beta * (rejected_P - ref_rejected_P)
    nll_P = -chosen_P / length_P.clamp(min=1.0)
    margin_P = reward_chosen_P - reward_rejected_P
    loss_P = _weighted(-logsigmoid(_less(margin_P, batch.margin_P)) + params.sft_weight * nll_P, batch.weight_P)
    report = _report(margin_P) | {
        "reward_chosen": reward_chosen_P.detach().mean(),
        "reward_rejected": reward_rejected_P.detach().mean(),
        "nll_chosen": nll_P.detach().mean(),
    }
    return ObjectiveResult(loss_P.sum() / (batch.total_pairs or len(loss_P)), report)


def bradley_terry(batch: ScoreBatch, params: BradleyTerryParameters) -> ObjectiveResult:
    """mean over pairs of -log sigmoid(s_c - s_r - m) + centre (s_c + s_r)^2 (Bradley and Terry, 1952; margin: Llama 2,
    2023; centring: Eisenstein et al., 2023, section 5).

    m is the parameter's margin plus the pair's own, if the batch has one; a pair's weight multiplies its loss.
    """
    chosen_P, rejected_P = _wide(batch.chosen_P), _wide(batch.rejected_P)
    difference_P = chosen_P - rejected_P
    margin_P = _less(difference_P - params.margin, batch.margin_P)
    loss_P = _weighted(-logsigmoid(margin_P) + params.centre * (chosen_P + rejected_P) ** 2, batch.weight_P)
    return ObjectiveResult(loss_P.sum() / (batch.total_pairs or len(loss_P)), _report(difference_P))


def _less(values_P: Tensor, margin_P: Tensor | None) -> Tensor:
    return values_P if margin_P is None else values_P - margin_P.detach().to(values_P.dtype)


def _weighted(loss_P: Tensor, weight_P: Tensor | None) -> Tensor:
    return loss_P if weight_P is None else loss_P * weight_P.detach().to(loss_P.dtype)


def _report(difference_P: Tensor) -> dict[str, Tensor]:
    difference_P = difference_P.detach()
    return {"margin": difference_P.mean(), "accuracy": (difference_P > 0).to(difference_P.dtype).mean()}


def _sum(values_PT: Tensor, mask_PT: Tensor) -> tuple[Tensor, Tensor]:
    """Sum over the tokens of the mask, and their number, in float32 or float64. Padding can hold anything."""
    values = _wide(values_PT)
    mask = mask_PT.detach().to(values.dtype)
    return values.where(mask > 0, 0.0).sum(-1), mask.sum(-1)


def _wide(values: Tensor) -> Tensor:
    """float32 for half precision, which cannot hold log-probabilities of whole responses; other values unchanged."""
    return values if values.dtype == torch.float64 else values.float()
