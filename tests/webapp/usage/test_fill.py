"""An installation from before the ledger: what runs, jobs and judges have cost is in the ledger after the upgrade, once."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib import import_module

import pytest
from django.db import connection

from tests.webapp.experiments.conftest import launch, model, places_enough, version  # noqa: F401  fixtures
from webapp.experiments.lifecycle import states
from webapp.experiments.models import LOGGED, Run, RunJudge
from webapp.inference.models import Endpoint
from webapp.judging.judges.services import create_judge
from webapp.usage.models import MonthlyUse, WorkSpan
from webapp.weights.models import WeightsJob
from webapp.weights.states import move

pytestmark = pytest.mark.django_db
migration = import_module("webapp.usage.migrations.0002_fill_ledger")
HOUR = timedelta(hours=1)


def at(month, day, hour=0):
    return datetime(2026, month, day, hour, tzinfo=UTC)


def fill(monkeypatch):
    monkeypatch.setattr(migration, "AT_A_TIME", 2)
    for _ in range(2):  # an upgrade that was interrupted is done again
        with connection.schema_editor(atomic=False) as editor:
            migration.fill(None, editor)


def spans(kind):
    rows = WorkSpan.objects.filter(kind=kind).order_by("work", "attempt")
    return [(row.attempt, row.began, row.ended, row.gpus, row.told, row.measured) for row in rows]


@pytest.mark.django_db(transaction=True)
def test_runs_keep_their_hours(team, launch, monkeypatch):  # noqa: F811
    rows = [launch() for _ in range(6)]
    told = [
        {"state": "finished", "under_way": 3 * HOUR, "ended_at": at(4, 1, 1), "learner_device": "NVIDIA H100"},
        {
            "state": "running",
            "attempt": 3,
            "under_way": 2 * HOUR,
            "begun_at": at(4, 2),
            "learner_device": "the processor",
        },
        {"state": "queued", "attempt": 2, "under_way": HOUR, "state_at": at(4, 3), "learner_device": ""},
        {"state": "failed", "ended_at": at(4, 4)},
        {"state": "finished", "recipe": LOGGED, "ended_at": at(4, 4)},
    ]
    for row, fields in zip(rows, told, strict=False):
        Run.objects.filter(pk=row.pk).update(started_at=at(3, 1), **fields)
    fill(monkeypatch)
    assert spans("run") == [
        (0, at(3, 31, 22), at(4, 1, 1), 1.0, True, True),
        (0, at(4, 1, 22), at(4, 2), 0.0, True, True),
        (3, at(4, 2), None, 0.0, True, True),
        (0, at(4, 2, 23), at(4, 3), None, False, True),
        (0, at(4, 4), at(4, 4), None, False, True),
    ]
    states.move(going := Run.objects.get(pk=rows[1].pk), "finished")
    assert WorkSpan.objects.get(work=going.pk, attempt=3).ended == going.ended_at
    states.move(waits := Run.objects.get(pk=rows[2].pk), "starting")
    states.move(waits, "running")
    assert WorkSpan.objects.filter(work=waits.pk, attempt=2, ended=None).count() == 1
    assert WorkSpan.objects.exclude(place=rows[0].experiment_id).count() == 0


@pytest.mark.django_db(transaction=True)
def test_jobs_keep_their_first_attempt_and_what_is_not_known_says_so(team, monkeypatch):
    def job(key, **fields):
        asked = {"workspace": team.workspace, "kind": "generate", "title": key, "key": key, "started_at": at(3, 9)}
        return WeightsJob.objects.create(**asked, **fields, params={"resources": {"gpus": 0.5}})

    job("a", state="finished", ended_at=at(3, 9, 2), used={"device": "NVIDIA H100"})
    going = job("b", state="running")
    job("c", attempt=2, state="finished", ended_at=at(3, 9, 2))
    again = job("d", attempt=2, state="running", state_at=at(3, 10))
    fill(monkeypatch)
    assert spans("job") == [
        (1, at(3, 9), at(3, 9, 2), 0.5, True, True),
        (1, at(3, 9), None, 0.5, False, True),
        (0, at(3, 9), None, 0.5, False, False),
        (0, at(3, 9), None, 0.5, False, False),
        (2, at(3, 10), None, 0.5, False, True),
    ]
    for row in (going, again):
        move(row, "finished")
    assert WorkSpan.objects.filter(ended=None).count() == WorkSpan.objects.filter(measured=False).count() == 2


@pytest.mark.django_db(transaction=True)
def test_judges_of_runs_keep_their_tokens_and_their_money(team, launch, monkeypatch):  # noqa: F811
    run = launch()
    Run.objects.filter(pk=run.pk).update(state="finished", ended_at=at(4, 1) - timedelta(microseconds=1))
    for name, price, kinds in (("a", Decimal(2), ("criterion", "pairwise")), ("b", None, ("criterion",))):
        endpoint = Endpoint.objects.create(
            workspace=team.workspace, name=name, kind="chat", url="https://a.example/v1", model="m",
            price_prompt=price, price_completion=price,
        )  # fmt: skip
        for kind in kinds:
            judge = create_judge(team.researcher, name=f"{name} {kind}", spec={"kind": kind}, endpoint=endpoint)
            money = Decimal("0.5") if price else Decimal(0)
            RunJudge.objects.create(run=run, version=judge, calls=2, tokens=100, money=money)
    fill(monkeypatch)
    rows = MonthlyUse.objects.order_by("endpoint__name")
    told = [(row.month, row.calls, row.other_tokens, row.money, row.unpriced) for row in rows]
    assert told == [(date(2026, 3, 1), 4, 200, 1, 0), (date(2026, 3, 1), 2, 100, 0, 2)]
    assert {(row.kind, row.work, row.place, row.person) for row in rows} == {
        ("run", run.pk, run.experiment_id, run.created_by)
    }
