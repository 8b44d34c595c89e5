"""Recipe `chain`: stages over one model. Each stage has its own data and initial weights, and leaves a model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.killed_runs import run_until_killed
from tests.trainer.loops.conftest import events_of, metrics_of
from tests.trainer.loops.numbers import row
from tests.trainer.running import run
from trainer import checkpoints
from trainer.config import ConfigInvalid, resolve
from trainer.config.recipes.chain import ChainConfig
from trainer.monitors import RunMonitor, Spool

CROSS = [{"steps": 1, "domain": "even"}, {"steps": 1, "domain": "odd"}, {"do": "distil", "steps": 1}]
SELF: list[dict[str, Any]] = [{"steps": 1}, {"do": "imitate", "steps": 1, "begin": "start"}, {"steps": 1}]
SMALL: dict[str, Any] = {
    "steps": 3,
    "rollout": {"prompts_per_step": 4, "group_size": 4, "max_new_tokens": 8},
    "rewards": [{"kind": "format", "name": "letters", "form": "pattern", "pattern": "[^a-m]*"}],
    "imitation": {"prompts": 8, "responses": 2, "whole": False, "best": 0, "batch_size": 4},
    "distillation": {"prompts_per_step": 8},
    "optim": {"lr": 1e-2},
    "evaluation": {"every": 0, "max_examples": 4},
    "checkpoint": {"every": 1, "keep": 9},
}


def small(stages: list[dict[str, Any]], **changes: Any) -> ChainConfig:
    found = resolve("chain", SMALL | {"stages": stages} | changes)
    assert isinstance(found, ChainConfig)
    return found


def tensors(out: Path, step: int) -> Any:
    return checkpoints.load(out / "checkpoints" / f"step-{step:06d}").tensors


def equal(one: Any, other: Any) -> bool:
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def test_two_domains_are_learned_and_distilled_and_every_stage_leaves_its_policy(
    numbers: Path,
    tiny_dir: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    assert run(small(CROSS), numbers, tiny_dir, out)
    told = metrics_of(out)
    assert {step: told[step, "phase/number"] for step in (1, 2, 3)} == {1: 1.0, 2: 2.0, 3: 3.0}
    assert {"gap/odd", "gap/even", "policy/kl_teacher"} <= {key for step, key in told if step == 3}
    assert told[3, "eval/gap"] > 0 and "eval/domain/odd" in {key for _, key in told}, "what was forgotten is measured"
    sampled = [
        (e.step, r.example_key)
        for e in events_of(out)
        if e.data.kind == "rollouts"
        for r in e.data.rollouts
        if r.phase == "train"
    ]
    for step, rest in ((1, 0), (2, 1)):
        assert {int(key.removeprefix("row-")) % 2 for at, key in sampled if at == step} == {rest}
    left = {event.data.model.name for event in events_of(out) if event.data.kind == "artifact" and event.data.model}
    assert left == {"stage-1", "stage-2", "policy"}
    last = tensors(out, 3)
    assert equal(last["stage-1"], tensors(out, 1)["policy"]) and equal(last["stage-2"], tensors(out, 2)["policy"])
    assert not equal(last["stage-1"], last["stage-2"])


def test_each_prompt_is_taught_by_the_last_stage_on_its_domain(numbers: Path, tiny_dir: Path, tmp_path: Path) -> None:
    config = small([{"steps": 1}, {"steps": 1, "domain": "odd"}, {"do": "distil", "steps": 1}])
    assert config.teachers(2) == {"": 0, "odd": 1}
    stages = config.distilling(2)
    assert stages.stage_of(row(1)) == ("odd", 1) and stages.stage_of(row(2)) == ("even", 0)
    again = small(
        [{"steps": 1, "domain": "odd"}, {"do": "imitate", "steps": 1, "domain": "odd"}, {"do": "distil", "steps": 1}]
    )
    assert again.teachers(2) == {"odd": 1} and again.distilling(2).stage_of(row(2)) == ("even", None)


def test_an_earlier_self_teaches_without_a_model_of_its_own(tiny_dir: Path) -> None:
    from trainer.inference.models import load_model
    from trainer.loops.learner.earlier_teacher import Earlier
    from trainer.loops.learner.learner import Learner, Marked

    for lora in ({"rank": 2, "alpha": 4.0}, None):
        config = small(SELF, model={"lora": lora}).reinforcing
        learner = Learner(load_model(tiny_dir), config)
        rows = [Marked((1, 2, 3, 4), range(2, 4))]
        with torch.no_grad():
            before = learner.measure(rows)[0].logp_T.clone()
            hidden, head = (part.clone() for part in learner.outlook(rows))
        was = {name: tensor.clone() for name, tensor in learner.trained_weights()}
        learner.fill({name: tensor + 0.1 for name, tensor in was.items()})
        now = learner.policy()
        earlier = Earlier(learner, was)
        torch.testing.assert_close(earlier.measure(rows, 1.0)[0], before, rtol=0, atol=0)
        seen = earlier.outlook(rows)
        torch.testing.assert_close(seen.hidden_MD @ seen.head_VD.T, hidden @ head.T, rtol=0, atol=0)
        assert equal(learner.policy(), now), "it is what it was again"


def test_what_is_imitated_passed_the_filters_and_begins_where_it_was_told(
    numbers: Path,
    tiny_dir: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    config = small(SELF, imitation={**SMALL["imitation"], "least": 1.0}, optim={"lr": 1e-30}, model={"lora": None})
    assert run(config, numbers, tiny_dir, out)
    told = metrics_of(out)
    sampled, kept = told[2, "sift/sampled"], told[2, "sift/kept"]
    assert sampled == 16 and 0 < kept < 16 and "train/loss" in {key for step, key in told if step == 2}
    assert (
        sampled
        - sum(value for (_, key), value in told.items() if key in ("sift/repeated", "sift/low", "sift/no_reward"))
        >= kept
    )
    texts = [
        (r.response, r.reward)
        for e in events_of(out)
        if e.step == 2 and e.data.kind == "rollouts"
        for r in e.data.rollouts
    ]
    assert any(reward == 0.0 for _, reward in texts), "what was left out is shown too"
    stage = checkpoints.load(out / "checkpoints" / "step-000002").state["stage"]
    assert stage["number"] == 1 and len(stage["state"]["kept"]) == kept
    none = small(SELF, imitation={**SMALL["imitation"], "least": 5.0})
    assert run(none, numbers, tiny_dir, tmp_path / "none")
    said = [event.data.message for event in events_of(tmp_path / "none") if event.data.kind == "log"]
    assert any("the filters keep none" in line for line in said)
    first = next(iter(tensors(tmp_path / "none", 2)["policy"].values()))
    assert torch.isfinite(first).all()


def test_a_stage_may_begin_with_the_weights_of_the_start(numbers: Path, tiny_dir: Path, tmp_path: Path) -> None:
    from trainer.inference.models import load_model
    from trainer.loops.learner.learner import Learner

    nothing = {**SMALL["imitation"], "least": 5.0}
    assert run(small(SELF, imitation=nothing), numbers, tiny_dir, tmp_path / "run")
    start = Learner(load_model(tiny_dir), small(SELF).reinforcing).policy()
    assert not equal(tensors(tmp_path / "run", 1)["policy"], start), "the first stage has learned something"
    assert equal(tensors(tmp_path / "run", 2)["policy"], start), "the second went back, and kept nothing to learn"


@pytest.mark.parametrize("stages", [CROSS, SELF], ids=["cross", "self"])
@pytest.mark.parametrize("step", [2, 3])
def test_a_run_killed_at_the_first_step_of_a_stage_ends_with_equal_bits(
    stages: list[dict[str, Any]],
    step: int,
    numbers: Path,
    tiny_dir: Path,
    tmp_path: Path,
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(small(stages), numbers, tiny_dir, whole)
    run_until_killed("trainer.monitors:RunMonitor.metrics", small(stages), numbers, tiny_dir, broken, step=step)
    assert run(small(stages), numbers, tiny_dir, broken, resume=True)
    assert all(equal(tensors(broken, 3)[owner], held) for owner, held in tensors(whole, 3).items())
    assert metrics_of(broken) == metrics_of(whole)


def test_a_stop_in_the_first_step_of_a_stage_leaves_the_stage_before(
    numbers: Path,
    tiny_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(small(SELF), numbers, tiny_dir, whole)

    class Stopping(RunMonitor):
        def progress(self, step: int, phase: str, *given: Any) -> None:
            super().progress(step, phase, *given)
            if step == 2 and phase == "sampling answers to imitate":
                self.request_stop()

    monitor = Stopping(Spool(broken / "events.jsonl"))
    assert run(small(SELF, checkpoint={"every": 99, "keep": 9}), numbers, tiny_dir, broken, monitor=monitor)
    assert checkpoints.steps(broken / "checkpoints") == [1]
    assert equal(tensors(broken, 1)["policy"], tensors(whole, 1)["policy"]), (
        "not the weights that the stage would begin with"
    )
    assert run(small(SELF, checkpoint={"every": 99, "keep": 9}), numbers, tiny_dir, broken, resume=True)
    assert equal(tensors(broken, 3)["policy"], tensors(whole, 3)["policy"])


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"stages": [{"do": "distil", "steps": 3}]}, "stages.0.do", "no earlier stage trains"),
        ({"imitation": {"form": "tags"}}, "imitation.form_of", "name the tags"),
        ({"optim": {"processes": 2}}, "optim.processes", "set it to 1"),
        ({"objective": {"name": "distill", "teacher": "t"}}, "objective.name", "choose an objective with rewards"),
        ({"rollout": {"group_size": 1}}, "rollout.group_size", "use at least 2"),
    ],
)
def test_what_cannot_work_is_said_at_its_field(changes: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        resolve("chain", SMALL | {"stages": SELF} | changes)
    assert any(problem.path == path and words in problem.message for problem in refused.value.problems), refused.value


def test_the_form_lists_the_stages_with_their_first_steps() -> None:
    lines = ChainConfig.outline(json.loads(json.dumps({"stages": CROSS})))
    assert lines == [("step 1", "reinforce on even", ""), ("step 2", "reinforce on odd", ""), ("step 3", "distil", "")]


def test_a_stage_that_the_run_ends_before_is_said_before_a_launch_and_works_from_a_shell() -> None:
    lines = ChainConfig.outline({"stages": CROSS, "steps": 2})
    assert [line.never for line in lines] == ["", "", "never entered: the run ends with step 2"]
    assert [line.never for line in ChainConfig.outline({"stages": CROSS, "steps": "2"})] == ["", "", ""]
    (problem,) = small(CROSS, steps=2).launch_problems()
    assert (
        problem.path == "stages.2"
        and "the run ends with step 2, and the stage would begin with step 3" in problem.message
    )
    assert list(small(CROSS, steps=3).launch_problems()) == []


def test_the_last_stage_goes_on_to_the_end_and_a_short_run_does_without_the_last() -> None:
    longer, shorter = small(SELF, steps=9), small(SELF, steps=2)
    assert [longer.turn(step).number for step in (1, 2, 3, 9)] == [0, 1, 2, 2]
    assert longer.turn(9).first == 3 and shorter.turn(2).number == 1
    amounts = {each.label: each.value for each in ChainConfig.amounts({"stages": CROSS, "steps": 9})}
    assert amounts["Steps of the last stage"] == 7


def test_a_domain_that_nobody_has_ends_the_run_before_its_first_step(
    numbers: Path,
    tiny_dir: Path,
    tmp_path: Path,
) -> None:
    stages: list[dict[str, Any]] = [{"steps": 2}, {"steps": 1, "domain": "math"}]
    assert not run(small(stages), numbers, tiny_dir, tmp_path / "run")
    last = events_of(tmp_path / "run")[-1].data
    assert last.kind == "state" and "no training prompt is of the domain 'math'; there are: even, odd" in last.reason
