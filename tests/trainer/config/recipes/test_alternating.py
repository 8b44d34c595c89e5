"""Recipe `alternating`: what of the optimiser each role has for itself, and where what is wrong about it is told."""

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


def made(**changes: Any) -> Any:
    sections = {name: {**SMALL.get(name, {}), **values} for name, values in changes.items()}
    return resolve("alternating", SMALL | sections)


def problems(**changes: Any) -> dict[str, str]:
    with pytest.raises(ConfigInvalid) as raised:
        made(**changes)
    return {problem.path: problem.message for problem in raised.value.problems}


def test_roles_share_the_optimiser_where_nothing_of_their_own_is_set() -> None:
    config = made()
    for role in ("judge", "writer"):
        assert config.turn(role).optim == config.optim
        assert config.turn(role).field("optim.lr") == "optim.lr"


def test_what_a_role_has_for_itself_stands_above_what_both_share() -> None:
    own = {"lr": 2e-3, "grad_clip": 2.0, "minibatch_size": 6, "epochs_per_step": 3}
    config = made(writer={"optim": own})
    judge, writer = config.turn("judge"), config.turn("writer")
    assert judge.optim == config.optim == made().optim
    assert writer.optim == config.optim.model_copy(update=own) and writer.optim.beta2 == 0.95
    assert [writer.field(f"optim.{name}") for name in (*own, "beta2")] == [
        *(f"writer.optim.{name}" for name in own),
        "optim.beta2",
    ]
    # The schedule is the run's: at step 5 of 8 half of the peak is left, of each role's own.
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
    assert made(optim={"minibatch_size": 6}, judge={"optim": {"minibatch_size": 8}}).turn("judge").batch_size == 8


def test_a_diverged_turn_names_the_field_that_its_role_learns_by(tmp_path: Path) -> None:
    said = []
    for config in (made().turn("writer"), made(writer={"optim": {"lr": 2e-3}}).turn("writer")):
        stage = PolicyStage.__new__(PolicyStage)
        stage.parts = SimpleNamespace(config=config, run_dir=tmp_path)  # type: ignore[assignment]
        tell = SimpleNamespace(artifact=lambda data: None)
        said.append(str(stage._diverged(3, NotFinite("the loss", []), [], torch.zeros(0), tell)))  # type: ignore[arg-type]
    assert "Lower optim.lr (now 0.0001) or optim.grad_clip and run again." in said[0]
    assert "Lower writer.optim.lr (now 0.002) or optim.grad_clip and run again." in said[1]
