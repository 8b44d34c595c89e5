"""`python -m trainer job`: what Ray starts. Asks the server what to do, does it, and reports.

The process needs three variables: TOUCHSTONE_URL, TOUCHSTONE_RUN_ID and TOUCHSTONE_RUN_TOKEN. TOUCHSTONE_REQUEST_ID, if it is set, is
the id under which the server's log tells how the run came to be.
"""

import os
import signal
import sys
import time
from pathlib import Path

import httpx

from trainer import node, tracing
from trainer.config import RECIPES, ConfigInvalid, resolve
from trainer.contracts import RunAssignment
from trainer.contracts.example import version_digest
from trainer.inference.adapters import whole_directory
from trainer.inference.models import ModelInvalid
from trainer.monitors import Console, HttpSink, RunMonitor, Spool
from trainer.rewards.access import AccessInvalid
from trainer.storing import ObjectStore, StoreAway, StoreRefused

from . import folder, places

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_PATIENCE_S = 120.0
_CHUNK = 1 << 16
_REACH = "See that this node reaches that address (INTERNAL_URL, else PUBLIC_URL, of the server)"
WEIGHTS_JOB = "TOUCHSTONE_WEIGHTS_JOB"


class JobError(RuntimeError):
    """The job cannot start; nothing can be reported to the server, so the message goes to the job's log."""


def job(arguments: list[str]) -> int:
    """0: finished or stopped; 1: failed; 3: could not even start or was abandoned."""
    if os.environ.get(WEIGHTS_JOB):  # a cluster that starts runs in a way of its own starts these jobs the same way
        from trainer.weights.command import main

        return main(arguments)
    if arguments:
        print(
            "python -m trainer job takes no arguments; it reads TOUCHSTONE_URL, _RUN_ID and _RUN_TOKEN", file=sys.stderr
        )
        return 2
    try:
        url, token = _address(), _variable("TOUCHSTONE_RUN_TOKEN")
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=_TIMEOUT, trust_env=False) as client:
            assignment = RunAssignment.model_validate_json(_patiently(client, url))
            with folder.alone(places.run_dir(assignment), _PATIENCE_S):
                # how far the server is, now that no earlier attempt tells it anything more
                assignment = RunAssignment.model_validate_json(_patiently(client, url))
                return _traced(client, url, token, assignment)
    except (JobError, folder.Taken, OSError) as error:
        print(error, file=sys.stderr)
        return 3


def _traced(client: httpx.Client, url: str, token: str, assignment: RunAssignment) -> int:
    """In a span that belongs to the task by which the server handed the run over."""
    run, attempt = os.environ.get("TOUCHSTONE_RUN_ID", ""), assignment.attempt
    told: dict[str, tracing.Value] = {"touchstone.run.id": run, "touchstone.run.attempt": attempt}
    with tracing.job("touchstone-run", f"run {assignment.recipe}", told) as span:
        code = _carry_out(client, url, token, assignment)
        if code:
            span.failed(str(code))
    return code


def _carry_out(client: httpx.Client, url: str, token: str, assignment: RunAssignment) -> int:
    run_dir = places.run_dir(assignment)
    store = node.store(assignment.store_url, token)
    spool = Spool(run_dir / "events.jsonl", assignment.last_seq)
    sink = HttpSink(spool, f"{url}/events", token, assignment.attempt, assignment.last_seq)
    monitor = RunMonitor(spool, sink, Console(), store=store)
    signal.signal(signal.SIGTERM, lambda *_: monitor.request_stop())
    sink.start()
    ended_well = _run(client, token, assignment, run_dir, monitor, store)
    delivered = monitor.close()
    if store:
        store.close()
        if delivered and ended_well:  # all of it is with the server; of a run that failed the newest may be here alone
            places.clear(run_dir)
    if monitor.command == "abandon":
        print("abandoned: the server has given this run to another attempt", file=sys.stderr)
        return 3
    if not delivered:
        print(f"not everything was delivered ({sink.trouble}); the rest is in {spool.path}", file=sys.stderr)
    return 0 if ended_well else 1


def _run(
    client: httpx.Client,
    token: str,
    assignment: RunAssignment,
    run_dir: Path,
    monitor: RunMonitor,
    store: ObjectStore | None,
) -> bool:
    """Config and examples first: a mistake in them needs no model to be found."""
    if asked := os.environ.get("TOUCHSTONE_REQUEST_ID"):
        monitor.log(f"Started by request {asked} of the server's log")
    try:
        config = resolve(assignment.recipe, dict(assignment.config))
        examples = monitor.patiently(lambda: fetch_examples(client, assignment, run_dir), 0)
        sources = monitor.patiently(lambda: node.sources(assignment.models, store), 0)
        models = {role: whole_directory(source, run_dir / "merged" / role) for role, source in sources.items()}
        access = monitor.patiently(lambda: node.access(assignment, token, store), 0)
        if store and assignment.resume:
            monitor.patiently(lambda: places.newest_checkpoint(assignment, store, run_dir), 0)
    except (ConfigInvalid, JobError, ModelInvalid, AccessInvalid, StoreAway, StoreRefused, OSError) as error:
        monitor.state("failed", str(error))
        return False
    from trainer.loops.run import run_recipe
    from trainer.loops.session.stage import Job

    job = Job(RECIPES[assignment.recipe], config, examples, models, run_dir, monitor, assignment.forked, access)
    return run_recipe(job, assignment.resume)


def fetch_examples(client: httpx.Client, assignment: RunAssignment, run_dir: Path) -> Path:
    """The frozen version's rows, verified; kept from an earlier attempt when they are whole. Raises JobError."""
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
    """The body of a GET; a server that is just restarting is waited for. Raises JobError."""
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


def _address() -> str:
    run_id = _variable("TOUCHSTONE_RUN_ID")
    return f"{_variable('TOUCHSTONE_URL').rstrip('/')}/api/v1/ingest/runs/{run_id}"


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise JobError(f"{name} is not set; this command is started by the server through Ray")
    return value
