"""The signs that a run learns badly: by hand, in rows of steps, on the curves of real runs, and in a run."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.config.alarms import DEAD, ENTROPY, FEW_TOKENS, MISMATCH, NO_NORM, alarm_text, title
from trainer.contracts import AlarmData
from trainer.loops.policy.learning import LearningWatch, Vitals, measure_step
from trainer.loops.policy.update import UpdateReport

from ..conftest import events_of, metrics_of, small_config
from .test_collecting import PLAIN, ROLLOUT, set_rewards

RESULTS = Path(__file__).parents[4] / "docs/results"


class Told:
    """The part of `Tell` that is used."""

    def __init__(self) -> None:
        self.alarms: list[tuple[int, AlarmData]] = []
        self.lines: list[str] = []
        self.step = 0

    def alarm(self, alarm: AlarmData) -> None:
        self.alarms.append((self.step, alarm))

    def log(self, message: str, level: str = "info") -> None:
        self.lines.append(f"{level}: {message}")

    @property
    def found(self) -> list[tuple[int, str, int]]:
        return [(step, alarm.signal, alarm.since) for step, alarm in self.alarms]


def looked(steps: Sequence[Vitals], killed_after: int = 0, **config: Any) -> Told:
    config["alarms"] = {"in_a_row": 5} | config.get("alarms", {})
    watch, told = LearningWatch(small_config(**config)), Told()
    for number, each in enumerate(steps, 1):
        told.step = number
        watch.look(number, each, told)  # type: ignore[arg-type]
        if number == killed_after:
            kept = json.loads(json.dumps(watch.state_dict()))
            watch = LearningWatch(small_config(**config))
            watch.load_state_dict(kept)
    return told


def entropies(*values: float) -> list[Vitals]:
    return [Vitals(entropy=value) for value in values]


def report(**changes: Any) -> UpdateReport:
    """Three responses of four, two and two tokens. The second has no advantage; a token of the third is clipped."""
    lengths = (4, 2, 2)
    return UpdateReport(
        losses=[0.1, 0.2],
        grad_norms=[0.5, 0.25],
        weight={0: torch.ones(4), 1: torch.ones(2), 2: torch.tensor([1.0, 0.0])},
        entropy={b: torch.full((length,), 0.5 * (b + 1)) for b, length in enumerate(lengths)},
        apart={
            0: torch.tensor([0.0, 0.7, -0.7, math.log(2.0)]),
            1: torch.tensor([9.0, 9.0]),
            2: torch.tensor([0.1, -0.1]),
        },
        **changes,
    )


def test_what_a_step_shows_by_hand() -> None:
    found = measure_step(report(), torch.tensor([1.0, 0.0, -1.0]), small_config(), {0, 2})
    assert found.entropy == pytest.approx((4 * 0.5 + 2 * 1.0 + 2 * 1.5) / 8)
    assert (found.norm, found.taught) == (0.5, 5 / 8)
    assert (
        found.apart == 2 / 6
    )  # 0.7 is beyond log 2 = 0.693; log 2 itself is not; response 1 was sampled by older weights


def test_a_step_with_equal_rewards_shows_nothing_of_its_gradients() -> None:
    found = measure_step(report(), torch.zeros(3), small_config(), set())
    assert (found.norm, found.taught, found.apart) == (None, None, None) and found.entropy
    assert measure_step(UpdateReport(), torch.zeros(0), small_config(), set()) == Vitals()


def test_a_teacher_gives_gradients_without_advantages() -> None:
    config = small_config(scaffold=None, objective={"name": "distill", "teacher": "t"})
    found = measure_step(report(), torch.zeros(3), config, set())
    assert (found.norm, found.taught) == (0.5, 7 / 8)


def test_the_entropy_has_collapsed_if_five_steps_in_a_row_have_a_tenth_of_the_usual() -> None:
    first = (1.0, 0.5, 1.1, 0.9, 7.0)  # median 1.0
    assert looked(entropies(*first, *[0.11] * 20)).alarms == []
    assert looked(entropies(*first, *[0.1] * 4, 0.11, *[0.1] * 4)).alarms == []
    [(step, alarm)] = looked(entropies(*first, 0.3, *[0.1] * 20)).alarms
    assert (step, alarm.signal, alarm.since, alarm.value, alarm.usual) == (11, ENTROPY, 7, 0.1, 1.0)
    assert (alarm.share, alarm.before) == (0.1, 1.0)
    assert alarm_text(alarm, step).startswith(
        "In steps 7 to 11 the policy was almost sure of every token: its entropy is now 0.1 nats per token; in the first steps it was 1."
    )


def test_the_same_alarm_comes_again_only_after_a_healthy_step() -> None:
    low, between, healthy = [0.05] * 5, [0.15], [0.25]
    first = [1.0] * 5
    assert looked(entropies(*first, *low, *between, *low)).found == [(10, ENTROPY, 6)]
    assert looked(entropies(*first, *low, *healthy, *low)).found == [(10, ENTROPY, 6), (16, ENTROPY, 12)]


def test_gradients_are_dead_if_their_norm_is_a_hundredth_of_the_usual() -> None:
    usual, dead = [Vitals(norm=0.5)] * 5, Vitals(norm=0.004)
    flat = Vitals()  # a step without any advantage is the alarm `flat`, and counts in no row
    assert looked([*usual, *[Vitals(norm=0.006)] * 9]).alarms == []
    found = looked([*usual, dead, flat, dead, dead, flat, dead, dead])
    assert found.found == [(12, DEAD, 6)] and found.alarms[0][1].subject == NO_NORM
    assert found.lines[0].startswith("warning: In steps 6 to 12 the weights hardly moved")


def test_gradients_are_dead_if_hardly_a_token_has_one() -> None:
    few = Vitals(norm=1.0, taught=0.01)
    found = looked([few] * 6)
    assert found.found == [(5, DEAD, 1)] and found.alarms[0][1].subject == FEW_TOKENS
    assert "first steps" not in found.lines[0]  # they are the first steps
    later = looked([Vitals(norm=1.0, taught=0.4)] * 5 + [few] * 5)
    assert "1% of the tokens had a gradient; in the first steps 40%" in later.lines[0]
    assert title(DEAD, FEW_TOKENS) == "Dead gradients: few tokens have one"


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({}, 0.01),
        ({"model": {"dtype": "bfloat16"}}, 0.01),
        ({"sampler": {"precision": "int8"}}, math.exp(-math.log(2) / 0.4)),  # 0.177
        ({"alarms": {"mismatch_above": 0.05}}, 0.05),
    ],
)
def test_sampler_and_trainer_disagree_above_what_rounding_explains(config: dict[str, Any], limit: float) -> None:
    assert looked([Vitals(apart=limit)] * 20, **config).alarms == []
    [(step, alarm)] = looked([Vitals(apart=limit * 1.1)] * 20, **config).alarms
    assert (step, alarm.signal, alarm.usual) == (5, MISMATCH, pytest.approx(limit))


def test_the_config_switches_each_alarm_off_and_says_how_long_a_row_is() -> None:
    bad = [Vitals(1.0, 1.0, 0.5, 0.0)] * 5 + [Vitals(0.0, 0.0, 0.0, 1.0)] * 5
    assert len(looked(bad).alarms) == 4
    off = {"entropy_below": 0.0, "gradient_below": 0.0, "tokens_below": 0.0, "mismatch_above": 1.0}
    assert looked(bad, alarms=off).alarms == []
    assert [step for step, _, _ in looked(bad, alarms={"in_a_row": 2}).found] == [7] * 4


@pytest.mark.parametrize("killed_after", [3, 7, 11])
def test_a_resumed_run_says_it_as_a_whole_one_does(killed_after: int) -> None:
    steps = entropies(*[1.0] * 5, *[0.05] * 20)
    assert looked(steps, killed_after=killed_after).found == looked(steps).found != []
    LearningWatch(small_config()).load_state_dict({})


def test_of_the_measured_runs_only_the_one_that_collapsed_has_the_alarm() -> None:
    """The entropy curves of 45 trained runs in docs/results, with the default of three steps. In one the entropy falls to 7% of its beginning
    in the last steps, and its score is the lowest of its arm; in every other run it keeps 13% or more."""
    assert small_config().alarms.in_a_row == 3
    alarmed, looked_at = [], 0
    for name in ("wpsm-tiny", "quantized-tiny"):
        for arm, seeds in json.loads((RESULTS / f"{name}.json").read_text())["measures"].items():
            for seed, measured in seeds.items():
                curve = measured["curve"]["policy/entropy"]
                values = [curve[step] for step in sorted(curve, key=int)] if isinstance(curve, dict) else curve
                looked_at += 1
                if looked(entropies(*values), alarms={"in_a_row": 3}).alarms:
                    alarmed.append((name, arm, seed))
    assert looked_at == 45 and alarmed == [("wpsm-tiny", "misc_wpsm", "1")]


def test_a_healthy_run_raises_none_and_a_sampler_that_lies_is_found(
    make_loop: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = make_loop(small_config(steps=12, rollout=ROLLOUT, **PLAIN), tmp_path / "healthy")
    set_rewards(healthy, lambda group, place: float(place % 2))
    healthy.run()
    assert [event for event in events_of(tmp_path / "healthy") if event.data.kind == "alarm"] == []
    assert min(value for (_, key), value in metrics_of(tmp_path / "healthy").items() if key == "policy/grad_norm") > 0

    lying = make_loop(small_config(steps=4, rollout=ROLLOUT, **PLAIN), tmp_path / "lying")
    set_rewards(lying, lambda group, place: float(place % 2))
    monkeypatch.setattr("trainer.loops.learner.engine_check.EngineCheck.done", True)  # it would end the run at step 1
    real = lying.stage.collector.collect

    def collect(number: int, tell: Any) -> Any:
        found = real(number, tell)
        for each in found.trajectories:
            lower = [span._replace(logprobs=tuple(value - 1.0 for value in span.logprobs)) for span in each.spans]
            object.__setattr__(each, "spans", tuple(lower))
        return found

    monkeypatch.setattr(lying.stage.collector, "collect", collect)
    lying.run()
    alarms = [event for event in events_of(tmp_path / "lying") if event.data.kind == "alarm"]
    assert [(event.step, event.data.signal, event.data.share) for event in alarms] == [(3, MISMATCH, 1.0)]
