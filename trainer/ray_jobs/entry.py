"""`python -m trainer job`: what Ray starts. Asks the server what to do, does it, and reports.

The process needs three variables: TOUCHSTONE_URL, TOUCHSTONE_RUN_ID and TOUCHSTONE_RUN_TOKEN. If TOUCHSTONE_REQUEST_ID is set, it is
the id under which the server's log shows the request that began the run. With TOUCHSTONE_CARRIES, JSON that has a token by the id of
a run, the process trains these runs as well, in turns, and with copies of itself if the models are very small: each run has its own
assignment, folder and events.
"""

import json
import os
import signal
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from trainer import node, tracing
from trainer.arithmetic import processes_for
from trainer.config import RECIPES, ConfigInvalid, resolve
from trainer.contracts import CARRIES, RunAssignment
from trainer.contracts.example import version_digest
from trainer.forking import in_processes
from trainer.inference.adapters import whole_directory
from trainer.inference.models import ModelInvalid
from trainer.monitors import Console, HttpSink, RunMonitor, Spool
from trainer.process import one_heap
from trainer.rewards.access import AccessInvalid
from trainer.storing import StorageAway, StoreRefused

from . import folder, places

if TYPE_CHECKING:
    from trainer.loops.session.stage import StageJob

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_PATIENCE_S = 120.0
_CHUNK = 1 << 16
_REACH = "See that this node reaches that address (INTERNAL_URL, else PUBLIC_URL, of the server)"
WEIGHTS_JOB = "TOUCHSTONE_WEIGHTS_JOB"


class JobError(RuntimeError):
    """The job cannot start; nothing can be reported to the server, so the message goes to the job's log."""


def job(arguments: list[str]) -> int:
    """Exit status 0: finished or stopped; 1: failed; 3: could not start or was abandoned. For several runs it is the worst status."""
    if os.environ.get(WEIGHTS_JOB):  # a cluster with its own way of starting runs starts these jobs in the same way
        from trainer.weights.command import main

        return main(arguments)
    if arguments:
        print(
            "python -m trainer job takes no arguments; it reads TOUCHSTONE_URL, _RUN_ID and _RUN_TOKEN", file=sys.stderr
        )
        return 2
    tickets = _tickets()
    named = len(tickets) > 1
    count = min(_processes(*tickets[0]), len(tickets)) if named else 1
    if count > 1:
        from trainer.loops.together import load_libraries

        load_libraries()
    return in_processes([partial(_in_turns, tickets[first::count], named) for first in range(count)])


def _processes(run: str, token: str) -> int:
    """The number of processes that divide the runs among themselves. One if the models do not lie on this machine, or if the server does
    not say now what they are: each run then asks again, with more patience.
    """
    try:
        address = f"{os.environ['TOUCHSTONE_URL'].rstrip('/')}/api/v1/ingest/runs/{run}"
        headers = {"Authorization": f"Bearer {token}"}
        told = httpx.get(address, headers=headers, timeout=_TIMEOUT, trust_env=False).raise_for_status()
        models = RunAssignment.model_validate_json(told.content).models
    except (KeyError, ValueError, httpx.HTTPError):
        return 1
    return processes_for([Path(source.path) for source in models.values()])


def _in_turns(tickets: list[tuple[str, str]], named: bool) -> int:
    """Train these runs in this process. With `named`, each line of the log says of which run it is."""
    attempts = []
    if tickets[1:]:
        one_heap()  # before there are threads
    for run, token in tickets:
        try:
            attempts.append(Attempt(run, token, f"run {run}" if named else ""))
        except (JobError, folder.FolderTaken, OSError) as error:
            print(error, file=sys.stderr)
    return _traced(attempts) if attempts else 3


def _tickets() -> list[tuple[str, str]]:
    """(run, token) of all runs that this process trains. Without variables there is one entry, for which `Attempt` names what is missing."""
    carried: dict[str, str] = json.loads(os.environ.get(CARRIES) or "{}")
    return [(os.environ.get("TOUCHSTONE_RUN_ID", ""), os.environ.get("TOUCHSTONE_RUN_TOKEN", "")), *carried.items()]


