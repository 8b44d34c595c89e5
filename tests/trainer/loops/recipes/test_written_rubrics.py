"""Runs of recipe `rubric_writer` with judges: their reports, and the cost of a judge's failure. After a kill nothing is asked twice.

The texts are scripted, because a model of two layers writes no rubric. The tokens are those that it sampled.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chatserver import ChatServer
from trainer.config import resolve as resolve_recipe
from trainer.config.on_policy import PolicyEvaluation
from trainer.contracts import Criterion, Example, Message, Preference, Response, Rubric
from trainer.inference.local import LocalSampler
from trainer.judges.chat import Prices, Target
from trainer.judges.spec import digest, resolve
from trainer.rewards.access import Access, JudgeAccess

from ...chat_beside import chat_server
from ...killed_runs import run_until_killed
from ...running import run
from ..conftest import events_of, metrics_of

GOOD = [
    {"title": "Who", "description": "Key: The response names Bell.", "weight": 5},
    {"title": "Short", "description": "Important: The response is short.", "weight": 3},
]
TURNED = [{"title": "Doubt", "description": "Key: The response hesitates", "weight": 5}]
WRITTEN = (json.dumps(GOOD), json.dumps(TURNED), "Sure, here is a rubric!")
_RESPONSE = re.compile(r"<response>\n(.*?)\n</response>", re.DOTALL)
_ITEM = re.compile(r"^\d+\. (.*)$", re.MULTILINE)


def answer(body: dict[str, Any]) -> str:
    """Rates a rubric 3, and rates an item by whether its last word is in the answer."""
    asked = body["messages"][-1]["content"]
    if "<rubric>" in asked:
        return json.dumps({"problems": [], "explanation": "It is usable.", "score": 3})
    said = _RESPONSE.findall(asked)[0]
    words = [item.rstrip(".").split()[-1] for item in _ITEM.findall(asked.split("<criteria>")[1])]
    rated = [{"number": n, "explanation": "", "rating": 10 if word in said else 1} for n, word in enumerate(words, 1)]
    return json.dumps({"ratings": rated})


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server(answer=answer) as found:
        yield found


def script() -> None:
    """The scripted text of the policy depends on the place of the sample."""
    real: Callable[..., Any] = LocalSampler.sample

    def sample(self: LocalSampler, requests: Any, progress: Any = None, finished: Any = None) -> Any:
        results = real(self, requests, progress)
        said = [replace(result, text=WRITTEN[n % len(WRITTEN)]) for n, result in enumerate(results)]
        for place, result in enumerate(said if finished else ()):
            finished(place, result)
        return said

    LocalSampler.sample = sample  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalSampler, "sample", LocalSampler.sample)  # replaced by the original afterwards
    script()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    human = Rubric(criteria=(Criterion(id="c", text="names Bell", points=1),))
    rows = [
        Example(
            key=f"row-{n}",
            prompt=(Message(role="user", content=f"Who was it, {n}?"),),
            split="train" if n < 4 else "heldout",
            rubric=human,
            responses=(Response(id="a", text="It was Bell."), Response(id="b", text="One hesitates")),
            preferences=(Preference(a="a", b="b", strength=-2, rater="r"),),
        )
        for n in range(8)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(row.canonical() + "\n" for row in rows))
    return path


def access(server: ChatServer) -> Access:
    target = Target(server.url, "m", retries=0, prices=Prices(1, 1))  # type: ignore[arg-type]
    specs = {"Grader v1": {"kind": "likert", "retries": 0}, "Reader v1": {"kind": "rubric_quality", "retries": 0}}
    found = {name: resolve(spec) for name, spec in specs.items()}
    return Access({name: JudgeAccess(spec, digest(spec, "1"), target) for name, spec in found.items()})


def config(**reward: Any) -> Any:
    raw: dict[str, Any] = {
        "steps": 2,
        "data": {"form": "mams"},
        "rollout": {"prompts_per_step": 1, "group_size": 3, "max_new_tokens": 4},
        "reward": {"by": "likert", "judge": "Grader v1", "quality_judge": "Reader v1", "matcher": "words", **reward},
        "evaluation": {"every": 2, "max_examples": 3},
        "checkpoint": {"every": 1, "keep": 9},
    }
    return resolve_recipe("rubric_writer", raw)


def rollouts(out: Path) -> list[Any]:
    return [row for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]


def test_a_run_earns_what_the_judges_say(server: ChatServer, data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(config(), data, tiny_dir, out, access=access(server))
    trained = [row for row in rollouts(out) if row.phase == "train"]
    # it ranks like people: 1 + 3; it ranks the other way round: -1 + 3; it cannot be read: -1 + 0 - 1
    assert [row.reward for row in trained[:3]] == [4.0, 2.0, -2.0]
    told = metrics_of(out)
    assert told[1, "reward/preference"] == pytest.approx(-1 / 3) and told[1, "writing/quality"] == 2.0
    assert told[2, "eval/preference_accuracy"] == pytest.approx(1 / 3) and told[2, "eval/pairs"] == 3
    assert told[2, "eval/scored_pairs"] == 2 and "eval/cohens_d" in {key for _, key in told}
    assert told[2, "eval/rubric_recall"] == pytest.approx(1 / 3) and told[2, "eval/unreadable"] == pytest.approx(1 / 3)
    assert told[2, "eval/excluded"] == 0
    parts = {part.name: part for part in trained[0].parts}
    assert parts["preference"].shown["scores"] == [pytest.approx(5 / 8), 0.0] and parts["preference"].calls == 2
    assert parts["recall"].shown["matches"] == [[0, 0]] and parts["recall"].shadow


def test_a_judge_that_answers_nonsense_leaves_rubrics_out_and_never_punishes(
    server: ChatServer, data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    server.answer = lambda body: "hm" if "<rubric>" not in body["messages"][-1]["content"] else answer(body)
    assert run(config(), data, tiny_dir, tmp_path / "run", access=access(server))
    trained = [row for row in rollouts(tmp_path / "run") if row.phase == "train"]
    assert [row.reward for row in trained[:3]] == [None, None, -2.0]
    assert "no score of the preferred answer" in trained[0].excluded
    assert metrics_of(tmp_path / "run")[2, "eval/excluded"] == 2, (
        "of three held-out pairs the unreadable one has a reward"
    )


def test_a_run_that_was_killed_asks_nothing_twice(
    server: ChatServer, data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    """Each step has a different prompt, so no question comes twice by itself. An evaluation would ask some of them again."""
    out, made = tmp_path / "run", config().model_copy(update={"evaluation": PolicyEvaluation(every=0, max_examples=0)})
    run_until_killed(
        "trainer.monitors:RunMonitor.metrics", made, data, tiny_dir, out, step=2, access=access(server), prepare=script
    )
    before = len(server.bodies)
    assert run(made, data, tiny_dir, out, access=access(server), resume=True)
    asked = [json.dumps(body["messages"]) for body in server.bodies]
    assert before and len(set(asked)) == len(asked)
