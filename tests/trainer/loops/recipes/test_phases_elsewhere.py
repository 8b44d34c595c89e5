"""Phases of recipes that learn without a reward: when each phase begins, and what it changes. A killed run repeats it."""

from pathlib import Path
from typing import Any

import pytest

from tests.trainer.killed_runs import run_until_killed
from trainer import checkpoints
from trainer.config import RECIPES, ConfigInvalid, RecipeConfig, resolve
from trainer.contracts import Example
from trainer.loops.registry import make_stage
from trainer.monitors import RunMonitor, Spool

from ...running import job_of, run
from ..conftest import events_of, metrics_of
from ..texts import demonstrations, make_config, preferences, write_examples

FITTED = ("sft", "dpo", "reward_model")
STEPS = 9
EVEN = {"begins": "step", "step": 2, "prompts": "some", "domains": ["even"]}
SLOWER = {"begins": "plateau", "window": 4, "learning_rate": "times", "lr_times": 0.5}
ALL = {"begins": "plateau", "window": 4, "prompts": "all", "name": "all again"}
"""It is known beforehand that this phase does not begin, but only if the run is shorter."""


def rows(recipe: str) -> list[Example]:
    made = demonstrations(12, 4) if recipe == "sft" else preferences(12, 4)
    return [row.model_copy(update={"domain": ("even", "odd")[i % 2]}) for i, row in enumerate(made)]


def phased(recipe: str, **changes: Any) -> RecipeConfig:
    """For pairs the accuracy is watched, which such a small learning rate does not change. For conversations it is the loss of the batches."""
    metric = "train/loss" if recipe == "sft" else "eval/accuracy"
    plan = [EVEN, SLOWER | {"metric": metric}]
    small = {"steps": STEPS, "optim": {"lr": 1e-5}, "evaluation": {"every": 1}, "phases": plan}
    return make_config(recipe, **(small | changes))


def logged(out: Path) -> list[str]:
    return [event.data.message for event in events_of(out) if event.data.kind == "log"]


def curve(out: Path, key: str) -> dict[int, float]:
    return {step: value for (step, name), value in metrics_of(out).items() if name == key}


@pytest.mark.parametrize("recipe", FITTED)
def test_phases_change_what_is_drawn_and_how_fast_is_learnt_and_a_killed_run_repeats_them(
    recipe: str, tiny_dir: Path, tmp_path: Path
) -> None:
    data, whole, broken = write_examples(rows(recipe), tmp_path / "data.jsonl"), tmp_path / "whole", tmp_path / "broken"
    assert run(phased(recipe), data, tiny_dir, whole)
    begun = curve(whole, "phase/number")
    second = next(step for step, number in begun.items() if number == 2.0)
    assert begun == {2: 1.0, second: 2.0} and second > 5
    assert curve(whole, "train/pool") == {1: 12.0} | dict.fromkeys(range(2, STEPS + 1), 6.0)
    lr = {step: 1e-5 if step < second else 5e-6 for step in range(1, STEPS + 1)}
    assert curve(whole, "optim/lr") == pytest.approx(lr)
    assert curve(whole, "train/epoch")[3] == pytest.approx(8 / 6), "since the phase, over what it draws from"
    assert "phase 1 begins: domains even; 6 of 12 examples" in logged(whole)

    run_until_killed("trainer.monitors:RunMonitor.metrics", phased(recipe), data, tiny_dir, broken, step=second)
    assert checkpoints.steps(broken / "checkpoints")[-1] == second - 1
    assert run(phased(recipe), data, tiny_dir, broken, resume=True)
    learned = [
        {place: value for place, value in metrics_of(out).items() if not place[1].startswith("perf/")}
        for out in (whole, broken)
    ]
    assert learned[0] == learned[1]
    ends = [checkpoints.load(out / "checkpoints" / f"step-{STEPS:06d}") for out in (whole, broken)]
    assert ends[0].state["order"] == ends[1].state["order"]
    for owner, tensors in ends[0].tensors.items():
        assert all(tensors[key].equal(ends[1].tensors[owner][key]) for key in tensors), owner


