"""Norms and attention layers in fewer operations: the values and gradients that transformers has."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from trainer.config.architectures import KNOWN
from trainer.inference.attention import use_grouped_attention
from trainer.inference.decoders import body, decoding_masks, make_ready, tree_inputs
from trainer.inference.fused_layers import fuse_layers, rotated
from trainer.inference.prefix import PrefixTree

ROWS = [[3, 5, 8, 13, 21, 34], [3, 5, 8, 14], [3, 5, 9, 4, 7]]


def model_of(kind: str) -> Any:
    config = AutoConfig.for_model(
        kind, vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=128, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:  # they begin at 1, where a gradient that forgets them would not be seen
                parameter.copy_(0.5 + torch.rand(parameter.shape))
    use_grouped_attention(model)
    return model


def found(model: Any, tree: PrefixTree) -> list[Tensor]:
    """What the body gives, and the gradients of all its parameters."""
    hidden = body(model)(**tree_inputs(model, tree), use_cache=False).last_hidden_state
    weights = [each for each in body(model).parameters() if each.requires_grad]
    return [hidden.detach(), *torch.autograd.grad((hidden.square() * hidden.detach().cos()).sum(), weights)]


@pytest.mark.parametrize("kind", KNOWN)
def test_values_and_gradients_are_those_of_transformers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stock, tree = model_of(kind), PrefixTree.of(ROWS)
    ours = deepcopy(stock)
    fuse_layers(ours)
    expected = found(stock, tree)
    for name in ("RMSNorm", "Attention"):
        layer = next(type(part) for part in stock.modules() if type(part).__name__.endswith(name))
        monkeypatch.setattr(layer, "forward", None)
    assert (
        min(float(each.abs().max()) for each in expected if each.shape != (16,)) > 1e-4
    )  # a bias of keys pulls nowhere
    for mine, other in zip(found(ours, tree), expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=2e-5 * max(1.0, float(other.abs().max())))


@pytest.mark.parametrize("kind", KNOWN)
def test_a_pass_with_gradients_has_the_values_of_one_without(kind: str) -> None:
    model, tree = model_of(kind), PrefixTree.of(ROWS)
    make_ready(model)
    with torch.no_grad():
        without = body(model)(**tree_inputs(model, tree), use_cache=False).last_hidden_state
    assert torch.equal(found(model, tree)[0], without)


def test_attention_of_another_kind_and_other_precisions_stay_as_they_are() -> None:
    stock = model_of("llama")
    ours = deepcopy(stock)
    make_ready(ours)
    make_ready(ours)  # a second time changes nothing
    tokens = torch.tensor([ROWS[0]])
    for model in (stock, ours):
        model.set_attn_implementation("eager")
    for dtype in (torch.float64, torch.bfloat16):
        with torch.no_grad():
            assert torch.equal(ours.to(dtype)(tokens).logits, stock.to(dtype)(tokens).logits)


def test_a_copy_computes_with_its_own_weights() -> None:
    model, tree = model_of("qwen3"), PrefixTree.of(ROWS)
    make_ready(model)
    before = found(model, tree)[0]
    copy = deepcopy(model)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.zero_()
    assert torch.equal(found(model, tree)[0], before)
    assert not found(copy, tree)[0].any()


def test_a_rotation_goes_back_by_the_opposite_angle() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 5, 3, 8, dtype=torch.float64, requires_grad=True)
    angles = torch.rand(1, 5, 1, 4, dtype=torch.float64).repeat(1, 1, 1, 2)
    assert torch.autograd.gradcheck(lambda given: rotated(given, angles.cos(), angles.sin()), (x,))
    turned = rotated(x, angles.cos(), angles.sin())
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(rotated(turned, angles.cos(), -angles.sin()), x)


def test_what_is_added_to_scores_shows_what_a_mask_does() -> None:
    model = model_of("llama")
    seen = torch.tensor([[True, True, False], [True, False, False]])[:, None, None]
    added = decoding_masks(model, seen, torch.tensor([1, 0]))
    assert added.dtype == torch.float32
    assert torch.equal(added == 0, seen)
    assert torch.equal(added == -torch.inf, ~seen)
