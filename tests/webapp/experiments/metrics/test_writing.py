"""Points are packed if their steps come in order. In any order, the stored points are those that were sent."""

import json
import math
import random
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from django.db import DatabaseError, connection, transaction

from webapp.experiments.bulk import StepMetrics
from webapp.experiments.metrics import condensing, facts, levels, points, sql, writing
from webapp.experiments.metrics.points import LoggedPoint
from webapp.experiments.models import MetricPoint, MetricStretch, Point, Run, RunValue

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
HISTOGRAM = {"edges": [0, 1], "counts": [2]}


@pytest.fixture(autouse=True)
def no_tasks(monkeypatch):
    monkeypatch.setattr(condensing, "enqueue", lambda task, run_id: None)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def steps(run: Run, *numbers: int, **values: float) -> None:
    """The same values at each of the steps, plus the step."""
    told = values or {"a": 0.0}
    with transaction.atomic():
        writing.steps(run.pk, [StepMetrics(n, at(n), {key: value + n for key, value in told.items()}) for n in numbers])


def stored(run: Run) -> dict[tuple[str, int], tuple]:
    rows = Point.objects.filter(run=run).order_by("key", "step")
    told = rows.values_list("key", "step", "value", "not_finite", "histogram", "time")
    found = {(key, step): tuple(rest) for key, step, *rest in told}
    assert len(rows) == len(found), "a step that is stored twice"
    return found


def stretches(run: Run, key: str = "a") -> list[list[int]]:
    found = list(MetricStretch.objects.filter(run=run, key=key).order_by("first_step"))
    for each in found:
        assert (each.steps[0], each.steps[-1]) == (each.first_step, each.last_step)
        assert all(a < b for a, b in pairwise(each.steps)) and len(each.steps) <= writing.MOST
        assert len(each.steps) == len(each.numbers) == len(each.times)
    assert all(a.last_step < b.first_step for a, b in pairwise(found))
    return [each.steps for each in found]


def test_steps_that_come_in_order_are_packed(run):
    steps(run, 0, 1, 2)
    steps(run, 3)
    steps(run, 10, 20)
    assert stretches(run) == [[0, 1, 2, 3, 10, 20]] and not MetricPoint.objects.exists()
    steps(run, *range(30, 30 + writing.MOST))
    steps(run, *range(1000, 1000 + 2 * writing.MOST + 1))
    assert [len(each) for each in stretches(run)] == [6, *[writing.MOST] * 3, 1]
    assert stored(run)["a", 20] == (20.0, "", None, at(20))


def test_what_comes_again_or_late_makes_rows_of_its_stretch_alone(run):
    steps(run, *range(2 * writing.MOST), a=0.0, b=0.0)
    steps(run, 5, a=100.0)
    assert stretches(run) == [list(range(writing.MOST, 2 * writing.MOST))]
    assert len(stretches(run, "b")) == 2 and MetricPoint.objects.count() == writing.MOST
    assert len(stored(run)) == 4 * writing.MOST
    assert stored(run)["a", 5][0] == 105.0 and stored(run)["a", 6][0] == 6.0
    steps(run, 500)
    assert stretches(run)[-1][-1] == 500, "and goes on being packed"


def test_a_gap_is_filled_by_rows(run):
    steps(run, *range(writing.MOST))
    steps(run, *range(200, 200 + writing.MOST))
    steps(run, 150)
    assert list(MetricPoint.objects.values_list("step", flat=True)) == [150] and len(stretches(run)) == 2


def test_points_from_before_there_were_stretches_stay_and_are_continued(run):
    MetricPoint.objects.bulk_create(MetricPoint(run=run, key="a", step=n, value=1.0, time=at(n)) for n in range(5))
    steps(run, 4, 5)
    steps(run, 6, 7)
    assert MetricPoint.objects.count() == 6 and stretches(run) == [[6, 7]]
    assert [value for value, *_ in stored(run).values()] == [1.0] * 4 + [4.0, 5.0, 6.0, 7.0]
    assert [each["step"] for each in points.page(run.pk, "a", 2, 3)] == [3, 4, 5]
    assert [each["step"] for each in points.page(run.pk, "a", 5, 3)] == [6, 7]


