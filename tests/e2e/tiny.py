"""A random model of two layers, and helpers that tests of the whole product share."""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.stack import Stack

T = TypeVar("T")
RUN: dict[str, Any] = {
    "seed": 7,
    "data": {"max_prompt_tokens": 64},
    "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 16},
    "optim": {"lr": 1e-3},
    "evaluation": {"every": 4, "max_examples": 4},
    "checkpoint": {"every": 2},
}
"""Settings of a run that is killed and compared with one that is not killed. A test adds the number of steps."""
PATTERNS = {"Has a capital letter": "[A-Z]", "Has a digit": "[0-9]", "Has a vowel": "[aeiou]"}
"""Each criterion is met by some responses of a random model and not by others, so that rewards and scores differ."""


def make_model(stack: Stack) -> Path:
    """The directory of the model, beside the other data of the stack. It is made once."""
    directory = stack.var / "models" / "tiny"
    if (directory / "config.json").is_file():
        return directory
    from trainer.inference.models import make_tiny

    make_tiny(directory)
    return directory


def import_examples(api: httpx.Client, stack: Stack, name: str, examples: Iterable[dict[str, Any]]) -> None:
    """Imports examples like people do, through a worker. Returns when runs can train on the dataset."""
    lines = "".join(json.dumps(example) + "\n" for example in examples)
    response = api.post("datasets/import", data={"name": name}, files={"file": ("examples.jsonl", lines.encode())})
    assert response.status_code == 202, response.text
    address = f"imports/{response.json()['id']}"
    done = eventually(lambda: api.get(address).json(), lambda job: job["state"] not in ("queued", "running"), stack)
    assert done["state"] == "finished", done


def eventually(
    read: Callable[[], T], reached: Callable[[T], bool], stack: Stack, timeout_s: float = 60, every_s: float = 0.3
) -> T:
    """Returns the result of `read` when `reached` holds for it. Raises an AssertionError with the services' logs after `timeout_s`. Looking
    more often would take processor time from the work that the test waits for.
    """
    deadline = time.monotonic() + timeout_s
    while not reached(found := read()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain: {found}\n{stack.logs()}")
        time.sleep(every_s)
    return found
