"""DPO: the reference, strengths and votes, and the effect of training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid

from trainer.contracts import Preference
from trainer.loops.registry import make_stage
from trainer.monitors import RunMonitor, Spool

from ...running import job_of, run
from ..conftest import events_of, metrics_of
from ..texts import make_config, preferences, write_examples


def staged(config: Any, data: Path, model: Path, folder: Path) -> Any:
    return make_stage(job_of(config, data, model, folder, RunMonitor(Spool(folder / "events.jsonl"))))


class Heard:
    """A `Tell` that counts the passes of each phase."""

    def __init__(self) -> None:
        self.step, self.phases, self.values = 1, dict[str, int](), dict[str, float]()

    def watch(self, phase: str, work: str) -> Any:
        def progress(done: int, total: int) -> None:
            self.phases[phase] = self.phases.get(phase, 0) + 1

        return progress

    def metrics(self, values: dict[str, float], histograms: Any = None) -> None:
        self.values |= values

    def rollouts(self, records: Any) -> None:
        self.records = records


PHASE = "measuring the reference"
MODELS = pytest.mark.parametrize("model", [{"lora": None}, {}], ids=["whole", "adapters"])


@MODELS
def test_the_reference_is_measured_once_and_kept_for_the_same_data_and_model(
    model: dict[str, Any], tiny_dir: Path, tmp_path: Path
) -> None:
    config = make_config("dpo", model={"name": "tiny", **model})
    data = write_examples(preferences(9, 3), tmp_path / "data.jsonl")
    first, again, other = Heard(), Heard(), Heard()
    stage = staged(config, data, tiny_dir, tmp_path / "run")
    stage.open(0)
    stage.evaluate(0, first)
    stage.step(1, first)
    assert first.phases[PHASE] > 0
    (file,) = (tmp_path / "run").glob("reference-*.safetensors")
    staged(config, data, tiny_dir, tmp_path / "run").step(1, again)
    assert PHASE not in again.phases and again.values["train/loss"] == first.values["train/loss"]
    changed = write_examples(preferences(9, 3, seed=1), tmp_path / "other.jsonl")
    staged(config, changed, tiny_dir, tmp_path / "run").step(1, other)
    assert other.phases[PHASE] > 0 and file.is_file()


@MODELS
@pytest.mark.parametrize("harm", ["lost", "damaged"])
def test_a_reference_lost_in_the_middle_of_a_run_is_measured_as_it_was(
    harm: str, model: dict[str, Any], tiny_dir: Path, tmp_path: Path
) -> None:
    config = make_config("dpo", model={"name": "tiny", **model}, optim={"lr": 1e-2})
    data = write_examples(preferences(9, 3), tmp_path / "data.jsonl")
    stage, heard = staged(config, data, tiny_dir, tmp_path / "run"), Heard()
    stage.open(0)
    for number in (1, 2):
        stage.step(number, heard)
    state, expected = stage.state(), stage.evaluate(2, heard)
    tensors = {owner: {k: v.clone() for k, v in each.items()} for owner, each in state.tensors.items()}
    (file,) = (tmp_path / "run").glob("reference-*.safetensors")
    file.unlink() if harm == "lost" else file.write_bytes(b"not tensors")
    resumed = staged(config, data, tiny_dir, tmp_path / "run")
    resumed.restore(2, type(state)(state.values, tensors))
    resumed.open(2)
    assert resumed.evaluate(2, heard) == expected
    assert abs(expected["eval/margin"]) > 0


def test_before_training_nothing_is_ordered(tiny_dir: Path, tmp_path: Path) -> None:
    """The policy is the reference, so every reward is 0. An accuracy would depend only on rounding."""
    data = write_examples(preferences(9, 3), tmp_path / "data.jsonl")
    assert run(make_config("dpo", steps=2, optim={"lr": 1e-2}), data, tiny_dir, tmp_path / "run")
    found = metrics_of(tmp_path / "run")
    assert (0, "eval/accuracy") not in found and found[0, "eval/loss"] == pytest.approx(0.693147, abs=1e-5)
    assert found[1, "train/loss"] == pytest.approx(0.693147 + 0.2 * found[1, "train/nll"], abs=1e-5)
    assert (2, "eval/accuracy") in found


def second_step(config: Any, data: Path, model: Path, folder: Path) -> tuple[float, float, float]:
    """Loss, margin and nll of a step after one update, on one pair."""
    assert run(config, data, model, folder)
    found = metrics_of(folder)
    return found[2, "train/loss"], found[2, "train/margin"], found[2, "train/nll"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, lambda m, n: -_ls(m) + 0.2 * n),
        ({"loss": {"nll_weight": 0.0}}, lambda m, n: -_ls(m)),
        ({"loss": {"strength": "margin", "margin": 0.5}}, lambda m, n: -_ls(m - 1.5) + 0.2 * n),
        ({"loss": {"strength": "weight"}}, lambda m, n: -_ls(m) + 0.2 * n),
        ({"loss": {"nll_weight": 0.0}, "data": {"labels": "share"}}, lambda m, n: -(2 * _ls(m) + _ls(-m)) / 3),
    ],
    ids=["plain", "no nll", "margin", "weight", "votes"],
)
def test_the_loss_of_a_pair_by_hand(changes: dict[str, Any], expected: Any, tiny_dir: Path, tmp_path: Path) -> None:
    (example,) = preferences(1, 0, strength=3)
    (one,) = example.preferences
    votes = (one, one, one.model_copy(update={"strength": -(one.strength or 0)}))
    data = write_examples([example.model_copy(update={"preferences": votes})], tmp_path / "data.jsonl")
    config = make_config("dpo", steps=2, batch_size=1, optim={"lr": 1e-2}, **changes)
    loss, margin, nll = second_step(config, data, tiny_dir, tmp_path / "run")
    assert abs(margin) > 0.01
    assert loss == pytest.approx(expected(margin, nll), abs=1e-5)


def _ls(value: float) -> float:
    return float(logsigmoid(torch.tensor(value, dtype=torch.float64)))


def test_weights_are_one_on_average(tiny_dir: Path, tmp_path: Path) -> None:
    examples = [
        example.model_copy(update={"preferences": (Preference(a="a", b="b", strength=size),)})
        for example, size in zip(preferences(3, 0), (1, 2, 3), strict=True)
    ]
    data = write_examples(examples, tmp_path / "data.jsonl")
    losses = {}
    for strength in ("none", "weight"):
        loss = {"strength": strength, "nll_weight": 0.0}
        config = make_config("dpo", steps=1, batch_size=3, loss=loss)
        assert run(config, data, tiny_dir, tmp_path / strength)
        losses[strength] = metrics_of(tmp_path / strength)[1, "train/loss"]
    assert losses["weight"] == pytest.approx(losses["none"], abs=1e-6)  # the loss of every pair is still ln 2


def test_pairs_are_shown_with_their_rewards(tiny_dir: Path, tmp_path: Path) -> None:
    data = write_examples(preferences(4, 2), tmp_path / "data.jsonl")
    assert run(make_config("dpo", steps=1, optim={"lr": 1e-2}), data, tiny_dir, tmp_path / "run")
    shown = [e.data for e in events_of(tmp_path / "run") if e.data.kind == "rollouts"][-1].rollouts
    assert [(r.example_key, r.index) for r in shown] == [("row-4", 0), ("row-4", 1), ("row-5", 0), ("row-5", 1)]
    leads = [shown[i].reward - shown[i + 1].reward for i in (0, 2)]
    assert metrics_of(tmp_path / "run")[1, "eval/margin"] == pytest.approx(sum(leads) / 2)
    assert [shown[i].components["margin"] for i in (0, 2)] == leads
    assert [shown[i].components["right"] for i in range(4)] == [leads[0] > 0, leads[0] > 0, leads[1] > 0, leads[1] > 0]
    assert shown[0].facts["votes"] == "1 for, 0 against"


@pytest.mark.slow
def test_a_planted_preference_is_learnt_and_holds_for_pairs_never_seen(tiny_dir: Path, tmp_path: Path) -> None:
    config = make_config(
        "dpo",
        steps=80,
        batch_size=16,
        optim={"lr": 1e-3},
        evaluation={"every": 40, "max_examples": 100},
        checkpoint={"every": 80},
    )
    data = write_examples(preferences(300, 100), tmp_path / "data.jsonl")
    assert run(config, data, tiny_dir, tmp_path / "run")
    found = metrics_of(tmp_path / "run")
    assert found[1, "train/accuracy"] < 0.8
    assert found[80, "eval/accuracy"] > 0.9 and found[80, "eval/accuracy_low"] > 0.8
    assert found[80, "eval/loss"] < 0.4 < found[0, "eval/loss"]
    assert found[80, "eval/reward_chosen"] > found[80, "eval/reward_rejected"]
