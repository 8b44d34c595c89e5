"""The program of Ray's workers, in a process that was forked from one that has loaded torch. Ray adds the path of
its own program, and the arguments of that program.
"""

import runpy
import shlex
import sys
from typing import Any

from tests import fork_server


def forked_runtime_env() -> dict[str, Any]:
    """The `runtime_env` with which Ray forks its workers."""
    return {"py_executable": shlex.join(fork_server.command(__name__))}


if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
