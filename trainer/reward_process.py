"""The child process of a reward function: `python -m trainer.reward_process NAME`, JSON Lines on pipes; and which functions are allowed.

The first line says that the function was imported. Then there is one line for each group of responses. This module imports nothing of the
trainer, which would take the child a second.
"""

import json
import os
import sys
from importlib.metadata import entry_points
from typing import Any, TextIO

GROUP = "touchstone.rewards"
ALLOWED = "TOUCHSTONE_REWARD_FUNCTIONS"


def allowed() -> tuple[str, ...]:
    """The names that the operator has allowed, separated by commas in the environment."""
    return tuple(name.strip() for name in os.environ.get(ALLOWED, "").split(",") if name.strip())


def problem(name: str) -> str:
    """The reason why this function cannot be used; empty if it can. Nothing of the package is imported."""
    if name not in allowed():
        return f"the reward function {name!r} is not allowed here: name it in {ALLOWED}"
    if not entry_points(group=GROUP, name=name):
        return f"no installed package has an entry point {name!r} in the group {GROUP}"
    return ""


def main(name: str) -> int:
    # Output of the function must not get among the answers: stdout becomes stderr for all code but this.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if refused := problem(name):
        return _say(out, {"problem": refused}, 1)
    try:
        (entry,) = entry_points(group=GROUP, name=name)
        function = entry.load()
    except Exception as error:
        return _say(out, {"problem": f"cannot be imported: {type(error).__name__}: {error}"}, 1)
    _say(out, {"answer": None})
    for line in sys.stdin:
        _say(out, _answered(function, json.loads(line)))
    return 0


def _answered(function: Any, responses: list[Any]) -> dict[str, Any]:
    try:
        found = {"answer": function(responses)}
        json.dumps(found)  # JSON cannot write numbers of other libraries
        return found
    except Exception as error:
        return {"problem": f"{type(error).__name__}: {error}"}


def _say(out: TextIO, told: dict[str, Any], status: int = 0) -> int:
    out.write(json.dumps(told) + "\n")
    out.flush()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
