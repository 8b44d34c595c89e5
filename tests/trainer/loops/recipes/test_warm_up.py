"""The warm-up of recipe `alternating`: what it teaches each role. Turns begin with its result, and a kill at any moment changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer import checkpoints
from trainer.claims import turns
from trainer.claims.teaching import Course, teach
from trainer.contracts import Criterion, Message, Rubric, jsonlines
from trainer.contracts.example import Example, Reason
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.generator import RubricGeneratorSpec

from ...killed_runs import run_until_killed
from ...running import run
from ..conftest import events_of, metrics_of
from .test_alternating import config, data, moved, script, scripted, undisturbed, weights

__all__ = ["data", "scripted", "undisturbed"]
RUBRIC = Rubric(
    criteria=(
        Criterion(id="x", text="The response says yes.", points=5, kind="hard", importance="essential"),
        Criterion(id="y", text="The response is plain.", points=3),
    )
)
REASONS = (
    Reason(text="It says yes.", response="a"),
    Reason(text="It says no.", response="b"),
    Reason(text="Both are plain."),
)
WARM = {"judge_steps": 2, "writer_steps": 2, "batch_size": 3}


@pytest.fixture(scope="module")
def tiny_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The questions to both roles and the texts of people take a few dozen tokens."""
    directory = tmp_path_factory.mktemp("models") / "tiny"
    given = JudgeInput(example="", conversation=(Message(role="user", content="Is it so?"),))
    (asked,) = expand(RubricGeneratorSpec.model_validate({"form": "rubric_arm"}), "", given)
    lines = [line for message in asked.request.messages for line in message["content"].split("\n") if len(line) > 9]
    said = [
        *(each.text for each in REASONS),
        *(each.text for each in RUBRIC.criteria),
        "Criterion 1: ",
        "Criterion 2: ",
        "The response meets this: ",
    ]
    teach(directory, Course(iter(()), [*turns.pieces(), *lines, *said], steps=0))
    return directory


@pytest.fixture
def taught(data: Path) -> Path:
    """One of the six training examples has no reasons, and another has neither reasons nor a rubric."""
    rows = [Example.model_validate_json(line) for line in jsonlines.lines(data.read_text())]
    for place, row in enumerate(rows):
        said = row.preferences[0].model_copy(update={"reasons": REASONS if place not in (0, 1) else ()})
        rows[place] = row.model_copy(update={"preferences": (said,), "rubric": None if place == 0 else RUBRIC})
    path = data.with_name("taught.jsonl")
    path.write_text("".join(row.canonical() + "\n" for row in rows))
    return path


def long(**changes: Any) -> Any:
    """Room for the demonstrations, and the steps: two of warm-up for each role, then turns of one step."""
    made: dict[str, Any] = {
        "steps": 7,
        "turn_steps": 1,
        "judge": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 90},
        "writer": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 60},
        "variances": {"pairs": 0},
        "panel": {"pairs": 0},
        "evaluation": {"every": 0, "max_examples": 1},
        "warmup": WARM,
        "optim": {"lr": 1e-3},
    }
    return config(**(made | changes))


