"""Iterative DPO: rounds, their reference, the effect of a judge's orders, and how runs survive a kill."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chatserver import ChatServer
from trainer import checkpoints
from trainer.config import ConfigInvalid, RecipeConfig, resolve
from trainer.contracts import Example
from trainer.judges.chat import Prices, Target
from trainer.judges.spec import digest
from trainer.judges.spec import resolve as resolve_judge
from trainer.rewards.access import Access, JudgeAccess
from trainer.rollouts import scoring

from ...chat_beside import chat_server
from ...killed_runs import run_until_killed
from ...running import run
from ..conftest import events_of, metrics_of, states, stopped_when_paused

JUDGED = {"kind": "judge", "name": "judge", "judge": "Comparer v1", "protocol": "pairwise", "against": "sample"}
TRUTH = {"kind": "format", "name": "truth", "form": "pattern", "pattern": "[^a-m]*", "shadow": True}
_IN_LINES = re.compile(r"<A>\n(.*?)\n</A>\n+<B>\n(.*?)\n</B>", re.DOTALL)
_ANSWERS = re.compile(r"<response>\n(.*?)\n</response>", re.DOTALL)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as found:
        found.answer = verdict(honest)
        yield found


def configured(**changes: Any) -> RecipeConfig:
    small: dict[str, Any] = {
        "steps": 4,
        "round_steps": 2,
        "model": {"name": "tiny", "lora": None},
        "rollout": {"prompts_per_round": 4, "samples": 2, "max_new_tokens": 8},
        "rewards": [JUDGED, TRUTH],
        "batch_size": 2,
        "optim": {"lr": 1e-3},
        "evaluation": {"every": 0, "max_examples": 2},
        "checkpoint": {"every": 1, "keep": 9},
    }
    return resolve("iterative_dpo", small | changes)


def access(server: ChatServer) -> Access:
    spec = resolve_judge({"kind": "pairwise", "retries": 0})
    target = Target(server.url, "m", retries=0, prices=Prices(1, 1))  # type: ignore[arg-type]
    return Access({"Comparer v1": JudgeAccess(spec, digest(spec, "1"), target)})


def verdict(choose: Any) -> Any:
    def answer(body: dict[str, Any]) -> str:
        first, second = _ANSWERS.findall(body["messages"][-1]["content"])
        return json.dumps({"reasons": ["as I see it"], "verdict": choose(first, second)})

    return answer


def honest(first: str, second: str) -> str:
    """Ranks answers by the sum of their characters, which does not depend on the place of an answer."""
    a, b = (sum(map(ord, text)) for text in (first, second))
    return "tie" if a == b else "A" if a > b else "B"


def learned(out: Path) -> dict[Any, float]:
    return {place: value for place, value in metrics_of(out).items() if not place[1].startswith("judge/")}


def weights(out: Path, step: int) -> dict[str, Any]:
    return dict(checkpoints.load(out / "checkpoints" / f"step-{step:06d}").tensors["policy"])


def test_rounds_sample_label_and_learn_on_one_page(
    server: ChatServer, examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert run(configured(), examples_file, tiny_dir, out, access=access(server))
    values = metrics_of(out)
    assert [values[step, "label/round"] for step in (1, 2, 3, 4)] == [1, 1, 2, 2]
    for step in (1, 3):
        assert values[step, "label/pairs"] == 4 and values[step, "label/inconsistent"] == 0
        assert values[step, "label/first_share"] == 0.5 and values[step, "label/margin"] == 1
        assert values[step, "judge/cost"] > 0
    assert (2, "label/kept") not in values and (2, "train/loss") in values
    assert values[0, "eval/score"] == 0.5, "before training it is the untrained model itself"
    assert "reward/mean" not in {key for _, key in values}, "a judge that compares gives no reward"
    phases = {e.data.phase for e in events_of(out) if e.data.kind == "progress"}
    assert {f"{what}, round {n} of 2" for n in (1, 2) for what in ("sampling", "labelling", "updating")} <= phases
    shown = [row for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]
    trained = [row for row in shown if row.phase == "train"]
    assert [row.reward for row in trained[:2]] == [1, 0] and trained[0].response != trained[1].response
    assert honest(trained[0].response, trained[1].response) == "A"


def test_a_trained_judge_that_answers_in_lines_labels_the_pairs(
    server: ChatServer, examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    """Recipe `judge` leaves a judge of this form, and *Use as a judge* makes such a version of it."""

    def in_lines(body: dict[str, Any]) -> str:
        first, second = _IN_LINES.findall(body["messages"][-1]["content"])[0]
        chosen = honest(first, second)
        return "- as I see it\nVerdict: " + ("a tie" if chosen == "tie" else f"{chosen} better")

    server.answer = in_lines
    spec = resolve_judge({"kind": "pairwise", "form": "lines", "order": "both", "retries": 0})
    asked = Access({"Comparer v1": JudgeAccess(spec, digest(spec, "1"), Target(server.url, "m", retries=0))})
    config = configured(steps=2, evaluation={"every": 0, "max_examples": 0})
    assert run(config, examples_file, tiny_dir, tmp_path / "run", access=asked)
    values = metrics_of(tmp_path / "run")
    assert values[1, "label/pairs"] == values[1, "label/kept"] * 4 == 4 and values[1, "label/inconsistent"] == 0
    assert (2, "train/loss") in values


def test_a_judge_that_always_names_the_first_teaches_nothing_in_both_orders(
    server: ChatServer, examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    server.answer = verdict(lambda first, second: "A")
    given: dict[str, Any] = {"steps": 1, "round_steps": 1, "evaluation": {"every": 0, "max_examples": 0}}
    for labels in ("both_orders", "one_order"):
        out = tmp_path / labels
        config = configured(**given, pairs={"labels": labels})
        assert run(config, examples_file, tiny_dir, out, access=access(server))
    both, one = metrics_of(tmp_path / "both_orders"), metrics_of(tmp_path / "one_order")
    assert both[1, "label/first_share"] == one[1, "label/first_share"] == 1
    assert (both[1, "label/kept"], one[1, "label/kept"]) == (0, 1)
    assert both[1, "label/inconsistent"] == 4 and (1, "train/loss") not in both
    untouched = checkpoints.load(tmp_path / "both_orders" / "checkpoints" / "step-000001").tensors["policy"]
    moved = weights(tmp_path / "one_order", 1)
    assert any(not untouched[name].equal(moved[name]) for name in moved)
    warned = [e.data.message for e in events_of(tmp_path / "both_orders") if e.data.kind == "log"]
    assert any("none of 4 pairs was kept" in message for message in warned)


@pytest.mark.parametrize("step", [1, 3])
def test_a_killed_run_asks_no_judge_twice_and_goes_on_the_same(
    step: int,
    server: ChatServer,
    examples_file: Path,
    tiny_dir: Path,
    tmp_path: Path,
) -> None:
    """The judge answers at random, so only stored answers can repeat the run."""
    asked: list[str] = []

    def fickle(first: str, second: str) -> str:
        asked.append(first + second)
        return "AB"[len(asked) % 3 == 0]

    server.answer = verdict(fickle)
    config, out = (
        configured(pairs={"labels": "one_order"}, evaluation={"every": 0, "max_examples": 0}),
        tmp_path / "run",
    )
    given = config, examples_file, tiny_dir, out
    run_until_killed("trainer.loops.supervised.fitting:Fitter.step", *given, step=step, access=access(server))
    before = len(asked)
    told = {place: value for place, value in learned(out).items() if place[1].startswith("label/")}
    assert run(*given, resume=True, access=access(server))
    again = learned(out)
    assert {place: again[place] for place in told} == told
    assert len(asked) == before + (8 if step == 1 else 0), "only the round that had not begun is asked for"
    assert len(set(asked)) == len(asked)


def test_a_stop_while_a_judge_is_away_loses_no_verdict(
    server: ChatServer, examples_file: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "FIRST_WAIT_S", 0.05)
    config, out = configured(evaluation={"every": 0, "max_examples": 0}), tmp_path / "run"
    assert run(config, examples_file, tiny_dir, tmp_path / "whole", access=access(server))
    server.reset()
    for number in range(3):
        server.faults.append("" if number < 2 else "down")
    server.fault = "down"
    monitor = stopped_when_paused(out)
    assert run(config, examples_file, tiny_dir, out, monitor=monitor, access=access(server))
    monitor.close()
    assert states(out)[-1][0] == "stopped" and checkpoints.steps(out / "checkpoints") == [0]
    server.fault = None
    assert run(config, examples_file, tiny_dir, out, resume=True, access=access(server))
    assert learned(out) == learned(tmp_path / "whole")


@pytest.mark.parametrize("lora", [None, {"rank": 4}], ids=["whole", "adapters"])
def test_the_reference_is_the_start_or_the_round(
    lora: Any, examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    """A policy that is its own reference has margin 0. That holds in the first step of each round, or of the run."""
    valued = {
        "rewards": [TRUTH | {"shadow": False}],
        "rollout": {"prompts_per_round": 6, "samples": 4, "max_new_tokens": 8},
    }
    leads = {}
    for reference in ("start", "round"):
        config = configured(**valued, reference=reference, model={"name": "tiny", "lora": lora}, optim={"lr": 1e-2})
        assert run(config, examples_file, tiny_dir, tmp_path / reference)
        values = metrics_of(tmp_path / reference)
        leads[reference] = [values[step, "train/reward_chosen"] for step in (1, 2, 3)]
        assert values[1, "reward/mean"] == values[1, "reward/truth"] and (4, "eval/score") in values
    assert leads["start"][0] == pytest.approx(0, abs=1e-5) and abs(leads["start"][2]) > 1e-3
    assert leads["round"][0] == pytest.approx(0, abs=1e-5) and leads["round"][2] == pytest.approx(0, abs=1e-5)


def test_it_learns_what_the_reward_asks_for(examples: list[Example], tiny_dir: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(row.canonical() + "\n" for row in examples))
    config = configured(
        steps=16,
        round_steps=4,
        rewards=[TRUTH | {"shadow": False, "pattern": ".*[a-m].*"}],
        rollout={"prompts_per_round": 6, "samples": 8, "max_new_tokens": 8},
        batch_size=8,
        optim={"lr": 2e-3},
    )
    assert run(config, data, tiny_dir, tmp_path / "run")
    values = metrics_of(tmp_path / "run")
    assert values[13, "reward/mean"] > values[1, "reward/mean"] + 0.1


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"rewards": [JUDGED, JUDGED | {"name": "other"}]}, "rewards.1.against", "one part compares"),
        ({"rewards": [JUDGED, TRUTH | {"shadow": False}]}, "rewards.1.shadow", "labels the pairs by itself"),
        ({"pairs": {"margin": 0.5}}, "pairs.margin", "no reward to lead by"),
        ({"pairs": {"choose": "extremes"}}, "pairs.choose", "needs a reward"),
        ({"rewards": [TRUTH | {"shadow": False}], "pairs": {"labels": "one_order"}}, "pairs.labels", "no orders"),
        ({"rewards": [JUDGED | {"against": "greedy"}]}, "rewards.0.against", "no greedy answer"),
        ({"rollout": {"samples": 1}}, "rollout.samples", "must be at least 2"),
    ],
)
def test_what_cannot_work_is_said_at_its_field(changes: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ConfigInvalid) as found:
        configured(**changes)
    assert any(problem.path == field and words in problem.message for problem in found.value.problems)


def test_other_recipes_pair_no_samples() -> None:
    with pytest.raises(ConfigInvalid, match="pairs no samples"):
        resolve("policy", {"rewards": [JUDGED]})


def test_a_judge_that_cannot_be_read_ends_the_run_which_goes_on_once_it_can(
    server: ChatServer, examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    config = configured(steps=2, evaluation={"every": 0, "max_examples": 0})
    out, whole = tmp_path / "run", tmp_path / "whole"
    assert run(config, examples_file, tiny_dir, whole, access=access(server))
    readable = server.answer
    server.answer = lambda body: "The first one, I think."
    assert not run(config, examples_file, tiny_dir, out, access=access(server))
    state, reason = states(out)[-1]
    assert state == "failed" and reason.startswith(
        "No response of step 1 has a reward, so there is nothing to learn. judge: "
    )
    assert "read what 'Comparer v1' answered" in reason
    server.answer = readable
    assert run(config, examples_file, tiny_dir, out, resume=True, access=access(server))
    assert learned(out) == learned(whole)


ODD = {"begins": "step", "step": 3, "prompts": "some", "domains": ["odd"], "temperature": "set", "set_to": 1.3}
SLOWER = {"begins": "step", "step": 5, "order": "easy_first", "learning_rate": "times", "lr_times": 0.5}
VALUED = {"rewards": [{"kind": "rubric"}], "evaluation": {"every": 2, "max_examples": 2}}


def test_phases_begin_with_rounds_and_a_killed_run_repeats_them(
    examples: list[Example], tiny_dir: Path, tmp_path: Path
) -> None:
    rows = [
        row.model_copy(update={"domain": ("even", "odd")[n % 2], "meta": {"pass_rate": n / 10}})
        for n, row in enumerate(examples)
    ]
    data, whole, broken = tmp_path / "data.jsonl", tmp_path / "whole", tmp_path / "broken"
    data.write_text("".join(row.canonical() + "\n" for row in rows))
    odd = sum(row.domain == "odd" and row.split != "heldout" for row in rows)
    rollout = {"prompts_per_round": 3, "samples": 4, "max_new_tokens": 8}
    config = configured(steps=6, phases=[ODD, SLOWER], pairs={"choose": "all"}, rollout=rollout, **VALUED)
    assert run(config, data, tiny_dir, whole)
    found = metrics_of(whole)
    curves = {key: {step: value for (step, name), value in found.items() if name == key} for _, key in found}
    assert curves["phase/number"] == {3: 1.0, 5: 2.0}
    assert curves["rollout/temperature"] == {1: 1.0, 3: 1.3, 5: 1.3}
    assert curves["rollout/pool"] == {1: len(rows) - 2, 3: odd, 5: odd}
    said = [event.data.message for event in events_of(whole) if event.data.kind == "log"]
    assert (
        f"phase 1 begins: temperature 1.3, domains odd; the temperature is 1.3; {odd} of {len(rows) - 2} prompts"
        in said
    )
    assert "phase 2 begins: from easy to hard, learning rate × 0.5" in said
    lr = curves["optim/lr"]
    assert lr[5] == pytest.approx(lr[3] / 2)
    keys: dict[int, set[str]] = {}
    for event in events_of(whole):
        if event.data.kind == "rollouts":
            trained = [row for row in event.data.rollouts if row.phase == "train"]
            keys.setdefault(event.step, set()).update(row.example_key for row in trained)
    assert keys[3] | keys[5] <= {"row-1", "row-3", "row-5"}

    run_until_killed("trainer.loops.pairs.rounds:Rounds.labelled", config, data, tiny_dir, broken, step=2)
    assert checkpoints.steps(broken / "checkpoints")[-1] == 4, "the third round is not labelled"
    assert run(config, data, tiny_dir, broken, resume=True)
    ends = [checkpoints.load(out / "checkpoints" / "step-000006") for out in (whole, broken)]
    assert ends[0].state["order"] == ends[1].state["order"] and ends[0].state["phases"] == ends[1].state["phases"]
    for owner, tensors in ends[0].tensors.items():
        assert all(tensors[key].equal(ends[1].tensors[owner][key]) for key in tensors), owner


WAITS = {"begins": "plateau", "window": 4, "metric": "reward/mean", "learning_rate": "times"}


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"phases": [ODD | {"step": 4}], "steps": 6}, "phases.0.step", "in the middle of one; choose 3 or 5"),
        ({"phases": [WAITS], "steps": 8}, "phases.0.window", "the phase cannot begin before step 9"),
        (
            {"phases": [WAITS | {"metric": "eval/score"}], "steps": 6},
            "phases.0.window",
            "the phase cannot begin before step 7",
        ),
        ({"phases": [WAITS], "steps": 9, "rewards": [JUDGED, TRUTH]}, "phases.0.metric", "choose 'eval/score'"),
        (
            {"phases": [ODD | {"lengths": "toggle"}]},
            "phases.0.lengths",
            "this recipe learns which of two answers is better",
        ),
        ({"phases": [ODD | {"order": "uncertain"}]}, "phases.0.order", "rounds keep no pass rates"),
        ({"data": {"order": {"uncertain": 1.0}}}, "data.order.uncertain", "rounds keep no pass rates"),
        ({"data": {"replicas": 2}, "phases": [SLOWER], "steps": 6}, "data.replicas", "each prompt once a round"),
    ],
)
def test_what_phases_of_rounds_cannot_be_is_said_at_its_field(changes: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(**VALUED | changes)
    assert words in {problem.path: problem.message for problem in caught.value.problems}[field]
