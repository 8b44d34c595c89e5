"""Asking the process of a local model: its answers, its deaths. It does not outlive its client."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests import fork_server
from trainer.judges.budget import Budget
from trainer.judges.chat import ChatRequest, EndpointProblem
from trainer.judges.local import LocalClient, LocalTarget
from trainer.judges.sampling import Sampling

# Answers like the real process: the words of the last message decide what happens.
PROCESS = """
import json, os, sys
print(json.dumps({"judge": "yes-no"}), flush=True)
for line in sys.stdin:
    call = json.loads(line)
    said = call["messages"][-1]["content"]
    if said == "die":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(9)
    row = {"key": call["key"], "state": "done", "prompt_tokens": 7}
    if said == "long":
        row |= {"state": "failed", "problem": "context_overflow", "message": "needs 9 tokens and tiny sees 8"}
    elif call["reply"] == "text":
        row |= {"text": f"{call['seed']} {call['max_tokens']}", "finish_reason": "stop", "completion_tokens": 2}
    else:
        row |= {"met": said == "true", "probability": 0.75, "mass": 0.5, "calibrated": call["wording"] == "w", "cached_tokens": 3}
    print(json.dumps(row), flush=True)
"""


def client(
    *, yes_no: bool = True, script: str = PROCESS, budget: Budget | None = None, model: str = "m"
) -> LocalClient:
    target = LocalTarget([sys.executable, "-c", script], ".", model, yes_no, wording="w")
    return LocalClient(target, budget)


def asking(text: str, **sampling: float) -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), Sampling.model_validate(sampling))


async def test_yes_or_no_comes_back_as_a_criterion_judge_answers() -> None:
    async with client() as local:
        replies = await asyncio.gather(*(local.chat(asking(text)) for text in ("true", "false")))
    assert [json.loads(reply.text)["met"] for reply in replies] == [True, False]
    assert "P(yes) = 0.750" in json.loads(replies[0].text)["explanation"]
    assert "threshold learned for this model" in replies[0].text
    assert (replies[0].prompt_tokens, replies[0].cached_tokens, replies[0].completion_tokens) == (7, 3, 0)


async def test_other_kinds_generate_with_their_sampling() -> None:
    async with client(yes_no=False) as local:
        reply = await local.chat(asking("x", max_tokens=5, seed=42))
        one, two = await asyncio.gather(local.chat(asking("x")), local.chat(asking("x")))
    assert reply.text == "42 5" and reply.finish_reason == "stop"
    assert one.text != two.text, "samples without a seed must differ"


async def test_a_call_too_long_for_the_model_fails_alone() -> None:
    async with client() as local:
        with pytest.raises(EndpointProblem, match="tiny sees 8") as found:
            await local.chat(asking("long"))
        assert found.value.code == "context_overflow"
        assert json.loads((await local.chat(asking("true"))).text)["met"]


async def test_a_dead_process_fails_what_waits_and_what_comes_after_with_its_last_words() -> None:
    async with client() as local:
        for text in ("die", "true"):
            with pytest.raises(EndpointProblem, match="ended with status 9: out of memory") as found:
                await local.chat(asking(text))
            assert found.value.code == "down"


async def test_a_process_that_cannot_start_says_why() -> None:
    script = "import sys; print('no config.json here', file=sys.stderr); sys.exit(1)"
    async with client(script=script) as local:
        with pytest.raises(EndpointProblem, match="no config.json here"):
            await local.chat(asking("true"))
    with pytest.raises(EndpointProblem, match="could not be started"):
        async with LocalClient(LocalTarget(["/nowhere/python"], ".", "m", True)):
            pass


async def test_the_process_ends_with_the_client() -> None:
    local = client(script="import time; time.sleep(600)")
    async with local:
        process = local._process
    assert process.returncode is not None


async def test_a_budget_stops_before_the_call() -> None:
    async with client(budget=Budget(tokens=10)) as local:
        with pytest.raises(EndpointProblem) as found:
            await local.chat(asking("true"))
    assert found.value.code == "budget"


@pytest.mark.slow
async def test_the_real_process_answers(tiny_dir: Path, tmp_path: Path) -> None:
    target = LocalTarget([sys.executable, "-m", "trainer", "judge-local"], ".", str(tiny_dir), True)
    async with LocalClient(target) as local:
        replies = await asyncio.gather(*(local.chat(asking(f"Is {n} even?")) for n in range(20)))
    for reply in replies:
        answer = json.loads(reply.text)
        assert isinstance(answer["met"], bool) and "the likelier answer" in answer["explanation"]
    target = LocalTarget([*fork_server.command(), "judge-local"], ".", str(tmp_path / "nowhere"), True)
    async with LocalClient(target) as local:
        with pytest.raises(EndpointProblem, match="nowhere"):
            await local.chat(asking("true"))
