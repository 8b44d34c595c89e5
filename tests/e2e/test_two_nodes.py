"""A cluster whose nodes share no disk with the server or with each other: two raylets on this machine, each in a mount namespace in which
the folders of the server and of the other node are empty.

The run's own process is on the first node, its workers are on the second. It trains, is stopped, leaves its checkpoint in a bucket, is
resumed, finishes, and its model is downloaded from the web server.
"""

import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.tiny import RUN
from tests.team import ApiClient
from tests.timeouts import SECONDS
from tests.webapp.backups.bucket_server import BucketServer
from tests.webapp.experiments.conftest import make_version
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from webapp.core.background.children import environment
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch
from webapp.experiments.lifecycle import jobs
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import LogLine, Run
from webapp.experiments.outputs import artifacts
from webapp.inference.models import RegisteredModel
from webapp.localstack.ports import free_ports
from webapp.localstack.ray import RayHead

pytestmark = [pytest.mark.stack, pytest.mark.slow]

ATTEMPTS = 5
STEPS = 12  # so many that the run is still active when the test has seen its second step
RUNNER = {"kind": "async", "workers": 1, "reward_workers": 1, "cpus_per_worker": 1}
FIRST, OTHER = "127.0.0.2", "127.0.0.3"  # Ray takes these for addresses of two machines
# no worker fits on the first node
HEAD = {"--num-cpus": "--num-cpus=0", "--node-ip-address": f"--node-ip-address={FIRST}"}
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # with this variable, our head says that it has no other nodes
WAYS = (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"])
HIDE = 'mount --make-rprivate / && for each in $HIDDEN; do mount -t tmpfs none "$each" || exit 9; done; exec "$@"'


def own_mounts(folder: Path) -> list[str]:
    """The command that gives a process its own mounts on this machine. Skips the test with the reason if there is none."""
    why = "there is no `unshare` (util-linux)"
    for way in WAYS if shutil.which("unshare") else ():
        line, more = hidden(way, [folder], ["true"])
        done = subprocess.run(line, env={**os.environ, **more}, capture_output=True, text=True)
        if done.returncode == 0:
            return way
        why = done.stderr.strip()
    pytest.skip(f"no folder can be hidden from a raylet here: {why}")


def hidden(way: Sequence[str], folders: Sequence[Path], command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """`command` with these folders emptied, and the variable that the command needs for that."""
    return [*way, "sh", "-c", HIDE, "sh", *command], {"HIDDEN": " ".join(map(str, folders))}


class Node:
    """A raylet with its own folder, for its sockets and logs and for the files that runs fetch and write."""

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"ts-{name}-"))
        self.scratch = self.folder / "scratch"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], env: Mapping[str, str], way: Sequence[str], hides: Sequence[Path]) -> None:
        line, more = hidden(way, hides, command)
        told = {**environment(), **env, **more, "TOUCHSTONE_SCRATCH": str(self.scratch), "OMP_NUM_THREADS": "1"}
        with (self.folder / "out").open("wb") as out:
            self.process = subprocess.Popen(line, env=told, stdout=out, stderr=out, start_new_session=True)

    def join(self, *start: Any, head: "Node | None" = None) -> None:
        """Calls `start` until the node has started. Ray gives a node up after 30 s, which is too short on a busy machine; then this tries
        again. A node without its `head` would try for ever, so this fails.
        """
        for _ in range(ATTEMPTS):
            self.start(*start)
            while self.process is not None and self.process.poll() is None:
                if "Ray runtime started" in (self.folder / "out").read_text(errors="replace"):
                    return
                if head is not None:
                    assert head.process is not None and head.process.poll() is None, head.said()
                time.sleep(0.2)
        pytest.fail(f"the node did not start {ATTEMPTS} times: {self.said()}")

    def wait_until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 2 * SECONDS
        while not ready():
            assert self.process is not None and self.process.poll() is None and time.monotonic() < deadline, self.said()
            time.sleep(0.2)

    def said(self) -> str:
        return (self.folder / "out").read_text(errors="replace")[-3000:]

    def sees(self, path: Path) -> list[str]:
        assert self.process is not None and self.process.poll() is None, self.said()
        return os.listdir(f"/proc/{self.process.pid}/root{path}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def second(command: Sequence[str], node: Node) -> list[str]:
    """The command of another node, made from that of the head: another address, other ports, room for two workers."""
    gcs = next(each.partition("=")[2] for each in command if each.startswith("--port="))
    agent, agent_grpc, metrics, env_agent = free_ports(4)
    options = {
        "address": f"{FIRST}:{gcs}",
        "node-ip-address": OTHER,
        "dashboard-agent-listen-port": agent,
        "dashboard-agent-grpc-port": agent_grpc,
        "metrics-export-port": metrics,
        "runtime-env-agent-port": env_agent,
        "num-cpus": 2,
        "object-store-memory": 100_000_000,
        "include-log-monitor": "false",
        "temp-dir": node.folder / "ray",
    }
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
    return [*start, *(f"--{name}={value}" for name, value in options.items())]


@pytest.fixture
def bucket(settings) -> Iterator[BucketServer]:
    with BucketServer().running() as found:
        found.empty()
        env = settings.ENV.model_copy()
        env.artifact_store, env.artifact_store_endpoint = "s3://backups/runs", found.url
        env.artifact_store_networks = (IPv4Network("127.0.0.0/8"),)
        env.artifact_store_access_key, env.artifact_store_secret = "AKID", "a secret that no node is told"
        settings.ENV = env
        yield found


@pytest.fixture
def nodes(settings, tmp_path: Path, bucket, server) -> Iterator[tuple[Node, Node]]:
    """The server is this process. The cluster's job API is that of the first node."""
    way = own_mounts(tmp_path)
    first, other = Node("first"), Node("other")
    assert Path(settings.VAR).is_relative_to(tmp_path)
    head = RayHead(first.folder)
    head.temp = first.folder / "ray"
    head.prepare()
    (other.folder / "ray_token").write_text(head.token_file.read_text())
    told = head.command()
    env = {name: value for name, value in told.env.items() if name != ALONE}
    line = [HEAD.get(each.partition("=")[0], each) for each in told.args]
    try:
        first.join(line, env, way, [tmp_path, other.folder])
        first.wait_until(head.ready)
        env["RAY_AUTH_TOKEN_PATH"] = str(other.folder / "ray_token")
        other.join(second(line, other), env, way, [tmp_path, first.folder], head=first)
        ours = settings.ENV.model_copy()
        ours.ray_address, ours.ray_token_file, ours.internal_url = head.address, head.token_file, server.url
        settings.ENV = ours
        yield first, other
    finally:
        for node in (other, first):
            node.stop()


def digest_of(train: int, heldout: int, verifier: VerifierSpec) -> str:
    """The digest of the version that `make_version` makes, because a run compares the examples that it fetches with it."""
    rubric = Rubric(criteria=(Criterion(id="c1", text="Names a colour", points=3, verifier=verifier),))
    records = [
        Example(
            key=f"e{i}",
            prompt=(Message(role="user", content=f"Prompt {i} ü"),),
            split="train" if i < train else "heldout",
            rubric=rubric,
        )
        for i in range(train + heldout)
    ]
    return hashlib.sha256("".join(sorted(f"{each.digest()}\n" for each in records)).encode()).hexdigest()


@pytest.fixture
def run(team, tmp_path: Path, nodes, monkeypatch) -> Run:
    """A run whose model is in a folder of the server, which no node sees."""
    monkeypatch.setattr("webapp.core.tasks._send", lambda *told: None)  # this test does the work of workers
    monkeypatch.setattr(jobs, "_web_answers", lambda: True)
    folder = tmp_path / "tiny"
    from trainer.inference.models import make_tiny

    make_tiny(folder)
    model = RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(folder))
    verifier = VerifierSpec(name="regex", args={"pattern": "[aeiou]"})
    version = make_version(team.owner, train=6, heldout=2, verifier=verifier, digest=digest_of(6, 2, verifier))
    config = {
        "steps": STEPS,
        **RUN,
        "evaluation": {"every": 0, "max_examples": 2},
        "runner": RUNNER,
        "model": {"name": model.name},
    }
    return launch.launch(
        team.researcher, recipe="policy", config=config, dataset=checks.DatasetChoice(id=version.dataset_id)
    )


