"""A cancelled import leaves nothing behind, at any moment and under any worker."""

import json
import time
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

import pytest
from django.db import connection

from tests.concurrency import concurrently
from tests.webapp.webhooks.hooks import announced_events as announced
from tests.webapp.webhooks.hooks import listen
from tests.workers import kill
from webapp.core.background import jobs
from webapp.core.database import locks
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.datasets.ingest import import_job, loader, services, uploads
from webapp.datasets.models import Dataset, DatasetVersion, Example, ImportJob, VersionMember, WordHits
from webapp.datasets.versions import writer

from ..conftest import row
from ..running_import import lines, queue_import, worker_on

State = ImportJob.State


def nothing_left() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'import_rows_%%'")
        tables = cursor.fetchone()[0]
    rows = [Dataset.every, DatasetVersion.every, Example.objects, VersionMember.objects, WordHits.objects]
    return not tables and not any(each.exists() for each in rows)


@pytest.fixture
def uploaded(team):
    """A queued import of an upload, as the page and the API start it."""

    def run(content: str, **options) -> ImportJob:
        path = uploads.store_upload("rows.jsonl", BytesIO(content.encode()))
        return services.start_import(team.researcher, path, name="demo", queue=False, **options)

    return run


@pytest.mark.django_db(transaction=True)
def test_a_running_import_ends_within_moments_and_takes_away_what_it_stored(team, tmp_path):
    listen(team.owner)
    job = queue_import(team, tmp_path / "rows.jsonl", lines())
    with worker_on(job) as worker:
        assert Example.objects.exists()
        asked = services.cancel_import(team.researcher, job)
        assert asked.state == State.RUNNING and asked.cancel_asked
        assert worker.wait(30) == 0
    job.refresh_from_db()
    assert (job.state, job.error, job.version) == (State.CANCELLED, import_job.CANCELLED, None)
    assert job.finished_at and job.rows_done < 400 and nothing_left()
    facts = {"import": job.pk, "name": "killed"}
    assert announced() == [("import.started", facts), ("import.failed", facts | {"error": import_job.CANCELLED})]
    entry = AuditEntry.objects.get(action="import.cancelled")
    assert entry.actor == team.researcher.user


@pytest.mark.django_db(transaction=True)
def test_what_a_dead_worker_stored_is_taken_away_by_the_next(team, tmp_path):
    job = queue_import(team, tmp_path / "rows.jsonl", lines())
    with worker_on(job) as worker:
        kill(worker, job, locks.Work.IMPORT)
    services.cancel_import(team.researcher, job)
    assert Example.objects.exists()
    services.run_import(job.pk)  # the task that the cancellation has queued
    job.refresh_from_db()
    assert job.state == State.CANCELLED and nothing_left()


def test_a_queued_import_ends_at_once_and_is_not_taken_up(team, uploaded):
    job = uploaded(lines())
    found = services.cancel_import(team.researcher, job)
    assert (found.state, found.error) == (State.CANCELLED, import_job.CANCELLED)
    assert not Path(job.file_path).exists()
    services.run_import(job.pk)
    assert jobs.take_up_lost() == 0 and nothing_left()


@pytest.mark.django_db(transaction=True)
def test_one_that_waits_for_another_import_into_its_dataset_ends_at_once(team, tmp_path, uploaded):
    listen(team.owner)
    job = uploaded("".join(json.dumps(row(f"e{i}")) + "\n" for i in range(5)))
    with ExitStack() as other:
        other.enter_context(writer.lock_dataset_name(job.workspace_id, "demo"))
        with worker_on(job, begun=False) as worker:
            assert services.cancel_import(team.researcher, job).state == State.CANCELLED
            other.close()
            assert worker.wait(60) == 0
    job.refresh_from_db()
    assert (job.state, job.error) == (State.CANCELLED, import_job.CANCELLED)
    assert not Path(job.file_path).exists() and nothing_left()
    assert [event for event, _ in announced()] == ["import.started", "import.failed"]


def test_asking_twice_changes_nothing_and_too_late_is_said(team, uploaded, import_rows):
    job = uploaded(lines())
    services.cancel_import(team.researcher, job)
    assert services.cancel_import(team.researcher, job).state == State.CANCELLED
    assert AuditEntry.objects.filter(action="import.cancelled").count() == 1
    for over in (import_rows([row("e1")]), import_rows("{oops\n", name="other")):
        with pytest.raises(Conflict, match=f"The import has {over.state} already"):
            services.cancel_import(team.researcher, over)
    assert Example.objects.count() == 1


def test_a_dataset_that_was_there_keeps_what_it_had(team, uploaded, import_rows, monkeypatch):
    first = import_rows([row(f"e{i}") for i in range(3)])
    job = uploaded(lines())
    finish = loader.Loader.finish

    def asked_in_the_last_moment(self):
        done = finish(self)
        assert not ImportJob.objects.filter(pk=job.pk, cancel_asked=True).exists()
        services.cancel_import(team.researcher, job)
        return done

    monkeypatch.setattr(loader.Loader, "finish", asked_in_the_last_moment)
    # its lines repeat keys, so the import would be refused
    ImportJob.objects.filter(pk=job.pk).update(keep_good=True)
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == State.CANCELLED and not Path(job.file_path).exists()
    assert DatasetVersion.every.get() == first.version
    assert sorted(Example.objects.values_list("key", flat=True)) == ["e0", "e1", "e2"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("delay", [0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_whichever_comes_first_finished_or_cancelled_is_the_whole_truth(delay, team, uploaded):
    job = uploaded("".join(json.dumps(row(f"e{i}")) + "\n" for i in range(5)))

    def cancel() -> ImportJob:
        time.sleep(delay)
        return services.cancel_import(team.researcher, job)

    answer = concurrently([lambda: services.run_import(job.pk), cancel])[1]
    services.run_import(job.pk)  # a task that a late request has queued
    job.refresh_from_db()
    if isinstance(answer, Conflict):
        assert job.state == State.FINISHED and Example.objects.count() == 5
    else:
        assert job.state == State.CANCELLED and nothing_left()
    assert not Path(job.file_path).exists()
