"""Means of ranges of steps are those of all points, whether levels are there or not, and long runs are read from their levels."""

import itertools
import math
import random
import statistics
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from webapp.core.database import binary_rows
from webapp.experiments.bulk import StepMetrics
from webapp.experiments.metrics import condensing, levels, points, ranges, writing
from webapp.experiments.models import MetricLevel, MetricPoint, MetricStretch, Run

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def asked(monkeypatch):
    """The runs for which condensing was requested."""
    found = []
    monkeypatch.setattr(condensing, "enqueue", lambda task, run_id: None)
    monkeypatch.setattr(ranges, "enqueue", lambda task, run_id: found.append((task, run_id)))
    return found


@pytest.fixture
def small(monkeypatch):
    """Units of two points, and rows of two units."""
    for name, size in (("UNIT", 2), ("UNITS", 2), ("ROW", 4)):
        monkeypatch.setattr(levels, name, size)
    monkeypatch.setattr(ranges, "DOWN", 1)  # a row of the level below, as with sixteen units a row of the second below
    monkeypatch.setattr(levels, "FANOUT", 2)


def write(run: Run, told: dict[int, float]) -> None:
    steps = [StepMetrics(step, NOON + timedelta(seconds=7 * step), {"loss": value}) for step, value in told.items()]
    writing.steps(run.pk, steps)


def found(runs: list[Run], most: int) -> dict[tuple[int, int], tuple[float, float]]:
    """{(run, range): (value, seconds)}"""
    told = ranges.means([run.pk for run in runs], "loss", most)
    rows = zip(told.run.tolist(), told.place.tolist(), told.value.tolist(), told.at.tolist(), strict=True)
    return {(runs[run].pk, place): (value, at) for run, place, value, at in rows}


def expected(runs: list[Run], most: int) -> dict[tuple[int, int], tuple[float, float]]:
    """The same by plain loops over all points."""
    held = {run.pk: [(step, value) for _, step, value in points.values(run.pk, ["loss"])] for run in runs}
    steps = [step for each in held.values() for step, _ in each]
    low, span = (min(steps), max(steps) - min(steps) + 1) if steps else (0, 1)
    parts: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for run_id, each in held.items():
        for step, value in each:
            place = step - low if span <= most else (step - low) * most // span
            parts.setdefault((run_id, place), []).append((step, value))
    first = {run_id: min(each)[0] for run_id, each in held.items() if each}
    return {
        (run_id, place): (
            statistics.fmean(value for _, value in part),
            statistics.fmean(7.0 * (step - first[run_id]) for step, _ in part),
        )
        for (run_id, place), part in parts.items()
    }


def agree(runs: list[Run], most: int) -> None:
    told, plain = found(runs, most), expected(runs, most)
    assert sorted(told) == sorted(plain)
    for place, numbers in plain.items():
        assert told[place] == about(numbers), (place, most)