def _traced(attempts: list["Attempt"]) -> int:
    """Train in a span that belongs to the task in which the server handed the runs over."""
    first = attempts[0]
    told: dict[str, tracing.Value] = {
        "touchstone.run.id": ",".join(each.run for each in attempts),
        "touchstone.run.attempt": first.assignment.attempt,
    }
    with tracing.job("touchstone-run", f"run {first.assignment.recipe}", told) as span:
        code = _carry_out(attempts)
        if code:
            span.failed(str(code))
    return code


def _carry_out(attempts: list["Attempt"]) -> int:
    def stop(*_: object) -> None:
        for each in attempts:
            each.monitor.request_stop()

    signal.signal(signal.SIGTERM, stop)
    for each in attempts:
        each.begin()
    wholes: Wholes = {}
    ready = [(each, job) for each in attempts if (job := each.prepared(wholes))]
    codes = [each.end(False) for each in attempts if all(each is not other for other, _ in ready)]
    if len(ready) == 1:
        from trainer.loops.run import run_recipe

        (only, job) = ready[0]
        codes.append(only.end(run_recipe(job, only.assignment.resume)))
    elif ready:
        from trainer.loops.together import run_together

        # a run ends by itself: it may be resumed elsewhere while the others still train here
        jobs = [(job, each.assignment.resume) for each, job in ready]
        run_together(jobs, after=lambda place, ended_well: codes.append(ready[place][0].end(ended_well)))
    for each in attempts:
        each.clear()
    return max(codes, default=3)


Wholes = dict[str, Path]
"""Directories of whole models by what they are made of, so that a base with adapters is merged once for all runs of the process."""


class Attempt:
    """One attempt of a run: its assignment, its folder, which no earlier attempt writes to any more, and its events.

    Raises JobError, Taken and OSError if it cannot begin.
    """

    def __init__(self, run: str, token: str, name: str = "") -> None:
        """`name` stands before its lines in a log that other runs share."""
        address = f"api/v1/ingest/runs/{_given('TOUCHSTONE_RUN_ID', run)}"
        self._url = f"{_given('TOUCHSTONE_URL', os.environ.get('TOUCHSTONE_URL', '')).rstrip('/')}/{address}"
        self.run, self._token = run, _given("TOUCHSTONE_RUN_TOKEN", token)
        with ExitStack() as opened:
            headers = {"Authorization": f"Bearer {token}"}
            self._client = opened.enter_context(httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=False))
            assignment = RunAssignment.model_validate_json(_patiently(self._client, self._url))
            opened.enter_context(folder.lock_folder(places.run_dir(assignment), _PATIENCE_S))
            # the last number that the server has, now that no earlier attempt sends any
            self.assignment = RunAssignment.model_validate_json(_patiently(self._client, self._url))
            self.run_dir = places.run_dir(self.assignment)
            self._store = node.store(self.assignment.store_url, token)
            self._spool = Spool(self.run_dir / "events.jsonl", self.assignment.last_seq)
            last, attempt = self.assignment.last_seq, self.assignment.attempt
            self._sink = HttpSink(self._spool, f"{self._url}/events", token, attempt, last)
            self.monitor = RunMonitor(self._spool, self._sink, Console(name=name), store=self._store)
            self._may_be_cleared = False
            self._opened = opened.pop_all()

    def begin(self) -> None:
        """Connect to the server, which hears from the run also while it waits for its turn."""
        self._sink.start()

    def prepared(self, wholes: "Wholes") -> "StageJob | None":
        """Fetches the run's inputs, config and examples first: a mistake in them is found without a model. None: the run has failed."""
        assignment, monitor, store = self.assignment, self.monitor, self._store
        if asked := os.environ.get("TOUCHSTONE_REQUEST_ID"):
            monitor.log(f"Started by request {asked} of the server's log")
        try:
            config = resolve(assignment.recipe, dict(assignment.config))
            examples = monitor.patiently(lambda: fetch_examples(self._client, assignment, self.run_dir), 0)
            sources = monitor.patiently(lambda: node.sources(assignment.models, store), 0)
            merged = self.run_dir / "merged"
            for role, source in sources.items():
                if (whole := source.model_dump_json()) not in wholes:
                    wholes[whole] = whole_directory(source, merged / role)
            models = {role: wholes[source.model_dump_json()] for role, source in sources.items()}
            access = monitor.patiently(lambda: node.access(assignment, self._token, store), 0)
            if store and assignment.resume:
                monitor.patiently(lambda: places.newest_checkpoint(assignment, store, self.run_dir), 0)
        except (ConfigInvalid, JobError, ModelInvalid, AccessInvalid, StorageAway, StoreRefused, OSError) as error:
            monitor.state("failed", str(error))
            return None
        from trainer.loops.session.stage import StageJob

        recipe = RECIPES[assignment.recipe]
        return StageJob(recipe, config, examples, models, self.run_dir, monitor, assignment.forked, access)

    def end(self, ended_well: bool) -> int:
        """Deliver the rest and leave the folder to the next attempt; returns the exit status of the run."""
        with self._opened:
            delivered = self.monitor.close()
            if self._store:
                self._store.close()
                # the server has everything; if the run failed, the newest files may be only here
                self._may_be_cleared = delivered and ended_well
        if self.monitor.command == "abandon":
            print("abandoned: the server has given this run to another attempt", file=sys.stderr)
            return 3
        if not delivered:
            print(
                f"not everything was delivered ({self._sink.trouble}); the rest is in {self._spool.path}",
                file=sys.stderr,
            )
        return 0 if ended_well else 1

    def clear(self) -> None:
        """Remove the folder once all runs of the process are over: it may contain a model that others use."""
        if self._may_be_cleared:
            places.clear(self.run_dir)


