"""`python -m tests.webapp.inference.serving.lazy_server`: `python -m trainer model-server`, which loads its model once somebody waits for it."""

import sys
import time
from collections.abc import Callable
from typing import Any

from trainer.serving import command
from trainer.serving.server import Server


class LazyServer(Server):
    def serve(self, load: Callable[[], Any]) -> None:
        def later() -> Any:
            while self._came.empty():
                time.sleep(0.01)
            return load()

        super().serve(later)


if __name__ == "__main__":
    setattr(command, "Server", LazyServer)  # noqa: B010 - it only imports the name
    sys.exit(command.main(sys.argv[1:]))