def about(numbers: tuple[float, float]) -> Any:
    return pytest.approx(numbers, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_means_are_those_of_all_points_whatever_is_condensed(launch, small, asked, seed):
    draw = random.Random(seed)  # noqa: S311
    runs = [launch(name=f"r{i}") for i in range(3)]
    fronts = [draw.randrange(50) for _ in runs]
    for _ in range(40):
        i = draw.randrange(len(runs))
        told = {}
        for _ in range(draw.randint(1, 12)):
            gap = draw.choice([1, 1, 1, 3, 200])
            step = fronts[i] + gap if draw.random() < 0.9 else draw.randint(max(0, fronts[i] - 20), fronts[i] + 1)
            fronts[i] = max(fronts[i], step)
            told[step] = draw.randrange(9) / 7
        write(runs[i], told)
        if draw.random() < 0.4:
            condensing.condense(runs[i].pk)
        if draw.random() < 0.3:
            agree(runs, draw.choice([2, 3, 7, 40, 100_000]))
    for run in runs:
        condensing.condense(run.pk)
    for most in (2, 3, 5, 11, 60):
        agree(runs, most)
    assert set(MetricLevel.objects.values_list("level", flat=True)) >= {0, 1, 2} and asked == []


def fill(run: Run, count: int) -> None:
    MetricPoint.objects.bulk_create(
        MetricPoint(run=run, key="loss", step=step, value=float(step % 10), time=NOON + timedelta(seconds=7 * step))
        for step in range(count)
    )


@pytest.fixture
def long(run):
    fill(run, 20_000)
    condensing.condense(run.pk)
    return run


def test_a_long_run_is_read_from_its_levels(long, asked, monkeypatch):
    read = []
    real = points.in_ranges
    monkeypatch.setattr(points, "in_ranges", lambda *given: (read.append(real(*given)), read[-1])[1])
    agree([long], 7)
    assert 0 < sum(each.points.sum() for each in read) < 500, "some at the borders, and those that no level has yet"


@pytest.mark.parametrize("condensed", [False, True], ids=["without levels", "levels without means"])
def test_no_more_comes_from_the_database_of_longer_runs(launch, asked, monkeypatch, condensed):
    sizes = []
    real = binary_rows.opened
    monkeypatch.setattr(binary_rows, "opened", lambda *given: (sizes.append(len(given[0])), real(*given))[1])
    for count in (2000, 20_000):
        run = launch(name=f"{count} points")
        fill(run, count)
        if condensed:
            condensing.condense(run.pk)
            MetricLevel.objects.update(means=None)
        agree([run], 7)
    assert len(sizes) == 2 and sizes[0] == sizes[1]


def test_long_runs_without_levels_are_condensed(launch, asked, monkeypatch):
    monkeypatch.setattr(ranges, "LONG", 300)
    runs = [launch(name=f"{count} points") for count in (299, 300, 900, 600)]
    for run, count in zip(runs, (299, 300, 900, 600), strict=True):
        fill(run, count)
    agree(runs, 7)
    assert asked == [(condensing.TASK, runs[place].pk) for place in (2, 3, 1)], "the longest first"
    asked.clear()
    monkeypatch.setattr(ranges, "ASKED", 2)
    agree(runs, 7)
    assert asked == [(condensing.TASK, runs[place].pk) for place in (2, 3)]
    asked.clear()
    for run in runs:
        condensing.condense(run.pk)
    agree(runs, 7)
    agree(runs, 200)  # more ranges than units: all points are read
    assert asked == []


@pytest.mark.parametrize("diverged", [False, True])
def test_levels_from_before_there_were_means_are_not_read_and_are_made_again(long, asked, diverged):
    MetricLevel.objects.update(means=None)
    if diverged:
        writing.logged(long.pk, [points.LoggedPoint("loss", 20_000, NOON, math.nan)])
    agree([long], 7)
    assert asked == [(condensing.TASK, long.pk)]
    asked.clear()
    condensing.condense(long.pk)
    assert not MetricLevel.objects.filter(means=None).exists() and MetricLevel.objects.filter(level=1).exists()
    agree([long], 7)
    assert asked == []


@pytest.mark.parametrize("rows", [1, 4, 7])
@pytest.mark.parametrize("more", [1, 2, 3, 4, 9, 12])
def test_levels_of_a_worker_of_before_an_upgrade_are_made_again(run, small, asked, rows, more):
    """It goes on for a while, behind rows of a newer worker that have means."""
    write(run, {step: step / 7 for step in range(4 * rows)})
    condensing.condense(run.pk)
    newer = list(MetricLevel.objects.values_list("pk", flat=True))
    write(run, {step: step / 7 for step in range(4 * rows, 4 * (rows + more))})
    condensing.condense(run.pk)
    assert MetricLevel.objects.exclude(pk__in=newer).update(means=None) >= more
    agree([run], 2)
    for front in range(4 * (rows + more), 4 * (rows + more + 3), 4):
        write(run, {step: step / 7 for step in range(front, front + 4)})
        condensing.condense(run.pk)
        assert not MetricLevel.objects.filter(means=None).exists()
    agree([run], 2)


def test_large_values_have_a_mean(run):
    write(run, dict.fromkeys(range(1, 9), 1.5e308))
    assert {value for value, _ in found([run], 2).values()} == {1.5e308}


def test_single_values_come_as_they_were_sent(run):
    sent = {1: 5e-324, 2: 1.5e308, 3: -1.7e308, 4: 0.1, 5: 0.0, 6: 1e-300}
    write(run, sent)
    assert {place + 1: value for (_, place), (value, _) in found([run], 6).items()} == sent
    assert [value for value, _ in found([run], 2).values()] == [pytest.approx(-2e307 / 3), pytest.approx(0.1 / 3)]


def test_means_cost_the_same_queries_for_any_number_of_runs(launch, small, asked):
    runs = [launch(name=f"r{i}") for i in range(6)]
    for run in runs:
        write(run, {step: float(step) for step in range(64)})
        condensing.condense(run.pk)
    counted = []
    for some in (runs[:1], runs):
        with CaptureQueriesContext(connection) as queries:
            assert found(some, 5)
        counted.append(len(queries))
    assert counted[0] == counted[1]


def afterwards(number: int, change: Callable[[Run], None], run: Run) -> Callable[..., Any]:
    """Another connection makes the change when the statement of that number has been answered."""
    counted = itertools.count()

    def work():
        change(run)
        connection.close()

    def execute_then_change(execute, *given):
        answer = execute(*given)
        if next(counted) == number:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join(30)
        return answer

    return execute_then_change


def writes(steps: list[int], then_condense: bool) -> Callable[[Run], None]:
    """A writer stores steps in one transaction."""

    def change(run: Run) -> None:
        with transaction.atomic():
            write(run, dict.fromkeys(steps, 5.0))
        if then_condense:
            condensing.condense(run.pk)

    return change


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("most", [2, 62], ids=["ranges", "single steps"])
@pytest.mark.parametrize("condense", [False, True], ids=["stored", "condensed"])
@pytest.mark.parametrize("steps", [[64], [*range(64, 80)], [1], [20]], ids=["behind", "many", "before", "again"])
def test_means_are_those_of_one_moment(launch, small, asked, steps, condense, most):
    """A run goes on, or writes a step again, between two statements."""
    runs = [launch(name=f"r{i}") for i in range(3)]
    for run in runs:
        write(run, {step: step % 7 / 3 for step in range(2, 64)})
        condensing.condense(run.pk)
    for number, changed in itertools.product(range(8), (runs[0], runs[2])):
        kept = stored(changed)
        before = expected(runs, most)
        with connection.execute_wrapper(afterwards(number, writes(steps, condense), changed)):
            told = found(runs, most)
        after = expected(runs, most)
        assert any(
            sorted(told) == sorted(plain) and all(told[place] == about(plain[place]) for place in plain)
            for plain in (before, after)
        ), (number, changed.name)
        restore(changed, kept)


STORED: list[Any] = [MetricPoint, MetricStretch, MetricLevel]


def stored(run: Run) -> list[list[Any]]:
    return [list(model.objects.filter(run=run)) for model in STORED]


def restore(run: Run, kept: list[list[Any]]) -> None:
    for model, rows in zip(STORED, kept, strict=True):
        model.objects.filter(run=run).delete()
        model.objects.bulk_create(rows)