@pytest.mark.parametrize("recipe", FITTED)
def test_only_the_phases_own_examples_are_drawn(recipe: str, tiny_dir: Path, tmp_path: Path) -> None:
    data = write_examples(rows(recipe), tmp_path / "data.jsonl")
    monitor = RunMonitor(Spool(tmp_path / "events.jsonl"))
    stage: Any = make_stage(job_of(phased(recipe), data, tiny_dir, tmp_path, monitor))
    stage._fitter._watch.enter(2, _Quiet())
    drawn = [int(item.key.split("-")[1]) for item in stage._fitter.draw(12)]
    assert sorted(drawn) == sorted(2 * [0, 2, 4, 6, 8, 10])
    assert drawn[:6] != sorted(drawn[:6])


EASY = {"begins": "step", "step": 2, "order": "easy_first"}
MIXED = {"begins": "step", "step": 4, "order": "mixed", "data_share": 1.0, "easy_share": 2.0}


@pytest.mark.parametrize("recipe", ("sft", "dpo"))
def test_phases_change_the_order_and_a_killed_run_repeats_it(recipe: str, tiny_dir: Path, tmp_path: Path) -> None:
    """Later rows are harder, so the order from easy to hard is the order of their numbers."""
    rated = [row.model_copy(update={"meta": {"pass_rate": 1 - i / 20}}) for i, row in enumerate(rows(recipe))]
    data, whole, broken = write_examples(rated, tmp_path / "data.jsonl"), tmp_path / "whole", tmp_path / "broken"
    config = phased(recipe, steps=5, phases=[EASY, MIXED], batch_size=4)
    monitor = RunMonitor(Spool(tmp_path / "events.jsonl"))
    stage: Any = make_stage(job_of(config, data, tiny_dir, tmp_path / "drawn", monitor))
    stage._fitter._watch.enter(2, _Quiet())
    assert [int(item.key.split("-")[1]) for item in stage._fitter.draw(8)] == [*range(8)]

    assert run(config, data, tiny_dir, whole)
    assert [line for line in logged(whole) if line.startswith("phase")] == [
        "phase 1 begins: from easy to hard",
        "phase 2 begins: order: 33.3% by data, 66.7% from easy to hard",
    ]
    assert curve(whole, "train/epoch") == pytest.approx({step: 4 * step / 12 for step in range(1, 6)})
    run_until_killed("trainer.monitors:RunMonitor.metrics", config, data, tiny_dir, broken, step=4)
    assert checkpoints.steps(broken / "checkpoints")[-1] == 3
    assert run(config, data, tiny_dir, broken, resume=True)
    ends = [checkpoints.load(out / "checkpoints" / "step-000005") for out in (whole, broken)]
    assert ends[0].state["order"] == ends[1].state["order"]
    for owner, tensors in ends[0].tensors.items():
        assert all(tensors[key].equal(ends[1].tensors[owner][key]) for key in tensors), owner


class _Quiet:
    def metrics(self, *_: Any) -> None: ...

    def log(self, *_: Any) -> None: ...


def test_a_phase_that_never_comes_is_said_with_what_there_was_instead(tiny_dir: Path, tmp_path: Path) -> None:
    """The held-out loss falls from evaluation to evaluation."""
    never = ALL | {"metric": "eval/loss"}
    config = phased("sft", optim={"lr": 1e-3}, phases=[never])
    assert run(config, write_examples(rows("sft"), tmp_path / "data.jsonl"), tiny_dir, tmp_path / "run")
    assert curve(tmp_path / "run", "phase/number") == {}
    said = "phase 1, all again, never began: it waited for the held-out loss to reach a plateau over 4 evaluations; phase 0 went on to the end"
    assert said in logged(tmp_path / "run")


def test_a_domain_that_nothing_has_ends_the_run_before_its_first_step(tiny_dir: Path, tmp_path: Path) -> None:
    config = phased("dpo", phases=[EVEN | {"domains": ["neither"]}])
    assert not run(config, write_examples(rows("dpo"), tmp_path / "data.jsonl"), tiny_dir, tmp_path / "run")
    said = str(events_of(tmp_path / "run")[-1].data)
    assert "phases.0: none of the training examples is of the domain neither" in said


