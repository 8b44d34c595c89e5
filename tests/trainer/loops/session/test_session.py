"""The work of the session for every recipe: which checkpoint it continues from, and the models that a run leaves."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer import checkpoints
from trainer.config import PolicyConfig, resolve, upgrade_stored
from trainer.loops.session.errors import RunFailed
from trainer.loops.session.stage import ModelOutput

from ..conftest import SMALL, events_of, metrics_of, small_config

BRIEF: dict[str, Any] = {"steps": 2, "evaluation": {"every": 0, "max_examples": 0}}


def changed_state(run_dir: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrites the state of the newest checkpoint as another program would have left it."""
    folder = run_dir / "checkpoints" / f"step-{checkpoints.steps(run_dir / 'checkpoints')[-1]:06d}"
    record = json.loads((folder / "state.json").read_text())
    change(record["state"])
    (folder / "state.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"rollout": {"group_size": 2}}, "rollout.group_size is 4 there and 2 here"),
        ({"optim": {"lr": 0.5, "minibatch_size": 4}}, "optim.lr is 0.001 there and 0.5 here"),
    ],
)
def test_a_checkpoint_of_another_config_is_refused_with_what_differs(
    change: dict[str, Any], said: str, make_loop: Callable[..., Any]
) -> None:
    make_loop(small_config(**BRIEF)).run()
    rollout = {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 8} | change.pop("rollout", {})
    with pytest.raises(ValueError, match=f"step 2 is another run's: .*{said}"):
        make_loop(small_config(**BRIEF | change, rollout=rollout)).resume()


def test_other_examples_or_another_model_are_another_run(
    make_loop: Callable[..., Any], examples_file: Path, tiny_dir: Path
) -> None:
    make_loop(small_config(**BRIEF)).run()
    lines = examples_file.read_text().splitlines(keepends=True)
    examples_file.write_text("".join(lines[1:]))
    with pytest.raises(ValueError, match="the examples differ"):
        make_loop(small_config(**BRIEF)).resume()
    examples_file.write_text("".join(lines))
    more = tiny_dir / "added.txt"
    more.write_text("x")
    try:
        with pytest.raises(ValueError, match="the model 'base' differs"):
            make_loop(small_config(**BRIEF)).resume()
    finally:
        more.unlink()
    assert make_loop(small_config(**BRIEF)).resume()


