"""Jobs that need weights wait in one line with the runs: those of evaluations, those of judges with local weights, and all others."""

from dataclasses import asdict
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import ApiClient, browser
from tests.webapp.experiments.conftest import ray as ray_server  # noqa: F401 - a fixture
from webapp.accounts.administration import quotas
from webapp.core.background.priorities import Priority
from webapp.core.distributed import cluster, ray_jobs
from webapp.core.distributed.ray_client import JobResources
from webapp.core.models import AuditEntry
from webapp.evaluation.launch import services as evaluating
from webapp.evaluation.models import Evaluation
from webapp.evaluation.work import running
from webapp.experiments.lifecycle import jobs, line_page, states, waiting_line, waiting_reasons
from webapp.experiments.lifecycle.line_order import Free
from webapp.experiments.models import Experiment, Run
from webapp.inference.models import RegisteredModel
from webapp.weights import jobs as weights_jobs
from webapp.weights import services as weights
from webapp.weights import states as weights_states
from webapp.weights.models import WeightsJob, WeightsResult

from .test_jobs import fresh
from .test_waiting_line import ray, retried_runs  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def one_place(settings):
    settings.MAX_RUNNING_RUNS = 1


@pytest.fixture
def job(team, model, version):
    """Makes jobs of the workspace. Each job is different, because it has another seed."""
    made = []

    def _job(workspace=None, **resources):
        params = {"split": "", "seed": len(made), "resources": resources}
        made.append(weights.generate(workspace or team.workspace, team.researcher.user, model, version, params))
        return made[-1]

    return _job


@pytest.fixture
def evaluation(team, version):
    """An evaluation in which two models answer, so that it has two jobs."""
    models = [
        RegisteredModel.objects.create(workspace=team.workspace, name=name, source="hub", path=f"o/{name}")
        for name in ("one", "two")
    ]
    config = {"writers": [{"model": each.pk} for each in models], "split": "", "max_new_tokens": 16}
    return evaluating.create(team.researcher, recipe="generate", config=config, dataset=version)


def now(job) -> WeightsJob:
    return WeightsJob.objects.select_related("workspace").get(pk=job.pk)


def looked_at(row) -> Evaluation:
    running.run(row.pk)
    row.refresh_from_db()
    return row


def order():
    return [each.claimant.row for each in waiting_reasons.waiting_runs(waiting_reasons.Holders(timezone.now()), Free())]


def under_way() -> int:
    return Run.objects.filter(state="starting").count() + WeightsJob.objects.filter(state="starting").count()


def finished(job):
    """The job's process ends after it has answered all items."""
    job = now(job)
    said = [{"text": "red", "finish_reason": "stop", "tokens": 2}]
    found = [WeightsResult(job=job, place=place, content={"key": f"e{place}", "responses": said}) for place in range(5)]
    WeightsResult.objects.bulk_create(found)
    weights_states.move(job, "finished")


def test_a_job_waits_behind_a_run_and_says_so_until_the_run_has_ended(
    launch,
    job,
    ray,  # noqa: F811
    django_capture_on_commit_callbacks,
):
    run, asked = launch(name="alpha"), job()
    jobs.launch(run.id)
    Run.objects.filter(id=run.id).update(state="running", eta_s=380, heartbeat_at=timezone.now())
    assert weights_jobs.launch(asked.pk) is None
    told = "Waits for “alpha” of Policy from rubrics (about 6 min left): 1 may run at once (MAX_RUNNING_RUNS). Its turn comes in about 6 min"
    assert (now(asked).state, now(asked).problem, now(asked).next_try_at) == ("queued", told, None)
    assert weights_jobs.launch(asked.pk) is None, "a message that comes twice changes nothing"
    with django_capture_on_commit_callbacks(execute=True):
        states.move(fresh(run), "finished")
    assert now(asked).next_try_at is not None
    weights_jobs.launch(asked.pk)
    assert (now(asked).state, now(asked).problem) == ("starting", "") and f"weights-{asked.pk}-1" in ray.jobs


def test_the_end_of_a_job_lets_in_the_run_behind_it(
    launch,
    job,
    ray,  # noqa: F811
    retried_runs,  # noqa: F811
    team,
    django_capture_on_commit_callbacks,
):
    first, run = job(), launch()
    weights_jobs.launch(first.pk)
    jobs.launch(run.id)
    assert fresh(run).state_reason == (f"Waits for job {first.pk}, {first.title}: 1 may run at once (MAX_RUNNING_RUNS)")
    with django_capture_on_commit_callbacks(execute=True):
        finished(first)
    assert retried_runs == [run.id]


