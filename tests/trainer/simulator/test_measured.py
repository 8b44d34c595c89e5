"""The timings of a run as a config of the simulator."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.config import PolicyConfig
from trainer.runners.time_accounting import WorkerTimes
from trainer.runners.timings import TIMINGS, Timings
from trainer.simulator.command import main
from trainer.simulator.config import Simulation
from trainer.simulator.measured import NotSimulated, decoding_costs, measured

SECONDS = {"wait_s": 0.5, "update_s": 1.25, "rest_s": 0.25}


def spent(step_s: float = 0.01, response_s: float = 0.002, start_s: float = 0.03) -> WorkerTimes:
    """Timings of workers that take exactly this long."""
    found = WorkerTimes()
    for versions, rows, joined in ((1, 8, 0), (1, 3, 0), (2, 8, 4), (1, 1, 1), (2, 5, 0)):
        took = versions * step_s + rows * response_s + joined * start_s
        found.turn(versions, rows, joined, 10 * took, count=10)
    found.load(0.4, count=2)
    return found


def no_warning(message: str) -> None:
    raise AssertionError(message)


def run_of(folder: Path, steps: int = 14, **runner: Any) -> Path:
    """A folder with the timings of a run that continued at step 4. Its first steps took long."""
    config = PolicyConfig.model_validate({"runner": {"kind": "async", **runner}})
    timings = Timings(folder / TIMINGS, no_warning)
    timings.begin(config)
    for step in [1, 2, 3, 4, 5]:
        slow = {"wait_s": 60.0} if step == 1 else SECONDS | {"wait_s": 90.0}
        timings.step(step, [7, 9], slow | {"scoring_s": [0.2, 0.2], **spent().written()})
    timings.begin(config)
    for step in range(4, steps + 1):
        timings.step(step, [7, 9], SECONDS | {"scoring_s": [0.2, 0.2], **spent().written()})
    return folder


def test_the_costs_of_decoding_come_back_and_none_is_below_zero() -> None:
    assert decoding_costs(spent()) == pytest.approx({"step_s": 0.01, "response_s": 0.002, "start_s": 0.03})
    faster = decoding_costs(spent(response_s=-0.0001))
    assert faster["response_s"] == 0.0 and faster["step_s"] > 0


def test_all_turns_together_take_as_long_by_the_costs_as_they_took() -> None:
    took = spent(response_s=-0.0001)
    took.turn(3, 2, 1, 0.9, count=2)  # longer than any cost explains
    costs = decoding_costs(took)
    by_costs = sum(
        count * (kind.versions * costs["step_s"] + kind.rows * costs["response_s"] + kind.joined * costs["start_s"])
        for kind, (count, _) in took.turns.items()
    )
    assert by_costs == pytest.approx(sum(seconds for _, seconds in took.turns.values()))


def test_a_run_becomes_a_config_with_its_own_lengths_and_speed(tmp_path: Path) -> None:
    found = measured(run_of(tmp_path, workers=3, max_staleness=1))
    assert found.steps == 14 - 1 - 3 - 1, "without the first that is whole, the warm-up and the last"
    assert found.steps_per_hour == pytest.approx(3600 / 2.0)
    simulation = Simulation.model_validate(found.simulation)
    assert list(simulation.problems()) == []
    assert simulation.engines("urb") == 3 and simulation.engine.versions is None
    assert simulation.engine.load_s == pytest.approx(0.2) and simulation.engine.start_s == pytest.approx(0.03)
    assert set(simulation.lengths.measured) == {7, 9} and simulation.latency.median_s == pytest.approx(0.2)
    assert (simulation.learner.step_s, simulation.learner.rest_s) == (1.25, 0.25)


def test_the_sizes_that_a_budget_gave_are_those_of_the_simulation(tmp_path: Path) -> None:
    rollout = {"prompts_per_step": 2, "group_size": 4, "budget": {"low": 2, "high": 6}}
    timings = Timings(run_of(tmp_path) / TIMINGS, no_warning)
    assert measured(tmp_path).simulation["batch"]["sizes"] == [], "a run of an earlier release tells none"
    timings.begin(PolicyConfig.model_validate({"runner": {"kind": "async"}, "rollout": rollout}))
    for step in range(1, 15):
        told = SECONDS | {"sizes": [2, 6] if step % 2 else [4, 4], "scoring_s": [0.2], **spent().written()}
        timings.step(step, [7, 9], told)
    simulation = Simulation.model_validate(measured(tmp_path).simulation)
    assert list(simulation.problems()) == []
    assert simulation.batch.sizes[:4] == [4, 4, 2, 6] and simulation.rules("urb").largest == 6


def test_the_way_of_responses_is_their_mean_and_none_where_the_run_does_not_tell(tmp_path: Path) -> None:
    found = measured(run_of(tmp_path)).simulation["engine"]
    assert found["transit_s"] == 0.0, "a run of an earlier release"
    timings = Timings(tmp_path / TIMINGS, no_warning)
    for step in range(1, 15):
        ways = {"transit_s": [0.1, 0.4] if step > 6 else []}
        timings.step(step, [7, 9], SECONDS | ways | {"scoring_s": [0.2, 0.2], **spent().written()})
    simulation = Simulation.model_validate(measured(tmp_path).simulation)
    assert simulation.engine.transit_s == pytest.approx(0.25)


def test_the_command_sets_the_run_beside_its_simulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--from-run", str(run_of(tmp_path)), "--set", "steps=12"]) == 0
    *_, said, last = capsys.readouterr().out.splitlines()
    found = json.loads(last)
    error = found["results"][0]["steps_per_hour"] / found["run"]["steps_per_hour"] - 1
    assert said.startswith("the run itself (urb): 1,800.00 steps/h over 9 steps")
    assert said.endswith(f"{error:+.1%}")


def test_a_kill_in_the_middle_of_a_line_costs_that_line_alone(tmp_path: Path) -> None:
    file = run_of(tmp_path) / TIMINGS
    whole = measured(tmp_path)
    timings = Timings(file, no_warning)
    timings.step(15, [7, 9], SECONDS | {"scoring_s": [0.2, 0.2], **spent().written()})
    file.write_bytes(file.read_bytes()[:-30])
    assert measured(tmp_path) == whole
    timings.begin(PolicyConfig.model_validate({"runner": {"kind": "async"}}))
    timings.step(15, [7, 9], SECONDS | {"scoring_s": [0.2, 0.2], **spent().written()})
    assert measured(tmp_path).steps == whole.steps + 1


def test_a_full_disk_costs_the_timings_and_not_the_run() -> None:
    warned: list[str] = []
    timings = Timings(Path("/dev/full"), warned.append)
    for step in range(3):
        timings.step(step, [7], {})
    (message,) = warned
    assert message.endswith("No space left on device")


@pytest.mark.parametrize(
    ("runner", "steps", "said"),
    [
        ({}, 9, "8 steps are too few"),
        ({"policy": "dora", "quotas": [{"domain": "law"}]}, 14, "does not know quotas"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_the_reason(
    runner: dict[str, Any], steps: int, said: str, tmp_path: Path
) -> None:
    with pytest.raises(NotSimulated, match=said):
        measured(run_of(tmp_path, steps, **runner))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file or directory: timings.jsonl"),
        ("{", "does not say what the run"),
        ("", "does not say what the run"),
    ],
)
def test_a_folder_without_timings_is_refused(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / TIMINGS).write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["--from-run", str(tmp_path)])
    assert ended.value.code == 2 and said in capsys.readouterr().err
