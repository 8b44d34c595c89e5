"""Levels summarise points. Charts read levels instead of points, and do not show values that points no longer have."""

import json
import random
import threading
from itertools import pairwise

import pytest
from django.db import connection, transaction
from django.utils import timezone

from webapp.core.database import locks
from webapp.experiments.bulk import StepMetrics
from webapp.experiments.metrics import condensing, curves, levels, points, stored_levels, writing
from webapp.experiments.models import MetricLevel, MetricPoint, Run
from workers import runs

FILL = """
INSERT INTO experiments_metricpoint (run_id, key, step, time, value)
SELECT %s, 'k' || key, step * %s, now() + step * interval '1 s', sin(key * step) FROM generate_series(1, %s) AS key, generate_series(0, %s - 1) AS step
"""
LONG = 20_000


@pytest.fixture(autouse=True)
def requested_runs(monkeypatch):
    """The runs for which condensing was requested. No request is made by chance."""
    found = []
    monkeypatch.setattr(condensing, "enqueue", lambda task, run_id: found.append((task, run_id)))
    monkeypatch.setattr(curves, "enqueue", lambda task, run_id: found.append((task, run_id)))
    monkeypatch.setattr(random, "random", lambda: 0.999)
    return found


def fill(run, keys=1, steps=LONG, spacing=1):
    with connection.cursor() as cursor:
        cursor.execute(FILL, [run.pk, spacing, keys, steps])


def drawn(run, key="k1", **wanted):
    found = json.loads(curves.curves(run, **wanted))["curves"][key]
    return dict(zip(found["steps"], found["values"], strict=True))


def spike(run, step, value, key="k1"):
    MetricPoint.objects.filter(run=run, key=key, step=step).update(value=value)


def test_a_chart_of_a_long_run_reads_levels_instead_of_points(run):
    fill(run)
    spike(run, 777, 9.0)
    spike(run, 13_333, -9.0)
    ends = MetricPoint.objects.filter(run=run, step__in=(0, LONG - 1)).order_by("step").values_list("value", flat=True)
    first, last = ends
    condensing.condense(run.pk)
    # the chart does not read these points
    MetricPoint.objects.filter(run=run, step__gt=0, step__lt=LONG - levels.ROW).delete()
    found = drawn(run, max_points=100)
    assert (found[777], found[13_333], found[0], found[LONG - 1]) == (9.0, -9.0, first, last)
    assert 90 <= len(found) <= 102


@pytest.mark.parametrize("spacing", [1, 1000])
def test_every_level_follows_without_a_gap(run, spacing):
    fill(run, keys=2, spacing=spacing)
    condensing.condense(run.pk)
    rows = list(MetricLevel.objects.filter(run=run, key="k2").order_by("level", "number"))
    counts = [sum(row.level == level for row in rows) for level in range(5)]
    assert counts == [78, 19, 4, 1, 0]
    for row in rows:
        size = levels.ROW * levels.FANOUT**row.level
        points = levels.opened(bytes(row.points))
        assert points["step"][0] == row.number * size * spacing
        assert points["step"][-1] == row.last_step == ((row.number + 1) * size - 1) * spacing


def test_what_comes_later_is_condensed_behind_it(run):
    fill(run, steps=1000)
    condensing.condense(run.pk)
    fill_more = MetricPoint(run=run, key="k1", step=0, value=0.0, time=timezone.now())
    for start in range(1000, 3000, 50):
        MetricPoint.objects.bulk_create(
            MetricPoint(run=run, key="k1", step=step, value=float(step), time=fill_more.time)
            for step in range(start, start + 50)
        )
        condensing.condense(run.pk)
    apart = list(MetricLevel.objects.filter(run=run).order_by("level", "number").values_list("points", flat=True))
    MetricLevel.objects.all().delete()
    condensing.condense(run.pk)
    whole = MetricLevel.objects.filter(run=run).order_by("level", "number").values_list("points", flat=True)
    assert list(map(bytes, apart)) == list(map(bytes, whole))
    assert len(apart) == 11 + 2


def test_a_step_that_comes_again_replaces_what_was_condensed(run, trainer):
    fill(run, keys=2)
    condensing.condense(run.pk)
    before = MetricLevel.objects.filter(key="k2").count()
    trainer.post(trainer.metrics(12_000, k1=5.0))
    assert drawn(run, max_points=100)[12_000] == 5.0
    assert max(MetricLevel.objects.filter(key="k1").values_list("last_step", flat=True)) < 12_000
    assert MetricLevel.objects.filter(key="k2").count() == before, "of another metric nothing came again"
    condensing.condense(run.pk)
    assert drawn(run, max_points=100)[12_000] == 5.0
    trainer.post(trainer.metrics(12_000, k1=0.0))
    assert 5.0 not in drawn(run, max_points=100).values()


def test_what_goes_on_forgets_nothing(run, trainer):
    fill(run, steps=levels.ROW)
    condensing.condense(run.pk)
    trainer.post(trainer.metrics(levels.ROW, k1=5.0, other=1.0), trainer.metrics(levels.ROW + 1, k1=6.0))
    assert MetricLevel.objects.count() == 1
    trainer.post(trainer.metrics(levels.ROW - 1, k1=5.0))
    assert MetricLevel.objects.count() == 0


