"""The values by which the table sorts and filters follow the configs and the events of runs, also if events are sent twice."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from webapp.experiments import table_facts
from webapp.experiments.lifecycle import services
from webapp.experiments.models import MetricPoint, MetricStretch, Point, Run, RunColumn, RunValue
from webapp.experiments.outputs import starting_points

pytestmark = pytest.mark.django_db


def values(run: Run, path: str, source: str = "metric") -> tuple:
    row = RunValue.objects.get(run=run, column__path=path, column__source=source)
    return row.number, row.low, row.high, row.step


def test_a_new_run_has_a_value_for_every_path_of_its_config(run):
    number = RunValue.objects.get(run=run, column__path="steps", column__source="config")
    assert (number.number, number.text) == (4, None)
    name = RunValue.objects.get(run=run, column__path="model.name")
    assert (name.number, name.text) == (None, run.config["model"]["name"])
    assert RunColumn.objects.filter(source="config").count() == run.values.filter(column__source="config").count()
    assert set(RunColumn.objects.values_list("workspace", flat=True)) == {run.experiment.workspace_id}


def test_metrics_keep_their_last_lowest_and_highest_value(run, trainer):
    trainer.post(trainer.metrics(1, loss=3.0), trainer.metrics(2, loss=1.0))
    trainer.post(trainer.metrics(3, loss=2.0))
    assert values(run, "loss") == (2.0, 1.0, 3.0, 3)


def test_a_delivery_that_comes_twice_changes_nothing(run, trainer):
    events = [trainer.metrics(1, loss=3.0), trainer.metrics(2, loss=1.0)]
    for _ in range(2):
        assert trainer.post(*events).status_code == 200
    assert values(run, "loss") == (1.0, 1.0, 3.0, 2)


def test_a_step_that_is_repeated_takes_its_extreme_along(run, trainer):
    """A resumed run returns to its checkpoint. A best value from after the checkpoint no longer belongs to the run."""
    trainer.post(trainer.metrics(1, score=0.2), trainer.metrics(2, score=0.9), trainer.metrics(3, score=0.4))
    trainer.post(trainer.metrics(2, score=0.3))
    assert values(run, "score") == (0.4, 0.2, 0.4, 3)
    trainer.post(trainer.metrics(3, score=0.1), trainer.metrics(4, score=0.35))
    assert values(run, "score") == (0.35, 0.1, 0.35, 4)


def test_keys_of_one_step_may_come_in_several_batches(run, trainer):
    trainer.post(trainer.metrics(1, loss=3.0))
    trainer.post(trainer.metrics(1, other=5.0))
    assert (values(run, "loss"), values(run, "other")) == ((3.0, 3.0, 3.0, 1), (5.0, 5.0, 5.0, 1))


def test_the_result_and_the_gain_are_what_the_list_shows(run, trainer):
    trainer.post(trainer.metrics(0, **{"eval/rubric_score": 0.25}), trainer.metrics(2, **{"eval/rubric_score": 0.75}))
    assert values(run, table_facts.RESULT, "run")[0] == 0.75
    assert values(run, table_facts.GAIN, "run")[0] == 0.5


def test_how_long_it_took_is_known_once_it_is_over(run, trainer):
    assert not run.values.filter(column__path=table_facts.TOOK).exists()
    trainer.post(trainer.event("state", state="finished"))
    run.refresh_from_db()
    assert values(run, table_facts.TOOK, "run")[0] == (run.ended_at - run.started_at).total_seconds()


def test_runs_that_differ_by_seed_alone_are_one_family(launch):
    first, other = (launch(config={"steps": 4, "seed": seed}) for seed in (0, 1))
    longer = launch(config={"steps": 5, "seed": 0})
    families = {run.pk: run.family for run in Run.objects.all()}
    assert families[first.pk] == families[other.pk] != families[longer.pk]
    assert first.family


def test_an_extended_run_has_the_values_of_its_new_config(team, run, monkeypatch):
    before = Run.objects.get(id=run.id).family
    Run.objects.filter(id=run.id).update(state="finished", steps_total=4)
    run.refresh_from_db()
    monkeypatch.setattr(starting_points, "checkpoints", lambda run: ["one"])
    services.extend(team.researcher, run, 9)
    run.refresh_from_db()
    assert values(run, "steps", "config")[0] == 9
    assert run.family != before


def test_values_of_two_workspaces_stand_under_columns_of_their_own(team, run):
    table_facts.keep(team.outsider.workspace_id, run.pk, [table_facts.Fact("config", "steps", number=1.0)])
    assert RunColumn.objects.filter(source="config", path="steps").count() == 2


def test_odd_values_of_a_config_are_words(run):
    found = {
        fact.path: fact
        for fact in table_facts.config_facts(
            {"a": {"b": None, "c": [1, "x"], "d": []}, "e": True, "f": [{"g": 2}], "h": "x" * 300}
        )
    }
    words = {path: fact.number if fact.text is None else fact.text for path, fact in found.items()}
    assert words == {"a.b": "none", "a.c": "1, x", "a.d": "", "e": "true", "f.0.g": 2.0, "h": "x" * 200}


def test_the_migration_gives_runs_of_before_the_same_values(run, trainer):
    trainer.post(trainer.metrics(0, loss=3.0, **{"eval/rubric_score": 0.25}))
    trainer.post(trainer.metrics(2, loss=1.0, **{"eval/rubric_score": 0.75}))
    trainer.post(trainer.event("state", state="finished"))
    Run.objects.update(config={name: value for name, value in run.config.items() if name != "resources"})  # came later
    RunColumn.objects.filter(path__startswith="resources.").delete()
    held = RunValue.objects.order_by("column__source", "column__path")
    written = list(held.values_list("column__source", "column__path", "number", "low", "high", "text", "step"))
    known = Run.objects.get(id=run.id).family
    RunColumn.objects.all().delete()
    Run.objects.update(family="")

    points = Point.objects.values("run_id", "key", "step", "value", "time")
    MetricPoint.objects.bulk_create([MetricPoint(**each) for each in points])
    MetricStretch.objects.all().delete()  # at that migration each point was a row
    migration = import_module("webapp.experiments.migrations.0020_fill_table_of_runs")
    migration.fill(apps, None)
    with connection.cursor() as cursor:
        cursor.execute(migration.METRIC_COLUMNS)
        cursor.execute(migration.METRICS)
    filled = held.values_list("column__source", "column__path", "number", "low", "high", "text", "step")
    assert list(filled) == written
    assert Run.objects.get(id=run.id).family == known
