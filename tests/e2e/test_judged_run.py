"""HealthBench rows train a policy on criteria that only a judge can decide, over an endpoint that fails and comes back."""

import json
from collections import Counter
from typing import Any

import httpx
import pytest

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
    "rewards": [{"kind": "rubric", "judge": "Doctor v1"}],
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


def launched(api: httpx.Client, stack: Stack, address: str) -> int:
    import_examples(api, stack, "health", healthbench())
    model = {"name": "apprentice", "source": "local", "path": str(make_model(stack))}
    assert api.post("models", json=model).status_code == 201
    endpoint = {"kind": "chat", "name": "ward", "url": address, "model": "m", "secret": KEY, "retries": 0}
    made = api.post("endpoints", json=endpoint)
    assert made.status_code == 201, made.text
    judge = {"name": "Doctor", "spec": {"kind": "criterion"}, "endpoint": made.json()["id"]}
    assert api.post("judges", json=judge).status_code == 201
    run = api.post("runs", json={"recipe": "policy", "config": CONFIG, "dataset": "health", "model": "apprentice"})
    assert run.status_code == 201, run.text
    return int(run.json()["id"])


def test_a_run_waits_for_its_judge_and_asks_nothing_twice(stack: Stack):
    asked: Counter[str] = Counter()

    def answer(body: dict[str, Any]) -> str:
        asked[json.dumps(body["messages"])] += 1
        return json.dumps({"explanation": "So it reads.", "met": len(json.dumps(body)) % 2 == 0})

    api = stack.api()
    with chat_server(key=KEY, answer=answer) as server:
        server.faults.extend(["", "", "", ""])
        server.fault = "error"  # from the fifth call on
        run = launched(api, stack, server.url)
        told = eventually(
            lambda: api.get(f"runs/{run}").json(), lambda found: found["state"] in ("paused", "failed"), stack, 300
        )
        assert told["state"] == "paused", told["state_reason"]
        assert "waits. rubric: Doctor v1 cannot be asked" in told["state_reason"], told["state_reason"]
        (judge,) = api.get(f"runs/{run}/judges").json()["items"]
        assert "asked again until it answers" in judge["problem"] and judge["failed"] > 0
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
