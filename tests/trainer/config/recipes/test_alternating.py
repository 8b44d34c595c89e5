"""Recipe `alternating`: each role has its own optimiser settings, and problems are reported at the fields of that role."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from trainer.config import ConfigInvalid, resolve
from trainer.loops.policy.update import NotFinite
from trainer.loops.recipes.policy import PolicyStage
from trainer.loops.session.stage import learning_rate

SMALL: dict[str, Any] = {
    "steps": 8,
    "judge": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 4},
    "writer": {"prompts_per_step": 3, "group_size": 4, "max_new_tokens": 4},
    "optim": {"lr": 1e-4, "grad_clip": 0.5, "schedule": "linear", "minibatch_size": 4, "beta2": 0.95},
}


def alternating_config(**changes: Any) -> Any:
    sections = {name: {**SMALL.get(name, {}), **values} for name, values in changes.items()}
    return resolve("alternating", SMALL | sections)


def problems(**changes: Any) -> dict[str, str]:
    with pytest.raises(ConfigInvalid) as raised:
        alternating_config(**changes)
    return {problem.path: problem.message for problem in raised.value.problems}


def test_roles_share_the_optimiser_where_nothing_of_their_own_is_set() -> None:
    config = alternating_config()
    for role in ("judge", "writer"):
        assert config.turn(role).optim == config.optim
        assert config.turn(role).field("optim.lr") == "optim.lr"


def test_what_a_role_has_for_itself_stands_above_what_both_share() -> None:
    own = {"lr": 2e-3, "grad_clip": 2.0, "minibatch_size": 6, "epochs_per_step": 3}
    config = alternating_config(writer={"optim": own})
    judge, writer = config.turn("judge"), config.turn("writer")
    assert judge.optim == config.optim == alternating_config().optim
    assert writer.optim == config.optim.model_copy(update=own) and writer.optim.beta2 == 0.95
    assert [writer.field(f"optim.{name}") for name in (*own, "beta2")] == [
        *(f"writer.optim.{name}" for name in own),
        "optim.beta2",
    ]
    # The schedule is that of the run: at step 5 of 8 half of the peak of each role is left.
    assert learning_rate(judge, 5) == pytest.approx(0.5e-4) and learning_rate(writer, 5) == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"lr": 0.0}, "writer.optim.lr"),
        ({"lr": "fast"}, "writer.optim.lr"),
        ({"lr": 1.5}, "writer.optim.lr"),
        ({"grad_clip": -1.0}, "writer.optim.grad_clip"),
        ({"epochs_per_step": 0}, "writer.optim.epochs_per_step"),
        ({"minibatch_size": 0}, "writer.optim.minibatch_size"),
        ({"beta1": 0.9}, "writer.optim.beta1"),
    ],
)
def test_what_is_wrong_is_told_at_the_field_of_the_role(value: Any, path: str) -> None:
    assert list(problems(writer={"optim": value})) == [path]


def test_mini_batches_are_checked_against_the_responses_of_their_role() -> None:
    found = problems(writer={"optim": {"minibatch_size": 5}})
    assert found == {"writer.optim.minibatch_size": "3 prompts x 4 responses = 12 do not divide into mini-batches of 5"}
    shared = problems(optim={"minibatch_size": 6})
    assert shared == {"optim.minibatch_size": "2 prompts x 4 responses = 8 do not divide into mini-batches of 6"}
    assert (
        alternating_config(optim={"minibatch_size": 6}, judge={"optim": {"minibatch_size": 8}}).turn("judge").batch_size
        == 8
    )


def test_a_diverged_turn_names_the_field_that_its_role_learns_by(tmp_path: Path) -> None:
    said = []
    for config in (
        alternating_config().turn("writer"),
        alternating_config(writer={"optim": {"lr": 2e-3}}).turn("writer"),
    ):
        stage = PolicyStage.__new__(PolicyStage)
        stage.parts = SimpleNamespace(config=config, run_dir=tmp_path)  # type: ignore[assignment]
        tell = SimpleNamespace(artifact=lambda data: None)
        said.append(str(stage._diverged(3, NotFinite("the loss", []), [], torch.zeros(0), tell)))
    assert "Lower optim.lr (now 0.0001) or optim.grad_clip and run again." in said[0]
    assert "Lower writer.optim.lr (now 0.002) or optim.grad_clip and run again." in said[1]


WARM = {"judge_steps": 3, "writer_steps": 2}


def test_a_config_without_a_warm_up_is_as_it_was() -> None:
    config = alternating_config()
    assert config.warmup is None and config.warm_steps == 0 and config.warming_at(1) is None
    assert [config.turn_at(step) for step in (1, 8)] == [(0, "judge"), (0, "judge")] and config.outline(
        {"steps": 8}
    ) == []


def test_the_steps_of_a_warm_up_come_first_and_count_among_the_steps() -> None:
    config: Any = resolve("alternating", SMALL | {"steps": 11, "turn_steps": 2, "warmup": WARM})
    assert [config.warming_at(step) for step in range(1, 7)] == ["judge"] * 3 + ["writer"] * 2 + [None]
    assert [config.turn_at(step) for step in (6, 7, 8, 10)] == [(0, "judge"), (0, "judge"), (1, "writer"), (2, "judge")]
    assert [step for step in range(6, 12) if config.ends_turn(step)] == [7, 9, 11] and config.rounds == 2
    raw = {"steps": 11, "turn_steps": 2, "warmup": WARM}
    assert [line.when for line in config.outline(raw)] == ["step 1", "step 4", "step 6"]
    assert config.amounts(raw)[0].value == 2


def test_a_warm_up_has_the_roles_own_optimiser_and_a_rate_of_its_own_where_it_is_said() -> None:
    own = {"lr": 2e-3, "grad_clip": 2.0}
    config = alternating_config(writer={"optim": own}, warmup=WARM)
    assert config.warming("writer") == config.turn("writer") and config.warming("judge") == config.turn("judge")
    faster = alternating_config(writer={"optim": own}, warmup=WARM | {"lr": 1e-2}).warming("writer")
    assert (faster.optim.lr, faster.optim.grad_clip) == (1e-2, 2.0)
    assert (faster.field("optim.lr"), faster.field("optim.grad_clip")) == ("warmup.lr", "writer.optim.grad_clip")


@pytest.mark.parametrize(
    ("warmup", "path", "said"),
    [
        ({"judge_steps": 0, "writer_steps": 0}, "warmup.judge_steps", "no role has steps of warm-up"),
        ({"judge_steps": 3, "writer_steps": 5}, "warmup.writer_steps", "8 of the run's 8 steps"),
        ({"judge_steps": -1}, "warmup.judge_steps", "must be at least 0"),
    ],
)
def test_a_warm_up_that_cannot_be_is_told_at_its_field(warmup: Any, path: str, said: str) -> None:
    (found,) = problems(warmup=warmup).items()
    assert found[0] == path and said in found[1]


def test_data_without_demonstrations_are_refused_at_the_field_of_the_role() -> None:
    config = alternating_config(warmup=WARM)

    def told(**train: int) -> dict[str, str]:
        return {each.path: each.message for each in config.data_problems({"train": train, "heldout": {"rubrics": 1}})}

    assert set(told()) == {"warmup.judge_steps", "warmup.writer_steps"}
    assert (
        list(told(rubrics=2)) == ["warmup.judge_steps"] and "reasons by people" in told(rubrics=2)["warmup.judge_steps"]
    )
    assert told(rubrics=2, reasoned_pairs=1) == {} and list(alternating_config().data_problems({"train": {}})) == []
    only = alternating_config(warmup={"judge_steps": 0, "writer_steps": 2})
    assert list(only.data_problems({"train": {"rubrics": 1}})) == []