@pytest.mark.parametrize("seed", range(4))
def test_levels_kept_through_any_order_are_those_of_all_points(run, monkeypatch, seed):
    for name, size in (("UNIT", 2), ("UNITS", 2), ("ROW", 4)):
        monkeypatch.setattr(levels, name, size)
    rng, front = random.Random(seed), 0  # noqa: S311
    for _ in range(60):
        told = {}
        for _ in range(rng.randint(1, 8)):
            step = front + 1 if rng.random() < 0.9 else rng.randint(max(0, front - 20), front + 1)
            front = max(front, step)
            told[step] = {key: rng.random() for key in rng.sample("abc", rng.randint(1, 3))}
        writing.steps(run.pk, [StepMetrics(step, timezone.now(), values) for step, values in told.items()])
        if rng.random() < 0.5:
            condensing.condense(run.pk)
    condensing.condense(run.pk)
    kept = list(MetricLevel.objects.order_by("key", "level", "number").values_list("key", "level", "number", "points"))
    MetricLevel.objects.all().delete()
    condensing.condense(run.pk)
    made = MetricLevel.objects.order_by("key", "level", "number").values_list("key", "level", "number", "points")
    assert kept == list(made) and {level for _, level, _, _ in kept} >= {0, 1}


def test_charts_cost_the_same_queries_for_any_number_of_metrics(run, django_assert_num_queries):
    fill(run, keys=30, steps=5000)
    condensing.condense(run.pk)
    with django_assert_num_queries(5):
        assert len(json.loads(curves.curves(run, max_points=20))["curves"]) == 30


def test_a_long_run_that_nobody_condensed_is_drawn_all_the_same(run, requested_runs, monkeypatch):
    monkeypatch.setattr(points, "BLOCK", 1000)
    fill(run, keys=2)
    spike(run, 777, 9.0)
    found = drawn(run, max_points=100)
    assert found[777] == 9.0 and len(found) <= 102 and all(a < b for a, b in pairwise(found))
    assert requested_runs == [(condensing.TASK, run.pk)]
    condensing.condense(run.pk)
    assert drawn(run, max_points=100)[777] == 9.0
    assert len(requested_runs) == 1


def test_workers_are_asked_by_the_steps_that_came(run, trainer, requested_runs, monkeypatch):
    trainer.post(*(trainer.metrics(step, k1=1.0) for step in range(20)))
    assert requested_runs == []
    monkeypatch.setattr(random, "random", lambda: 20 / condensing.EVERY)
    trainer.post(*(trainer.metrics(step, k1=1.0) for step in range(20, 40)))
    assert requested_runs == []
    trainer.post(*(trainer.metrics(step, k1=1.0) for step in range(40, 61)))
    assert requested_runs == [(condensing.TASK, run.pk)]


def test_histograms_have_no_levels(run):
    MetricPoint.objects.bulk_create(
        MetricPoint(run=run, key="h", step=s, histogram={"edges": [0, 1], "counts": [s]}, time=timezone.now())
        for s in range(2 * levels.ROW)
    )
    condensing.condense(run.pk)
    assert not MetricLevel.objects.exists()


def test_levels_go_with_their_run(run):
    fill(run)
    condensing.condense(run.pk)
    condensing.condense(run.pk + 1)  # a run that does not exist
    Run.objects.filter(pk=run.pk).delete()
    assert not MetricLevel.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_condenses_waits_for_who_writes(run, monkeypatch):
    """A step that is being written again must not be condensed with its old value."""
    fill(run, steps=levels.ROW)
    begun, over = threading.Event(), threading.Event()
    real = stored_levels.covered
    monkeypatch.setattr(stored_levels, "covered", lambda *given: (over.set(), real(*given))[1])

    def work():
        begun.set()
        condensing.condense(run.pk)
        connection.close()

    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        spike(run, 100, 7.0)
        condensing.written(run.pk, {"k1": 100}, 1)
        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(30) and not over.wait(0.5)
    thread.join(30)
    assert 7.0 in levels.opened(bytes(MetricLevel.objects.get().points))["value"]


@pytest.mark.django_db(transaction=True)
def test_one_worker_at_a_time_condenses_a_run(run):
    fill(run, steps=levels.ROW)
    with locks.exclusive(locks.Work.LEVELS, run.pk) as ours:
        assert ours
        thread = threading.Thread(target=lambda: (condensing.condense(run.pk), connection.close()))
        thread.start()
        thread.join(30)
        assert not MetricLevel.objects.exists()
    condensing.condense(run.pk)
    assert MetricLevel.objects.count() == 1


def test_workers_know_the_task():
    assert runs.condense.name == condensing.TASK


def test_levels_hear_of_metrics_whose_steps_come_late_or_again(run, monkeypatch):
    told = []
    monkeypatch.setattr(condensing, "written", lambda *args: told.append(args))
    given = {5: {"a": 1.0}, 3: {"b": 1.0}, 9: {"a": 1.0, "b": 1.0, "c": 1.0}}
    writing.steps(run.pk, [StepMetrics(step, timezone.now(), values) for step, values in given.items()])
    writing.logged(run.pk, [points.LoggedPoint("d", step, timezone.now(), 1.0) for step in (4, 2, 2)])
    assert told == [(run.pk, {}, 3), (run.pk, {}, 2)], "all go on behind what is stored"
    told.clear()
    writing.steps(run.pk, [StepMetrics(step, timezone.now(), given[step]) for step in (9, 5)])
    writing.logged(run.pk, [points.LoggedPoint(key, step, timezone.now(), 1.0) for key in "de" for step in (3, 5)])
    assert told == [(run.pk, {"a": 5, "b": 9, "c": 9}, 2), (run.pk, {"d": 3}, 2)]
