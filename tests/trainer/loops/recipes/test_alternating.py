"""Runs of recipe `alternating`: the reward of each turn and the weights that move. A kill at any moment changes nothing.

The texts are scripted, because a model of two layers writes neither rubrics nor judgements. The tokens are those that it sampled.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer import checkpoints
from trainer.claims import turns
from trainer.claims.teaching import Course, teach
from trainer.config import resolve
from trainer.contracts import Example, Message, Preference, Response
from trainer.inference.local import LocalSampler
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.generator import RubricGeneratorSpec
from trainer.loops.roles.frozen_judge import FrozenJudge

from ...killed_runs import run_until_killed
from ...running import run
from ..conftest import events_of, metrics_of

GOOD = "1. The response says yes. [Hard Rule]\n2. The response is plain. [Principle]"
TURNED = "1. The response says no. [Hard Rule]\n2. The response is plain. [Principle]"
WRITTEN = (GOOD, TURNED, "Sure, here is a rubric!")
_SHOWN = re.compile(r"<response_a>\n(.*?)\n</response_a>", re.DOTALL)


def judgement(winner: str, whole: bool = True) -> str:
    lines = [f"Criterion {n}: {words} {n}." for n, words in ((1, "It says so in"), (2, "Look at line"))]
    end = ["Final Judgment", "Justification: the hard rule decides.", f"Winner: Response {winner}"]
    return "\n".join(["Response A", *lines, "Response B", *(lines if whole else lines[:1]), *end])


def scripted_answer(asked: str, temperature: float, seed: int) -> str:
    """Rubrics and sampled judgements follow from the seed. A greedy judgement follows from the rubric and the answers."""
    if "Winner:" not in asked:
        return WRITTEN[seed % 3] if temperature else GOOD
    if temperature:
        return judgement("AB"[seed % 2], whole=seed % 4 < 2)
    wanted = "yes" if "says yes" in asked else "no"
    return judgement("A" if wanted in _SHOWN.findall(asked)[0] else "B")


def script() -> None:
    real: Callable[..., Any] = LocalSampler.sample

    def sample(self: LocalSampler, requests: Any, progress: Any = None, finished: Any = None) -> Any:
        results = real(self, requests, progress)
        asked = [self._tokenizer.decode(list(request.prompt_tokens)) for request in requests]
        return [
            replace(result, text=scripted_answer(text, request.temperature, request.seed))  # type: ignore[arg-type]
            for text, request, result in zip(asked, requests, results, strict=True)
        ]

    LocalSampler.sample = sample  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalSampler, "sample", LocalSampler.sample)  # replaced by the original afterwards
    script()


@pytest.fixture(scope="module")
def tiny_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whole sentences of the questions to both roles are single tokens. A question then has a hundred tokens instead of a thousand."""
    directory = tmp_path_factory.mktemp("models") / "tiny"
    given = JudgeInput(example="", conversation=(Message(role="user", content="Is it so?"),))
    (asked,) = expand(RubricGeneratorSpec.model_validate({"form": "rubric_arm"}), "", given)
    lines = [line for message in asked.request.messages for line in message["content"].split("\n") if len(line) > 9]
    teach(directory, Course(iter(()), [*turns.pieces(), *lines], steps=0))
    return directory


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        Example(
            key=f"row-{n}",
            prompt=(Message(role="user", content=f"Is {n} so?"),),
            split="train" if n < 6 else "heldout",
            responses=(Response(id="a", text="yes, it is"), Response(id="b", text="no, it is not")),
            preferences=(Preference(a="a", b="b", strength=-2, rater="r"),),
        )
        for n in range(9)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(row.canonical() + "\n" for row in rows))
    return path


def config(**changes: Any) -> Any:
    raw: dict[str, Any] = {
        "steps": 6,
        "turn_steps": 2,
        "data": {"judgement": "rubric_arm"},
        "judge": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 4},
        "writer": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 4},
        "matcher": "words",
        "variances": {"pairs": 1, "rubrics": 3, "judgements": 2},
        "evaluation": {"every": 3, "max_examples": 3},
        "checkpoint": {"every": 1, "keep": 9},
    }
    return resolve("alternating", raw | changes)


