"""The memory of two roles in one model, beside the model itself, is what the forecast of memory counts."""

from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from trainer.config import resolve
from trainer.inference.models import load_model, make_tiny
from trainer.loops.learner.learner import Learner
from trainer.loops.roles.two_roles import TwoRoles
from trainer.memory.forecast import forecast
from trainer.memory.shape import ModelShape


def bytes_of(*held: dict[str, Tensor]) -> int:
    return sum(
        tensor.nbytes for tensors in held for tensor in tensors.values() if tensor.dim()
    )  # without counts of steps


@pytest.mark.parametrize("lora", [None, {"rank": 4}])
def test_the_role_that_waits_and_the_ends_of_the_warm_up_take_what_is_forecast(tmp_path: Path, lora: Any) -> None:
    make_tiny(tmp_path / "model")
    raw = {"steps": 8, "model": {"lora": lora}, "objective": {"kl_beta": 0.1}}
    config: Any = resolve("alternating", raw | {"warmup": {"judge_steps": 1, "writer_steps": 1}})
    model = load_model(tmp_path / "model")
    learner = Learner(model, config.turn("judge"))
    roles = TwoRoles(config.turn("judge"), learner, cast(Any, None))
    roles.begin_turns()
    for parameter in learner.parameters.values():
        parameter.grad = torch.ones_like(parameter)
    learner.optimizer.step()
    roles.train("writer")
    shape = ModelShape.of(model.config.to_dict())
    (process,) = forecast(config, shape, None).processes
    told = {part.label: part.bytes for part in process.parts}
    assert bytes_of(*roles._waiting.values()) == told["Who waits"]
    assert bytes_of(*roles._began.values()) == told["Ends of the warm-up"]
