"""A run whose process is killed ends as failed and, resumed, arrives where an uninterrupted one does."""

import os
import signal
import subprocess
import sys
import time

import httpx
import psutil
import pytest

from tests.stack import ROOT, Stack

pytestmark = [pytest.mark.stack, pytest.mark.slow]

STEPS = 8
CONFIG = {
    "steps": STEPS,
    "seed": 7,
    "model": {"name": "tiny"},
    "data": {"max_prompt_tokens": 64},
    "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 16},
    "optim": {"lr": 1e-3},
    "evaluation": {"every": 4, "max_examples": 2},
    "checkpoint": {"every": 2},
}
SAME = ("reward/mean", "eval/rubric_score", "policy/entropy", "policy/loss", "rollout/length", "scaffold/ratio")

# rows of the demo's workspace: importing has tests of its own
SEED = """
from hashlib import sha256
from trainer.contracts import Criterion, Example as Record, Message, Rubric, VerifierSpec
from webapp.accounts.models import Workspace
from webapp.datasets.models import Dataset, DatasetVersion, Example, VersionMember
from webapp.inference.models import RegisteredModel
space = Workspace.objects.get(slug="demo")
RegisteredModel.objects.get_or_create(workspace=space, name="tiny", defaults={"source": "local", "path": r"%(model)s"})
check = VerifierSpec(name="must_contain", args={"texts": ["e"]})
rubric = Rubric(criteria=(Criterion(id="c1", text="Has an e", points=1, kind="hard", verifier=check),))
dataset = Dataset.objects.create(workspace=space, name="tiny")
records = [Record(key=f"e{i}", prompt=(Message(role="user", content=f"Prompt {i}"),), rubric=rubric,
                  split="train" if i < 6 else "heldout") for i in range(8)]
digest = sha256("".join(sorted(r.digest() for r in records)).encode()).hexdigest()
version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest=digest)
for i, r in enumerate(records):
    row = Example.objects.create(dataset=dataset, key=r.key, digest=r.digest(), canonical=r.canonical(), excerpt=r.key,
                                 split=r.split, criteria_count=1, search="")
    VersionMember.objects.create(version=version, example=row, position=i)
"""


@pytest.fixture(scope="module")
def api(stack: Stack) -> httpx.Client:
    client = stack.api()
    model = stack.var / "models" / "tiny"
    subprocess.run([sys.executable, "-m", "trainer", "models", "tiny", "--dir", str(model)], cwd=ROOT, check=True)
    stack.manage("shell", "-v0", "-c", SEED % {"model": model})
    return client


def launch(api: httpx.Client, name: str) -> int:
    body = {"recipe": "policy", "config": CONFIG, "dataset": "tiny", "name": name}
    response = api.post("runs", json=body)
    assert response.status_code == 201, response.text
    return response.json()["id"]


def wait(api: httpx.Client, stack: Stack, run_id: int, reached, timeout_s: float = 300) -> dict:
    """The run once `reached(run)`; fails with what the run and the services said."""
    deadline = time.monotonic() + timeout_s
    while True:
        run = api.get(f"runs/{run_id}").json()
        if reached(run):
            return run
        if time.monotonic() > deadline:
            lines = [line["message"] for line in api.get(f"runs/{run_id}/log").json()["lines"]]
            pytest.fail(f"{run['state']} {run['state_reason']} {run['progress']}\n{lines}\n{stack.logs()}")
        time.sleep(0.1)


def is_over(run: dict) -> bool:
    return run["state"] in ("finished", "failed", "stopped")


def process_of(run_id: int) -> psutil.Process:
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] and process.info["cmdline"][-3:] == ["-m", "trainer", "job"]:
            try:
                if process.environ().get("TOUCHSTONE_RUN_ID") == str(run_id):
                    return process
            except psutil.Error:
                continue
    raise AssertionError(f"no process works on run {run_id}")


def points(api: httpx.Client, run_id: int) -> dict[str, list[tuple[int, float]]]:
    found = {key: api.get(f"runs/{run_id}/metrics", params={"key": key}).json()["points"] for key in SAME}
    return {key: [(p["step"], p["value"]) for p in values] for key, values in found.items()}


def test_a_killed_run_fails_and_resumes_to_the_same_metrics(stack: Stack, api: httpx.Client):
    whole = launch(api, "uninterrupted")
    assert wait(api, stack, whole, is_over)["state"] == "finished"

    killed = launch(api, "killed")
    wait(api, stack, killed, lambda run: run["progress"]["step"] >= 3 or is_over(run))
    os.kill(process_of(killed).pid, signal.SIGKILL)
    failed = wait(api, stack, killed, is_over, timeout_s=120)
    assert failed["state"] == "failed"
    assert failed["progress"]["step"] < STEPS, "it was killed before its end"
    assert "ended without a last word" in failed["state_reason"]
    lines = [line["message"] for line in api.get(f"runs/{killed}/log").json()["lines"]]
    assert any("Last lines of the process" in line for line in lines), lines

    assert api.post(f"runs/{killed}/resume").json()["attempt"] == 2
    assert wait(api, stack, killed, is_over)["state"] == "finished"
    resumed, expected = points(api, killed), points(api, whole)
    assert expected["reward/mean"], "there is something to compare"
    assert resumed == expected


def test_a_stopped_run_goes_on_from_its_checkpoint(stack: Stack, api: httpx.Client):
    run_id = launch(api, "stopped")
    wait(api, stack, run_id, lambda run: run["progress"]["step"] >= 2 or is_over(run))
    assert api.post(f"runs/{run_id}/stop").json()["state"] == "stopping"
    stopped = wait(api, stack, run_id, is_over)
    assert (stopped["state"], stopped["progress"]["step"] < STEPS) == ("stopped", True)
    api.post(f"runs/{run_id}/resume")
    finished = wait(api, stack, run_id, is_over)
    assert (finished["state"], finished["progress"]["step"], finished["attempt"]) == ("finished", STEPS, 2)
