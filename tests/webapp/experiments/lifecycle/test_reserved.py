"""Processors and memory: what runs reserve, which wait for them, and what the page says meanwhile. The cluster is a value in these tests."""

from dataclasses import asdict
from functools import partial

import pytest
from django.core.cache import cache
from django.utils import timezone

from tests.concurrency import concurrently
from tests.webapp.experiments.conftest import ray as ray_server  # noqa: F401 - a fixture
from trainer.config import ConfigInvalid, resolve
from webapp.core.distributed import cluster
from webapp.core.distributed.ray_client import JobResources
from webapp.experiments.lifecycle import jobs, line_page, resources, waiting_line
from webapp.experiments.models import Run
from webapp.weights.models import WeightsJob

from .test_jobs import fresh, set_row
from .test_resources import body, pending, reason
from .test_waiting_line import ray, retried_runs  # noqa: F401 - fixtures

GB = 10**9
HERE = "of Policy from rubrics"


def asks(cpus=0.0, memory_gb=0.0, **others):
    return {"resources": {"cpus": cpus, "memory_gb": memory_gb}, **others}


@pytest.fixture(autouse=True)
def many_places(settings):
    settings.MAX_RUNNING_RUNS = 9


@pytest.fixture
def machines(db):
    """Sets the machines of the cluster."""

    def _machines(*nodes):
        cache.set(cluster.KEY, [asdict(node) for node in nodes])

    yield _machines
    cache.delete(cluster.KEY)


@pytest.fixture
def small(machines):
    machines(cluster.Node(cpus=2, lends=8 * GB))


def states(*runs):
    return [fresh(run).state for run in runs]


def test_ray_is_asked_for_what_the_config_reserves_and_for_nothing_by_default(launch, ray, small):  # noqa: F811
    plain, large = launch(), launch(config=asks(2, 1.5))
    jobs.launch(plain.id), jobs.launch(large.id)
    assert (body(ray, plain)["entrypoint_num_cpus"], "entrypoint_memory" in body(ray, plain)) == (0, False)
    assert (body(ray, large)["entrypoint_num_cpus"], body(ray, large)["entrypoint_memory"]) == (2, 1_500_000_000)


def test_workers_of_an_asynchronous_run_count_too():
    runner = {"kind": "async", "workers": 3, "reward_workers": 2, "cpus_per_worker": 2}
    found = resources.of_config(resolve("policy", asks(1, 4, runner=runner, scaffold=None)))
    assert (found.own.cpus, found.whole.cpus) == (1, 11)
    assert resources.of_config(resolve("policy", asks(1))).whole.cpus == 1, "one that samples itself has no workers"
    assert resources.of_config(resolve("sft", asks(1))).whole == JobResources(1, 1)


def test_a_run_waits_for_processors_and_says_who_has_them_and_for_how_long(launch, ray, small, retried_runs):  # noqa: F811
    first, second, third, free = launch(config=asks(2)), launch(config=asks(2)), launch(config=asks(0.5)), launch()
    for run in (first, second, third, free):
        jobs.launch(run.id)
    assert states(first, second, third, free) == ["starting", "queued", "queued", "starting"]
    assert reason(second) == (
        f"Waits for CPUs: it asks for 2 CPUs, the cluster has 2, and 0 are free (run 1 {HERE} has 2)"
    )
    set_row(first, state="running", eta_s=360, heartbeat_at=timezone.now())
    waiting_line.update_waiting_reasons()
    assert reason(second).endswith(f"(run 1 {HERE} (about 6 min left) has 2). Its turn comes in about 6 min")
    assert "and 1 more is before it in the line" in reason(third), "nobody overtakes one that waits for more"
    retried_runs.clear()
    set_row(first, state="finished")
    waiting_line.let_in()
    assert retried_runs == [second.id]


def test_a_run_waits_for_memory_that_a_job_has_set_aside(launch, ray, small, team):  # noqa: F811
    params = {"resources": {"memory_gb": 6.5}}
    held = WeightsJob.objects.create(
        workspace=team.workspace, kind="generate", key="j", state="running", params=params, heartbeat_at=timezone.now()
    )
    run = launch(config=asks(memory_gb=2))
    jobs.launch(run.id)
    assert reason(run) == (
        "Waits for memory: it asks for 2 GB of memory, the cluster has 8 GB, and 1.5 GB is free "
        f"(job {held.pk} has 6.5 GB)"
    )
    held.delete()
    jobs.launch(run.id)
    assert states(run) == ["starting"]


def test_a_waiting_run_is_overtaken_by_one_that_asks_for_nothing_it_needs(launch, ray, machines):  # noqa: F811
    machines(cluster.Node(cpus=4, lends=4 * GB))
    first, second, memory = launch(config=asks(3)), launch(config=asks(2)), launch(config=asks(memory_gb=4))
    both = launch(config=asks(1, 1))
    for run in (first, second, memory, both):
        jobs.launch(run.id)
    assert states(first, second, memory, both) == ["starting", "queued", "starting", "queued"]


def test_parts_of_processors_add_up(launch, ray, machines):  # noqa: F811
    machines(cluster.Node(cpus=1))
    runs = [launch(config=asks(cpus)) for cpus in (0.1, 0.2, 0.7)]  # in binary these are not exactly one
    for run in runs:
        jobs.launch(run.id)
    assert states(*runs) == ["starting"] * 3