def test_a_finished_run_goes_on_when_it_is_given_more_steps(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    plain = {"scaffold": None}  # the schedule of a scaffold and a falling learning rate depend on the number of steps
    make_loop(small_config(**BRIEF | plain)).run()
    longer = small_config(**BRIEF | plain | {"steps": 4})
    again = make_loop(longer)
    assert again.resume() and again.step == 2
    again.run()
    make_loop(longer, tmp_path / "straight").run()
    expected = {place: value for place, value in metrics_of(tmp_path / "straight").items() if place[0] > 2}
    assert {place: value for place, value in metrics_of(tmp_path / "run").items() if place[0] > 2} == expected
    with pytest.raises(ValueError, match="after step 4, the config ends at 2"):
        make_loop(small_config(**BRIEF | plain)).resume()


def test_a_forked_run_goes_on_with_another_config_and_says_what_changed(
    make_loop: Callable[..., Any], tmp_path: Path, tiny_dir: Path
) -> None:
    make_loop(small_config(**BRIEF)).run()
    forked = make_loop(small_config(**BRIEF | {"steps": 3, "seed": 1}))
    forked.job = replace(forked.job, forked=True)
    assert forked.resume() and forked.step == 2
    forked.run()
    said = [event.data.message for event in events_of(tmp_path / "run") if event.data.kind == "log"]
    assert "changed since the checkpoint: seed is 0 there and 1 here" in said
    with (tiny_dir / "added.txt").open("w") as more:
        more.write("x")
    try:
        another = make_loop(small_config(**BRIEF | {"steps": 4, "seed": 1}))
        another.job = replace(another.job, forked=True)
        with pytest.raises(ValueError, match="the model 'base' differs"):
            another.resume()
    finally:
        (tiny_dir / "added.txt").unlink()


def test_a_run_of_an_older_version_goes_on_as_it_began(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    """Its config has no cap for importance weights, and does not say which weights are decayed. At that time all were."""

    def config(steps: int) -> PolicyConfig:
        raw: dict[str, Any] = BRIEF | {
            "steps": steps,
            "scaffold": None,
            "model": {"lora": None},
            "optim": {"lr": 1e-3, "minibatch_size": 4, "weight_decay": 0.5, "decay": "all"},
            "objective": {"decoupled": True, "weight_cap": 1e9},
        }
        return small_config(**raw)

    def as_written_then(config: dict[str, Any]) -> dict[str, Any]:
        optim = {name: value for name, value in config["optim"].items() if name != "decay"}
        rollout = {name: value for name, value in config["rollout"].items() if name != "truncated"}
        objective = config["objective"] | {"weight_cap": None}
        return config | {"optim": optim, "rollout": rollout, "objective": objective}

    make_loop(config(4), tmp_path / "straight").run()
    make_loop(config(2)).run()
    changed_state(
        tmp_path / "run",
        lambda state: state["fingerprint"].update(config=as_written_then(state["fingerprint"]["config"])),
    )
    again = make_loop(resolve("policy", upgrade_stored("policy", as_written_then(config(4).model_dump(mode="json")))))
    assert again.resume()
    again.run()
    for name in ("policy", "optimizer"):
        whole, broken = (
            checkpoints.load(tmp_path / where / "checkpoints" / "step-000004").tensors[name]
            for where in ("straight", "run")
        )
        assert all(whole[key].equal(broken[key]) for key in whole)


def test_a_changed_program_is_said_and_an_old_checkpoint_is_taken(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    make_loop(small_config(**BRIEF)).run()
    changed_state(tmp_path / "run", lambda state: state["fingerprint"].update(code="another"))
    assert make_loop(small_config(**BRIEF)).resume()
    logs = [event.data.message for event in events_of(tmp_path / "run") if event.data.kind == "log"]
    assert sum("the program has changed" in line for line in logs) == 1
    changed_state(tmp_path / "run", lambda state: state.pop("fingerprint"))
    assert make_loop(small_config(**BRIEF)).resume()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"phases": [{"begins": "step", "step": 2, "temperature": "set", "set_to": 0.7}]}, r"phases is \[\] there"),
        ({"rollout": {"budget": {"low": 2, "high": 4}}}, "rollout.budget is null there"),
        ({"pass_rates": {"keep": 0.25}}, "pass_rates.keep is 0.5 there and 0.25 here"),
    ],
)
def test_a_run_of_a_version_that_lacked_a_field_goes_on_with_its_default_alone(
    make_loop: Callable[..., Any], tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    make_loop(small_config(**BRIEF)).run()

    def without(config: dict[str, Any]) -> None:
        del config["phases"], config["pass_rates"], config["rollout"]["budget"]

    changed_state(tmp_path / "run", lambda state: without(state["fingerprint"]["config"]))
    assert make_loop(small_config(**BRIEF)).resume()
    merged = {
        name: BRIEF.get(name, SMALL.get(name, {})) | each if isinstance(each, dict) else each
        for name, each in change.items()
    }
    with pytest.raises(ValueError, match=said):
        make_loop(small_config(**BRIEF | merged)).resume()


def test_a_run_whose_phases_lacked_a_field_goes_on_with_its_default(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    """Items of a list also get the default of a field that they did not have yet."""
    phase = {"begins": "step", "step": 2, "temperature": "set", "set_to": 0.7}
    make_loop(small_config(**BRIEF, phases=[phase])).run()

    def without(config: dict[str, Any]) -> None:
        for name in ("learning_rate", "lr_times", "domains"):
            del config["phases"][0][name]

    changed_state(tmp_path / "run", lambda state: without(state["fingerprint"]["config"]))
    assert make_loop(small_config(**BRIEF, phases=[phase])).resume()
    with pytest.raises(ValueError, match="phases is .* there"):
        make_loop(small_config(**BRIEF, phases=[phase | {"learning_rate": "times"}])).resume()


def test_outputs_are_written_whole_or_not_at_all(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"12345")

    def fail(folder: Path) -> None:
        write(folder)
        raise RunFailed("the weights cannot be written")

    session = make_loop(small_config(**BRIEF))
    session.stage.outputs = lambda: iter([ModelOutput("policy", "policy", fail)])
    with pytest.raises(RunFailed):
        session.run()
    assert os.listdir(tmp_path / "run" / "outputs") == []
    again = make_loop(small_config(**BRIEF))
    again.stage.outputs = lambda: iter([ModelOutput("policy", "policy", write)])
    assert again.resume()
    again.run()
    artifact = [event.data for event in events_of(tmp_path / "run") if event.data.kind == "artifact"][-1]
    assert (artifact.role, artifact.path) == ("model", "outputs/policy")
    assert artifact.model and artifact.bytes == sum(file.bytes for file in artifact.model.files)
    assert {file.path for file in artifact.model.files} == {"README.md", "config.json", "model.safetensors"}
    assert (artifact.model.format, artifact.model.base) == ("hf", "smollm2-135m-instruct")
    assert (tmp_path / "run" / "outputs" / "policy" / "model.safetensors").read_bytes() == b"12345"
