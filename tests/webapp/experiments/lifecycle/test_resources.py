"""GPUs: what runs ask for, which runs wait, and what the page says meanwhile. The cluster is a value in these tests."""

from dataclasses import asdict
from datetime import timedelta
from functools import partial

import pytest
from django.core.cache import cache
from django.utils import timezone

from tests.concurrency import concurrently
from tests.webapp.core.fake_ray import FakeRay
from trainer.config import ConfigInvalid, resolve
from webapp.accounts.administration import quotas
from webapp.core.distributed import cluster
from webapp.experiments.lifecycle import jobs, resources, waiting_line
from webapp.experiments.models import Experiment, Run
from webapp.machine.places import write_facts
from webapp.weights import jobs as weights_jobs
from webapp.weights import services as weights_services
from webapp.weights.models import WeightsJob

ASYNC = {"runner": {"kind": "async", "workers": 1}, "scaffold": None}


@pytest.fixture
def ray(settings, monkeypatch):
    fake = FakeRay()
    write_facts(settings.VAR, "ray", address=fake.address)
    monkeypatch.setattr(jobs, "_web_answers", lambda: True)
    yield fake
    fake.close()


@pytest.fixture
def gpus(db):
    """Sets the number of GPUs, on one machine with an unknown amount of memory."""

    def _gpus(count):
        cache.set(cluster.KEY, [asdict(cluster.Node(cpus=8, gpus=count))])

    yield _gpus
    cache.delete(cluster.KEY)


def body(ray, run):
    return ray.jobs[f"run-{run.id}-1"]["body"]


def reason(run):
    return Run.objects.get(id=run.id).state_reason


@pytest.mark.parametrize(("count", "asked"), [(0, None), (2, 1)])
def test_a_run_asks_for_a_gpu_where_the_cluster_has_some(run, ray, gpus, count, asked):
    gpus(count)
    jobs.launch(run.id)
    assert body(ray, run).get("entrypoint_num_gpus") == asked


@pytest.mark.parametrize(
    ("changes", "gpus"),
    [
        ({}, 1),
        ({"optim": {"processes": 4}}, 5),
        (ASYNC, 2),
        ({**ASYNC, "runner": {"kind": "async", "workers": 3, "gpus_per_worker": 0}}, 1),
    ],
    ids=["one process", "four that train", "a worker", "workers on processors"],
)
def test_a_run_counts_its_process_its_workers_and_those_that_train_together(changes, gpus):
    assert resolve("policy", changes).holdings().gpus == gpus


def test_a_run_of_an_older_version_counts_all_it_asks_for(launch, gpus):
    gpus(2)
    run = launch(config=ASYNC)
    run.config["objective"]["weight_cap"] = None
    assert resources.requested_resources(run).gpus == 2


def test_more_than_there_is_is_refused_at_its_field(launch, gpus):
    gpus(1)
    with pytest.raises(ConfigInvalid) as refused:
        launch(config=ASYNC)
    (problem,) = refused.value.problems
    assert (problem.path, "asks for 2 GPUs" in problem.message) == ("runner.workers", True)


def test_whoever_finds_no_gpu_waits_in_line_and_says_for_how_many(launch, ray, gpus):
    gpus(2)
    first, second, third = (launch(config=ASYNC), launch(config=ASYNC), launch())
    jobs.launch(first.id)
    jobs.launch(second.id)
    jobs.launch(third.id)
    assert list(ray.jobs) == [f"run-{first.id}-1"]
    assert reason(second) == (
        "Waits for GPUs: it asks for 2 GPUs, the cluster has 2, and 0 are free (run 1 of Policy from rubrics has 2)"
    )
    assert reason(third).endswith(
        "and 0 are free (run 1 of Policy from rubrics has 2), and 1 more is before it in the line"
    )

    Run.objects.filter(id=first.id).update(state="finished")
    waiting_line.let_in()
    jobs.launch(second.id)
    assert f"run-{second.id}-1" in ray.jobs and f"run-{third.id}-1" not in ray.jobs


def test_a_run_that_asks_for_more_than_is_left_of_the_cluster_keeps_nobody_waiting(launch, ray, gpus):
    gpus(2)
    large, small = launch(config=ASYNC), launch()
    gpus(1)
    jobs.launch(large.id)
    jobs.launch(small.id)
    assert list(ray.jobs) == [f"run-{small.id}-1"]


