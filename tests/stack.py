"""The whole running product, for tests that need it: `manage.py up` on its own folder."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.timeouts import SECONDS
from webapp.localstack.processes import die_with_parent

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_S = 600  # on a machine that is busy with other tests


def _then(first: Callable[[], None], second: Callable[[], None] | None) -> Callable[[], None]:
    def both() -> None:
        first()
        if second is not None:
            second()

    return both


class Stack:
    """Embedded services on free ports. The developer's own database, broker and cluster are not used."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str | None] | None = None,
        var: Path | None = None,
        enter: Callable[[], None] | None = None,
    ) -> None:
        """`env` has variables of this stack; None removes one. `var` is an existing folder. `enter` is called in the new process before it
        becomes the supervisor.
        """
        # short, because sockets have a length limit; open to all, because as root the database runs as another user
        self.var = var or Path(tempfile.mkdtemp(prefix="ts-stack-"))
        self.var.chmod(0o755)
        ours = {"DATABASE_URL", "REDIS_URL", "RAY_ADDRESS", "RAY_TOKEN_FILE", "PUBLIC_URL", "INTERNAL_URL"}
        self.env = {name: value for name, value in os.environ.items() if name not in ours}
        self.env |= {"TOUCHSTONE_VAR": str(self.var), "OMP_NUM_THREADS": "1", "MAX_RUNNING_RUNS": "4"}
        # judges and receivers of tests answer on this machine
        self.env |= {"ENDPOINT_NETWORKS": "127.0.0.0/8", "WEBHOOK_NETWORKS": "127.0.0.0/8"}
        self.env |= {name: value for name, value in (env or {}).items() if value is not None}
        for name in (name for name, value in (env or {}).items() if value is None):
            self.env.pop(name, None)
        self.tokens: dict[str, str] = {}
        self.cookies: list[Any] = []  # the state of a browser in which the demo's owner has signed in
        self.output = self.var / "up.out"
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", *arguments],
                cwd=ROOT,
                env=self.env,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_then(die_with_parent(signal.SIGTERM, os.getpid()), enter),
            )

    def wait_for(self, *lines: str, timeout_s: float = START_TIMEOUT_S) -> None:
        """Waits until every text is in the output, for example `wait_for("web       running")`."""
        deadline = time.monotonic() + timeout_s
        while not all(line in self.output.read_text() for line in lines):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the stack did not come up:\n{self.output.read_text()}\n{self.logs()}")
            time.sleep(0.1)

    def wait_until_up(self) -> None:
        names = ("postgres", "redis", "ray", "celery", "beat", "web")
        self.wait_for(*(f"{name:<10}running" for name in names))

    @property
    def url(self) -> str:
        from webapp.machine.places import facts

        return facts(self.var, "web")["local"]

    def manage(self, *arguments: str) -> str:
        """Runs `manage.py ...` beside the stack, and returns what it prints."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def api(self, email: str = "demo@localhost") -> httpx.Client:
        """A client of the API with this person's token; paths are below /api/v1/. Each command loads the whole product, so all tests share
        a token.
        """
        if email not in self.tokens:
            self.manage("demo", "--link")
            self.tokens[email] = self.manage("token", email)
        headers = {"Authorization": f"Bearer {self.tokens[email]}"}
        return httpx.Client(base_url=f"{self.url}/api/v1/", headers=headers, timeout=SECONDS, trust_env=False)

    def programs(self) -> list[str]:
        """The command lines of all its processes."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.Error):  # it has ended meanwhile
                found.append(" ".join(process.cmdline()))
        return found

    def logs(self, size: int = 2000) -> str:
        return "\n".join(f"--- {log.name}\n{log.read_text()[-size:]}" for log in sorted(self.var.glob("log/*.log")))

    def stop(self, keep: bool = False) -> int:
        """Ends the stack like Ctrl-C, and returns the exit code. `keep` leaves the data for another start."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(2 * SECONDS)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            if not keep:
                shutil.rmtree(self.var, ignore_errors=True)
        return code