@pytest.mark.django_db(transaction=True)
def test_of_runs_that_ask_at_once_only_as_many_start_as_there_are_processors(launch, ray, small):  # noqa: F811
    runs = [launch(config=asks(1)) for _ in range(5)]
    concurrently([partial(jobs.launch, run.id) for run in runs])
    assert states(*runs) == ["starting"] * 2 + ["queued"] * 3


@pytest.mark.parametrize(
    ("config", "path", "told"),
    [
        (asks(5), "resources.cpus", "the largest machine of the cluster has 4; lower it"),
        (asks(memory_gb=9), "resources.memory_gb", "a machine of the cluster can reserve at most 8 GB; lower it"),
        (
            asks(3, 7),
            "resources.cpus",
            "no machine of the cluster has 3 CPUs, 7 GB of memory at once; lower one of them",
        ),
        (
            asks(1, runner={"kind": "async", "workers": 2, "cpus_per_worker": 2}, scaffold=None),
            "runner.cpus_per_worker",
            "the run reserves 7 CPUs with those of its workers, and the cluster has 6; lower it",
        ),
    ],
    ids=["processors", "memory", "both", "workers"],
)
def test_more_than_there_is_is_refused_at_its_field(launch, machines, config, path, told):
    machines(cluster.Node(cpus=4, lends=4 * GB), cluster.Node(cpus=2, lends=8 * GB))
    with pytest.raises(ConfigInvalid) as refused:
        launch(config=config)
    assert [(each.path, each.message) for each in refused.value.problems] == [(path, told)]
    assert not Run.objects.exists()


def test_nothing_is_refused_while_nothing_is_known_of_the_cluster(launch, db):
    assert launch(config=asks(1000, 1000)).state == "queued"


def test_a_run_that_no_machine_can_hold_any_more_says_so_and_others_pass_it(launch, ray, machines):  # noqa: F811
    machines(cluster.Node(cpus=8, lends=8 * GB))
    wide, heavy, other = launch(config=asks(6)), launch(config=asks(1, 6)), launch(config=asks(2))
    machines(cluster.Node(cpus=4, lends=4 * GB))
    for run in (wide, heavy, other):
        jobs.launch(run.id)
    assert states(wide, heavy, other) == ["queued", "queued", "starting"]
    waiting_line.update_waiting_reasons()
    assert reason(wide) == (
        "Waits for CPUs: it asks for 6 CPUs, the cluster has 4. It starts once there are as many; others pass it"
    )
    assert reason(heavy) == (
        "Waits: it asks for 1 CPU, 6 GB of memory, and no machine of the cluster has as much. It starts once one has; "
        "others pass it"
    )


def test_a_cluster_of_ones_own_that_may_start_machines_gets_the_run(launch, ray, machines, settings):  # noqa: F811
    settings.MAX_RUNNING_RUNS = None
    machines(cluster.Node(cpus=8))
    run = launch(config=asks(6))
    machines(cluster.Node(cpus=4))
    jobs.launch(run.id)
    assert states(run) == ["starting"]


def test_a_run_that_ray_keeps_waiting_for_processors_is_not_lost_and_says_why(launch, ray, small, monkeypatch):  # noqa: F811
    monkeypatch.setattr(jobs, "_web_answers", lambda: True)
    found = pending(ray, launch(config=asks(2)))
    assert (found.state, found.attempt) == ("starting", 1)
    assert found.state_reason == "Waits in Ray's queue until a machine of the cluster has 2 CPUs free"


def test_a_run_of_an_older_version_reserves_nothing(run, ray, small):  # noqa: F811
    del run.config["resources"]
    set_row(run, config=run.config)
    jobs.launch(run.id)
    assert body(ray, run)["entrypoint_num_cpus"] == 0


def test_the_line_has_columns_for_what_is_reserved(launch, ray, small, as_researcher, team):  # noqa: F811
    plain = launch()
    jobs.launch(plain.id)
    assert "CPUs" not in as_researcher.get("/experiments/line").content.decode()
    jobs.launch(launch(config=asks(1.5, 3)).id)
    launch(config=asks(1))
    found = as_researcher.get("/api/v1/runs/line").json()
    assert {name: found[name] for name in ("cpus", "cpus_free", "memory_gb", "memory_gb_free")} == {
        "cpus": 2,
        "cpus_free": 0.5,
        "memory_gb": 8,
        "memory_gb_free": 5,
    }
    assert [(row["cpus"], row["memory_gb"]) for row in found["running"] + found["waiting"]] == [
        (0, 0),
        (1.5, 3),
        (1, 0),
    ]
    shown = " ".join(as_researcher.get("/experiments/line").content.decode().split())
    assert "0.5 of 2 CPUs free" in shown and "5 of 8 GB free" in shown and "3 GB </td>" in shown
    assert line_page.whole(team.workspace.pk).gpus == 0


def test_seeds_are_compared_though_they_reserve_different_amounts(launch, small):
    first, second = launch(config={"seed": 1}), launch(config=asks(2, seed=2))
    assert first.family == second.family != launch(config={"steps": 7}).family
