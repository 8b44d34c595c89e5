"""The rules of jobs, which are tested for every kind of job: a job has one worker and one end, and a worker that lost a job does not change
it.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tests.concurrency import concurrently, outcome
from tests.team import Team
from tests.webapp.annotation.answers import make_project
from webapp.annotation.jobs import runner
from webapp.annotation.models import Project
from webapp.backups import alarm, drill
from webapp.backups import services as backups
from webapp.backups.models import Origin
from webapp.core.background import jobs
from webapp.core.database import locks
from webapp.core.problems import Problem
from webapp.datasets import curation
from webapp.datasets.curation import runner as curating
from webapp.datasets.curation.progress import CURATION
from webapp.datasets.ingest import import_job
from webapp.datasets.ingest import services as imports
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.evaluation.launch.services import EVALUATION
from webapp.evaluation.recipes import RECIPES, resolve
from webapp.evaluation.work import running
from webapp.judging.trials import running as trying
from webapp.judging.trials import services as trials
from webapp.personal_data import services as personal_data
from webapp.playground import asking, scoring

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[4]
LONG_AGO = timedelta(hours=1)


@dataclass(frozen=True)
class Case:
    """`fields` make a queued row, `run` is the function of its task, `put` replaces the work by another function, and `ended` has the
    fields that another process may write to end the job.
    """

    kind: jobs.JobKind
    run: Callable[[int], object]
    fields: Callable[[Team], dict[str, Any]]
    put: Callable[[pytest.MonkeyPatch, Callable], None]
    ended: dict[str, Any]

    def made(self, team: Team):
        return self.kind.rows.create(**self.fields(team))

    def now(self, row) -> dict[str, Any]:
        return self.kind.rows.filter(pk=row.pk).values().get()

    def is_open(self, row) -> bool:
        return self.kind.rows.filter(self.kind.open, pk=row.pk).exists()


def version(team: Team) -> DatasetVersion:
    dataset, _ = Dataset.objects.get_or_create(workspace=team.workspace, name="Questions")
    return dataset.versions.first() or datasets.new_version(team.researcher, dataset, [], None, {"from": "test"})


AT = timezone.now()
OVER = {"state": "failed", "finished_at": AT}
CASES = {
    "import": Case(
        import_job.IMPORT,
        imports.run_import,
        lambda team: {"workspace": team.workspace, "dataset_name": "d", "file_name": "f", "file_path": "/none/f"},
        lambda patch, work: patch.setattr(import_job, "_carry", work),
        {"state": "cancelled", "finished_at": AT},
    ),
    "curation": Case(
        CURATION,
        curating.run,
        lambda team: {"version": version(team), "kind": "structure"},
        lambda patch, work: patch.setitem(
            curation.REGISTRY, "structure", replace(curation.REGISTRY["structure"], run=work)
        ),
        OVER,
    ),
    "project job": Case(
        runner.PROJECT_JOB,
        runner.run,
        lambda team: {"project": Project.objects.first() or make_project(team), "kind": "match"},
        lambda patch, work: patch.setitem(runner.WORK, "match", work),
        OVER,
    ),
    "trial": Case(
        trials.TRIAL,
        trying.run_trial,
        lambda team: {"workspace": team.workspace, "spec": {}, "examples": []},
        lambda patch, work: patch.setattr(trying, "_tried", work),
        OVER,
    ),
    "score": Case(
        scoring.SCORE,
        asking.score,
        lambda team: {"workspace": team.workspace, "key": "k", "messages": [], "text": "t", "tokens": 1},
        lambda patch, work: patch.setattr(asking, "_score", work),
        {"state": "failed"},
    ),
    "evaluation": Case(
        EVALUATION,
        running.run,
        lambda team: {
            "workspace": team.workspace,
            "name": "e",
            "recipe": "judge_audit",
            "config": resolve("judge_audit", {}).model_dump(mode="json"),
        },
        lambda patch, work: patch.setitem(RECIPES, "judge_audit", replace(RECIPES["judge_audit"], run=work)),
        {"state": "cancelled", "ended_at": AT},
    ),
    "export": Case(
        personal_data.EXPORT,
        personal_data.carry_out,
        lambda team: {"user": team.owner.user, "file": "f", "expires_at": AT + LONG_AGO},
        lambda patch, work: patch.setattr(personal_data, "write", work),
        OVER,
    ),
    "backup": Case(
        backups.BACKUP,
        lambda pk: backups.carry_out(pk, None),
        lambda team: {"folder": "/none", "origin": Origin.PAGE},
        lambda patch, work: patch.setattr(backups, "_make", work),
        {"state": "cancelled", "open": None, "finished_at": AT},
    ),
    "drill": Case(
        drill.DRILL,
        lambda pk: drill.carry_out(pk, None),
        lambda team: {"folder": "/none", "open": True},
        lambda patch, work: patch.setattr(drill, "_restore", work),
        {"open": None, "finished_at": AT, "problem": "Ended."},
    ),
}


@pytest.fixture(params=CASES)
def case(request, monkeypatch, tmp_path, settings) -> Case:
    settings.VAR = tmp_path
    monkeypatch.setattr(alarm, "alert_administrators", lambda *told: None)
    return CASES[request.param]


def test_every_kind_is_among_these():
    declared = [
        text
        for path in (ROOT / "webapp").rglob("*.py")
        for text in re.findall(r"= (?:jobs\.)?JobKind\(", path.read_text())
    ]
    assert len(declared) == len(CASES)


def test_of_two_workers_one_has_the_job_and_a_second_delivery_finds_it_over(case, team, monkeypatch):
    row, worked = case.made(team), []

    def work(*given):
        worked.append(1)
        time.sleep(0.3)
        raise Problem("It cannot be done.")

    case.put(monkeypatch, work)
    concurrently([lambda: case.run(row.pk)] * 3)
    ended = case.now(row)
    case.run(row.pk)
    assert worked == [1] and not case.is_open(row) and case.now(row) == ended


def test_a_worker_that_was_cut_off_and_comes_back_changes_nothing_of_its_successors(case, team, monkeypatch):
    row, worked = case.made(team), []
    inside, comes_back = Event(), Event()

    def work(*given):
        worked.append(1)
        if len(worked) == 1:
            inside.set()
            assert comes_back.wait(60)
            connection.close()  # the next query uses a new connection
            raise Problem("Of the one that was lost.")
        raise Problem("Of its successor.")

    def lost() -> None:
        outcomes.append(outcome(lambda: case.run(row.pk)))

    case.put(monkeypatch, work)
    outcomes: list[object] = []
    thread = Thread(target=lost)
    thread.start()
    assert inside.wait(60)
    cut_off(case.kind, row.pk)
    case.run(row.pk)
    ended = case.now(row)
    comes_back.set()
    thread.join(60)
    assert outcomes == [None] and worked == [1, 1]
    assert not case.is_open(row) and case.now(row) == ended


def test_while_its_successor_is_at_work_it_may_not_even_tell_how_far_it_is(case, team):
    row = case.made(team)
    with case.kind.claimed(row.pk) as lost:
        cut_off_pid = vars(lost)["claimed_by"]
    with case.kind.claimed(row.pk) as ours:
        vars(lost)["claimed_by"] = cut_off_pid + 1
        before = case.now(row)
        with pytest.raises(jobs.JobLost):
            case.kind.save(lost)
        assert case.now(row) == before
        case.kind.save(ours)
        assert case.now(row)["seen_at"] > before["seen_at"]


@pytest.mark.parametrize("delay", [0.0, 0.03])
def test_whoever_ends_it_first_while_it_is_being_claimed_has_ended_it(case, team, monkeypatch, delay):
    row, worked = case.made(team), []

    def work(*given):
        worked.append(1)
        time.sleep(0.05)
        raise Problem("It cannot be done.")

    def end() -> int:
        time.sleep(delay)
        return case.kind.held(row).update(**case.ended)

    case.put(monkeypatch, work)
    _, by_others = concurrently([lambda: case.run(row.pk), end])
    found = case.now(row)
    case.run(row.pk)
    assert len(worked) <= 1 and not case.is_open(row) and case.now(row) == found
    if by_others:
        assert {name: found[name] for name in case.ended} == case.ended


def test_a_lost_one_is_queued_again_once_in_a_while(case, team, monkeypatch):
    row, sent = case.made(team), []
    monkeypatch.setattr(jobs, "enqueue", lambda *task: sent.append(task))
    assert case.kind.take_up_lost() == 0

    def silent() -> list[int]:
        case.kind.rows.update(seen_at=timezone.now() - LONG_AGO)
        return [case.kind.take_up_lost(), case.kind.take_up_lost()]

    assert silent() == [1, 0] and sent == [(case.kind.task, row.pk)]
    with case.kind.claimed(row.pk, **({"started_at": AT} if hasattr(row, "started_at") else {})):
        assert silent() == ([1, 0] if case.kind.again else [0, 0])
    case.kind.rows.update(**case.ended)
    assert silent() == [0, 0]


def cut_off(kind: jobs.JobKind, pk: int) -> None:
    """Cuts the worker from the database, like a failing network. Returns when the database has noticed."""
    key = pk if kind.only is None else kind.only
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s",
            [kind.work, key],
        )
    with locks.exclusive(kind.work, key, wait=True):
        pass