def test_each_role_learns_its_demonstrations_before_the_first_turn(
    taught: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert run(long(), taught, tiny_dir, out)
    told = metrics_of(out)
    assert {step for step, key in told if key == "warmup/judge_loss"} == {1, 2}
    assert {step for step, key in told if key == "warmup/writer_loss"} == {3, 4}
    for role, first in (("judge", 1), ("writer", 3)):
        assert told[first + 1, f"warmup/{role}_loss"] < told[first, f"warmup/{role}_loss"]
    assert {place: value for place, value in told.items() if place[1] == "phase/number"} == {
        (1, "phase/number"): 1.0,
        (3, "phase/number"): 2.0,
        (5, "phase/number"): 3.0,
    }
    assert {step for step, key in told if key == "turn/round"} == {5, 6, 7}
    after = {step: weights(out, step) for step in (1, 2, 3, 4, 5, 6)}
    assert moved(after[1]["policy"], after[2]["policy"]) and not moved(after[2]["policy"], after[4]["policy"])
    assert moved(after[2]["writer-policy"], after[3]["writer-policy"])
    assert moved(after[3]["writer-policy"], after[4]["writer-policy"])
    assert not after[4]["optimizer"] and not after[4]["writer-optimizer"], "no moment of the warm-up reaches a turn"
    assert moved(after[4]["policy"], after[5]["policy"]) and moved(after[5]["writer-policy"], after[6]["writer-policy"])


def test_what_has_no_demonstration_is_counted_and_told(taught: Path, tiny_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(long(steps=5), taught, tiny_dir, out)
    told = metrics_of(out)
    assert (told[1, "warmup/judge_demonstrations"], told[1, "warmup/judge_left_out"]) == (4, 2)
    assert (told[3, "warmup/writer_demonstrations"], told[3, "warmup/writer_left_out"]) == (5, 1)
    said = [
        event.data.message for event in events_of(out) if event.data.kind == "log" and event.data.level == "warning"
    ]
    for line in (
        "warm-up of the judge: 1 pair without a demonstration of a judgement: people wrote no rubric",
        "warm-up of the judge: 1 pair without a demonstration of a judgement: no reasons were given",
        "warm-up of the writer: 1 prompt without a demonstration of a rubric: people wrote no rubric",
    ):
        assert any(each.startswith(line) for each in said), said


@pytest.mark.parametrize("lora", [{"rank": 2}, None])
def test_turns_are_held_to_what_the_warm_up_has_made(lora: Any, taught: Path, tiny_dir: Path, tmp_path: Path) -> None:
    """The distance to which the objective holds a role is 0 until its first turn has changed something."""
    kl = {"objective": {"name": "grpo", "kl_beta": 0.1}}
    made = long(steps=6, model={"lora": lora}, warmup=WARM | {"lr": 1e-2}, **kl)
    out = tmp_path / "run"
    assert run(made, taught, tiny_dir, out)
    told = metrics_of(out)
    for step, role in ((5, "judge"), (6, "writer")):
        assert told[step, f"{role}/policy/kl"] == pytest.approx(0.0, abs=1e-6)
    after = weights(out, 6)
    assert not moved(after["began"], weights(out, 4)["policy"])
    assert not moved(after["writer-began"], weights(out, 4)["writer-policy"])


@pytest.mark.parametrize(("step", "lora"), [(2, {"rank": 2}), (4, {"rank": 2}), (3, None), (5, None)])
def test_a_run_killed_in_its_warm_up_ends_as_if_it_had_not_been(
    step: int, lora: Any, taught: Path, tiny_dir: Path, tmp_path: Path, undisturbed: Any
) -> None:
    broken, made = tmp_path / "broken", long(steps=6, model={"lora": lora})
    whole = undisturbed(made, taught, tiny_dir)
    run_until_killed("trainer.monitors:RunMonitor.metrics", made, taught, tiny_dir, broken, step=step, prepare=script)
    assert checkpoints.steps(broken / "checkpoints")[-1] == step - 1
    assert run(made, taught, tiny_dir, broken, resume=True)

    def learned(out: Path) -> dict[tuple[int, str], float]:
        return {place: value for place, value in metrics_of(out).items() if not place[1].startswith("perf/")}

    assert learned(broken) == learned(whole)
    one, other = weights(whole, 6), weights(broken, 6)
    assert set(one) == set(other) >= {"policy", "optimizer", "writer-policy", "writer-optimizer"}
    assert not any(moved(one[owner], other[owner]) for owner in one)


def test_each_role_warms_up_at_its_own_rate(taught: Path, tiny_dir: Path, tmp_path: Path) -> None:
    own = {
        role: {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 90, "optim": {"lr": lr}}
        for role, lr in (("judge", 3e-4), ("writer", 7e-3))
    }
    assert run(long(steps=5, **own), taught, tiny_dir, tmp_path / "run")
    told = metrics_of(tmp_path / "run")
    assert [told[step, "optim/lr"] for step in range(1, 6)] == [3e-4, 3e-4, 7e-3, 7e-3, 3e-4]


def test_one_role_alone_may_warm_up(taught: Path, tiny_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(long(steps=3, warmup={"judge_steps": 0, "writer_steps": 2}), taught, tiny_dir, out)
    told = metrics_of(out)
    assert {step: told[step, key] for step, key in told if key == "phase/number"} == {1: 1.0, 3: 2.0}
    assert not moved(weights(out, 1)["policy"], weights(out, 2)["policy"])


def test_data_without_a_demonstration_end_the_run_at_the_field(data: Path, tiny_dir: Path, tmp_path: Path) -> None:
    assert not run(long(), data, tiny_dir, tmp_path / "run")
    last = json.dumps(events_of(tmp_path / "run")[-1].model_dump(mode="json"))
    assert "warmup.judge_steps: the training data have no judgements by people" in last
    assert "6 pairs without a demonstration of a judgement: people wrote no rubric" in last