def test_priority_and_the_time_of_asking_decide_among_runs_and_jobs(launch, job, team):
    run, first, second = launch(), job(), job()
    assert order() == [run, first, second]
    weights.prioritise(second, team.researcher.user, Priority.HIGH)
    weights.prioritise(second, team.researcher.user, Priority.HIGH)
    assert order() == [second, run, first]
    assert AuditEntry.objects.get(action="weights_job.priority").detail == {"priority": "high"}


def test_jobs_count_among_what_a_workspace_has_under_way(launch, job, team):
    ours, theirs = [job() for _ in range(3)], launch()
    elsewhere = Experiment.objects.create(workspace=team.outsider.workspace, name="Theirs")
    Run.objects.filter(id=theirs.id).update(experiment=elsewhere)
    WeightsJob.objects.filter(pk=ours[0].pk).update(state="running")
    assert order() == [theirs, *ours[1:]], "whoever has something under way lets the others go first"


def test_the_limit_of_runs_is_none_of_jobs(launch, job, ray, team, settings):  # noqa: F811
    settings.MAX_RUNNING_RUNS = 3
    quotas.change(team.owner.user, team.workspace, quotas.Limits(running_runs=1))
    first, second, asked = launch(), launch(), job()
    jobs.launch(first.id), jobs.launch(second.id), weights_jobs.launch(asked.pk)
    assert (fresh(second).state, now(asked).state) == ("queued", "starting")


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_give_no_place_twice(launch, job, ray, settings):  # noqa: F811
    settings.MAX_RUNNING_RUNS = 2
    runs, asked = [launch() for _ in range(3)], [job() for _ in range(3)]
    calls = [lambda run=run: jobs.launch(run.id) for run in runs] + [
        lambda each=each: weights_jobs.launch(each.pk) for each in asked
    ]
    concurrently(calls * 2)
    assert under_way() == 2 and len(ray.jobs) == 2
    assert [fresh(run).state for run in runs] == ["starting", "starting", "queued"]


@pytest.mark.django_db(transaction=True)
def test_ends_at_once_let_in_as_many_as_there_are_places(launch, job, ray, settings):  # noqa: F811
    settings.MAX_RUNNING_RUNS = 3
    first = [job() for _ in range(3)]
    behind = [launch(), job(), launch(), job()]
    for each in first:
        weights_jobs.launch(each.pk)
    for each in behind:
        (jobs if isinstance(each, Run) else weights_jobs).launch(each.pk)
    assert under_way() == 3
    concurrently([lambda each=each: finished(each) for each in first])
    for each in behind:
        (jobs if isinstance(each, Run) else weights_jobs).launch(each.pk)
    assert under_way() == 3 and now(behind[3]).state == "queued"


def test_a_job_that_no_machine_can_hold_takes_no_place(launch, job, ray):  # noqa: F811
    cache.set(cluster.KEY, [asdict(cluster.Node(cpus=8, lends=8 * 10**9))])
    large, card, run = job(cpus=9.0), job(gpus=1.0), launch()
    weights_jobs.launch(large.pk), weights_jobs.launch(card.pk), jobs.launch(run.id)
    assert (now(large).state, now(card).state, fresh(run).state) == ("queued", "queued", "starting")
    assert now(large).problem == (
        "Waits: it asks for 9 CPUs, and no machine of the cluster has as much. It starts once one has; others pass it"
    )
    assert not cluster.Node(cpus=8, lends=8 * 10**9).has(JobResources(memory_bytes=9 * 10**9))


def test_a_job_that_asks_for_no_gpu_passes_who_waits_for_one_but_takes_nobodys_place(launch, job, ray, settings):  # noqa: F811
    cache.set(cluster.KEY, [asdict(cluster.Node(cpus=8, gpus=1))])
    settings.MAX_RUNNING_RUNS = 2
    first, second, asked = launch(), launch(), job()
    jobs.launch(first.id), jobs.launch(second.id), weights_jobs.launch(asked.pk)
    assert (fresh(first).state, fresh(second).state, now(asked).state) == ("starting", "queued", "queued")
    settings.MAX_RUNNING_RUNS = 3
    weights_jobs.launch(asked.pk)
    assert now(asked).state == "starting"


def test_jobs_share_a_card_as_ray_lets_them(job, launch, ray, settings):  # noqa: F811
    cache.set(cluster.KEY, [asdict(cluster.Node(cpus=8, gpus=1))])
    settings.MAX_RUNNING_RUNS = None
    halves = [job(gpus=0.5) for _ in range(3)]
    for each in halves:
        weights_jobs.launch(each.pk)
    assert [now(each).state for each in halves] == ["starting", "starting", "queued"]
    assert "it asks for 0.5 GPUs, the cluster has 1, and 0 are free" in now(halves[2]).problem


