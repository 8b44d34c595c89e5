"""The parts of a step, as its event has them: nested, without gaps, and bounded in number."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.trainer.loops.conftest import events_of, small_config
from trainer.contracts import SpansData, StepSpan
from trainer.loops.session import spans
from trainer.loops.session.spans import Spans
from trainer.loops.session.timeline import HELD, MOST_BESIDE, MOST_PHASES, MOST_PIECES, MOST_WORK, BesideLog

from ...running import run
from ..texts import demonstrations, make_config, write_examples
from .test_spans import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(spans, "time", made)
    return made


def named(data: SpansData) -> list[tuple[str, str, int, float, float, int]]:
    """(work, name, inside, start, seconds, pieces)"""
    return [
        (data.names[s.work], data.names[s.name], s.inside, s.start / 1e6, s.took / 1e6, s.pieces) for s in data.spans
    ]


def adds_up(data: SpansData) -> None:
    """The kinds of work follow one another and fill the step; what is inside another span lies in it (the contract refuses others)."""
    works = [span for span in data.spans if span.inside < 0]
    assert [span.start for span in works] == [0, *(span.start + span.took for span in works[:-1])]
    assert sum(span.took for span in works) == data.took > 0


def test_a_name_of_any_length_ends_no_run(clock: Clock) -> None:
    step = Spans()
    clock.now += 1.0
    step.reported("reward", "x" * 500, 1)
    step.over("other")
    step.ran("reward", "y" * 500, 100.0, 101.0)
    assert {len(name) for name in step.told().names} == {0, 6, 200}  # a kind of work has no name of its own


def test_a_step_has_its_kinds_of_work_their_phases_and_each_report(clock: Clock) -> None:
    step = Spans()
    for seconds, work, phase, done in [
        (1.0, "rollout", "sampling", 0),
        (2.0, "rollout", "sampling", 4),
        (0.5, "reward", "scoring", 0),
        (0.25, "reward", "scoring", 0),  # it waits
        (1.0, "learner", "updating", 1),
        (1.0, "learner", "updating", 2),
    ]:
        clock.now += seconds
        step.reported(work, phase, done)  # type: ignore[arg-type]
    clock.now += 0.25
    step.over("other")
    step.ran("reward", "quality", 102.5, 103.5)
    step.ran("rollout", "rollout-0", 90.0, 101.0)  # it began before the step
    step.ran("rollout", "rollout-0", 80.0, 90.0)  # and this ended before
    data = step.told()
    adds_up(data)
    assert named(data) == [
        ("rollout", "", -1, 0.0, 3.0, 1),
        ("rollout", "sampling", 0, 0.0, 3.0, 1),
        ("rollout", "sampling", 1, 0.0, 1.0, 1),
        ("rollout", "sampling", 1, 1.0, 2.0, 1),
        ("reward", "", -1, 3.0, 0.75, 1),
        ("reward", "scoring", 4, 3.0, 0.75, 1),
        ("learner", "", -1, 3.75, 2.25, 1),
        ("learner", "updating", 6, 3.75, 2.0, 1),
        ("learner", "updating", 7, 3.75, 1.0, 1),
        ("learner", "updating", 7, 4.75, 1.0, 1),
    ]
    beside = [(data.names[s.work], data.names[s.name], s.start / 1e6, s.took / 1e6) for s in data.beside]
    assert beside == [("rollout", "rollout-0", 0.0, 1.0), ("reward", "quality", 2.5, 1.0)]


def test_an_evaluation_has_its_own_phases(clock: Clock) -> None:
    step = Spans()
    clock.now += 1.0
    step.over("other")
    during = Spans()
    for seconds, work, phase in [(2.0, "evaluation", "answering"), (3.0, "reward", "scoring")]:
        clock.now += seconds
        during.reported(work, phase)  # type: ignore[arg-type]
    clock.now += 1.0
    step.evaluated(during)
    step.over("evaluation")
    assert step.metrics() == {"perf/other_s": 1.0, "perf/evaluation_s": 6.0}
    adds_up(step.told())
    assert [each[:2] for each in named(step.told())] == [
        ("other", ""), ("evaluation", ""), ("evaluation", "answering"), ("evaluation", "scoring"),
    ]  # fmt: skip


def test_the_number_of_spans_is_bounded_and_each_says_for_how_many_it_stands(clock: Clock) -> None:
    step, reports = Spans(), 5 * HELD
    for number in range(reports):
        clock.now += 0.01
        step.reported("rollout" if number % 2 else "reward", f"phase {number % 7}", number)
        step.ran("reward", f"part {number % 3}", clock.now - 0.02, clock.now)
    data = step.told()
    adds_up(data)
    assert len(data.spans) <= MOST_WORK + MOST_PHASES + MOST_PIECES
    assert len(data.beside) <= MOST_BESIDE
    assert {data.names[span.name] for span in data.beside} == {"part 0", "part 1", "part 2"}
    assert sum(span.pieces for span in data.beside) == reports
    assert len(step._pieces) <= 2 * HELD


def test_what_runs_in_other_threads_is_held_in_bounds() -> None:
    beside = BesideLog()
    for number in range(10 * HELD):
        beside.ran("rollout", f"worker {number}", number, number + 1)
    found = beside.taken()
    assert len(found) <= 2 * HELD and sum(piece.pieces for piece in found) == 10 * HELD
    assert beside.taken() == []


@pytest.mark.parametrize(
    "span",
    [
        StepSpan(0, 0, -1, 0, 11),  # longer than the step
        StepSpan(0, 0, -1, 5, -1),
        StepSpan(0, 0, 0, 0, 1),  # inside itself
        StepSpan(0, 1, -1, 0, 1),  # a name that is not there
        StepSpan(0, 0, -1, -1, 1),
        StepSpan(0, 0, -1, 0, 1, 0),
    ],
)
def test_a_span_that_does_not_lie_in_the_step_is_refused(span: StepSpan) -> None:
    with pytest.raises(ValidationError):
        SpansData(took=10, names=("rollout",), spans=(span,))


def test_the_spans_of_an_sft_run_add_up_to_its_steps(tiny_dir: Path, tmp_path: Path) -> None:
    data = write_examples(demonstrations(12, 4), tmp_path / "data.jsonl")
    config = make_config("sft", steps=2, batch_size=8, optim={"micro_batch_tokens": 64}, evaluation={"every": 1})
    assert run(config, data, tiny_dir, tmp_path / "run")
    found = told_of(tmp_path / "run")
    assert sorted(found) == [1, 2]
    for step, data_of_step in found.items():
        adds_up(data_of_step)
        works = {work: seconds for work, _, inside, _, seconds, _ in named(data_of_step) if inside < 0}
        assert works.keys() == {"learner", "evaluation", "saving"}
        measured = {key: value for (at, key), value in timed(tmp_path / "run").items() if at == step}
        assert works == pytest.approx({work: measured[f"perf/{work}_s"] for work in works}, abs=1e-5)
        assert len([span for span in named(data_of_step) if span[0] == "learner" and span[2] > 0]) > 1  # micro-batches


def test_the_spans_of_a_policy_run_have_its_rewards_and_its_pushes(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    make_loop(small_config(steps=2), tmp_path / "run").run()
    for data in told_of(tmp_path / "run").values():
        adds_up(data)
        assert {"rollout", "learner", "saving"} <= {data.names[span.work] for span in data.spans}
        assert {"sampling", "updating"} <= {data.names[span.name] for span in data.spans}
        beside = {(data.names[span.work], data.names[span.name]) for span in data.beside}
        assert ("learner", "weights to the sampler") in beside
        assert any(work == "reward" for work, _ in beside)


def timed(run_dir: Path) -> dict[tuple[int, str], float]:
    """The seconds of each kind of work, which `metrics_of` leaves out."""
    told = [event for event in events_of(run_dir) if event.data.kind == "metrics"]
    return {(event.step, key): value for event in told for key, value in event.data.values.items()}


def told_of(run_dir: Path) -> dict[int, SpansData]:
    return {event.step: event.data for event in events_of(run_dir) if isinstance(event.data, SpansData)}