def test_a_workspace_holds_no_more_gpus_than_it_may_and_keeps_nobody_else_waiting(launch, ray, gpus, team):
    gpus(4)
    first, second = launch(config=ASYNC), launch(config=ASYNC)
    other = launch()
    elsewhere = Experiment.objects.create(workspace=team.outsider.workspace, name="theirs")
    Run.objects.filter(id=other.id).update(experiment=elsewhere)
    quotas.change(team.owner.user, team.workspace, quotas.Limits(gpus=3))
    for run in (first, second, other):
        jobs.launch(run.id)
    assert list(ray.jobs) == [f"run-{first.id}-1", f"run-{other.id}-1"]
    assert reason(second).startswith("Waits: it asks for 2 GPUs, and this workspace may hold 3 at once.")

    Run.objects.filter(id=first.id).update(state="finished")
    waiting_line.let_in()
    jobs.launch(second.id)
    assert f"run-{second.id}-1" in ray.jobs


def test_a_run_that_asks_for_more_gpus_than_its_workspace_may_hold_is_refused_at_its_field(launch, gpus, team):
    quotas.change(team.owner.user, team.workspace, quotas.Limits(gpus=1))
    gpus(4)
    with pytest.raises(ConfigInvalid) as refused:
        launch(config=ASYNC)
    (problem,) = refused.value.problems
    assert problem.path == "runner.workers" and "this workspace may hold 1 at once" in problem.message
    gpus(0)
    assert launch(config=ASYNC).state == "queued"  # if there are no GPUs, no run holds one


def pending(ray, run):
    jobs.launch(run.id)
    ray.jobs[f"run-{run.id}-1"]["status"] = "PENDING"
    now = timezone.now()
    cache.set(jobs.HEARING_KEY, ((now - timedelta(hours=2)).isoformat(), now.isoformat()), None)
    Run.objects.filter(id=run.id).update(state_at=now - timedelta(hours=2))
    jobs.watch()
    return Run.objects.get(id=run.id)


def held(team, gpus):
    return WeightsJob.objects.create(
        workspace=team.workspace,
        kind="generate",
        key=f"{gpus}",
        state="running",
        params={"resources": {"gpus": gpus}},
        heartbeat_at=timezone.now(),
    )


def test_a_run_that_ray_keeps_waiting_is_not_lost_and_says_why(run, ray, gpus, team):
    gpus(1)
    jobs.launch(run.id)
    held(team, 1)
    found = pending(ray, run)
    assert (found.state, found.attempt) == ("starting", 1)
    assert found.state_reason == "Waits in Ray's queue for a free GPU: it asks for 1, and the cluster has 1"
    WeightsJob.objects.update(state="finished")
    Run.objects.filter(id=run.id).update(heartbeat_at=found.heartbeat_at - timedelta(minutes=1))
    jobs.watch()
    assert Run.objects.get(id=run.id).attempt == 1, "the card is free since a moment"


def test_a_run_that_ray_does_not_start_though_a_gpu_is_free_is_given_up(run, ray, gpus):
    gpus(1)
    assert pending(ray, run).attempt == 2


def test_gpus_of_jobs_are_not_given_to_runs(launch, ray, gpus, team):
    gpus(2)
    job = held(team, 0.5)
    run = launch(config=ASYNC)
    jobs.launch(run.id)
    assert reason(run) == (
        f"Waits for GPUs: it asks for 2 GPUs, the cluster has 2, and 1 are free (job {job.pk} has 0.5)"
    )


def test_gpus_of_a_workspaces_jobs_count_among_those_it_may_hold(launch, ray, gpus, team):
    gpus(8)
    quotas.change(team.owner.user, team.workspace, quotas.Limits(gpus=2))
    held(team, 1.5)
    run = launch()
    jobs.launch(run.id)
    assert "this workspace may hold 2 at once" in reason(run), "one and a half are two"
    WeightsJob.objects.update(state="finished")
    waiting_line.let_in()
    jobs.launch(run.id)
    assert Run.objects.get(id=run.id).state == "starting"


def asking(team, count):
    now = timezone.now()
    return WeightsJob.objects.create(
        workspace=team.workspace,
        kind="generate",
        key=f"asks {count} {now}",
        params={"resources": {"gpus": count}},
        next_try_at=now,
        asked_at=now,
    )


