"""A run whose process is killed continues by itself and has the same result as an uninterrupted one."""

import os
import signal

import httpx
import psutil
import pytest

from tests.e2e.tiny import PATTERNS, RUN, eventually, import_examples, make_model
from tests.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.slow]

STEPS = 40  # so many that the run is still active when the test has seen its third step
CONFIG = {"steps": STEPS, **RUN}
SAME = ("reward/mean", "eval/rubric_score", "policy/entropy", "policy/loss", "rollout/length", "scaffold/ratio")


def examples() -> list[dict]:
    """Six prompts to train on and four held out."""
    criteria = [
        {"id": f"c{i}", "text": text, "points": i + 1, "verifier": {"name": "regex", "args": {"pattern": pattern}}}
        for i, (text, pattern) in enumerate(PATTERNS.items())
    ]
    return [
        {
            "key": f"e{i}",
            "prompt": [{"role": "user", "content": f"Prompt {i}"}],
            "rubric": {"criteria": criteria},
            "split": "train" if i < 6 else "heldout",
        }
        for i in range(10)
    ]


@pytest.fixture(scope="module")
def api(stack: Stack) -> httpx.Client:
    client = stack.api()
    model = client.post("models", json={"name": "resumable", "source": "local", "path": str(make_model(stack))})
    assert model.status_code == 201, model.text
    import_examples(client, stack, "resumable", examples())
    return client


def launch(api: httpx.Client, name: str, **changes) -> int:
    body = {"recipe": "policy", "config": CONFIG | changes, "dataset": "resumable", "model": "resumable", "name": name}
    response = api.post("runs", json=body)
    assert response.status_code == 201, response.text
    return response.json()["id"]


def wait(api: httpx.Client, stack: Stack, run_id: int, reached, timeout_s: float = 300) -> dict:
    """Returns the run when `reached(run)` holds. Fails with messages of the run and the services."""
    return eventually(lambda: api.get(f"runs/{run_id}").json(), reached, stack, timeout_s)


def is_over(run: dict) -> bool:
    return run["state"] in ("finished", "failed", "stopped")


def process_of(stack: Stack, run_id: int) -> psutil.Process:
    """The process that Ray started for a run of this stack. The process that trains was forked, and is killed with it
    (`tests/fork_server.py`). Another stack on the machine may have a run with the same number.
    """
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] and process.info["cmdline"][-2:] == ["trainer", "job"]:
            try:
                told = process.environ()
                if (told.get("TOUCHSTONE_URL"), told.get("TOUCHSTONE_RUN_ID")) == (stack.url, str(run_id)):
                    return process
            except psutil.Error:
                continue
    raise AssertionError(f"no process works on run {run_id}")


def points(api: httpx.Client, run_id: int) -> dict[str, list[tuple[int, float]]]:
    found = {key: api.get(f"runs/{run_id}/metrics", params={"key": key}).json()["points"] for key in SAME}
    return {key: [(p["step"], p["value"]) for p in values] for key, values in found.items()}


def test_a_killed_run_goes_on_by_itself_to_the_same_metrics(stack: Stack, api: httpx.Client):
    whole = launch(api, "uninterrupted")
    assert wait(api, stack, whole, is_over)["state"] == "finished"

    killed = launch(api, "killed")
    wait(api, stack, killed, lambda run: run["progress"]["step"] >= 3 or is_over(run))
    os.kill(process_of(stack, killed).pid, signal.SIGKILL)
    lost = wait(api, stack, killed, lambda run: run["attempt"] == 2 or is_over(run), timeout_s=300)
    assert lost["attempt"] == 2 and lost["progress"]["step"] < STEPS, "it was killed before its end"
    lines = [line["message"] for line in api.get(f"runs/{killed}/log").json()["lines"]]
    told = "It continues by itself from its last checkpoint (1 of 2), as attempt 2."
    assert any("ended without a message" in line and line.endswith(told) for line in lines), lines
    assert wait(api, stack, killed, is_over)["state"] == "finished"
    resumed, expected = points(api, killed), points(api, whole)
    assert [step for step, _ in expected["reward/mean"]] == list(range(1, STEPS + 1))
    assert len({score for _, score in expected["eval/rubric_score"]}) > 1, "equal scores would compare nothing"
    assert resumed == expected


