"""HealthBench rows train a policy on criteria that only a judge can decide. The judge's endpoint fails and works again."""

import hashlib
import json
import os
import signal
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.e2e.test_kill_and_resume import is_over, process_of, wait
from tests.e2e.tiny import eventually, import_examples, make_model
from tests.stack import Stack
from tests.trainer.chat_beside import chat_server

pytestmark = [pytest.mark.stack, pytest.mark.slow]

KEY = "sk-of-the-endpoint-0123456789"
CONFIG: dict[str, Any] = {
    "steps": 4,
    "seed": 3,
    "data": {"max_prompt_tokens": 64},
    "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 12},
    "evaluation": {"every": 0, "max_examples": 1},
    "checkpoint": {"every": 1},
}
CRITERIA = (("Names a danger sign.", 5), ("Asks how long it has lasted.", 3), ("Invents a diagnosis.", -4))


def healthbench() -> list[dict[str, Any]]:
    return [
        {
            "prompt_id": f"p{i}",
            "prompt": [{"role": "user", "content": f"I have had a headache for {i} days."}],
            "rubrics": [{"criterion": text, "points": points, "tags": []} for text, points in CRITERIA],
        }
        for i in range(12)
    ]


def launched(api: httpx.Client, stack: Stack, address: str, name: str, judges: tuple[str, ...]) -> list[int]:
    """Two runs with the same data, model and config, one for each judge. The judges ask for models of different names."""
    import_examples(api, stack, name, healthbench())
    model = {"name": name, "source": "local", "path": str(make_model(stack))}
    assert api.post("models", json=model).status_code == 201
    found = []
    for judge in judges:
        endpoint = {"kind": "chat", "name": judge, "url": address, "model": judge, "secret": KEY, "retries": 0}
        made = api.post("endpoints", json=endpoint)
        assert made.status_code == 201, made.text
        asked = {"name": judge, "spec": {"kind": "criterion"}, "endpoint": made.json()["id"]}
        assert api.post("judges", json=asked).status_code == 201
        config = CONFIG | {"rewards": [{"kind": "rubric", "judge": f"{judge} v1"}]}
        run = api.post("runs", json={"recipe": "policy", "config": config, "dataset": name, "model": name})
        assert run.status_code == 201, run.text
        found.append(int(run.json()["id"]))
    return found


def verdict(body: dict[str, Any]) -> str:
    """The same question always gets the same verdict."""
    return json.dumps({"explanation": "So it reads.", "met": len(json.dumps(body["messages"])) % 2 == 0})


def test_a_run_waits_for_its_judge_and_asks_nothing_twice(stack: Stack):
    asked: Counter[str] = Counter()

    def answer(body: dict[str, Any]) -> str:
        asked[json.dumps(body["messages"])] += 1
        return verdict(body)

    api = stack.api()
    with chat_server(key=KEY, answer=answer) as server:
        server.faults.extend(["", "", "", ""])
        server.fault = "error"  # begins with the fifth call
        (run,) = launched(api, stack, server.url, "health", ("Doctor",))
        told = eventually(
            lambda: api.get(f"runs/{run}").json(), lambda found: found["state"] in ("blocked", "failed"), stack, 300
        )
        assert told["state"] == "blocked", told["state_reason"]
        assert "waits. rubric: Doctor v1 cannot be asked" in told["state_reason"], told["state_reason"]
        (judge,) = api.get(f"runs/{run}/judges").json()["items"]
        assert "asks again until the judge answers" in judge["problem"] and judge["failed"] > 0
        server.latency_s, server.fault = 0.3, None
        over = eventually(
            lambda: api.get(f"runs/{run}").json(), lambda found: found["state"] in ("finished", "failed"), stack, 300
        )
    assert over["state"] == "finished", over["state_reason"]
    assert max(asked.values()) == 1, "each question was answered once"
    (judge,) = api.get(f"runs/{run}/judges").json()["items"]
    assert (judge["calls"], judge["problem"]) == (len(asked), "") and judge["tokens"] > 0
    points = api.get(f"runs/{run}/metrics", params={"key": "reward/rubric"}).json()["points"]
    assert [point["step"] for point in points] == [1, 2, 3, 4]
    assert KEY not in stack.logs(100_000) and KEY not in api.get(f"runs/{run}/log").text


def learned(api: httpx.Client, stack: Stack, run: int) -> dict[str, Any]:
    """The results of a run: its rewards, and the bytes of its weights."""
    keys = ("reward/mean", "policy/loss", "policy/entropy", "rollout/length")
    curves = {key: api.get(f"runs/{run}/metrics", params={"key": key}).json()["points"] for key in keys}
    weights = sorted((stack.var / "runs" / str(run) / "outputs").rglob("*.safetensors"))
    assert weights
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in weights]
    told = api.get(f"runs/{run}/rollouts").json()["items"]
    return {
        "curves": {key: [(point["step"], point["value"]) for point in points] for key, points in curves.items()},
        "weights": digests,
        "rewards": sorted((row["step"], row["group"], row["index"], row["reward"]) for row in told),
    }


def test_a_run_that_is_killed_while_it_is_judged_arrives_where_the_other_does(stack: Stack):
    asked: Counter[tuple[str, str]] = Counter()
    flying: set[tuple[str, str]] = set()

    def answer(body: dict[str, Any]) -> str:
        question = body["model"], json.dumps(body["messages"])
        asked[question] += 1
        if question[0] == "Killed" and len([1 for model, _ in asked if model == "Killed"]) > 15:
            server.latency_s = 2.0  # the second step is judged: there is time to kill it
            flying.add(question)
        return verdict(body)

    api = stack.api()
    with chat_server(key=KEY, answer=answer) as server:
        whole, killed = launched(api, stack, server.url, "wards", ("Whole", "Killed"))
        eventually(lambda: set(flying), bool, stack, 300, every_s=0.1)
        os.kill(process_of(stack, killed).pid, signal.SIGKILL)
        caught = set(flying)
        lost = wait(api, stack, killed, lambda run: run["attempt"] == 2 or is_over(run), timeout_s=300)
        assert lost["attempt"] == 2 and 1 <= lost["progress"]["step"] < CONFIG["steps"], "it goes on by itself"
        server.latency_s = 0.0
        server.answer = lambda body: (asked.update([(body["model"], json.dumps(body["messages"]))]), verdict(body))[1]
        for run in (whole, killed):
            over = wait(api, stack, run, is_over)
            assert over["state"] == "finished", over["state_reason"]
    assert {question for question, count in asked.items() if count > 1} <= caught, "only what was in flight"
    assert learned(api, stack, killed) == learned(api, stack, whole)
    by_model = Counter(model for model, _ in asked)
    assert by_model["Killed"] == by_model["Whole"]
