"""Whole runs with rewards of a judge: their metrics, their wait for a judge that is away, and how they continue after a kill."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chatserver import ChatServer
from trainer.config import PolicyConfig
from trainer.config import resolve as resolve_recipe
from trainer.contracts import Criterion, Example, Rubric
from trainer.judges.chat import Prices, Target
from trainer.judges.spec import digest, resolve
from trainer.rewards.access import Access, JudgeAccess
from trainer.rollouts import scoring

from ...chat_beside import chat_server
from ...killed_runs import run_until_killed
from ...running import run
from ..conftest import events_of, metrics_of, small_config, states, stopped_when_paused
from ..texts import demonstrations, write_examples

BRIEF: dict[str, Any] = {
    "steps": 2,
    "scaffold": None,
    "evaluation": {"every": 0, "max_examples": 1},
    "checkpoint": {"every": 1, "keep": 9},
}
JUDGED = {"kind": "rubric", "judge": "Grader v1"}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as found:
        yield found


@pytest.fixture
def data(examples: list[Example], tmp_path: Path) -> Path:
    """Each rubric has three criteria with a verifier and one for the judge."""
    path = tmp_path / "judged.jsonl"
    extra = Criterion(id="kind", text="Is kind.", points=2)
    rows = [
        row.model_copy(update={"rubric": Rubric(criteria=(*row.rubric.criteria, extra))})
        for row in examples
        if row.rubric
    ]
    path.write_text("".join(row.canonical() + "\n" for row in rows))
    return path


def access(server: ChatServer, **spec: Any) -> Access:
    resolved = resolve({"kind": "criterion", "retries": 0, **spec})
    target = Target(server.url, "m", retries=0, prices=Prices(1, 1))  # type: ignore[arg-type]
    return Access({"Grader v1": JudgeAccess(resolved, digest(resolved, "1"), target)})


def rollouts(out: Path) -> list[Any]:
    return [row for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]


Start = Callable[..., bool]


@pytest.fixture
def start(server: ChatServer, data: Path, tiny_dir: Path) -> Start:
    def started(config: PolicyConfig, out: Path, **more: Any) -> bool:
        return run(config, data, tiny_dir, out, access=access(server), **more)

    return started


def test_a_run_trains_on_what_a_judge_says_and_tells_it(start: Start, server: ChatServer, tmp_path: Path) -> None:
    config = small_config(**BRIEF, rewards=[JUDGED, {"kind": "overlong", "soft_tokens": 4, "shadow": True}])
    assert start(config, tmp_path / "run")
    values, rows = metrics_of(tmp_path / "run"), rollouts(tmp_path / "run")
    trained = [row for row in rows if row.phase == "train"]
    distinct = len({(row.example_key, row.response) for row in rows})
    assert server.requests == distinct <= sum(values[step, "judge/calls"] for step in (1, 2)) + 2
    assert values[1, "judge/cost"] > 0 and values[1, "judge/latency"] > 0
    assert values[1, "reward/rubric_excluded"] == 0 and (1, "reward/overlong") in values
    for row in trained:
        judged = row.criteria[-1]
        assert judged.verdict.source == "judge" and judged.verdict.note == "It does what is asked."
        rubric, overlong = row.parts
        assert (rubric.name, rubric.value, overlong.shadow) == ("rubric", row.reward, True)
    assert (2, "eval/reward") in values and (2, "eval/rubric_score") in values


def test_a_judge_that_is_away_pauses_the_run_which_goes_on_when_it_answers(
    start: Start, server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "FIRST_WAIT_S", 0.05)
    config = small_config(**BRIEF, rewards=[JUDGED])
    assert start(config, tmp_path / "undisturbed")
    asked = server.requests
    server.reset()
    server.faults.extend(["", "", "down", "error", "", "down"])
    assert start(config, tmp_path / "run")
    told = states(tmp_path / "run")
    assert [state for state, _ in told][:3] == ["running", "paused", "running"] and told[-1][0] == "finished"
    assert told[1][1].startswith("Step 1 waits. rubric: down: ")
    assert server.requests == asked + 3, "only what was not answered is asked again"
    assert learned(tmp_path / "run") == learned(tmp_path / "undisturbed")


def test_a_paused_run_can_be_stopped_and_resumed(
    start: Start, server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "FIRST_WAIT_S", 0.05)
    config, out = small_config(**BRIEF, rewards=[JUDGED]), tmp_path / "run"
    server.fault = "down"
    monitor = stopped_when_paused(out)
    assert start(config, out, monitor=monitor)
    monitor.close()
    assert states(out)[-1][0] == "stopped"
    server.fault = None
    assert start(config, out, resume=True)
    assert states(out)[-1][0] == "finished"
    assert start(config, tmp_path / "undisturbed")
    assert learned(out) == learned(tmp_path / "undisturbed")


def test_a_judge_that_is_away_leaves_responses_out_where_the_part_says_so(
    start: Start, server: ChatServer, tmp_path: Path
) -> None:
    server.fault = "down"
    config = small_config(**BRIEF, rewards=[JUDGED | {"on_missing": "exclude"}])
    assert start(config, tmp_path / "run")
    values = metrics_of(tmp_path / "run")
    assert values[1, "rollout/excluded"] == 8 and values[1, "reward/rubric_excluded"] == 8
    assert (1, "reward/mean") not in values and (1, "reward/rubric") not in values, "missing, not zero"
    assert {row.reward for row in rollouts(tmp_path / "run")} == {None}


def test_a_run_that_is_killed_goes_on_with_the_same_rewards_and_asks_nothing_twice(
    start: Start, server: ChatServer, data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    """The judge answers at random, so only stored answers can repeat the run."""
    counter = iter(range(10_000))
    server.answer = lambda body: json.dumps({"explanation": f"draw {next(counter)}", "met": next(counter) % 3 == 0})
    config, out = small_config(**BRIEF | {"checkpoint": {"every": 2}}, rewards=[JUDGED]), tmp_path / "run"
    run_until_killed(
        "trainer.loops.recipes.policy:PolicyStage._update", config, data, tiny_dir, out, call=1, access=access(server)
    )
    before = [json.loads(line)[2]["verdicts"] for line in (out / "rewards.jsonl").read_text().split("\n") if line]
    drawn = sorted(verdict["note"] for verdicts in before for verdict in verdicts if verdict["source"] == "judge")
    assert len(drawn) == 9, "eight responses of the step and one of the evaluation before it"
    assert start(config, out, resume=True)
    rows = [row for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts if e.step < 2]
    told = {row.criteria[-1].verdict.note for row in rows if row.phase == "train" or row.example_key}
    assert told == set(drawn), "every answer of before the kill is used, and no other in its place"


def test_pairwise_rewards_compare_with_the_greedy_answer(
    server: ChatServer, data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    server.answer = lambda body: json.dumps({"reasons": ["first"], "verdict": "A"})
    part = {"kind": "judge", "judge": "Comparer v1", "protocol": "pairwise", "against": "greedy"}
    spec = resolve({"kind": "pairwise"})
    comparer = JudgeAccess(spec, digest(spec, "1"), Target(server.url, "m"))
    config = small_config(**BRIEF | {"steps": 1}, rewards=[part])
    assert run(config, data, tiny_dir, tmp_path / "run", access=Access({"Comparer v1": comparer}))
    rows = [row for row in rollouts(tmp_path / "run") if row.phase == "train"]
    assert {row.reward for row in rows} == {0.5}, "who always says A has no say"
    evaluated = [row for row in rollouts(tmp_path / "run") if row.phase == "eval"]
    assert {row.excluded for row in evaluated} == {"judge: there is no greedy answer to compare with"}


def test_a_judge_that_was_not_given_ends_the_run_at_its_field(data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    config = small_config(**BRIEF, rewards=[JUDGED])
    assert not run(config, data, tiny_dir, tmp_path / "run")
    assert states(tmp_path / "run")[-1] == ("failed", "rewards.0.judge: no judge 'Grader v1' was given to the run")


def learned(out: Path) -> dict[Any, float]:
    """The results of a run, without the costs of asking."""
    return {
        place: value for place, value in metrics_of(out).items() if not place[1].startswith(("judge/", "progress/"))
    }


def test_supervised_tuning_has_its_held_out_answers_judged(server: ChatServer, tiny_dir: Path, tmp_path: Path) -> None:
    """Prompts with a criterion that no verifier decides are scored with a judge. Without a judge they get no score."""
    rubric = Rubric(criteria=(Criterion(id="kind", text="Is kind.", points=2),))
    rows = [row.model_copy(update={"rubric": rubric}) for row in demonstrations(4, 3)]
    data = write_examples(rows, tmp_path / "data.jsonl")
    asked = {"every": 1, "generate": True, "max_new_tokens": 4}
    plan = {"steps": 2, "batch_size": 2, "data": {"source": "references"}, "checkpoint": {"every": 1}}
    judged = resolve_recipe("sft", {**plan, "evaluation": {**asked, "judge": "Grader v1"}})
    assert run(judged, data, tiny_dir, tmp_path / "run", access=access(server))
    values = metrics_of(tmp_path / "run")
    assert [values[step, "eval/scored"] for step in (0, 1, 2)] == [3, 3, 3]
    assert values[0, "eval/rubric_score"] == 1 and 0 < values[0, "judge/calls"] <= 3 and values[0, "judge/cost"] > 0
    calls = server.requests
    plain = resolve_recipe("sft", {**plan, "evaluation": asked})
    assert run(plain, data, tiny_dir, tmp_path / "plain", access=access(server))
    assert server.requests == calls and (0, "eval/rubric_score") not in metrics_of(tmp_path / "plain")
    assert not run(judged, data, tiny_dir, tmp_path / "alone")
    assert states(tmp_path / "alone")[-1] == (
        "failed",
        "evaluation.judge: no judge 'Grader v1' was given to the run",
    )
