"""Measures of the order of turns: by hand from p and score vectors, and score vectors compared with plain autograd."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from trainer.config import resolve
from trainer.inference.decoders import adapted
from trainer.inference.models import load_model
from trainer.loops.learner.learner import Learner, Marked
from trainer.loops.roles.score_vectors import MeasuredRubric, coordinates, score_vector, summary

PAIR = [MeasuredRubric(0.5, 8.0, torch.tensor([1.0, 2.0])), MeasuredRubric(1.0, 2.0, torch.tensor([2.0, 0.0]))]
SURE = [MeasuredRubric(1.0, 4.0, torch.tensor([3.0, 0.0])), MeasuredRubric(1.0, 4.0, torch.tensor([3.0, 0.0]))]


def test_variances_of_one_pair_by_hand() -> None:
    found = summary([PAIR])
    # p(1-p) is 1/4 and 0; |u_r|^2 is 5 and 4; p u_r is (0.5, 1) and (2, 0), mean (1.25, 0.5)
    assert found["variance/judge"] == pytest.approx(0.25 * 8 / 2)
    assert found["variance/noise"] == pytest.approx(0.25 * 5 / 2)
    assert found["variance/inconsistency"] == pytest.approx(0.75**2 + 0.5**2)
    assert found["variance/writer"] == pytest.approx(0.625 + 0.8125)
    assert found["variance/log_ratio"] == pytest.approx(math.log10(1.4375))
    c1 = 0.8125 / ((1.25 + 4) / 2)
    assert found["variance/c1"] == pytest.approx(c1) and found["variance/p"] == 0.75
    assert found["variance/writer_norm"] == pytest.approx(math.sqrt(4.5))
    assert found["variance/judge_norm"] == pytest.approx(math.sqrt(5))
    assert found["variance/norm_ratio"] == pytest.approx(math.sqrt(4.5 / 5))
    assert found["variance/norm_bound"] == pytest.approx(math.sqrt(0.25 / (0.25 + c1 * 0.75)))
    assert found["variance/norm_margin"] == pytest.approx(found["variance/norm_ratio"] - found["variance/norm_bound"])


def test_pairs_are_averaged_and_what_is_undefined_is_left_out() -> None:
    both = summary([PAIR, SURE])
    assert both["variance/writer"] == pytest.approx(1.4375 / 2) and both["variance/judge"] == pytest.approx(0.5)
    sure = summary([SURE])
    assert sure["variance/writer"] == sure["variance/judge"] == pytest.approx(0, abs=1e-9)
    assert not {"variance/log_ratio", "variance/norm_bound"} & sure.keys()
    wrong = summary([[MeasuredRubric(0.0, 1.0, torch.ones(2))] * 2])
    assert "variance/c1" not in wrong and wrong["variance/p"] == 0
    assert summary([]) == {}


def test_coordinates_keep_lengths_and_angles() -> None:
    rows = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    found = coordinates(list(rows))
    assert found.shape == (4, 4) and found @ found.T == pytest.approx((rows @ rows.T).numpy(), rel=1e-4, abs=1e-4)


ROW = Marked.response((5, 6, 7), (8, 9, 10, 11))


def learner_of(tiny_dir: Path, lora: Any) -> Learner:
    config = resolve("alternating", {"model": {"lora": lora}, "objective": {"kl_beta": 0.0}})
    return Learner(load_model(tiny_dir, "float32"), config)


@pytest.mark.parametrize("rank", [None, 2])
def test_a_score_vector_is_what_autograd_says_of_the_stock_model_and_changes_nothing(
    rank: int | None, tiny_dir: Path
) -> None:
    learner = learner_of(tiny_dir, {"rank": rank} if rank else None)
    if rank:  # adapters begin at 0, where half of their gradients are 0
        with torch.no_grad():
            for parameter in learner.parameters.values():
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) * 0.1)
    before = learner.policy()
    found = score_vector(learner, ROW, 0.7)

    stock = AutoModelForCausalLM.from_pretrained(tiny_dir, dtype=torch.float32).eval()
    if rank:
        settings = LoraConfig(r=rank, lora_alpha=32, target_modules=adapted(stock), task_type="CAUSAL_LM")
        stock = get_peft_model(stock, settings)
    named = dict(stock.named_parameters())
    with torch.no_grad():
        for name, value in before.items():
            named[name].copy_(value)
    logp = torch.log_softmax(stock(input_ids=torch.tensor([ROW.tokens])).logits[0] / 0.7, -1)
    total: Any = sum(logp[place - 1, ROW.tokens[place]] for place in ROW.places)
    grads = torch.autograd.grad(total, [named[name] for name in learner.parameters])
    torch.testing.assert_close(found, torch.cat([grad.flatten() for grad in grads]), rtol=1e-3, atol=1e-3)
    assert found.norm() > 0
    assert all(parameter.grad is None for parameter in learner.parameters.values())
    assert all(torch.equal(before[name], value) for name, value in learner.policy().items())
