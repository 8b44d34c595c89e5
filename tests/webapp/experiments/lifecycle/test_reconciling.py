"""Each repair by the reconciler is written down once, with the answer of Ray, the stored state and the action."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import browser
from tests.webapp.experiments.lifecycle.test_jobs import ago, fresh, live, set_row, watch_for  # noqa: F401 - fixtures
from webapp.core.auditing import audit
from webapp.core.distributed import cluster, ray_jobs, reconciling
from webapp.experiments.lifecycle import jobs
from webapp.experiments.models import Run
from webapp.weights import jobs as weights
from webapp.weights import services
from webapp.weights.models import WeightsJob

PAGE = "/installation/reconciler"


def entries() -> list[tuple[str, int, dict]]:
    return [(each.action, each.object_id, each.detail) for each in reconciling.repairs().order_by("id")]


@pytest.fixture
def job(team, model, version) -> WeightsJob:
    made = services.generate(team.workspace, team.researcher.user, model, version, {"split": ""})
    fields = {"state": "running", "ray_job_id": f"weights-{made.pk}-1", "heartbeat_at": ago(60), "state_at": ago(60)}
    WeightsJob.objects.filter(pk=made.pk).update(next_try_at=None, **fields)
    return made


def test_a_run_that_lost_its_process_says_what_ray_said_and_goes_on(live, run, ray):  # noqa: F811
    set_row(run, losses=0, step=3)
    ray.jobs[f"run-{run.pk}-1"].update(status="FAILED", exit_code=-9)
    watch_for(600)
    [(action, pk, detail)] = entries()
    assert (action, pk, detail["attempt"], detail["believed"]) == ("run.reconciled", run.pk, 1, "running")
    assert detail["ray"] == "failed, exit code -9" and detail["done"].endswith("so it continues as attempt 2")
    watch_for(600)
    assert len(entries()) == 1


@pytest.mark.parametrize(("state", "believed"), [("running", "running"), ("stopping", "stopping")])
def test_a_run_that_is_given_up_or_ended_says_so(live, run, ray, state, believed):  # noqa: F811
    set_row(run, state=state)
    ray.jobs.clear()
    watch_for(600)
    [(_, _, detail)] = entries()
    assert (detail["believed"], detail["ray"]) == (believed, "does not know the job")
    assert detail["done"].endswith("counts as stopped" if state == "stopping" else "was given up as failed")


@pytest.mark.parametrize("columns", [("heartbeat_at",), ("state_at",), ("heartbeat_at", "state_at")])
def test_a_clock_that_is_set_right_is_written_down_once(live, run, ray, columns):  # noqa: F811
    set_row(run, **dict.fromkeys(columns, ago(-7200)))
    jobs.watch()
    [(action, pk, detail)] = entries()
    assert (action, pk, detail["believed"]) == ("run.reconciled", run.pk, "running, with a time that lies ahead")
    assert detail["ray"] == "was not asked" and "the clock of the server was set back" in detail["done"]
    jobs.watch()
    assert len(entries()) == 1


def test_a_run_that_waits_in_the_line_again_is_written_down_once(run, ray):  # noqa: F811
    set_row(run, state="starting", carried_by="run-999999-1", next_try_at=None)
    jobs.watch()
    assert fresh(run).state == "queued" and fresh(run).carried_by == ""
    [(_, pk, detail)] = [each for each in entries() if "waits in the line again" in each[2]["done"]]
    assert (pk, detail["believed"]) == (run.pk, "starting, to be trained by the process of run-999999-1")
    jobs.watch()
    assert sum("waits in the line again" in each[2]["done"] for each in entries()) == 1


def test_a_silent_run_ends_without_a_word_of_ray(live, run, ray):  # noqa: F811
    ray.broken = True
    set_row(run, heartbeat_at=ago(400))
    watch_for(600)
    [(_, _, detail)] = entries()
    assert detail["ray"] == "did not answer" and detail["done"].startswith("No sign of life")


def test_a_lost_launch_and_a_submission_that_nobody_noted_are_written_down(live, run, ray, launch):  # noqa: F811
    set_row(run, ray_job_id="", heartbeat_at=timezone.now())
    other = launch()
    set_row(other, next_try_at=ago(30))
    jobs.watch()
    jobs.watch()
    found = {pk: detail for _, pk, detail in entries()}
    assert len(entries()) == 2 and {each["ray"] for each in found.values()} == {ray_jobs.NOT_ASKED}
    assert found[run.pk]["done"].endswith(f"Ray has it as run-{run.pk}-1")
    assert found[other.pk]["believed"].startswith("queued") and "queued for one again" in found[other.pk]["done"]


def test_what_agrees_is_not_written_down(live, run, ray):  # noqa: F811
    jobs.watch()
    set_row(run, heartbeat_at=timezone.now())
    jobs.watch()
    assert entries() == [] and reconciling.rounds()["runs"].asked == 0


def test_a_job_that_needs_weights_is_mended_and_written_down(job, ray):  # noqa: F811
    weights.watch()
    [(action, pk, detail)] = entries()
    assert (action, pk, detail["believed"]) == ("weights_job.reconciled", job.pk, "running")
    assert detail["done"].endswith("was given up as failed")
    assert (reconciling.rounds()["jobs"].alive, reconciling.rounds()["jobs"].asked) == (1, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lost", ["process", "process that may go on", "launch", "note"])
def test_of_many_reconcilers_at_once_one_writes(live, run, ray, lost):  # noqa: F811
    if lost == "launch":
        set_row(run, state="queued", ray_job_id="", next_try_at=ago(30))
    elif lost == "note":
        set_row(run, ray_job_id="", heartbeat_at=timezone.now())
    else:
        ray.jobs.clear()
        set_row(run, losses=0 if lost == "process that may go on" else 99, step=3)
    concurrently([jobs.watch] * 6)
    assert [action for action, _, _ in entries()] == ["run.reconciled"]


@pytest.mark.django_db(transaction=True)
def test_of_many_reconcilers_of_jobs_one_writes(job, ray):  # noqa: F811
    concurrently([weights.watch] * 6)
    assert len(entries()) == 1


def test_a_repair_that_is_undone_is_not_written_down(live, run, ray, monkeypatch):  # noqa: F811
    def fails(*args, **kwargs):
        raise OSError("the disk is full")

    monkeypatch.setattr(jobs, "_write_down", fails)
    ray.jobs.clear()
    jobs.watch()
    assert entries() == [] and fresh(run).state == "running"


def test_when_ray_was_heard_and_since_when_it_is_silent_is_kept(ray):  # noqa: F811
    cluster.refresh()
    heard = reconciling.last_heard()
    assert heard and reconciling.silence() is None
    ray.broken = True
    cluster.refresh()
    first = reconciling.silence()
    cluster.refresh()
    assert first and reconciling.silence() == first and "500" in first.why and reconciling.last_heard() == heard
    ray.broken = False
    cluster.refresh()
    assert reconciling.silence() is None and reconciling.last_heard() > heard


@pytest.mark.django_db
def test_the_page_says_in_words_that_nothing_differed_and_that_nothing_was_heard(as_owner):
    page = as_owner.get(PAGE).content.decode()
    assert "Nothing has differed" in page and "Nobody has heard from Ray" in page
    assert "The comparison has stopped" in page and "runs and jobs that need weights" in page
    reconciling.record_answer()
    for kind in reconciling.KINDS:
        reconciling.compared(kind, 12, 2)
    page = as_owner.get(PAGE).content.decode()
    assert "has stopped" not in page and "Nobody has heard" not in page and "asked about 2" in page


@pytest.mark.django_db
def test_the_page_says_since_when_ray_is_silent_and_what_to_do(as_owner):
    reconciling.not_heard("Ray does not answer at http://head:8265: refused")
    page = as_owner.get(PAGE).content.decode()
    assert "Ray has not answered since" in page and "http://head:8265: refused" in page
    assert "start Ray again if it has ended" in page


def mended(where, run: Run, count: int = 1) -> None:
    rows = [run] * count
    told = {"attempt": 1, "believed": "running", "ray": "failed", "done": "It was given up as failed"}
    audit.record_all(where, None, "run.reconciled", rows, **told)


def test_the_page_lists_newest_first_page_by_page_in_as_many_queries(team, as_owner, run):
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert as_owner.get(PAGE).status_code == 200
        return len(seen)

    mended(team.workspace, run)
    queries()
    before = queries()
    mended(team.workspace, run, 60)
    assert queries() == before
    first = as_owner.get(PAGE).content.decode()
    assert first.count("given up as failed") == 50 and f'href="/runs/{run.pk}"' in first
    older = as_owner.get(f"{PAGE}?cursor={first.split('?cursor=')[1].split(chr(34))[0]}").content.decode()
    assert older.count("given up as failed") == 11
    assert as_owner.get(f"{PAGE}?cursor=x").content.decode().count("given up as failed") == 50


def test_runs_of_other_workspaces_and_deleted_ones_have_no_link(team, as_owner, run):
    mended(team.outsider.workspace, run)
    assert f"/runs/{run.pk}" not in as_owner.get(PAGE).content.decode()
    mended(team.workspace, Run(pk=10**9))
    page = as_owner.get(PAGE).content.decode()
    assert "Run 1000000000" in page and "/runs/1000000000" not in page


def test_the_history_of_a_run_says_it_too(live, run, ray, team):  # noqa: F811
    ray.jobs.clear()
    jobs.watch()
    page = browser(team.reviewer).get(f"/runs/{run.pk}/history").content.decode()
    assert "Compared with Ray, and mended" in page and "was given up as failed" in page


def listed(ray, page) -> str:
    cache.delete(cluster.JOBS_ASKED)
    cluster.refresh_jobs()
    return page.get(PAGE).content.decode()


def test_jobs_of_ray_that_nothing_here_asked_for_are_listed(team, live, run, job, launch, ray, as_owner):  # noqa: F811
    set_row(run, state_at=ago(90))
    ours = [f"run-{run.pk}-1", f"weights-{job.pk}-1"]
    ray.jobs |= {name: {"status": "RUNNING"} for name in ours}
    ray.jobs["raysubmit_over"] = {"status": "SUCCEEDED"}
    assert "not known here" not in listed(ray, as_owner)
    body = {"entrypoint": "python train_by_hand.py"}
    ray.jobs["raysubmit_hand"] = {"status": "PENDING", "body": body, "start_time": 1_790_000_000_000}
    ray.jobs["run-7-of-somebody"] = {"status": "RUNNING"}
    ray.jobs[f"run-{run.pk}-2"] = {"status": "RUNNING"}
    page = listed(ray, as_owner)
    assert "Jobs of Ray that are not known here" in page
    for told in ("raysubmit_hand", "python train_by_hand.py", "Waits in Ray", "run-7-of-somebody", f"run-{run.pk}-2"):
        assert told in page
    assert not any(name in page for name in [*ours, "raysubmit_over"])
    assert ray.stopped == [], "another program may need them"
    ray.broken = True
    assert "not known here" not in listed(ray, as_owner), "nobody knows what Ray has by now"


def test_a_process_of_a_run_that_has_just_ended_is_known_and_one_that_stays_is_not(live, run, launch, ray, as_owner):  # noqa: F811
    name = f"run-{run.pk}-1"
    ray.jobs[name] = {"status": "RUNNING"}
    set_row(run, state="finished", state_at=ago(5))
    assert name not in listed(ray, as_owner)
    set_row(run, state="running", attempt=2)
    assert name not in listed(ray, as_owner), "the next attempt began after Ray was asked"
    set_row(run, state_at=ago(90))
    assert name in listed(ray, as_owner)
    set_row(launch(), state="running", carried_by=name)
    assert name not in listed(ray, as_owner), "it trains another run too"
