"""Preference objectives: the order of the pairs, padding and micro-batches change nothing."""

from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.objectives import REGISTRY, PairBatch, ScoreBatch

PAIRS, TOKENS = 5, 4
LENGTHS = torch.tensor([4, 1, 3, 0, 2])


def pairs(seed: int) -> dict[str, Tensor]:
    """Both sides of five pairs of differing lengths, one of them with an empty chosen response."""
    draw = torch.Generator().manual_seed(seed)
    names = ("chosen_PT", "rejected_PT", "ref_chosen_PT", "ref_rejected_PT")
    fields = {name: -3 * torch.rand(PAIRS, TOKENS, generator=draw, dtype=torch.float64) for name in names}
    fields["mask_chosen_PT"] = (torch.arange(TOKENS) < LENGTHS[:, None]).double()
    fields["mask_rejected_PT"] = (torch.arange(TOKENS) < LENGTHS.flip(0)[:, None]).double()
    return fields


def dpo(fields: dict[str, Tensor], **more: Any) -> tuple[Tensor, Tensor]:
    """Loss, and the gradient of the chosen side."""
    chosen = fields["chosen_PT"].clone().requires_grad_()
    batch = PairBatch(**{**fields, "chosen_PT": chosen}, **more)
    loss = REGISTRY["dpo"].loss(batch, REGISTRY["dpo"].params(sft_weight=0.3)).loss
    (gradient,) = torch.autograd.grad(loss, chosen)
    return loss.detach(), gradient


def bradley_terry(chosen: Tensor, rejected: Tensor, **more: Any) -> Tensor:
    return REGISTRY["bradley_terry"].loss(ScoreBatch(chosen, rejected, **more), REGISTRY["bradley_terry"].params()).loss


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_pairs_does_not_matter(seed: int) -> None:
    fields, order = pairs(seed), torch.tensor([3, 0, 4, 2, 1])
    loss, gradient = dpo(fields)
    moved_loss, moved = dpo({name: value[order] for name, value in fields.items()})
    torch.testing.assert_close(moved_loss, loss)
    torch.testing.assert_close(moved, gradient[order])
    chosen, rejected = fields["chosen_PT"][:, 0], fields["rejected_PT"][:, 0]
    torch.testing.assert_close(bradley_terry(chosen[order], rejected[order]), bradley_terry(chosen, rejected))


@pytest.mark.parametrize("seed", range(3))
def test_padding_changes_nothing_whatever_it_holds(seed: int) -> None:
    fields = pairs(seed)
    loss, gradient = dpo(fields)
    wide = {
        name: torch.nn.functional.pad(value, (0, 3), value=0.0 if name.startswith("mask") else torch.nan)
        for name, value in fields.items()
    }
    wide_loss, wide_gradient = dpo(wide)
    torch.testing.assert_close(wide_loss, loss)
    torch.testing.assert_close(wide_gradient[:, :TOKENS], gradient)
    assert not wide_gradient[:, TOKENS:].any()


@pytest.mark.parametrize("seed", range(3))
def test_micro_batches_add_up_to_the_step(seed: int) -> None:
    fields = pairs(seed)
    loss, gradient = dpo(fields)
    cuts = (torch.tensor([0, 3]), torch.tensor([1]), torch.tensor([2, 4]))
    parts = [dpo({name: value[cut] for name, value in fields.items()}, total_pairs=PAIRS) for cut in cuts]
    torch.testing.assert_close(torch.stack([part for part, _ in parts]).sum(), loss)
    torch.testing.assert_close(torch.cat([part for _, part in parts]), gradient[torch.cat(cuts)])
    chosen, rejected = fields["chosen_PT"][:, 0], fields["rejected_PT"][:, 0]
    pieces = [bradley_terry(chosen[cut], rejected[cut], total_pairs=PAIRS) for cut in cuts]
    torch.testing.assert_close(torch.stack(pieces).sum(), bradley_terry(chosen, rejected))
