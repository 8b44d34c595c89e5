"""The learner: packed passes give each response the same values and gradients as alone."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.loops.learner.learner import Learner, Sequence_

from ..conftest import small_config

PROMPTS = ((3, 5, 8, 13, 21), (3, 5, 8, 14), (60, 61))
SEQUENCES: list[Sequence_] = [
    (PROMPTS[0], (30, 31, 32)),
    (PROMPTS[0], (30, 31, 40, 41, 42)),
    (PROMPTS[0], (50,)),
    (PROMPTS[1], (30, 31, 32)),
    (PROMPTS[2], (70, 71)),
]


@pytest.fixture(scope="module", params=["adapters", "all weights"])
def learner(request: Any, tiny_dir: Path) -> Learner:
    """A model in float64, also inside the norms, which transformers computes in float32 for every dtype.

    Adapters start at 0, so they are moved to values that matter.
    """
    from transformers.models.llama import modeling_llama

    from trainer.inference.models import load_model

    def norm(self: Any, hidden: Tensor) -> Tensor:
        return self.weight * hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    patch = pytest.MonkeyPatch()
    request.addfinalizer(patch.undo)
    patch.setattr(modeling_llama.LlamaRMSNorm, "forward", norm)

    config = small_config(**({} if request.param == "adapters" else {"model": {"lora": None}}))
    made = Learner(load_model(tiny_dir).double(), config)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters.values():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=draw, dtype=parameter.dtype))
    return made


def pulls() -> list[Tensor]:
    draw = torch.Generator().manual_seed(2)
    return [torch.randn(len(response), generator=draw, dtype=torch.float64) for _, response in SEQUENCES]


def gradient(learner: Learner, logps: list[Tensor]) -> dict[str, Tensor]:
    loss = sum(((logp * pull).sum() for logp, pull in zip(logps, pulls(), strict=True)), torch.zeros(()))
    found = torch.autograd.grad(loss, list(learner.parameters.values()))
    return dict(zip(learner.parameters, found, strict=True))


def alone(learner: Learner, sequence: Sequence_) -> Tensor:
    """Written out: one causal pass over one response, with the whole softmax."""
    prompt, response = sequence
    tokens = torch.tensor([prompt + response])
    mask = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()[None, None]
    logits = learner._model(tokens, attention_mask=mask).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits / 0.7, -1).gather(-1, torch.tensor(response)[:, None])[:, 0]


def test_sequences_in_one_pass_do_not_see_each_other(learner: Learner) -> None:
    together = learner.score(SEQUENCES, 0.7)
    apart = [alone(learner, sequence) for sequence in SEQUENCES]
    for mine, expected in zip(together, apart, strict=True):
        torch.testing.assert_close(mine.logp_T, expected, atol=1e-9, rtol=1e-9)
    ours, theirs = gradient(learner, [part.logp_T for part in together]), gradient(learner, apart)
    assert max(float(g.abs().max()) for g in theirs.values()) > 0.1
    for name, expected in theirs.items():
        torch.testing.assert_close(ours[name], expected, atol=1e-9, rtol=1e-9)


def test_recomputed_activations_change_no_bit(tiny_dir: Path) -> None:
    from trainer.inference.models import load_model

    def found(recompute: bool) -> tuple[list[Tensor], dict[str, Tensor], int]:
        config = small_config(model={"lora": None}, optim={"lr": 1e-3, "recompute_activations": recompute})
        learner = Learner(load_model(tiny_dir), config)
        kept = 0

        def keep(tensor: Tensor) -> Tensor:
            nonlocal kept
            kept += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            logps = [part.logp_T for part in learner.score(SEQUENCES, 0.7)]
        return logps, gradient(learner, logps), kept

    (logps, gradients, kept), (again, gradients_again, kept_again) = found(False), found(True)
    assert all(torch.equal(a, b) for a, b in zip(logps, again, strict=True))
    assert all(torch.equal(gradients[name], gradients_again[name]) for name in gradients)
    assert kept_again < kept / 2


def held(learner: Learner) -> int:
    """The number of values in its models, masters and gradients, each counted once."""
    models = [learner.plain] + ([learner._frozen] if learner._frozen is not None else [])
    tensors = [tensor for model in models for tensor in model.parameters()] + list(learner.parameters.values())
    return sum({tensor.data_ptr(): tensor.numel() for tensor in tensors}.values())


@pytest.mark.parametrize(
    ("changes", "copies"),
    [
        ({"model": {"lora": None}}, 1),
        ({"model": {"lora": None}, "objective": {"name": "grpo", "kl_beta": 0.1}}, 2),
        ({"model": {"lora": None, "dtype": "bfloat16"}}, 2),  # the weights and their masters
        ({"objective": {"name": "grpo", "kl_beta": 0.1}}, 1),
    ],
    ids=["all weights", "all weights, KL", "all weights, bfloat16", "adapters, KL"],
)
def test_a_frozen_copy_is_kept_only_where_the_objective_needs_one(
    changes: dict[str, Any], copies: int, tiny_dir: Path
) -> None:
    from trainer.inference.models import load_model

    config = small_config(**changes)
    model = load_model(tiny_dir, config.model.dtype)
    size = sum(parameter.numel() for parameter in model.parameters())
    learner = Learner(model, config)
    adapters = learner.size if config.model.lora else 0
    assert held(learner) == copies * size + adapters
    assert learner.refers == (copies == 2 and config.model.dtype == "float32" or bool(adapters))


def test_in_bfloat16_the_weights_are_the_rounded_masters_after_every_change(tiny_dir: Path) -> None:
    from trainer.inference.models import load_model

    config = small_config(model={"lora": None, "dtype": "bfloat16"}, optim={"lr": 1e-5})
    learner = Learner(load_model(tiny_dir, "bfloat16"), config)
    before = {name: parameter.detach().clone() for name, parameter in learner.parameters.items()}
    learner.begin_update()
    sum(part.logp_T.sum() for part in learner.score(SEQUENCES, 1.0)).backward()
    assert learner.clip(1.0) > 0
    learner.end_update()
    assert all(parameter.dtype == torch.float32 for parameter in learner.parameters.values())
    assert all(not torch.equal(before[name], parameter) for name, parameter in learner.parameters.items())
    for name, weight in learner.merged_weights():
        assert torch.equal(weight, learner.parameters[name].bfloat16())
    with learner.holding(before):
        assert all(torch.equal(weight, before[name].bfloat16()) for name, weight in learner.merged_weights())


def test_adapters_of_a_bfloat16_model_are_float32(tiny_dir: Path) -> None:
    from trainer.inference.models import load_model

    learner = Learner(load_model(tiny_dir, "bfloat16"), small_config(model={"dtype": "bfloat16"}))
    assert {parameter.dtype for parameter in learner.parameters.values()} == {torch.float32}
