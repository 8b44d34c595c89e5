"""A step of training in a separate process: `python -m tests.trainer.memory.step CONFIG TOKENS`.

CONFIG is the config of an sft run as JSON. Prints the difference between the most memory that the process had during a step and the memory
that it had before, in bytes.
"""

import gc
import json
import sys
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoModelForCausalLM

from tests.trainer.memory.shapes import MIDDLE
from trainer.config import resolve
from trainer.loops.learner.learner import Learner, Marked


def resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def a_step(config: Any, tokens: int) -> int:
    """The difference between the most memory that this process had during a step and the memory that it had before, in bytes."""
    wanted = AutoConfig.for_model("llama", **{key: value for key, value in MIDDLE.items() if key != "model_type"})
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest value so far
    learner = Learner(AutoModelForCausalLM.from_config(wanted), config, reference=False)
    row = Marked(tuple(i % 7999 for i in range(tokens + 1)), range(1, tokens + 1))
    short = Marked(row.tokens[:9], range(1, 9))
    for passes in ([short], [row, row]):  # the first update makes the optimiser's moments, for any data
        learner.begin_update()
        for each in passes:  # the gradients of the first pass exist while the second keeps its activations
            learner.measure([each])[0].logp_T.mean().neg().backward()
        learner.clip(1.0)
        learner.end_update()
    return resident("VmHWM") - before


if __name__ == "__main__":
    print(a_step(resolve("sft", json.loads(sys.argv[1])), int(sys.argv[2])))
