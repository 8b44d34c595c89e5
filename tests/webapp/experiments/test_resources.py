"""GPUs: what runs ask for, who waits for them, and what the page says meanwhile. The cluster is a value."""

from dataclasses import asdict
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webapp.core.fake_ray import FakeRay
from trainer.config import ConfigInvalid, resolve
from webapp.core import cluster
from webapp.experiments import jobs, resources, waiting_line
from webapp.experiments.models import Run
from webapp.localstack.places import write_facts

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
    """Says how many there are, on one machine whose memory nobody knows."""

    def _gpus(count):
        cluster.cache.set(cluster.KEY, [asdict(cluster.Node(cpus=8, gpus=count))])

    yield _gpus
    cluster.cache.delete(cluster.KEY)


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
    assert resources.asked(run) == 2


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
    assert reason(second) == "Waits for GPUs: it asks for 2 GPUs, the cluster has 2, and 0 are free"
    assert reason(third).endswith(
        "it asks for 1 GPU, the cluster has 2, and 0 are free, and 1 more is before it in the line"
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


def test_a_run_that_ray_keeps_waiting_is_not_lost_and_says_why(run, ray, gpus):
    gpus(1)
    jobs.launch(run.id)
    ray.jobs[f"run-{run.id}-1"]["status"] = "PENDING"
    Run.objects.filter(id=run.id).update(state_at=timezone.now() - timedelta(hours=2))
    jobs.watch()
    found = Run.objects.get(id=run.id)
    assert (found.state, found.attempt) == ("starting", 1)
    assert found.state_reason == "Waits in Ray's queue for a free GPU: it asks for 1, and the cluster has 1"