def test_an_evaluation_waits_in_the_line_and_goes_on_by_itself(
    launch,
    evaluation,
    ray,  # noqa: F811
    team,
    django_capture_on_commit_callbacks,
):
    run = launch(name="alpha")
    jobs.launch(run.id)
    assert looked_at(evaluation).state == "queued" and evaluation.problem == "Waits for its turn in the line"
    one, two = evaluation.jobs.order_by("pk")
    weights_jobs.launch(one.pk), weights_jobs.launch(two.pk)
    assert looked_at(evaluation).state == "queued"
    assert evaluation.problem == "Waits for “alpha” of Policy from rubrics: 1 may run at once (MAX_RUNNING_RUNS)"
    # `alpha` does not wait: it ends, and the jobs get its place one after the other
    states.move(fresh(run), "finished")
    weights_jobs.launch(one.pk), weights_jobs.launch(two.pk)
    assert (now(one).state, now(two).state) == ("starting", "queued")
    assert looked_at(evaluation).state == "running" and evaluation.problem == ""
    later = launch()
    jobs.launch(later.id)
    finished(one)
    weights_jobs.launch(two.pk)
    finished(two)
    assert looked_at(evaluation).state == "finished", evaluation.problem
    assert fresh(later).state == "queued"
    jobs.launch(later.id)
    assert fresh(later).state == "starting"


def test_a_job_that_begins_late_stands_where_its_evaluation_was_asked_for(launch, evaluation, job):
    later = launch()
    looked_at(evaluation)
    jobs_of_it = list(evaluation.jobs.order_by("pk"))
    assert order() == [*jobs_of_it, later]
    behind = job()
    weights.prioritise(behind, None, Priority.HIGH)
    assert order()[0] == behind


def test_a_waiting_evaluation_that_is_cancelled_leaves_the_line_once(launch, evaluation, ray, team):  # noqa: F811
    run = launch()
    jobs.launch(run.id)
    looked_at(evaluation)
    for _ in range(2):
        evaluating.move(team.researcher, evaluation, "cancelled")
    assert looked_at(evaluation).state == "cancelled" and order() == []
    assert set(evaluation.jobs.values_list("state", flat=True)) == {"stopped"}
    assert AuditEntry.objects.filter(action="evaluation.cancelled").count() == 1


def test_paused_and_resumed_in_the_line_it_asks_for_its_jobs_anew(launch, evaluation, ray, team):  # noqa: F811
    jobs.launch(launch().id)
    looked_at(evaluation)
    evaluating.move(team.researcher, evaluation, "paused")
    evaluating.move(team.researcher, evaluation, "queued")
    assert evaluation.problem == ""
    assert looked_at(evaluation).state == "queued" and set(evaluation.jobs.values_list("state", flat=True)) == {
        "queued"
    }


def test_resumed_at_the_moment_its_worker_notes_what_it_waits_for_it_is_begun_anew(evaluation, team):
    looked_at(evaluation)
    stale = Evaluation.objects.get(pk=evaluation.pk)
    evaluating.move(team.researcher, evaluation, "paused")
    evaluating.move(team.researcher, evaluation, "queued")
    WeightsJob.objects.update(state="queued")
    running._stands_in_line(stale)
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.problem) == ("queued", ""), "else its stopped jobs would pause it"


def test_what_a_killed_worker_left_in_the_line_is_taken_up(evaluation, ray, monkeypatch):  # noqa: F811
    looked_at(evaluation)
    long_ago = timezone.now() - timedelta(hours=1)
    Evaluation.objects.filter(pk=evaluation.pk).update(seen_at=long_ago)
    assert evaluating.EVALUATION.take_up_lost() == 1
    taken = []
    monkeypatch.setattr(ray_jobs, "enqueue", lambda name, pk: taken.append(pk))
    one, two = evaluation.jobs.order_by("pk")
    WeightsJob.objects.filter(pk=two.pk).update(next_try_at=None)
    WeightsJob.objects.filter(pk=one.pk).update(next_try_at=long_ago)  # it had a place, and no worker took it
    weights_jobs.watch()
    assert taken == [one.pk]


def test_evaluations_that_share_a_job_want_it_as_soon_as_one_of_them(evaluation, team):
    looked_at(evaluation)
    other = looked_at(evaluating.rerun(team.researcher, evaluation))
    assert set(other.jobs.all()) == set(evaluation.jobs.all())
    evaluating.prioritise(team.researcher, other, Priority.HIGH)
    evaluating.prioritise(team.researcher, evaluation, Priority.LOW)
    assert set(other.jobs.values_list("priority", flat=True)) == {Priority.HIGH}
    evaluating.move(team.researcher, other, "cancelled")
    evaluating.prioritise(team.researcher, evaluation, Priority.NORMAL)
    assert set(other.jobs.values_list("priority", flat=True)) == {Priority.NORMAL}