def rollouts(out: Path) -> list[tuple[int, Any]]:
    return [(e.step, row) for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]


def weights(out: Path, step: int) -> dict[str, dict[str, Any]]:
    found = checkpoints.load(out / "checkpoints" / f"step-{step:06d}").tensors
    return {owner: {name: tensors[name] for name in tensors} for owner, tensors in found.items()}


def moved(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return any(not one[name].equal(other[name]) for name in one)


def test_turns_earn_what_the_method_says_and_move_one_role_each(data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(config(), data, tiny_dir, out)
    told = metrics_of(out)
    assert [told[step, "turn/judge"] for step in range(1, 7)] == [1, 1, 0, 0, 1, 1]
    assert [told[step, "turn/round"] for step in range(1, 7)] == [1, 1, 1, 1, 2, 2]
    trained = [(step, row) for step, row in rollouts(out) if row.phase == "train"]
    for _, row in [each for each in trained if each[0] in (1, 2, 5, 6)]:
        parts = {part.name: part for part in row.parts}
        right = f"Winner: Response {'A' if parts['outcome'].shown['label'] < 0 else 'B'}" in row.response
        whole = row.response.count("Criterion 2") == 2
        assert row.reward == float(right) + float(whole), "1[o = o*] + 1[format]"
    for _, row in [each for each in trained if each[0] in (3, 4)]:
        assert row.reward == float(row.response == GOOD), "1[o = o*]; neither the turned rubric nor the unreadable one"
    assert {row.reward for step, row in trained if step in (3, 4)} == {0.0, 1.0}
    assert "judge/reward/mean" not in {key for step, key in told if step in (3, 4)}
    after = {step: weights(out, step) for step in (1, 2, 3, 4, 5)}
    assert not moved(after[1]["writer-policy"], after[2]["writer-policy"])
    assert moved(after[1]["policy"], after[2]["policy"])
    assert not moved(after[2]["policy"], after[4]["policy"]) and moved(after[4]["policy"], after[5]["policy"])
    assert moved(after[2]["writer-policy"], after[4]["writer-policy"])


def test_rounds_have_pairs_of_their_own_and_one_rubric_for_each(data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(config(judge={"prompts_per_step": 1, "group_size": 4, "max_new_tokens": 4}), data, tiny_dir, out)
    keys: dict[int, set[str]] = {1: set(), 2: set()}
    rubrics: dict[str, set[str]] = {}
    for step, row in rollouts(out):
        if row.phase == "train":
            keys[1 if step < 5 else 2].add(row.example_key.split(" · ")[0])
            if step in (1, 2):
                rubrics.setdefault(row.example_key, set()).add(row.prompt.split("<rubric>")[1].split("</rubric>")[0])
    assert not keys[1] & keys[2] and all(len(found) == 1 for found in rubrics.values())
    told = metrics_of(out)
    assert told[1, "turn/rubrics"] == 3 and told[1, "turn/readable"] <= 3


def test_held_out_pairs_are_judged_in_both_orders(data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(config(steps=3, turn_steps=1), data, tiny_dir, out)
    told = metrics_of(out)
    assert told[3, "eval/accuracy"] == 1.0 and told[3, "eval/pairs"] == 3 and told[3, "eval/consistent"] == 1.0
    judged = [
        part.shown["answers"]
        for _, row in rollouts(out)
        if row.phase == "eval"
        for part in row.parts
        if part.name == "choice"
    ]
    assert all(sorted(one["parsed"]["people"] for one in both) == ["A", "B"] for both in judged)


def test_variances_are_measured_before_each_round_and_change_nothing(
    data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    out, plain = tmp_path / "run", tmp_path / "plain"
    assert run(config(variances={"pairs": 2, "rubrics": 3, "judgements": 4}), data, tiny_dir, out)
    assert run(config(variances={"pairs": 0}), data, tiny_dir, plain)
    told = metrics_of(out)
    assert {step for step, key in told if key.startswith("variance/")} == {1, 5}
    for step in (1, 5):
        assert told[step, "variance/pairs"] + told[step, "variance/left_out"] == 2
    measured = [step for step in (1, 5) if told[step, "variance/pairs"]]
    assert measured, "with three rubrics of a pair, two can be read"
    for step in measured:
        parts = told[step, "variance/noise"] + told[step, "variance/inconsistency"]
        assert told[step, "variance/writer"] == pytest.approx(parts)
        assert told[step, "variance/writer_norm"] > 0 and 0 <= told[step, "variance/p"] <= 1
    one, other = weights(out, 6), weights(plain, 6)
    assert not any(moved(one[owner], other[owner]) for owner in one)


def test_votes_on_held_out_pairs_are_cast_by_sampled_rubrics_and_judgements(
    data: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.WRITTEN", (GOOD, GOOD, "Sure!"))
    out = tmp_path / "run"
    assert run(config(steps=1, votes=3, variances={"pairs": 0}), data, tiny_dir, out)
    told = metrics_of(out)
    for step in (0, 1):
        assert told[step, "eval/votes"] + told[step, "eval/votes_missing"] == 3 * 2 * 3
        assert 0 < told[step, "eval/votes"] < 18 and 0 <= told[step, "eval/voting"] <= 1
    assert told[0, "eval/voting"] == told[1, "eval/voting"], "the same seeds at every evaluation, and scripted words"


def test_switches(data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    plain = {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 4, "format_reward": False}
    out = tmp_path / "run"
    assert run(config(steps=2, turn_steps=1, first="writer", judge=plain), data, tiny_dir, out)
    told = metrics_of(out)
    assert [told[step, "turn/judge"] for step in (1, 2)] == [0, 1]
    rewards = {row.reward for step, row in rollouts(out) if step == 2 and row.phase == "train"}
    assert rewards <= {0.0, 1.0} and (2, "judge/reward/form") in told


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a run that is not killed. It is made once for each config."""
    made: dict[str, Path] = {}

    def _undisturbed(wanted: Any, data: Path, tiny_dir: Path) -> Path:
        key = wanted.model_dump_json()
        if key not in made:
            made[key] = tmp_path_factory.mktemp("whole")
            assert run(wanted, data, tiny_dir, made[key])
        return made[key]

    return _undisturbed


@pytest.mark.parametrize("lora", [{"rank": 2}, None])
@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_a_run_killed_in_any_turn_ends_as_if_it_had_not_been(
    step: int, lora: Any, data: Path, tiny_dir: Path, tmp_path: Path, undisturbed: Callable[..., Path]
) -> None:
    broken, made = tmp_path / "broken", config(model={"lora": lora})
    whole = undisturbed(made, data, tiny_dir)
    run_until_killed("trainer.monitors:RunMonitor.metrics", made, data, tiny_dir, broken, step=step, prepare=script)
    assert checkpoints.steps(broken / "checkpoints")[-1] == step - 1
    assert run(made, data, tiny_dir, broken, resume=True)

    def learned(out: Path) -> dict[tuple[int, str], float]:
        return {place: value for place, value in metrics_of(out).items() if not place[1].startswith("perf/")}

    assert learned(broken) == learned(whole)
    one, other = weights(whole, 6), weights(broken, 6)
    assert set(one) == set(other) == {"policy", "optimizer", "writer-policy", "writer-optimizer"}
    assert not any(moved(one[owner], other[owner]) for owner in one)


def test_too_few_examples_for_the_rounds_are_refused(data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    assert not run(config(steps=20, turn_steps=1), data, tiny_dir, tmp_path / "run")
    last = events_of(tmp_path / "run")[-1].data
    assert "10 rounds need pairs of their own" in str(last)


def test_a_judge_without_a_readable_rubric_waits_for_a_better_writer(
    data: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.WRITTEN", ("Sure!",) * 3)
    out = tmp_path / "run"
    assert run(config(steps=2, turn_steps=1), data, tiny_dir, out)
    said = [event.data.message for event in events_of(out) if event.data.kind == "log"]
    assert any("cannot be read" in line and "changes no weights" in line for line in said)
    assert not moved(weights(out, 1)["policy"], weights(out, 2)["policy"])


def undecided_at(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rubrics can be read, but after step `version` the judge does not decide anything by any of them."""
    monkeypatch.setattr(f"{__name__}.WRITTEN", (GOOD,) * 3)
    real = FrozenJudge.ask

    def ask(self: FrozenJudge, items: Any, orders: Any, watch: Any) -> Any:
        found = real(self, items, orders, watch)
        if self.version != version:
            return found
        nothing = {"verdict": None, "problem": "there is no decision"}
        judged = [[one | nothing for one in item.facts["judged"]] for item in found]
        return [replace(item, facts={**item.facts, "judged": said}) for item, said in zip(found, judged, strict=True)]

    monkeypatch.setattr(FrozenJudge, "ask", ask)


def test_a_judge_that_decides_nothing_ends_the_run_and_says_what_helps(
    data: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undecided_at(0, monkeypatch)
    out = tmp_path / "run"
    assert not run(config(steps=2, turn_steps=1, first="writer"), data, tiny_dir, out)
    last = str(events_of(out)[-1].data)
    assert "choice: the judge decided nothing: there is no decision" in last and "turn_steps" in last


def test_a_later_turn_of_the_writer_goes_on_counting_steps_without_rewards(
    data: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undecided_at(2, monkeypatch)
    out, made = tmp_path / "run", config(steps=3, turn_steps=1, first="writer")
    assert run(made, data, tiny_dir, out), "the writer's first turn had rewards, so one step without is no end"
    rewards = {
        step: {row.reward for at, row in rollouts(out) if at == step and row.phase == "train"} for step in (1, 3)
    }
    assert rewards == {1: {1.0}, 3: {None}}


OWN = {
    "judge": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 4, "optim": {"lr": 3e-4, "minibatch_size": 4}},
    "writer": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 4, "optim": {"lr": 7e-3}},
}


def test_each_role_learns_at_its_own_rate_and_a_kill_between_turns_changes_nothing(
    data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    whole, broken, made = tmp_path / "whole", tmp_path / "broken", config(**OWN)
    assert run(made, data, tiny_dir, whole)
    told = metrics_of(whole)
    assert [told[step, "optim/lr"] for step in range(1, 7)] == [3e-4, 3e-4, 7e-3, 7e-3, 3e-4, 3e-4]
    run_until_killed("trainer.monitors:RunMonitor.metrics", made, data, tiny_dir, broken, step=4, prepare=script)
    assert run(made, data, tiny_dir, broken, resume=True)
    one, other = weights(whole, 6), weights(broken, 6)
    assert not any(moved(one[owner], other[owner]) for owner in one)


def test_a_role_whose_own_values_are_those_of_both_learns_the_same_to_the_bit(
    data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    said = {role: {**OWN[role], "optim": {"lr": 2e-4, "grad_clip": 1.0, "epochs_per_step": 1}} for role in OWN}
    ends = []
    for name, changes in (("shared", {}), ("said", said)):
        made = config(steps=4, optim={"lr": 2e-4}, evaluation={"every": 0, "max_examples": 3}, **changes)
        assert run(made, data, tiny_dir, tmp_path / name)
        ends.append(weights(tmp_path / name, 4))
    assert not any(moved(ends[0][owner], ends[1][owner]) for owner in ends[0])
    # Another learning rate of the writer changes only the writer, until the judge reads its rubrics.
    faster = {"writer": {**OWN["writer"], "optim": {"lr": 1e-3}}}
    made = config(steps=4, optim={"lr": 2e-4}, evaluation={"every": 0, "max_examples": 3}, **faster)
    assert run(made, data, tiny_dir, tmp_path / "faster")
    end = weights(tmp_path / "faster", 4)
    assert not moved(end["policy"], ends[0]["policy"]) and moved(end["writer-policy"], ends[0]["writer-policy"])
