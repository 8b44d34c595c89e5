"""Keeps what a run logs on disk before it is sent, so that nothing is lost if the server is away or the program dies.

A spool is a file of JSON lines in one folder. A thread sends the lines in their order, and notes after each how far it is. The server
stores a line that is sent twice only once.
"""

import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote
from uuid import uuid4

from .http import TOKEN_REFUSED, ApiError, Away
from .server import Server

logger = logging.getLogger("touchstone.wandb")
TRACKING = "/mlflow/api/2.0/mlflow/"
FILES = "/mlflow/api/2.0/mlflow-artifacts/artifacts"
AT_ONCE = 900  # metrics of one request
PAUSE_S = 0.5


def home() -> Path:
    """The folder of spools: TOUCHSTONE_SPOOL, or a folder of this user."""
    told = os.environ.get("TOUCHSTONE_SPOOL")
    return Path(told) if told else Path.home() / ".local" / "share" / "touchstone" / "spool"


class Spool:
    """Lines `{"do": ..., ...}` of one run; `sent` is the number of those that the server has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines, self.mark = folder / "lines.jsonl", folder / "sent.json"
        self._lock = threading.Lock()
        self._held: IO[str] | None = None

    @classmethod
    def new(cls, name: str | None = None) -> "Spool":
        folder = home() / (name or uuid4().hex)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    def add(self, do: str, **said: Any) -> None:
        line = json.dumps({"do": do, **said}, default=str) + "\n"
        with self._lock, self.lines.open("a", encoding="utf-8") as out:
            out.write(line)
            out.flush()

    def state(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.mark.read_text())
        except (OSError, ValueError):
            return {"sent": 0}
        return found

    def note(self, state: dict[str, Any]) -> None:
        partial = self.mark.with_suffix(".partial")
        partial.write_text(json.dumps(state))
        os.replace(partial, self.mark)

    def after(self, sent: int) -> list[dict[str, Any]]:
        """The complete lines that are not sent. A line that a dying program left half-written does not count."""
        if not self.lines.exists():
            return []
        whole = self.lines.read_bytes().split(b"\n")[:-1]
        found = list[dict[str, Any]]()
        for line in whole[sent:]:
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"do": "nothing"})
        return found

    def take(self) -> bool:
        """Whether this process may send the spool. Only one process at a time may, until it ends."""
        self._held = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            return False
        return True

    def release(self) -> None:
        if self._held:
            self._held.close()
            self._held = None

    @property
    def ended(self) -> bool:
        """Whether its program came to its end. A program that died may continue with the run."""
        lines = self.after(0)
        return bool(lines) and lines[-1]["do"] == "end"

    def done(self) -> None:
        """Removes the folder, once the server has everything."""
        for file in sorted(self.folder.rglob("*"), reverse=True):
            with suppress(OSError):
                file.rmdir() if file.is_dir() else file.unlink()
        with suppress(OSError):
            self.folder.rmdir()


class Sender:
    """Sends a spool. `left` counts the lines that are not sent, `problem` says why, and `refused` lists what the server refused."""

    def __init__(self, server: Server, spool: Spool) -> None:
        self.server, self.spool = server, spool
        self.problem, self.refused = "", list[str]()

    @property
    def run(self) -> str | None:
        return self.spool.state().get("run")

    def send(self) -> int:
        """Sends the waiting lines, and returns how many still wait. If it is above 0, the server was away, and `problem` says why."""
        state = self.spool.state()
        waiting = self.spool.after(state["sent"])
        try:
            for count, request in _requests(waiting):
                self._carry_out(request, state)
                state["sent"] += count
                self.spool.note(state)
        except (
            Away,
            OSError,
            ValueError,
        ) as error:  # of an answer that is not JSON, or of files that cannot be read now
            self.problem = str(error)
            return len(self.spool.after(state["sent"]))
        self.problem = ""
        return 0

    def _carry_out(self, request: dict[str, Any], state: dict[str, Any]) -> None:
        """Sends a request. A refused request would be refused for ever, so the refusal is noted and the next request is sent."""
        try:
            if request["do"] == "begin":
                state.update(self.begin(request))
            elif "run" not in state:
                self.refused.append("nothing was begun")
            elif request["do"] == "batch":
                self.post("runs/log-batch", {"run_id": state["run"], **request["body"]})
            elif request["do"] == "file":
                self._file(request, state)
            elif request["do"] == "end":
                self.post("runs/update", {"run_id": state["run"], **request["body"]})
        except ApiError as error:
            if error.status == 401:
                raise Away(TOKEN_REFUSED) from error  # another token may send it later
            if error.code == "PERMISSION_DENIED":  # likewise, or the same token when its person has the right
                raise Away(str(error)) from error
            if (
                error.code == "error" or error.status >= 500
            ):  # not the words of our server, or its mistake: the values stay here
                raise Away(f"{self.server.address} answers {error.status}: {error}") from error
            self.refused.append(str(error))

    def begin(self, request: dict[str, Any]) -> dict[str, Any]:
        if known := request.get("run"):
            told = self.server.ask("GET", f"{TRACKING}runs/get", params={"run_id": known}).json()["run"]["info"]
            self.post("runs/update", {"run_id": known, "status": "RUNNING"})
        else:
            experiment = self._experiment(request["experiment"])
            body = {
                "experiment_id": experiment,
                "run_name": request["name"],
                "start_time": request["at"],
                "tags": request["tags"],
            }
            told = self.post("runs/create", body, key=request["key"])["run"]["info"]
        return {"run": told["run_id"], "experiment": told["experiment_id"]}

    def _experiment(self, name: str) -> str:
        try:
            made: str = self.post("experiments/create", {"name": name})["experiment_id"]
            return made
        except ApiError as error:
            if error.code != "RESOURCE_ALREADY_EXISTS":
                raise
        found = self.server.ask("GET", f"{TRACKING}experiments/get-by-name", params={"experiment_name": name}).json()
        return str(found["experiment"]["experiment_id"])

    def _file(self, request: dict[str, Any], state: dict[str, Any]) -> None:
        content = (self.spool.folder / request["kept"]).read_bytes()
        path = quote(request["path"], safe="/")
        self.server.ask("PUT", f"{FILES}/{state['experiment']}/{state['run']}/artifacts/{path}", content=content)

    def post(self, what: str, body: dict[str, Any], key: str | None = None) -> Any:
        """All requests of the protocol but the creation of a run, which has a key, do the same if they arrive twice."""
        return self.server.ask("POST", TRACKING + what, key=key, again=True, json=body).json()


def _requests(lines: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines as requests, each with the number of its lines. Metrics that follow one another are sent together."""
    held, count = list[dict[str, Any]](), 0
    for line in lines:
        if line["do"] == "metrics" and (not held or len(held) + len(line["metrics"]) <= AT_ONCE):
            held, count = held + line["metrics"], count + 1
            continue
        if count:
            yield count, {"do": "batch", "body": {"metrics": held}}
        held, count = (list(line["metrics"]), 1) if line["do"] == "metrics" else ([], 0)
        if not count:
            yield 1, line
    if count:
        yield count, {"do": "batch", "body": {"metrics": held}}


