"""Two stages and a mixture of orders on the tiny model: which prompts a step samples. A resumed run repeats them."""

from pathlib import Path
from typing import Any

import pytest

from tests.trainer.killed_runs import run_until_killed
from tests.trainer.running import run
from trainer import checkpoints
from trainer.config import ConfigInvalid
from trainer.contracts import Example

from ..conftest import events_of, metrics_of, small_config, whole_and_resumed

MODERATE = {"prompts": "some", "rate_above": 0.2, "rate_up_to": 0.8}
HARD = {"prompts": "some", "rate_above": 0.0, "rate_up_to": 0.2, "tags": ["logic"]}
STAGES = [
    {"begins": "step", "step": 2} | MODERATE,
    {"begins": "step", "step": 4} | HARD,
    {"begins": "step", "step": 6, "prompts": "all"},
]
RATES = [0.5, 0.6, 0.1, 0.1, 1.0, 0.0]


@pytest.fixture
def rated(examples: list[Example], examples_file: Path) -> Path:
    """Rows 0 and 1 are moderate, rows 2 and 3 are hard. Only row 3 is about logic."""
    rows = [
        row.model_copy(
            update={
                "meta": {"pass_rate": RATES[number]} if number < 6 else {},
                "tags": ("logic",) if number in (1, 3) else (),
            }
        )
        for number, row in enumerate(examples)
    ]
    examples_file.write_text("".join(row.canonical() + "\n" for row in rows))
    return examples_file


def staged(**changes: Any) -> Any:
    return small_config(
        **{"steps": 6, "phases": STAGES, "data": {"order": {"data": 1.0, "easy_first": 1.0, "uncertain": 1.0}}}
        | changes
    )


def test_each_stage_draws_from_its_pool_and_a_resumed_run_repeats_it(
    rated: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    whole, broken = whole_and_resumed(staged(), rated, tiny_dir, tmp_path, after=3)
    expected = metrics_of(whole)
    assert metrics_of(broken) == {place: value for place, value in expected.items() if place[0] >= 4}
    keys: dict[int, set[str]] = {}
    for event in events_of(whole):
        if event.data.kind == "rollouts":
            rows = [row for row in event.data.rollouts if row.phase == "train"]
            keys.setdefault(event.step, set()).update(row.example_key for row in rows)
    assert keys[2] == keys[3] == {"row-0", "row-1"}
    assert keys[4] == keys[5] == {"row-3"}
    assert [expected[step, "rollout/pool"] for step in (1, 2, 4, 6)] == [6, 2, 1, 6]
    said = [event.data.message for event in events_of(whole) if event.data.kind == "log"]
    assert "phase 2 begins: pass rates above 0 and up to 0.2 and tags logic; 1 of 6 prompts" in said


def test_a_stage_without_prompts_ends_the_run_before_its_first_step(
    rated: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    config = staged(phases=[{"begins": "step", "step": 2, "prompts": "some", "tags": ["proofs"]}])
    assert not run(config, rated, tiny_dir, tmp_path / "run")
    (failed,) = [e.data for e in events_of(tmp_path / "run") if e.data.kind == "state" and e.data.state == "failed"]
    assert failed.reason == "phases.0: none of the training prompts has the tag proofs"
    assert not metrics_of(tmp_path / "run")


ORDERS = [
    {"begins": "step", "step": 2, "order": "easy_first"},
    {"begins": "step", "step": 4, "order": "mixed", "data_share": 0.0, "easy_share": 1.0, "uncertain_share": 1.0},
]


def test_phases_change_the_order_and_a_killed_run_repeats_it(rated: Path, tiny_dir: Path, tmp_path: Path) -> None:
    """From easy to hard: rows 4, 1, 0, 2, 3, 5, with two in each step."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    config = staged(steps=5, phases=ORDERS, data={}, evaluation={"every": 0, "max_examples": 0})
    assert run(config, rated, tiny_dir, whole)
    keys: dict[int, set[str]] = {}
    for event in events_of(whole):
        if event.data.kind == "rollouts":
            keys.setdefault(event.step, set()).update(row.example_key for row in event.data.rollouts)
    assert (keys[2], keys[3]) == ({"row-4", "row-1"}, {"row-0", "row-2"})
    assert keys[4] & {"row-4"}, "the easiest again, beside the one whose pass rate is least certain"
    said = [event.data.message for event in events_of(whole) if event.data.kind == "log"]
    assert "phase 2 begins: order: 50% from easy to hard, 50% by uncertainty" in said

    run_until_killed("trainer.monitors:RunMonitor.metrics", config, rated, tiny_dir, broken, step=4)
    assert checkpoints.steps(broken / "checkpoints")[-1] == 3
    assert run(config, rated, tiny_dir, broken, resume=True)
    ends = [checkpoints.load(out / "checkpoints" / "step-000005") for out in (whole, broken)]
    assert ends[0].state["order"] == ends[1].state["order"]
    for owner, tensors in ends[0].tensors.items():
        assert all(tensors[key].equal(ends[1].tensors[owner][key]) for key in tensors), owner


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"phases": [{"prompts": "some"}]}, "phases.0.prompts"),
        ({"phases": [{"prompts": "some", "rate_above": 0.5, "rate_up_to": 0.5}]}, "phases.0.rate_up_to"),
        ({"data": {"order": {"data": 0.0}}}, "data.order.data"),
        ({"phases": [ORDERS[1] | {"step": 2, "easy_share": 0.0, "uncertain_share": 0.0}]}, "phases.0.data_share"),
        ({"phases": ORDERS, "data": {"replicas": 2}}, "data.replicas"),
        ({"phases": [], "runner": {"kind": "offline", "push_every": 2}}, "data.order"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        staged(**changes)
    assert path in {problem.path for problem in caught.value.problems}


def test_what_the_data_lacks_is_said_at_the_phase() -> None:
    counts = {"train": {"examples": 6, "rubrics": 6, "verified": 6, "rated": 6, "rated_solved": 6}, "heldout": {}}
    found = {problem.path: problem.message for problem in staged().data_problems(counts)}
    assert found["phases.0.rate_above"].startswith("all 6 training prompts with a pass rate were always solved")
    assert set(found) == {"phases.0.rate_above", "phases.1.rate_above", "data.order.easy_first"}