def fetch_examples(client: httpx.Client, assignment: RunAssignment, run_dir: Path) -> Path:
    """The frozen version's rows, verified; those of an earlier attempt are kept if they are complete. Raises JobError."""
    path = run_dir / "examples.jsonl"
    if path.is_file() and version_digest(path) == assignment.examples_digest:
        return path
    partial = path.with_suffix(".partial")
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            _download(client, assignment.examples_url, partial)
            break
        except httpx.HTTPError as error:
            if time.monotonic() > deadline:
                raise JobError(
                    f"the server did not send the examples for {_PATIENCE_S:.0f} s: GET {assignment.examples_url}: "
                    f"{type(error).__name__}: {error}. {_REACH}, and resume the run; nothing is lost"
                ) from error
            time.sleep(1.0)
    found = version_digest(partial)
    if found != assignment.examples_digest:
        raise JobError(
            f"the examples are not the frozen version: digest {found}, expected {assignment.examples_digest}"
        )
    os.replace(partial, path)
    return path


def _download(client: httpx.Client, url: str, path: Path) -> None:
    with client.stream("GET", url) as response, path.open("wb") as file:
        response.raise_for_status()
        for chunk in response.iter_bytes(_CHUNK):
            file.write(chunk)


def _patiently(client: httpx.Client, url: str) -> bytes:
    """The body of a GET; waits for a server that is restarting. Raises JobError."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            response = client.get(url)
            if response.status_code == 200:
                return response.content
            trouble = f"HTTP {response.status_code}: {response.text[:300]}"
            if response.status_code < 500 and response.status_code not in (408, 429):
                raise JobError(f"the server has no assignment for this job: {trouble}")
        except httpx.HTTPError as error:
            trouble = f"{type(error).__name__}: {error}"
        if time.monotonic() > deadline:
            raise JobError(
                f"the server did not say what this run is for {_PATIENCE_S:.0f} s: GET {url}: {trouble}. {_REACH}, and launch or "
                "resume the run again"
            )
        time.sleep(1.0)


def _given(name: str, value: str) -> str:
    if not value:
        raise JobError(f"{name} is not set; this command is started by the server through Ray")
    return value