def test_a_histogram_and_a_value_of_one_step_are_one_point(run):
    steps(run, 1, 2)
    writing.steps(run.pk, [StepMetrics(2, at(9), histograms={"a": HISTOGRAM})])
    assert stored(run) == {("a", 1): (1.0, "", None, at(1)), ("a", 2): (2.0, "", HISTOGRAM, at(9))}
    steps(run, 3)
    writing.steps(run.pk, [StepMetrics(4, at(4), {"a": 4.0}, {"a": HISTOGRAM})])
    assert stretches(run) == [[3]] and stored(run)["a", 4] == (4.0, "", HISTOGRAM, at(4))


def test_the_newest_by_its_clock_stays_of_what_is_logged(run):
    def log(step: int, value: float, seconds: float) -> None:
        writing.logged(run.pk, [LoggedPoint("a", step, at(seconds), value)])

    log(0, 1.0, 10)
    assert stretches(run) == [[0]]
    log(0, 2.0, 5)
    assert stored(run)["a", 0] == (1.0, "", None, at(10))
    log(0, 3.0, 10)
    log(1, float("nan"), 11)
    log(2, float("-inf"), 12)
    log(3, 4.0, 13)
    told = [(value, word) for value, word, *_ in stored(run).values()]
    assert told == [(3.0, ""), (None, "NaN"), (None, "-Infinity"), (4.0, "")]
    assert [each.value for each in points.numbers(run.pk, "a", 1, 9)] == [float("-inf"), 4.0]


@pytest.mark.parametrize("seed", range(8))
def test_any_order_is_stored_as_rows_alone_would_have_it(run, monkeypatch, seed):
    """A dictionary of (key, step) gets the same points. All reads must agree with it, also the table of runs."""
    monkeypatch.setattr(writing, "MOST", 4)
    rng, known = random.Random(seed), dict[tuple[str, int], tuple]()  # noqa: S311
    front = Counter[str]()
    for turn in range(40):
        batch = dict[int, StepMetrics]()
        for key in rng.sample("abcd", rng.randint(1, 4)):
            for _ in range(rng.randint(1, 6)):
                ahead = rng.random() < 0.8
                step = front[key] + rng.randint(1, 2) if ahead else rng.randint(0, front[key] + 1)
                front[key] = max(front[key], step)
                told = batch.setdefault(step, StepMetrics(step, at(1000 * turn + step)))
                if key != "d" or rng.random() < 0.5:
                    told.values[key] = rng.choice([0.1, -1e300, 5e-324, 3.0, rng.random()])
                else:
                    told.histograms[key] = HISTOGRAM
        for each in batch.values():
            for key in {*each.values, *each.histograms}:
                value, histogram = known.get((key, each.step), (None, None, None))[:2]
                known[key, each.step] = (each.values.get(key, value), each.histograms.get(key, histogram), each.time)
        facts.keep_metrics(run.experiment.workspace_id, run, writing.steps(run.pk, list(batch.values())))
    for key in "abcd":
        stretches(run, key)
    assert {place: (row[0], row[2], row[3]) for place, row in stored(run).items()} == known
    assert MetricStretch.objects.exists() and MetricPoint.objects.exists()
    check_reads(run, known, rng)


