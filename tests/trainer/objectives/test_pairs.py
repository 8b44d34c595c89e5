"""Preference objectives: the order of the pairs, padding and micro-batches change nothing."""

from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.objectives import REGISTRY, ObjectiveError, PairBatch, ScoreBatch

PAIRS, TOKENS = 5, 4
LENGTHS = torch.tensor([4, 1, 3, 0, 2])


def pairs(seed: int) -> dict[str, Any]:
    """Both sides of five pairs of differing lengths, one of them with an empty chosen response."""
    draw = torch.Generator().manual_seed(seed)
    names = ("chosen_PT", "rejected_PT", "ref_chosen_PT", "ref_rejected_PT")
    fields: dict[str, Any] = {
        name: -3 * torch.rand(PAIRS, TOKENS, generator=draw, dtype=torch.float64) for name in names
    }
    fields["mask_chosen_PT"] = (torch.arange(TOKENS) < LENGTHS[:, None]).double()
    fields["mask_rejected_PT"] = (torch.arange(TOKENS) < LENGTHS.flip(0)[:, None]).double()
    return fields


def dpo(fields: dict[str, Any], **more: Any) -> tuple[Tensor, Tensor]:
    """The loss, and the gradient of the chosen side."""
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


@pytest.mark.parametrize("seed", range(3))
def test_a_weighted_pair_counts_as_so_many_equal_ones(seed: int) -> None:
    fields = pairs(seed)
    margins = torch.linspace(-1, 2, PAIRS, dtype=torch.float64)
    times = torch.tensor([1, 3, 0, 2, 1])
    repeated = torch.repeat_interleave(torch.arange(PAIRS), times)
    loss, _ = dpo(fields, weight_P=times.double(), margin_P=margins, total_pairs=float(times.sum()))
    expected, _ = dpo({name: value[repeated] for name, value in fields.items()}, margin_P=margins[repeated])
    torch.testing.assert_close(loss, expected)
    chosen, rejected = fields["chosen_PT"][:, 0], fields["rejected_PT"][:, 0]
    more: dict[str, Any] = {"weight_P": times.double(), "margin_P": margins, "total_pairs": float(times.sum())}
    torch.testing.assert_close(
        bradley_terry(chosen, rejected, **more),
        bradley_terry(chosen[repeated], rejected[repeated], margin_P=margins[repeated]),
    )


def test_votes_of_both_sides_are_the_cross_entropy_of_their_share() -> None:
    """Both orders of a pair, weighted by the votes for each: -p log q - (1 - p) log(1 - q)."""
    chosen, rejected = torch.tensor([0.3, 0.3]).double(), torch.tensor([-0.4, -0.4]).double()
    first, second = torch.tensor([0.3, -0.4]).double(), torch.tensor([-0.4, 0.3]).double()
    q = torch.sigmoid(chosen[:1] - rejected[:1])
    found = bradley_terry(first, second, weight_P=torch.tensor([0.7, 0.3]), total_pairs=1)
    torch.testing.assert_close(found, -(0.7 * q.log() + 0.3 * (1 - q).log())[0], rtol=1e-6, atol=1e-9)


def test_a_margin_of_another_shape_is_refused() -> None:
    fields = pairs(0)
    with pytest.raises(ObjectiveError, match="margin: has shape"):
        PairBatch(**fields, margin_P=torch.zeros(2))