def until(run: Run, reached: Callable[[Run], bool], nodes: Sequence[Node]) -> Run:
    """Returns the run when it is in the state `reached`. Until then this does the work of a worker and of beat."""
    deadline = time.monotonic() + 600
    while True:
        jobs.watch()
        found = Run.objects.with_names().get(id=run.id)
        if found.state in ("queued", "starting") and not found.ray_job_id:
            jobs.launch(run.id)
        if reached(found):
            return found
        if found.is_over or time.monotonic() > deadline:
            pytest.fail("\n".join([found.state, found.state_reason, *last_messages(found, nodes)]))
        time.sleep(0.5)


def last_messages(run: Run, nodes: Sequence[Node]) -> list[str]:
    lines = LogLine.objects.filter(run=run).order_by("-id").values_list("message", flat=True)[:20]
    logs = [log.read_text(errors="replace")[-3000:] for log in nodes[0].folder.glob("ray/session_2*/logs/job-driver-*")]
    return [*lines, *logs, *(node.said() for node in nodes)]


def test_a_run_on_nodes_that_see_no_file_of_the_server(run, nodes, bucket, team, tmp_path) -> None:
    first, other = nodes
    for node, hides in ((first, other.folder), (other, first.folder)):
        assert node.sees(tmp_path) == node.sees(hides) == []

    lifecycle.stop(team.researcher, until(run, lambda found: found.step >= 2, nodes))
    stopped = until(run, lambda found: found.state == "stopped", nodes)
    assert stopped.step < STEPS, "it was stopped before its end"
    assert f"runs/runs/{run.id}/checkpoints/" in "\n".join(bucket.names())
    lifecycle.resume(team.researcher, stopped)
    ended = until(run, lambda found: found.state == "finished", nodes)
    assert (ended.attempt, ended.step) == (2, STEPS)
    resumed = LogLine.objects.filter(run=run, message__startswith="resumed after step").values_list(
        "message", flat=True
    )
    # The run resumes from the checkpoint in the bucket. Stop may have cut off a step whose first half was reported already.
    assert list(resumed) in [[f"resumed after step {step}"] for step in (stopped.step - 1, stopped.step)]

    api = ApiClient(team.researcher)
    (made,) = api.get(f"/runs/{run.id}").json()["outputs"]
    with tarfile.open(fileobj=io.BytesIO(b"".join(api.get(f"/models/{made['id']}/download")))) as tar:
        held = {Path(each.name).name: each.size for each in tar}
    assert held["README.md"] > 0 and any(name.endswith(".safetensors") and size > 0 for name, size in held.items())
    kept = [each for each in api.get(f"/runs/{run.id}/artifacts").json()["items"] if each["present"]]
    assert {each["role"] for each in kept} == {"checkpoint", "model"}
    assert not artifacts.folder(run.id).exists(), "nothing of the run was ever on the server's disk"
    for node in nodes:
        assert list(node.scratch.glob("*/models/*/config.json")), "each fetched the model for itself"
    # The server knows that the run has finished before the process of the run has ended, which deletes its folder last.
    first.wait_until(lambda: not list(first.scratch.glob("*/runs/*-2")))