def problems(recipe: str, **changes: Any) -> dict[str, str]:
    with pytest.raises(ConfigInvalid) as error:
        make_config(recipe, **changes)
    return {problem.path: problem.message for problem in error.value.problems}


@pytest.mark.parametrize("recipe", FITTED)
@pytest.mark.parametrize(
    ("phase", "path", "words"),
    [
        ({"temperature": "set"}, "temperature", "samples none, so it has no temperature"),
        ({"lengths": "toggle"}, "lengths", "this field of a phase needs rewards"),
        ({"verification": "on"}, "verification", "this field of a phase needs rewards"),
        ({"order": "uncertain"}, "order", "a run without rewards measures no pass rates"),
        ({"order": "mixed", "uncertain_share": 1.0}, "uncertain_share", "choose 'easy_first' or 'data'"),
        ({"order": "mixed", "data_share": 0.0}, "data_share", "no order has a share"),
        ({"begins": "pass_rate"}, "begins", "no pass rate to wait for; choose 'step' or 'plateau'"),
        (
            {"begins": "plateau", "window": 4, "learning_rate": "times"},
            "window",
            "the phase cannot begin before step 5",
        ),
        ({"begins": "plateau", "metric": "eval/loss", "learning_rate": "times"}, "window", "before step 39, and the"),
        ({"step": 5, "learning_rate": "times"}, "step", "the run ends after step 4"),
        ({"step": 2, "prompts": "some"}, "prompts", "say which prompts: by rate_above, rate_up_to, tags or domains"),
        ({"step": 2, "wrong": 1}, "wrong", "unknown key"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(recipe: str, phase: dict[str, Any], path: str, words: str) -> None:
    assert words in problems(recipe, phases=[phase])[f"phases.0.{path}"]


@pytest.mark.parametrize("recipe", FITTED)
def test_a_plateau_that_no_evaluation_can_show_is_said_at_the_form(recipe: str) -> None:
    waits = {"begins": "plateau", "window": 4, "metric": "eval/loss", "learning_rate": "times"}
    seldom = problems(recipe, steps=30, phases=[waits], evaluation={"every": 0})
    assert "eval/loss is measured only before and after the run" in seldom["phases.0.metric"]
    none = problems(recipe, steps=30, phases=[waits], evaluation={"max_examples": 0})
    assert "needs held-out examples; set evaluation.max_examples above 0" in none["phases.0.metric"]
    config = make_config(recipe, steps=30, phases=[waits])
    said = {each.path: each.message for each in config.data_problems({"train": {"references": 4}})}
    assert "the dataset version has none" in said["phases.0.metric"]
    unrated = make_config(recipe, phases=[{"step": 2, "prompts": "some", "rate_above": 0.2}])
    said = {each.path: each.message for each in unrated.data_problems({"train": {"references": 4, "examples": 4}})}
    assert "no training prompt has a pass rate yet" in said["phases.0.rate_above"]
    plans = [EASY, MIXED | {"step": 3}]
    said = {
        each.path: each.message
        for each in make_config(recipe, phases=plans).data_problems({"train": {"references": 4, "examples": 4}})
    }
    assert "no order from easy to hard; choose another" in said["phases.0.order"] and "phases.1.easy_share" in said


@pytest.mark.parametrize("recipe", ["chain", "alternating"])
def test_a_recipe_without_phases_says_what_it_has_instead(recipe: str) -> None:
    with pytest.raises(ConfigInvalid) as error:
        resolve(recipe, {"phases": [EVEN]})
    said = {problem.path: problem.message for problem in error.value.problems}
    assert RECIPES[recipe].schema.instead_of_phases in said["phases"]


def test_the_form_shows_phases_beforehand() -> None:
    raw = {"phases": [EVEN, SLOWER | {"metric": "eval/accuracy"}]}
    assert RECIPES["dpo"].schema.outline(raw) == [
        ("step 2", "domains even", ""),
        ("once the held-out accuracy has reached a plateau over 4 evaluations", "learning rate × 0.5", ""),
    ]
