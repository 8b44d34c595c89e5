"""A model that recipe `judge` leaves answers as a judge like in its last evaluation: the same question gets the same words."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.trainer.loops.conftest import events_of
from tests.trainer.running import run
from trainer.config import resolve
from trainer.contracts import Example, Message, Preference, Response
from trainer.judges.inputs import of_example
from trainer.judges.local import LocalTarget
from trainer.judges.spec import resolve as judge_spec
from trainer.rewards.judges import EngineJudge

ROOT = Path(__file__).parents[4]
CONFIG: dict[str, Any] = {
    "steps": 2,
    "optim": {"lr": 0.05},
    "data": {"form": "lines"},
    "reward": {"arm": "outcome", "form": 0.5, "matcher": "words"},
    "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 12},
    "evaluation": {"every": 0, "max_examples": 8},
}


def pair(number: int) -> Example:
    return Example(
        key=f"e{number}",
        prompt=(Message(role="user", content=f"Is {number} a number?"),),
        split="train" if number < 4 else "heldout",
        responses=(Response(id="a", text=f"yes, {number} is"), Response(id="b", text=f"no {number}")),
        preferences=(Preference(a="a", b="b", strength=-2, rater="r"),),
    )


@pytest.mark.slow
def test_its_output_says_as_a_judge_what_it_said_when_it_was_evaluated(tiny_dir: Path, tmp_path: Path) -> None:
    examples = [pair(number) for number in range(6)]
    data, out = tmp_path / "data.jsonl", tmp_path / "run"
    data.write_text("".join(each.canonical() + "\n" for each in examples))
    config = resolve("judge", CONFIG)
    assert run(config, data, tiny_dir, out)
    rows = [
        (event.step, row) for event in events_of(out) if event.data.kind == "rollouts" for row in event.data.rollouts
    ]
    last = max(step for step, row in rows if row.phase == "eval")
    evaluated = sorted(row.response for step, row in rows if step == last and row.phase == "eval")

    spec = judge_spec(config.asked_as("judge") or {}).model_copy(update={"retries": 0})
    command = [*fork_server.command(), "judge-local"]
    target = LocalTarget(command, str(ROOT), str(tiny_dir), False, adapters=[str(out / "outputs/judge")])
    if not (out / "outputs/judge/adapter_config.json").is_file():
        target = LocalTarget(command, str(ROOT), str(out / "outputs/judge"), False)

    async def ask() -> list[str]:
        judge = EngineJudge(spec, "key", target)
        try:
            said = await judge.ask([of_example(each, pair=True) for each in examples if each.split == "heldout"])
        finally:
            await judge.close()
        return [answer.raw for answers in said for answer in answers]

    judged = asyncio.run(ask())
    assert len(judged) == 4, "both orders of two pairs"
    assert sorted(judged) == evaluated
