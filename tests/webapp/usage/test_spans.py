"""Attempts in the ledger: each has one span, whatever comes twice or at once, and every end closes it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.concurrency import concurrently
from tests.webapp.experiments.conftest import launch, model, places_enough, ray, run, version  # noqa: F401  fixtures
from tests.webapp.experiments.lifecycle.test_jobs import ago, fresh, live, set_row, watch_for  # noqa: F401  fixtures among them
from tests.webapp.weights.conftest import job, process  # noqa: F401  fixtures
from webapp.core.distributed import cluster
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle import states
from webapp.experiments.models import LOGGED, Run
from webapp.personal_data.erasing import erase
from webapp.usage import spans
from webapp.usage.models import WorkKind, WorkSpan
from webapp.usage.works import MeteredWork
from webapp.weights import services as weights
from webapp.weights.models import WeightsJob
from webapp.weights.states import move

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)


def gpus_there(count):
    cache.set(cluster.KEY, [{"cpus": 8, "gpus": count}], None)


def begin(row, **fields):
    states.move(row, "starting")
    set_row(row, **fields)
    states.move(row, "running")


def span_rows():
    """(attempt, seconds or None while it is under way, GPUs, whether the process named its device), in order."""
    rows = WorkSpan.objects.order_by("kind", "work", "attempt")
    return [
        (row.attempt, row.ended and round((row.ended - row.began).total_seconds()), row.gpus, row.told) for row in rows
    ]


def test_an_attempt_is_a_span_and_what_it_waits_is_in_none(run, team):  # noqa: F811
    gpus_there(0)
    begin(run)
    span = WorkSpan.objects.get()
    assert (span.workspace, span.kind, span.work, span.place) == (team.workspace, "run", run.pk, run.experiment_id)
    assert (span.person, span.began, span.measured) == (run.created_by, fresh(run).begun_at, True)
    states.move(run, "blocked", reason="Step 2 waits")
    states.move(run, "running")
    states.move(run, "pausing")
    assert span_rows() == [(1, None, 0.0, False)], "it holds its place until it has saved"
    WorkSpan.objects.update(began=ago(100))
    states.move(run, "paused")
    lifecycle.resume(team.researcher, fresh(run))
    run.refresh_from_db()
    begin(run)
    WorkSpan.objects.filter(attempt=2).update(began=ago(50))
    assert lifecycle.go_on(fresh(run), "its process was lost")
    run.refresh_from_db()
    begin(run)
    assert span_rows() == [(1, 100, 0.0, False), (2, 50, 0.0, False), (3, None, 0.0, False)]


def test_the_time_is_the_one_that_counts_towards_the_limit(run):  # noqa: F811
    begin(run)
    set_row(run, begun_at=ago(75))
    WorkSpan.objects.update(began=fresh(run).begun_at)
    states.move(run, "failed")
    span = WorkSpan.objects.get()
    assert span.ended - span.began == fresh(run).under_way


def test_a_clock_that_went_back_makes_no_negative_time(run):  # noqa: F811
    begin(run)
    WorkSpan.objects.update(began=ago(-500))
    states.move(run, "failed")
    assert span_rows() == [(1, 0, None, False)]


def test_a_run_whose_process_was_killed_ends_when_the_reconciler_sees_it(live, run, ray):  # noqa: F811
    ray.jobs[f"run-{run.id}-1"].update(status="FAILED")
    set_row(run, heartbeat_at=ago(60), retries=0)
    WorkSpan.objects.update(began=ago(90))
    for _ in range(2):
        watch_for(1_000)
    assert fresh(run).state == "failed"
    ((attempt, seconds, *_),) = span_rows()
    assert attempt == 1 and 90 <= seconds < 150


def test_what_the_process_says_of_its_device_counts(launch):  # noqa: F811
    said = ["NVIDIA H100", "the processor", "2 processes of the Ray cluster", ""]
    gpus_there(4)
    for device in said:
        begin(row := launch(), learner_device=device)
        states.move(row, "finished")
    assert [span[2:] for span in span_rows()] == [(1.0, True), (0.0, True), (1.0, False), (1.0, False)]
    cache.delete(cluster.KEY)
    for device in said:
        begin(row := launch(), learner_device=device)
        states.move(row, "finished")
    assert [span[2:] for span in span_rows()[4:]] == [(1.0, True), (0.0, True), (None, False), (None, False)]


def test_runs_of_one_process_share_its_gpu(launch):  # noqa: F811
    gpus_there(1)
    first, *others = [launch() for _ in range(4)]
    for row in others:
        set_row(row, carried_by=f"run-{first.pk}-1")
    for row in (first, *others):
        states.move(row, "starting")
    for row in (first, *others):
        states.move(row, "running")
    assert [span[2] for span in span_rows()] == [0.25] * 4


def test_a_logged_run_has_no_span(run):  # noqa: F811
    set_row(run, recipe=LOGGED, dataset_version=None, model=None)
    begin(row := fresh(run))
    states.move(row, "stopped")
    assert span_rows() == []


def test_a_deleted_run_has_cost_what_it_has_cost(run, team):  # noqa: F811
    begin(run)
    states.move(run, "finished")
    lifecycle.delete(team.researcher, run)
    assert not Run.objects.exists() and WorkSpan.objects.count() == 1


def test_jobs_have_a_span_for_each_attempt_with_a_part_of_a_gpu(process, job, team):  # noqa: F811
    WeightsJob.objects.filter(pk=job.pk).update(params={**job.params, "resources": {"gpus": 0.5}})
    for _ in range(2):
        assert process.post().status_code == 200, "a sign of life, twice"
    WorkSpan.objects.update(began=ago(30))
    used = {"device": "NVIDIA H100", "cpu_seconds": 1, "memory_bytes": 1, "gpu_bytes": 1, "processors": 1}
    process.post(0, state="failed", reason="It broke", used=used)
    process.post(0, state="failed", reason="It broke", used=used)
    row = WeightsJob.objects.get(pk=job.pk)
    weights.retry(row, team.researcher.user)
    assert span_rows() == [(1, 30, 0.5, True)], "it waits in the line"
    assert move(row, "starting") and move(row, "running")
    assert [span[:3] for span in span_rows()] == [(1, 30, 0.5), (2, None, 0.5)]
    span = WorkSpan.objects.get(attempt=2)
    assert (span.kind, span.work, span.person, span.place) == ("job", job.pk, team.researcher.user, None)
    weights.stop(row, None)
    move(row, "stopped")
    assert WorkSpan.objects.filter(ended=None).count() == 0


@pytest.mark.django_db(transaction=True)
def test_of_ends_at_once_the_first_counts_and_an_attempt_begins_once(run):  # noqa: F811
    states.move(run, "starting")
    concurrently([lambda: states.move(fresh(run), "running")] * 8)
    began = WorkSpan.objects.get().began
    ends = concurrently(
        [lambda to=to: states.move(fresh(run), to) for to in ("failed", "stopped", "finished", "failed")]
    )
    assert sorted(ends) == [False, False, False, True]
    span = WorkSpan.objects.get()
    assert (span.began, span.ended) == (began, fresh(run).ended_at)
    ended = span.ended
    assert concurrently([lambda: spans.end(WorkKind.RUN, run.pk, timezone.now(), on_gpu=None)] * 4) == [False] * 4
    assert WorkSpan.objects.get().ended == ended


@pytest.mark.django_db(transaction=True)
def test_deliveries_at_once_write_one_span(team):
    work = MeteredWork(team.workspace.pk, WorkKind.JOB, 7, team.owner.user.pk)
    concurrently([lambda n=n: spans.begin(work, 1, NOON + timedelta(seconds=n), 1.0) for n in range(8)])
    assert WorkSpan.objects.count() == 1
    ends = [
        lambda n=n: spans.end(WorkKind.JOB, 7, NOON + timedelta(hours=n), on_gpu=True, gpus=1.0) for n in range(1, 9)
    ]
    assert sorted(concurrently(ends)) == [False] * 7 + [True]


def test_the_database_keeps_what_makes_no_sense_out(team):
    spans.begin(work := MeteredWork(team.workspace.pk, WorkKind.RUN, 1), 1, NOON, None)
    with pytest.raises(IntegrityError), transaction.atomic():
        WorkSpan.objects.update(ended=NOON - timedelta(seconds=1))
    spans.begin(work, 2, NOON, None)
    with pytest.raises(IntegrityError), transaction.atomic():
        WorkSpan.objects.update(attempt=1)


def test_after_an_erasure_the_hours_stay_and_name_nobody(run, team):  # noqa: F811
    begin(run)
    assert WorkSpan.objects.get().person == team.researcher.user
    erase(team.researcher.user, None)
    assert WorkSpan.objects.get().person is None
    spans.begin(MeteredWork(team.workspace.pk, WorkKind.JOB, 3, team.researcher.user_id), 1, NOON, None)
    assert WorkSpan.objects.get(kind="job").person is None, "a worker that read the row before"
