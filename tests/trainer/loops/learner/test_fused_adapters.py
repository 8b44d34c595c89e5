"""Adapters that are added by the product of the layer give peft's numbers, and the plain model's numbers while they are off."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.inference.models import load_model
from trainer.inference.products import suits
from trainer.loops.learner.fused_adapters import fuse


@pytest.fixture
def stock(tiny_dir: Path) -> Any:
    """A model in float64, with moved adapters, because their second matrix begins at 0."""
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(r=4, lora_alpha=12.0, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")  # type: ignore[arg-type]
    model = get_peft_model(load_model(tiny_dir).double(), settings).double().eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=draw, dtype=torch.float64))
    return model


def logits_and_gradients(model: Any) -> list[Tensor]:
    logits = model(torch.tensor([[3, 5, 8, 13, 21]])).logits
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [logits.detach(), *torch.autograd.grad(logits.square().mean(), trained)]


def without_peft(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, a fused layer fails if it calls peft."""
    monkeypatch.setattr("peft.tuners.lora.Linear.forward", None)


def test_values_and_gradients_are_pefts(stock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = deepcopy(stock)
    expected = logits_and_gradients(stock)
    without_peft(monkeypatch)
    fuse(ours)
    assert max(float(gradient.abs().max()) for gradient in expected[1:]) > 1e-3
    for mine, other in zip(logits_and_gradients(ours), expected, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-9, rtol=1e-6)


def test_switched_off_they_change_no_bit(stock: Any, tiny_dir: Path) -> None:
    fuse(stock)
    tokens = torch.tensor([[3, 5, 8, 13, 21]])
    with torch.no_grad(), stock.disable_adapter():
        assert torch.equal(stock(tokens).logits, load_model(tiny_dir).double()(tokens).logits)


def test_in_bfloat16_it_is_as_close_to_float64_as_peft_is(tiny_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adapters in float32 on a model in bfloat16: log-probabilities, and the gradients of all adapters, which are rounded once more than
    peft's. The adapters add about a tenth to the output of the layers.
    """
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(
        r=4,
        lora_alpha=1.2,  # type: ignore[arg-type]
        target_modules="all-linear",
        task_type="CAUSAL_LM",
        init_lora_weights=False,
    )
    torch.manual_seed(0)
    stock = get_peft_model(load_model(tiny_dir, "bfloat16"), settings).eval()
    ours, exact = deepcopy(stock), deepcopy(stock).double()
    tokens = torch.randint(3, 200, (16, 64))

    def found(model: Any) -> tuple[Tensor, Tensor]:
        logits = model(tokens).logits
        logp = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
        logp = logp[:, :-1].gather(-1, tokens[:, 1:, None])
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(logp.mean(), trained)
        assert all(gradient.dtype == weight.dtype for gradient, weight in zip(gradients, trained, strict=True))
        return logp.detach().flatten().double(), torch.cat([gradient.flatten().double() for gradient in gradients])

    expected, pefts = found(exact), found(stock)
    assert next(weight for name, weight in ours.named_parameters() if "lora_A" in name).dtype == torch.float32
    without_peft(monkeypatch)
    fuse(ours)
    for mine, other, right in zip(found(ours), pefts, expected, strict=True):
        assert 0 < float((mine - right).norm()) < 1.1 * float((other - right).norm()) < 0.1 * float(right.norm())


def test_adapters_narrower_than_their_layer_are_computed_as_peft_does(stock: Any) -> None:
    for name, parameter in stock.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.bfloat16()
    ours, tokens = deepcopy(stock), torch.tensor([[3, 5, 8]])
    fuse(ours)
    with torch.no_grad():
        assert torch.equal(ours(tokens).logits, stock(tokens).logits)


def test_wide_layers_in_float32_have_the_values_and_gradients_of_float64() -> None:
    """A layer that is wide enough for oneDNN, with a bias, and with an input through which the gradient flows."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(256, 320), torch.nn.SiLU(), torch.nn.Linear(320, 256))
    settings = LoraConfig(r=4, lora_alpha=12.0, target_modules=["0", "2"], init_lora_weights=False)  # type: ignore[arg-type]
    wide: Any = get_peft_model(plain, settings)
    exact = deepcopy(wide).double()
    fuse(wide)
    x = torch.randn(5, 3, 256)

    def found(model: Any, given: Tensor) -> list[Tensor]:
        given = given.clone().requires_grad_()
        out = model(given)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return [out.detach(), *torch.autograd.grad(out.square().mean(), [given, *trained])]

    assert suits(wide.base_model.model[0].base_layer.weight)
    for mine, expected in zip(found(wide, x), found(exact, x.double()), strict=True):
        assert float(expected.abs().max()) > 0
        torch.testing.assert_close(mine.double(), expected, atol=2e-6 * float(expected.abs().max()), rtol=1e-4)


def test_beside_the_untrained_model_there_is_nothing_but_the_adapters() -> None:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    settings = LoraConfig(r=4, target_modules=["0"])  # the second matrix is 0 at first
    wide: Any = get_peft_model(torch.nn.Sequential(torch.nn.Linear(256, 320)), settings)
    fuse(wide)
    x = torch.randn(5, 256)
    with torch.no_grad():
        trained = wide(x)
        with wide.disable_adapter():
            assert torch.equal(wide(x), trained)
