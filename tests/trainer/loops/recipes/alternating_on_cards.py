"""Runs of `alternating` without adapters on simulated GPUs, in a separate process that knows these devices from then on.

`python -m tests.trainer.loops.recipes.alternating_on_cards DATA MODEL OUT DEVICE...` makes a run for each DEVICE, which has the sampler.
The learner is on `card:0`. The last line of the output says as JSON where the tensors of each run were.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import Tensor

from tests.trainer.cards import cards
from tests.trainer.loops.recipes.test_alternating import config, script
from tests.trainer.running import run
from trainer.inference import models
from trainer.loops.registry import make_stage

THREE_TURNS: dict[str, Any] = {"model": {"lora": None}, "steps": 3, "turn_steps": 1}
"""The first role is set aside with its moments, and comes back to them."""


def places(tensors: Iterable[Tensor | None]) -> list[str]:
    return sorted({str(tensor.device) for tensor in tensors if tensor is not None and tensor.dim()})


def main(data: str, model: str, out: str, *devices: str) -> None:
    script()
    print(json.dumps([ran(Path(data), Path(model), Path(out, device), device) for device in devices]))


def ran(data: Path, model: Path, out: Path, device: str) -> dict[str, Any]:
    made: list[Any] = []

    def make(job: Any) -> Any:
        made.append(make_stage(job))
        return made[0]

    models.best_device, models.second_device = lambda: "card:0", lambda: device
    with cards() as moves:
        done = run(config(**THREE_TURNS), data, model, out, make=make)
    (stage,) = made
    learner, parameters = stage._learner, stage._learner.parameters.values()
    return {
        "done": done,
        "trained": places(parameters),
        "gradients": places(parameter.grad for parameter in parameters),
        "moments": places(learner.optimizer.own_state().values()),
        "reference": places(learner._frozen.parameters()),
        "speaks": places(stage._sampler._model.parameters()),
        "waits": places(tensor for held in stage._roles._waiting.values() for tensor in held.values()),
        "shapes": sorted({tuple(parameter.shape) for parameter in parameters}),
        "moves": [list(move) for move in moves],
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