def spread(values: dict[int, float], most: int) -> list[float]:
    """The values at, or before, evenly spaced steps, each once."""
    steps = sorted(values)
    until = {steps[0] + (steps[-1] - steps[0]) * place // most for place in range(most + 1)} if steps else set()
    return [values[step] for step in sorted({max(s for s in steps if s <= each) for each in until})]


def check_reads(run: Run, known: dict[tuple[str, int], tuple], rng: random.Random) -> None:
    newest = {each.key: each for each in points.newest([run.pk])[run.pk]}
    keys = sorted({key for key, _ in known})
    assert list(newest) == keys
    finite = {key: {n: v[0] for (k, n), v in sorted(known.items()) if k == key and v[0] is not None} for key in keys}
    for place, key in enumerate(keys):
        of = {n: value for (k, n), value in sorted(known.items()) if k == key}
        last = max(of)
        value, histogram, time = of[last]
        assert (newest[key].step, newest[key].value, newest[key].time) == (last, value, time)
        assert newest[key].has_histogram == (histogram is not None)
        after = rng.randint(-1, last)
        page = points.page(run.pk, key, after, 7)
        assert [(p["step"], p["value"], p["histogram"], p["time"]) for p in page] == [
            (n, *told) for n, told in of.items() if n > after
        ][:7]
        behind = {n: v for n, v in finite[key].items() if n > after}
        assert points.highest(run.pk, key, after) == max(behind.values(), default=None)
        assert points.first_values([run.pk], key, after + 1) == list(behind.values())[:1]
        assert points.times({run.pk: (key, last)}) == {run.pk: time}
        assert points.times({run.pk: (key, last + 1)}) == {}
        got = [piece for where, piece in points.read_points(run.pk, keys, [after] * len(keys), 5) if where == place]
        copied = np.concatenate(got) if got else np.empty(0, levels.POINT)
        assert dict(zip(copied["step"].tolist(), copied["value"].tolist(), strict=True)) == dict(
            list(behind.items())[:5]
        )
        spark = points.sparks({run.pk: key}, 1000).get(run.pk, [])
        assert spark == list(finite[key].values())
        with mock.patch.object(points, "LONG_STEPS", 1):
            assert points.sparks({run.pk: key}, 5).get(run.pk, []) == spread(finite[key], 5)
    told = {each.key: (each.last, each.low, each.high, each.last_step) for each in points.summaries(run.pk, keys)}
    assert told == {k: (list(v.values())[-1], min(v.values()), max(v.values()), max(v)) for k, v in finite.items() if v}
    kept = RunValue.objects.filter(run=run, column__source="metric", column__path__in=keys)
    assert {path: rest for path, *rest in kept.values_list("column__path", "number", "low", "high", "step")} == {
        key: list(each) for key, each in told.items()
    }
    assert set(points.values(run.pk, keys)) == {(key, n, v) for key, of in finite.items() for n, v in of.items()}


@pytest.mark.parametrize("seed", range(6))
def test_the_newest_stays_of_what_is_logged_in_any_order(run, monkeypatch, seed):
    """Steps that come again in the same batch or later, clocks that are set back, and values that are not finite."""
    monkeypatch.setattr(writing, "MOST", 4)
    rng, known, front = random.Random(seed), dict[tuple[str, int], LoggedPoint](), Counter[str]()  # noqa: S311
    for turn in range(40):
        batch = []
        for _ in range(rng.randint(1, 20)):
            key = rng.choice("abcd")
            late = max(0, front[key] - rng.choice((0, 2, 50)))
            step = front[key] + rng.randint(1, 3) if rng.random() < 0.8 else rng.randint(late, front[key] + 1)
            front[key] = max(front[key], step)
            odd = key == "d" and rng.random() < 0.1
            value = rng.choice([math.nan, math.inf, -math.inf]) if odd else rng.choice([-0.0, 5e-324, rng.random()])
            batch.append(LoggedPoint(key, step, at(10 * rng.randint(turn, turn + 3)), value))
        for each in batch:
            if (each.key, each.step) not in known or known[each.key, each.step].time <= each.time:
                known[each.key, each.step] = each
        writing.logged(run.pk, batch)
    for key in "abcd":
        stretches(run, key)
    told = {
        place: (float(word) if value is None else value, time) for place, (value, word, _, time) in stored(run).items()
    }
    assert repr(told) == repr({place: (each.value, each.time) for place, each in sorted(known.items())})
    assert MetricStretch.objects.exists() and MetricPoint.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_writer_that_dies_in_the_middle_leaves_nothing_half_written(run):
    steps(run, *range(50))
    before = stored(run)

    def write() -> None:
        with pytest.raises(DatabaseError), transaction.atomic():
            writing.steps(run.pk, [StepMetrics(n, at(n), {"a": 7.0, "b": 7.0}) for n in range(40, 70)])
            assert len(stored(run)) == 100
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    writer.join()
    assert stored(run) == before and stretches(run) == [list(range(50))]
    steps(run, *range(40, 70), a=1.0, b=1.0)
    assert len(stored(run)) == 70 + 30


@pytest.mark.django_db(transaction=True)
def test_programs_that_log_to_one_run_at_once_lose_nothing(run):
    """Each program holds the lock of the run, like all callers. Steps of one program overtake those of another."""

    def log(mine: int) -> None:
        for n in range(mine, 120, 3):
            with transaction.atomic():
                Run.objects.select_for_update(no_key=True).get(pk=run.pk)
                writing.logged(run.pk, [LoggedPoint("a", n, at(n), float(n)), LoggedPoint(f"b{mine}", n, at(n), 0.5)])
        connection.close()

    writers = [threading.Thread(target=log, args=(mine,)) for mine in range(3)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    found = stored(run)
    assert sorted(n for key, n in found if key == "a") == list(range(120)) and len(found) == 240
    stretches(run)
    assert [stretches(run, f"b{mine}") for mine in range(3)] == [[list(range(mine, 120, 3))] for mine in range(3)]


def test_a_row_of_an_older_server_beside_a_stretch_is_the_newer_one(run):
    """Two versions do not write at the same time. If they did, the run would still continue."""
    steps(run, 1, 2, 3)
    MetricPoint.objects.create(run=run, key="a", step=2, value=9.0, time=at(9))
    steps(run, 3)
    assert [value for value, *_ in stored(run).values()] == [1.0, 9.0, 3.0]


def test_a_deleted_run_takes_its_stretches_along(run, version):
    steps(run, 1, 2, 3)
    Run.objects.filter(pk=run.pk).delete()
    assert not MetricStretch.objects.exists() and not Point.objects.exists()


def test_an_older_version_finds_all_points_as_rows(run):
    steps(run, *range(120), a=0.0, b=0.5)
    steps(run, 7)
    before = stored(run)
    with connection.cursor() as cursor:
        cursor.execute(import_module("webapp.experiments.migrations.0041_stretches_of_metrics").ROWS_AGAIN)
    rows = MetricPoint.objects.filter(run=run).values_list("key", "step", "value", "not_finite", "histogram", "time")
    assert {(key, step): tuple(rest) for key, step, *rest in rows} == before and len(rows) == 240


def test_a_long_metric_is_read_from_where_it_is_asked(run):
    """The read uses the index. It reads neither earlier points nor more points than it is asked for."""
    with transaction.atomic():
        writing.steps(run.pk, [StepMetrics(n, at(n), {"a": 1.0}) for n in range(20_000)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE experiments_metricstretch")
        asked = {"run": run.pk, "key": "a", "after": 15_000, "most": 100}
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql.PAGE, asked)
        found = cursor.fetchone()[0]
    told = json.loads(found) if isinstance(found, str) else found
    assert scanned(told[0]["Plan"]) <= 8 * 2, told


def scanned(plan: dict) -> float:
    """The number of rows of stretches that were read."""
    own = plan["Actual Rows"] * plan["Actual Loops"] + plan.get("Rows Removed by Filter", 0)
    here = own if plan.get("Relation Name") == "experiments_metricstretch" else 0
    return here + sum(map(scanned, plan.get("Plans", ())))
