"""Recipe `distill`: each prompt has its own teacher, there are no rewards, and the gap is exact."""

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
from trainer.config.recipes.distill import DistillConfig
from trainer.loops.prompts.data import PromptSets
from trainer.loops.session.errors import RunFailed

TWO = [{"model": "one", "stage": "even"}, {"model": "two", "stage": "odd"}]
SMALL: dict[str, Any] = {
    "steps": 2,
    "teachers": TWO,
    "model": {"lora": None},
    "rollout": {"prompts_per_step": 4, "group_size": 1, "max_new_tokens": 8},
    "optim": {"lr": 1e-3},
    "evaluation": {"every": 1, "max_examples": 4},
    "checkpoint": {"every": 1, "keep": 9},
}


def small(**changes: Any) -> DistillConfig:
    found = resolve("distill", SMALL | changes)
    assert isinstance(found, DistillConfig)
    return found


@pytest.fixture(scope="module")
def teachers(tiny_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two models with the shape and tokenizer of the tiny one. They and the tiny one all write different texts."""
    from trainer.inference.models import load_model, load_tokenizer

    found = {}
    for place in range(2):
        model = load_model(tiny_dir)
        torch.manual_seed(place + 1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        folder = tmp_path_factory.mktemp(f"teacher{place}")
        model.save_pretrained(folder)
        load_tokenizer(tiny_dir).save_pretrained(folder)
        found[f"teachers.{place}.model"] = folder
    return found


def test_the_policy_comes_closer_to_each_prompts_own_teacher(
    numbers: Path, tiny_dir: Path, teachers: dict[str, Any], tmp_path: Path
) -> None:
    many = {"prompts_per_step": 16, "group_size": 1, "max_new_tokens": 8}
    config = small(steps=10, rollout=many, evaluation={"every": 0, "max_examples": 4}, optim={"lr": 3e-3})
    assert run(config, numbers, tiny_dir, tmp_path / "run", **teachers)
    told = metrics_of(tmp_path / "run")
    assert told[0, "eval/gap"] > 0.3 and told[10, "eval/gap"] < 0.93 * told[0, "eval/gap"]
    for stage in ("odd", "even"):
        assert told[10, f"eval/gap/{stage}"] < told[0, f"eval/gap/{stage}"], stage
        assert (1, f"gap/{stage}") in told and (0, f"eval/stage/{stage}") in told
    assert told[0, "eval/measured"] == 4 and told[0, "eval/gap_se"] > 0
    assert not any(key.startswith("reward/") or key == "eval/reward" for _, key in told), "there is no reward"
    records = [
        each for event in events_of(tmp_path / "run") if event.data.kind == "rollouts" for each in event.data.rollouts
    ]
    assert {each.phase for each in records} == {"train", "eval"}
    assert all(each.reward is None and "gap" in each.components for each in records), "missing, never 0"


PHASES = [
    {"step": 2, "temperature": "set", "set_to": 0.7, "prompts": "some", "domains": ["even"]},
    {"begins": "plateau", "window": 4, "metric": "policy/kl_teacher", "learning_rate": "times", "lr_times": 0.5},
    {"begins": "plateau", "window": 4, "metric": "eval/gap", "prompts": "all"},
]


def test_phases_change_a_distillation_and_a_killed_run_repeats_them(
    numbers: Path, tiny_dir: Path, teachers: dict[str, Any], tmp_path: Path
) -> None:
    """With such a small learning rate, the gap of the steps varies by chance, and the third phase does not begin."""
    config = small(steps=11, phases=PHASES, optim={"lr": 1e-6}, evaluation={"every": 1, "max_examples": 2})
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(config, numbers, tiny_dir, whole, **teachers)
    told = metrics_of(whole)
    begun = {step: value for (step, key), value in told.items() if key == "phase/number"}
    assert list(begun.values())[:2] == [1.0, 2.0] and list(begun)[0] == 2
    second = list(begun)[1]
    assert [told[step, "rollout/temperature"] for step in (1, 2, 11)] == [1.0, 0.7, 0.7]
    assert [told[step, "optim/lr"] for step in (second - 1, second)] == pytest.approx([1e-6, 5e-7])
    shown = [event for event in events_of(whole) if event.data.kind == "rollouts" and event.step == 2]
    assert {
        int(each.example_key.split("-")[-1]) % 2 for e in shown for each in e.data.rollouts if each.phase == "train"
    } == {0}

    run_until_killed("trainer.monitors:RunMonitor.metrics", config, numbers, tiny_dir, broken, step=second, **teachers)
    assert checkpoints.steps(broken / "checkpoints")[-1] == second - 1
    assert run(config, numbers, tiny_dir, broken, resume=True, **teachers)
    again = metrics_of(broken)
    assert {place: value for place, value in again.items() if "perf/" not in place[1]} == {
        place: value for place, value in told.items() if "perf/" not in place[1]
    }
    ends = [checkpoints.load(out / "checkpoints" / "step-000011") for out in (whole, broken)]
    assert all(ends[0].tensors["policy"][key].equal(each) for key, each in ends[1].tensors["policy"].items())


def test_several_teachers_each_speak_for_their_own(tiny_dir: Path, teachers: dict[str, Any]) -> None:
    from trainer.inference.models import load_model
    from trainer.loops.learner.learner import Learner, Marked, Teacher
    from trainer.loops.learner.teachers import Teachers

    one, two = (Teacher(load_model(folder)) for folder in teachers.values())
    rows = [Marked((1, 2, 3, 4, 5), range(2, 5)), Marked((1, 2, 6, 7), range(2, 4)), Marked((1, 2, 3, 9), range(1, 4))]
    both = Teachers([one, two], {"a": 0, "b": 1})
    found = both.measure(rows, 1.0, ["b", "a", "b"])
    for got, wanted in zip(
        found, [*two.measure(rows[:1], 1.0), *one.measure(rows[1:2], 1.0), *two.measure(rows[2:], 1.0)], strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
    learner = Learner(load_model(tiny_dir), small())
    gaps = both.gaps(learner, rows, 0.7, ["b", "a", "b"])
    for row_, gap_T, name in zip(rows, gaps, "bab", strict=True):
        with torch.no_grad():
            ids = torch.tensor([row_.tokens])
            seen = torch.ones(1, 1, ids.shape[1], ids.shape[1]).tril().bool()
            teacher = load_model(teachers["teachers.0.model" if name == "a" else "teachers.1.model"])
            pi, other = (
                (model(ids, attention_mask=seen).logits[0] / 0.7).log_softmax(-1) for model in (learner.plain, teacher)
            )
        by_hand = (pi.exp() * (pi - other)).sum(-1)[[place - 1 for place in row_.places]]
        torch.testing.assert_close(gap_T, by_hand, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("by", "changes", "stage"),
    [
        ("domain", {"domain": "odd"}, ("odd", 1)),
        ("source", {"source": "odd"}, ("odd", 1)),
        ("tag", {"tags": ("x", "odd")}, ("odd", 1)),
        ("meta", {"meta": {"stage": "odd"}}, ("odd", 1)),
        ("meta", {"meta": {"stage": 3}}, ("others", 2)),
        ("domain", {"domain": "else"}, ("else", 2)),
        ("tag", {"tags": ("x",)}, ("others", 2)),
    ],
)
def test_what_names_a_stage_decides_who_teaches(by: str, changes: dict[str, Any], stage: tuple[str, int]) -> None:
    config = small(teachers=[*TWO, {"model": "three"}], data={"stage_by": by})
    assert config.stage_of(row(0, **({"domain": ""} | changes))) == stage


def test_prompts_without_a_teacher_are_left_out_and_counted(tiny_dir: Path) -> None:
    from trainer.inference.models import load_tokenizer
    from trainer.loops.recipes.distill import distilled_prompts

    def prepared(**changes: Any) -> PromptSets:
        return distilled_prompts([row(number) for number in range(12)], load_tokenizer(tiny_dir), small(**changes))

    found = prepared(teachers=[TWO[0], {"model": "far", "stage": "math"}])
    assert len(found.train) == 4 and "6 examples left out: no teacher speaks for their stage, 'odd'" in found.left_out
    assert "teacher 'far' has no training prompt of stage 'math'" in found.left_out
    with pytest.raises(RunFailed, match="no teacher speaks for their stage, 'even'"):
        prepared(teachers=[{"model": "far", "stage": "math"}])


def test_a_teacher_of_other_tokens_is_refused(
    numbers: Path, tiny_dir: Path, teachers: dict[str, Any], tmp_path: Path
) -> None:
    import shutil

    other = tmp_path / "other"
    shutil.copytree(teachers["teachers.1.model"], other)
    told = json.loads((other / "tokenizer.json").read_text())
    added = {**told["added_tokens"][0], "content": "<other>", "id": max(told["model"]["vocab"].values()) + 50}
    (other / "tokenizer.json").write_text(json.dumps({**told, "added_tokens": [*told["added_tokens"], added]}))
    assert not run(small(), numbers, tiny_dir, tmp_path / "run", **{**teachers, "teachers.1.model": other})
    last = events_of(tmp_path / "run")[-1].data
    assert last.kind == "state" and "has another tokenizer than the model" in last.reason


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"teachers": []}, "teachers", "at least one entry"),
        ({"teachers": [TWO[0], TWO[0]]}, "teachers.1.stage", "the stage 'even' has teacher 1 already"),
        (
            {"teachers": [{"model": "a"}, {"model": "b"}]},
            "teachers.1.stage",
            "the other prompts have teacher 1 already",
        ),
        ({"teachers": [{"model": ""}]}, "teachers.0.model", "must not be empty"),
        ({"runner": {"kind": "offline", "push_every": 2}}, "runner.kind", "choose 'sync' or 'async'"),
        ({"optim": {"processes": 2}}, "optim.processes", "set it to 1"),
        ({"rollout": {"replace_flat": 2}}, "rollout.replace_flat", "with any reward"),
        ({"rewards": []}, "rewards", "unknown key"),
        (
            {"phases": [{"temperature": "search"}]},
            "phases.0.temperature",
            "a search needs rewards to compare temperatures",
        ),
        ({"phases": [{"lengths": "toggle"}]}, "phases.0.lengths", "this field of a phase needs rewards"),
        ({"phases": [{"begins": "pass_rate"}]}, "phases.0.begins", "choose 'step' or 'plateau'"),
        ({"phases": [{"temperature": "set"}], "runner": {"kind": "async"}}, "phases", "sample ahead of its steps"),
    ],
)
def test_what_cannot_work_is_said_at_its_field(changes: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        small(**changes)
    assert any(problem.path == path and words in problem.message for problem in refused.value.problems), refused.value


def test_teachers_count_in_memory_once_each() -> None:
    same = small(teachers=[TWO[0], {"model": "one", "stage": "odd"}])
    assert same.holdings().teachers == 1 and small().holdings().teachers == 2
    assert "fewer teachers" in small().memory_knobs()