def test_the_line_shows_jobs_and_evaluations_and_names_none_of_others(launch, evaluation, job, team, as_researcher):
    looked_at(evaluation)
    run = launch()
    Run.objects.filter(id=run.id).update(state="running", heartbeat_at=timezone.now(), eta_s=100)
    waiting_line.update_waiting_reasons()
    found = as_researcher.get("/api/v1/runs/line").json()
    row = found["waiting"][0]
    assert (row["kind"], row["id"], row["evaluations"], row["priority"]) == ("job", None, [evaluation.pk], "normal")
    assert row["job"] in evaluation.jobs.values_list("pk", flat=True) and found["running"][0]["kind"] == "run"
    shown = as_researcher.get("/experiments/line").content.decode()
    assert f"/evaluations/{evaluation.pk}" in shown and f"Raise the priority of {row['name']}" in shown
    assert "Raise the priority" not in browser(team.reviewer).get("/experiments/line").content.decode()
    theirs = line_page.whole(team.outsider.workspace_id)
    assert all((each.run, each.job, each.why) == (None, None, "") for each in (*theirs.running, *theirs.waiting))
    seen = ApiClient(team.outsider).get("/runs/line").json()
    assert {each["name"] for each in seen["waiting"]} == {None} and "answers" not in str(seen)


def test_the_line_asks_as_much_of_the_database_however_many_wait(launch, job, evaluation, team, as_researcher):
    def queries() -> int:
        as_researcher.get("/experiments/line")  # fills the caches
        with CaptureQueriesContext(connection) as seen:
            assert as_researcher.get("/experiments/line").status_code == 200
        return len(seen)

    looked_at(evaluation), job(), launch()
    few = queries()
    for _ in range(8):
        job(), launch()
    looked_at(evaluating.rerun(team.researcher, evaluation))
    assert queries() == few


def test_pages_say_what_they_wait_for_and_take_priorities_by_role(
    launch,
    evaluation,
    ray,  # noqa: F811
    team,
    as_researcher,
    as_outsider,
):
    as_reviewer = browser(team.reviewer)
    jobs.launch(launch(name="alpha").id)
    looked_at(evaluation)
    for each in evaluation.jobs.all():
        weights_jobs.launch(each.pk)
    looked_at(evaluation)
    one = evaluation.jobs.first()
    for page, to in (
        (f"/evaluations/{evaluation.pk}", f"/evaluations/{evaluation.pk}/priority"),
        (f"/jobs/{one.pk}", f"/jobs/{one.pk}/act"),
    ):
        shown = as_researcher.get(page).content.decode()
        assert "Waits for “alpha” of Policy from rubrics" in shown and "This evaluation has stopped" not in shown
        assert to in shown and to not in as_reviewer.get(page).content.decode()
        assert as_reviewer.post(to, {"priority": "high"}).status_code == 403
        assert as_outsider.post(to, {"priority": "high"}).status_code == 404
        assert as_researcher.post(to, {"priority": "high"}).headers["Location"] == page
    as_researcher.post(f"/evaluations/{evaluation.pk}/priority", {"priority": "urgent"})
    evaluation.refresh_from_db()
    assert evaluation.priority == Priority.HIGH and set(evaluation.jobs.values_list("priority", flat=True)) == {1}


def test_priorities_over_the_api(evaluation, as_researcher, team):
    looked_at(evaluation)
    one = evaluation.jobs.first()
    for url in (f"/api/v1/evaluations/{evaluation.pk}", f"/api/v1/weights-jobs/{one.pk}"):
        answer = as_researcher.post(f"{url}/priority", {"priority": "low"}, content_type="application/json")
        assert answer.status_code == 200 and answer.json()["priority"] == "low"
        bad = as_researcher.post(f"{url}/priority", {"priority": "urgent"}, content_type="application/json")
        assert bad.status_code == 422
    evaluating.move(team.researcher, evaluation, "cancelled")
    url = f"/api/v1/evaluations/{evaluation.pk}/priority"
    assert as_researcher.post(url, {"priority": "high"}, content_type="application/json").status_code == 409


def test_a_job_of_a_judge_that_has_no_questions_yet_waits_for_nothing(team, version, model):
    row = weights.stored(team.workspace, None, "judge", "Grader", "subject", model, version)
    assert order() == [] and weights.waits_for_items(row) and weights_jobs.launch(row.pk) is None
    weights.fill(row, None, {}, [{"key": "a"}], lambda: False)
    assert order() == [row] and not weights.waits_for_items(row)
