"""Which optimiser moves which weights. Both come back from a checkpoint."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trainer import checkpoints
from trainer.config.sections.common import Optim
from trainer.loops.learner.master_weights import Masters
from trainer.loops.learner.optimizers import Optimizers


def parameters() -> dict[str, nn.Parameter]:
    draw = torch.Generator().manual_seed(0)
    shapes = {"model.embed_tokens.weight": (7, 4), "model.layers.0.mlp.up.weight": (6, 4), "model.norm.weight": (4,)}
    return {name: nn.Parameter(torch.randn(shape, generator=draw)) for name, shape in shapes.items()}


def step(of: dict[str, nn.Parameter], optimizer: Optimizers, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    for parameter in of.values():
        parameter.grad = torch.randn(parameter.shape, generator=draw)
    optimizer.step()


def test_muon_has_the_matrices_of_the_layers_and_adamw_the_rest() -> None:
    mine = parameters()
    optimizer = Optimizers(mine, Optim(optimizer="muon"))
    step(mine, optimizer, 1)
    keys = {name: {key.partition(":")[0] for key in optimizer.state_tensors() if key.endswith(name)} for name in mine}
    adamw = {"exp_avg", "exp_avg_sq", "step"}
    assert keys == {
        "model.embed_tokens.weight": adamw,
        "model.layers.0.mlp.up.weight": {"momentum_buffer"},
        "model.norm.weight": adamw,
    }


def test_a_muon_step_is_as_orthogonal_as_its_iteration_makes_it_and_of_the_size_of_adamw() -> None:
    mine = parameters()
    before = mine["model.layers.0.mlp.up.weight"].detach().clone()
    step(mine, Optimizers(mine, Optim(optimizer="muon", lr=0.1)), 1)
    moved = before - mine["model.layers.0.mlp.up.weight"].detach()
    singular = torch.linalg.svdvals(moved) / (0.1 * 0.2 * 6**0.5)  # lr x 0.2 sqrt(longer side)
    assert float(singular.min()) > 0.5 and float(singular.max()) < 1.3


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_training_goes_on_from_a_checkpoint_as_if_nothing_had_been(name: Any, tmp_path: Path) -> None:
    whole, config = parameters(), Optim(optimizer=name)
    optimizer = Optimizers(whole, config)
    step(whole, optimizer, 1)
    tensors: dict[str, Any] = {"policy": dict(whole), "optimizer": optimizer.state_tensors()}
    saved = checkpoints.save(tmp_path, checkpoints.Checkpoint(1, {}, tensors), keep=1)
    step(whole, optimizer, 2)
    loaded = checkpoints.load(tmp_path / saved.name).tensors
    again = {key: nn.Parameter(value) for key, value in loaded["policy"].items()}
    resumed = Optimizers(again, config)
    resumed.load_state_tensors(loaded["optimizer"])
    step(again, resumed, 2)
    assert all(torch.equal(whole[key], again[key]) for key in whole)


@pytest.mark.parametrize(("decay", "shrunk"), [("matrices", 1.0), ("all", 0.95)])
def test_norms_and_biases_are_shrunk_only_where_a_run_says_so(decay: Any, shrunk: float) -> None:
    """Without a gradient, one AdamW step multiplies a weight by 1 - lr x decay = 1 - 0.1 x 0.5, and does nothing else."""
    mine = parameters()
    before = {name: parameter.detach().clone() for name, parameter in mine.items()}
    for parameter in mine.values():
        parameter.grad = torch.zeros_like(parameter)
    Optimizers(mine, Optim(lr=0.1, weight_decay=0.5, decay=decay)).step()
    torch.testing.assert_close(mine["model.norm.weight"], before["model.norm.weight"] * shrunk)
    torch.testing.assert_close(mine["model.embed_tokens.weight"], before["model.embed_tokens.weight"] * 0.95)


@pytest.mark.parametrize("pair", [("adamw", "muon"), ("muon", "adamw")])
def test_the_state_of_another_optimiser_is_refused(pair: Any) -> None:
    mine = parameters()
    written, read = (Optimizers(mine, Optim(optimizer=name)) for name in pair)
    step(mine, written, 1)
    with pytest.raises(ValueError, match="written with another optim.optimizer"):
        read.load_state_tensors(written.state_tensors())


def test_small_updates_of_a_bfloat16_weight_add_up() -> None:
    """256 steps of 1/1024, starting at 1. Each step alone is rounded away in bfloat16."""
    weight = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    masters = Masters({"w": weight})
    for _ in range(256):
        with torch.no_grad():
            masters.parameters["w"].add_(1 / 1024)
        masters.publish()
    assert weight.tolist() == [1.25] * 3


def test_gradients_of_all_passes_are_added_up_in_float32() -> None:
    weight = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    masters = Masters({"w": weight})
    for pull in (1.0, 1 / 512, 1 / 512):  # in bfloat16 the sum would stay at 1
        (weight * pull).sum().backward()
    assert weight.grad is None
    gradient = masters.parameters["w"].grad
    assert isinstance(gradient, Tensor) and gradient.tolist() == [1 + 2 / 512] * 2
    masters.drop_gradients()
    masters.complete_gradients()
    assert masters.parameters["w"].grad.tolist() == [0.0, 0.0]


def test_a_float32_weight_is_its_own_master() -> None:
    weight = nn.Parameter(torch.ones(2))
    assert Masters({"w": weight}).parameters["w"] is weight


def test_adamw_is_fused_and_moves_weights_as_its_formula_says() -> None:
    """Loshchilov & Hutter (2019), with two steps written out. The norm is not shrunk."""
    mine, config = parameters(), Optim(lr=0.01, weight_decay=0.1, beta1=0.8, beta2=0.9)
    optimizer = Optimizers(mine, config)
    expected = {name: parameter.detach().clone() for name, parameter in mine.items()}
    first, second = ({name: torch.zeros_like(value) for name, value in expected.items()} for _ in range(2))
    for number in (1, 2):
        step(mine, optimizer, number)
        for name, value in expected.items():
            slope = mine[name].grad
            first[name].mul_(0.8).add_(0.2 * slope)
            second[name].mul_(0.9).add_(0.1 * slope**2)
            shrunk = value * (1 - 0.01 * 0.1) if value.ndim > 1 else value
            away = (first[name] / (1 - 0.8**number)) / ((second[name] / (1 - 0.9**number)).sqrt() + 1e-8)
            expected[name] = shrunk - 0.01 * away
    assert all(group["fused"] for part in optimizer._parts for group in part.param_groups)
    for name, value in expected.items():
        torch.testing.assert_close(mine[name].detach(), value, atol=1e-6, rtol=1e-6)