class Background(threading.Thread):
    """Sends a spool in a thread beside the program, until `close`."""

    def __init__(self, sender: Sender) -> None:
        super().__init__(daemon=True, name="touchstone")
        self.sender, self._closing = sender, threading.Event()

    def run(self) -> None:
        told = ""
        while not self._closing.wait(PAUSE_S):
            self.sender.send()
            if self.sender.problem and self.sender.problem != told:
                told = self.sender.problem
                logger.warning("nothing is sent now, everything waits in %s: %s", self.sender.spool.folder, told)

    def close(self, within_s: float) -> int:
        """Waits for the request that is under way, and sends the rest. Returns the number of lines that the server does not have."""
        self._closing.set()
        self.join(within_s)
        if self.is_alive():
            return len(self.sender.spool.after(self.sender.spool.state()["sent"]))
        return self.sender.send()


def send_kept(server: Server) -> Iterator[tuple[str, int, list[str]]]:
    """Sends the spools of programs that have ended: (name, lines that still wait, what was refused)."""
    for folder in sorted(home().glob("*")) if home().exists() else ():
        if not (folder / "lines.jsonl").exists():
            continue
        sender = Sender(server, Spool(folder))
        if not sender.spool.take():  # its program is running
            continue
        left = sender.send()
        if not left and sender.spool.ended:
            sender.spool.done()
        sender.spool.release()
        yield folder.name, left, sender.refused


def now_ms() -> int:
    return round(time.time() * 1000)
