"""Products by oneDNN have the same numbers as torch's own, for the weights at that moment."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trainer.inference import local
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_tokenizer
from trainer.inference.products import computes_bfloat16, laid_out, product, suits
from trainer.inference.sampling import SampleRequest

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", [1, 5, 33])
def test_products_are_those_of_float64_to_seven_digits(rows: int) -> None:
    x, weight, bias = drawn(rows, 256, seed=1), drawn(320, 256), drawn(320, seed=2)
    assert suits(weight)
    for mine, expected in (
        (product(x, weight, bias), x.double() @ weight.double().T + bias.double()),
        (product(product(x, weight), weight.T), x.double() @ weight.double().T @ weight.double()),
        (
            product(drawn(2 * rows, 512)[::2, :256], weight),
            drawn(2 * rows, 512)[::2, :256].double() @ weight.double().T,
        ),
    ):
        torch.testing.assert_close(mine.double(), expected, atol=2e-6 * float(expected.abs().max()), rtol=0)


def test_small_matrices_and_other_precisions_stay_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.inference.products._by_onednn", None)
    for weight in (drawn(64, 64), drawn(512, 512).double(), drawn(512, 512).bfloat16()):
        x = torch.ones(3, weight.shape[1], dtype=weight.dtype)
        assert torch.equal(product(x, weight), nn.functional.linear(x, weight))


def test_layers_have_their_own_weights_again_afterwards() -> None:
    layers: Any = nn.Sequential(nn.Linear(256, 512), nn.Linear(512, 256, bias=False), nn.Linear(256, 8))
    x = drawn(7, 256)
    with torch.no_grad():
        expected = layers(x)
        with pytest.raises(KeyError), laid_out(layers, 7):
            assert [("forward" in vars(layer)) for layer in layers] == [True, True, False]
            for rows in (7, 3):
                torch.testing.assert_close(layers(x[:rows]), expected[:rows], atol=1e-6, rtol=1e-5)
            layers[0].weight.zero_()
            assert not torch.allclose(layers[0](x), layers[0].bias.expand(7, -1)), "it multiplies by the copy"
            raise KeyError
        assert torch.equal(layers[0](x), layers[0].bias.expand(7, -1))


@pytest.mark.parametrize("computes", [True, False])
def test_bfloat16_is_laid_out_where_the_processor_computes_in_it_and_gives_the_same(
    computes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if computes and not computes_bfloat16():
        pytest.skip("this processor does not compute in bfloat16")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": computes})
    layers = nn.Sequential(nn.Linear(256, 512), nn.Linear(512, 256, bias=False)).bfloat16()
    with torch.no_grad():
        for rows in (1, 7, 32, 500):
            x = drawn(rows, 256).bfloat16()
            expected = layers(x)
            with laid_out(layers, rows):
                assert ["forward" in vars(layer) for layer in layers] == [computes, computes]
                torch.testing.assert_close(layers(x), expected)


@pytest.fixture
def sampler(tiny_dir: Path) -> LocalSampler:
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer: Any = load_tokenizer(tiny_dir)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.1,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LocalSampler(LlamaForCausalLM(config), tokenizer)


def test_a_sampler_draws_the_same_by_laid_out_weights_and_by_those_of_each_push(
    sampler: LocalSampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [SampleRequest((5, 6 + n % 3), 20 if n else 3, temperature=1.0, seed=n) for n in range(9)]
    name = "model.layers.1.mlp.up_proj.weight"
    told: list[int] = []
    for version in range(2):
        sampler.load_weights([(name, drawn(512, 256, seed=version) * 0.1)], version)
        with monkeypatch.context() as changed:
            changed.setattr(local, "laid_out", lambda model, rows: told.append(rows) or laid_out(model, rows))
            found = sampler.sample(requests)
        with monkeypatch.context() as changed:
            changed.setattr(local, "FEWEST_ROWS", 100)
            expected = sampler.sample(requests)
        assert [result.tokens for result in found] == [result.tokens for result in expected]
        for mine, other in zip(found, expected, strict=True):
            assert mine.logprobs == pytest.approx(other.logprobs, abs=2e-5)
    assert told == [9, 9]


def test_few_responses_and_short_ones_are_not_worth_it(sampler: LocalSampler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "laid_out", None)
    assert len(sampler.sample([SampleRequest((5,), 20, seed=n) for n in range(2)])) == 2
    assert len(sampler.sample([SampleRequest((5,), 2, seed=n) for n in range(9)])) == 9