def test_a_job_waits_until_its_workspace_holds_fewer_gpus_and_says_so(launch, ray, gpus, team):
    gpus(8)
    quotas.change(team.owner.user, team.workspace, quotas.Limits(gpus=2))
    run = launch()
    jobs.launch(run.id)
    assert Run.objects.get(id=run.id).state == "starting"
    first, second = asking(team, 1), asking(team, 1)
    assert weights_jobs.launch(first.pk) is None
    assert weights_jobs.launch(second.pk) is None
    second.refresh_from_db()
    words = "it asks for 1 GPU, and this workspace may hold 2 at once"
    assert second.state == "queued" and words in second.problem and second.next_try_at is None
    Run.objects.filter(id=run.id).update(state="finished")
    waiting_line.let_in()
    second.refresh_from_db()
    assert second.next_try_at is not None
    assert weights_jobs.launch(second.pk) is None
    second.refresh_from_db()
    assert (second.state, second.problem) == ("starting", "")


def test_a_job_that_asks_for_more_than_its_workspace_may_hold_is_refused_at_its_field(team):
    quotas.change(team.owner.user, team.workspace, quotas.Limits(gpus=1))
    with pytest.raises(ConfigInvalid) as refused:
        weights_services.start(team.workspace, None, "generate", "t", {"resources": {"gpus": 1.5}}, "s")
    assert [problem.path for problem in refused.value.problems] == ["resources.gpus"]
    assert not WeightsJob.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_jobs_at_once_one_takes_the_last_gpu(ray, team):
    quotas.change(team.owner.user, team.workspace, quotas.Limits(gpus=1))
    pair = [asking(team, 1) for _ in range(4)]
    concurrently([partial(weights_jobs.launch, each.pk) for each in pair])
    assert sorted(WeightsJob.objects.values_list("state", flat=True)) == ["queued"] * 3 + ["starting"]


HEAD = {"raylet": {"state": "ALIVE", "resourcesTotal": {"CPU": 8.0}}}
CARDS = {"raylet": {"state": "ALIVE", "resourcesTotal": {"CPU": 8.0, "GPU": 4.0}}}


def looked(ray, *nodes):
    ray.nodes = list(nodes)
    cache.delete(cluster.ASKED)
    cluster.refresh()


@pytest.mark.parametrize("emptied", [False, True], ids=["the machine is away", "the cache is empty and Ray silent"])
def test_whoever_asks_for_a_gpu_waits_for_a_machine_that_starts_anew(launch, ray, gpus, emptied, settings):
    looked(ray, HEAD, CARDS)
    looked(ray, HEAD)
    if emptied:
        cache.clear()
        ray.nodes = []
    run = launch()
    jobs.launch(run.id)
    waiting_line.let_in()
    assert not ray.jobs and "the cluster had 4 GPUs, and now Ray reports none" in reason(run)
    assert resources.wanted_resources(run).gpus == 1, "one on its way already does not land on a processor"
    assert cluster.REMEMBERED in reason(run)
    (settings.VAR / cluster.REMEMBERED).unlink()  # this is how an operator solves it
    jobs.launch(run.id)
    assert "entrypoint_num_gpus" not in body(ray, run)


def test_the_line_goes_on_once_the_gpus_are_back(run, ray, gpus):
    looked(ray, HEAD, CARDS)
    looked(ray, HEAD)
    jobs.launch(run.id)
    looked(ray, HEAD, CARDS)
    jobs.launch(run.id)
    assert body(ray, run)["entrypoint_num_gpus"] == 1


def test_reasons_are_those_for_which_the_line_keeps_runs(launch, ray, gpus, team):
    quotas.change(team.owner.user, team.workspace, quotas.Limits(running_runs=2))
    gpus(4)
    large = launch(config={"optim": {"processes": 3}})
    gpus(2)
    first, second, third = launch(), launch(), launch()
    for run in (large, first, second, third):
        jobs.launch(run.id)
    assert len(ray.jobs) == 2
    waiting_line.update_waiting_reasons()
    assert reason(third).startswith("Waits: 2 runs of this workspace may run at once")
    quotas.change(team.owner.user, team.workspace, quotas.Limits(running_runs=3))
    waiting_line.update_waiting_reasons()
    assert reason(large) == (
        "Waits for GPUs: it asks for 4 GPUs, the cluster has 2. It starts once there are as many; others pass it"
    )
    assert reason(third).endswith(
        "and 0 are free (run 2 of Policy from rubrics has 1, run 3 of Policy from rubrics has 1), "
        "and 1 more is before it in the line"
    )


def test_what_a_run_asks_for_is_worked_out_once(launch, gpus, monkeypatch):
    gpus(1)
    launch(), launch()
    Run.objects.update(next_try_at=None)
    waiting_line.update_waiting_reasons()
    monkeypatch.setattr(resources, "resolve", lambda *_: pytest.fail("resolved again"))
    waiting_line.update_waiting_reasons()
