"""Steps of training, each in a separate process: `python -m tests.trainer.memory.step TOKENS CONFIG...`.

CONFIG is the config of an sft run as JSON. Prints for each the difference between the most memory that its process had during a step and
the memory that it had before, in bytes. The processes are forks, so that libraries are imported once. The parent computes nothing.

Pages of files do not count. They are the code of libraries that the step uses first. The kernel maps as much around each such place as it
happens to have read already: tens of MB, and more after a new installation.
"""

import gc
import json
import os
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
    before, files = resident("VmRSS"), resident("RssFile")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest value so far
    learner = Learner(AutoModelForCausalLM.from_config(wanted), config, reference=False)
    row = Marked(tuple(i % 7999 for i in range(tokens + 1)), range(1, tokens + 1))
    short = Marked(row.tokens[:9], range(1, 9))
    for passes in ([short], [short, row]):  # the first update makes the optimiser's moments, for any data
        learner.begin_update()
        for each in passes:  # the gradients of the first exist while the second keeps its activations
            learner.measure([each])[0].logp_T.mean().neg().backward()
        learner.clip(1.0)
        learner.end_update()
    return resident("VmHWM") - before - (resident("RssFile") - files)


def main(tokens: str, *configs: str) -> None:
    for each in configs:
        child = os.fork()
        if child == 0:
            _one(json.loads(each), int(tokens))
        if os.waitpid(child, 0)[1]:
            raise SystemExit(1)


def _one(raw: dict[str, Any], tokens: int) -> None:
    ended = 1
    try:
        print(a_step(resolve("sft", raw), tokens), flush=True)
        ended = 0
    finally:
        os._exit(ended)  # a fork must not run the exit handlers of its parent


if __name__ == "__main__":
    main(*sys.argv[1:])