def test_a_stopped_run_goes_on_from_its_checkpoint(stack: Stack, api: httpx.Client):
    run_id = launch(api, "stopped")
    wait(api, stack, run_id, lambda run: run["progress"]["step"] >= 2 or is_over(run))
    assert api.post(f"runs/{run_id}/stop").json()["state"] == "stopping"
    stopped = wait(api, stack, run_id, is_over)
    assert (stopped["state"], stopped["progress"]["step"] < STEPS) == ("stopped", True)
    assert api.post(f"runs/{run_id}/resume").status_code == 200
    finished = wait(api, stack, run_id, is_over)
    assert (finished["state"], finished["progress"]["step"], finished["attempt"]) == ("finished", STEPS, 2)
    assert not [each for each in stack.programs() if "ray::IDLE" in each], "no process for each core that no run uses"


def test_a_run_stops_with_a_checkpoint_when_it_has_generated_its_tokens_and_goes_on_with_a_new_limit(
    stack: Stack, api: httpx.Client
):
    run_id = launch(api, "limited", steps=4000)
    limit, step = 1000, 0
    for attempt in (1, 2):
        assert api.post(f"runs/{run_id}/tokens", json={"tokens": limit}).json()["token_limit"] == limit
        if attempt == 2:
            assert api.post(f"runs/{run_id}/resume").status_code == 200
        stopped = wait(api, stack, run_id, is_over)
        assert (stopped["state"], stopped["attempt"]) == ("stopped", attempt)
        assert step < stopped["progress"]["step"] < 4000, "it saved, and went on from there"
        step, used = stopped["progress"]["step"], api.get(f"runs/{run_id}/tokens").json()["generated_tokens"]
        counted = api.get(f"runs/{run_id}/metrics", params={"key": "perf/generated_tokens", "limit": 2000}).json()
        assert [point["step"] for point in counted["points"]] == list(range(1, step + 1))
        assert limit <= used == sum(point["value"] for point in counted["points"])
        whys = [event["why"] for event in api.get(f"runs/{run_id}/history").json()["items"]]
        assert any(f"The {limit:,} tokens that it may generate are used up" in why for why in whys), whys
        refused = api.post(f"runs/{run_id}/resume")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "token_limit")
        limit = used + 1000


def test_runs_that_train_together_lose_one_process_and_arrive_where_runs_by_themselves_do(
    stack: Stack, api: httpx.Client
):
    body = {
        "recipe": "policy",
        "config": {
            **CONFIG,
            "model": {**CONFIG.get("model", {}), "name": "resumable", "lora": {"rank": 4, "alpha": 8}},
        },
        "dataset": "resumable",
        "axes": [{"path": "optim.lr", "values": [1e-3, 1e-2]}],
        "method": "grid",
        "seeds": 1,
        "together": True,
    }
    made = api.post("sweeps", json=body)
    assert made.status_code == 201, made.text
    trials = f"sweeps/{made.json()['id']}/trials"
    listed = eventually(lambda: api.get(trials).json()["items"], lambda rows: len(rows) == 2, stack, 300)
    ids = [row["runs"][0]["run"] for row in listed]
    for run_id in ids:
        wait(api, stack, run_id, lambda run: run["progress"]["step"] >= 3 or is_over(run))
    found = [process for run_id in ids for process in [_process(stack, run_id)] if process]
    assert len(found) == 1, "one process has both"
    os.kill(found[0].pid, signal.SIGKILL)
    for run_id in ids:
        lost = wait(api, stack, run_id, lambda run: run["attempt"] == 2 or is_over(run))
        assert lost["attempt"] == 2 and lost["progress"]["step"] < STEPS
    assert [wait(api, stack, run_id, is_over)["state"] for run_id in ids] == ["finished", "finished"]
    config = api.get(f"runs/{ids[1]}").json()["config"]
    alone = api.post("runs", json={"recipe": "policy", "config": config, "dataset": "resumable", "model": "resumable"})
    assert alone.status_code == 201, alone.text
    assert wait(api, stack, alone.json()["id"], is_over)["state"] == "finished"
    assert points(api, ids[1]) == points(api, alone.json()["id"])


def _process(stack: Stack, run_id: int) -> psutil.Process | None:
    try:
        return process_of(stack, run_id)
    except AssertionError:
        return None
