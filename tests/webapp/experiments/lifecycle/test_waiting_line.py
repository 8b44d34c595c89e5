"""The line of runs: as many as may run at once, in the order of their launches. Each run says what it waits for."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from tests.concurrency import concurrently
from webapp.accounts.administration import quotas
from webapp.experiments.lifecycle import jobs, states, waiting_line
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Experiment, Run

from ..conftest import ray as ray_server  # noqa: F401 - a fixture
from .test_jobs import fresh


@pytest.fixture(autouse=True)
def one_place(settings):
    settings.MAX_RUNNING_RUNS = 1


@pytest.fixture
def ray(ray_server):  # noqa: F811
    return ray_server


@pytest.fixture
def retried_runs(monkeypatch):
    """The runs to which the line gave another try."""
    found = []
    monkeypatch.setattr(waiting_line, "enqueue", lambda name, run_id: found.append(run_id))
    return found


def test_the_second_run_waits_and_says_for_what(launch, ray):
    first, second, third = launch(name="alpha"), launch(), launch()
    for run in (first, second, third):
        assert jobs.launch(run.id) is None
    assert [fresh(run).state for run in (first, second, third)] == ["starting", "queued", "queued"]
    assert fresh(second).state_reason == (
        "Waits for “alpha” of Policy from rubrics: 1 may run at once (MAX_RUNNING_RUNS)"
    )
    assert ", and 1 more is before it in the line: 1 may" in fresh(third).state_reason
    assert list(ray.jobs) == [f"run-{first.id}-1"]


def test_the_end_of_a_run_lets_in_the_next_of_the_line(
    launch,
    ray,
    retried_runs,
    django_capture_on_commit_callbacks,
):
    first, second, third = launch(), launch(), launch()
    for run in (first, third, second):  # runs that were launched earlier come first, for any order of their tasks
        jobs.launch(run.id)
    with django_capture_on_commit_callbacks(execute=True):
        states.move(fresh(first), "failed", reason="gone")
    assert retried_runs == [second.id]
    jobs.launch(third.id)
    assert fresh(third).state == "queued", "the second has the place, though its task has not come yet"
    jobs.launch(second.id)
    assert (fresh(second).state, fresh(second).state_reason) == ("starting", "")
    assert fresh(third).state_reason.startswith("Waits for run 2 of")


def test_a_waiting_run_that_is_stopped_leaves_the_line(launch, ray, team):
    first, second, third = launch(), launch(), launch()
    for run in (first, second, third):
        jobs.launch(run.id)
    lifecycle.stop(team.researcher, fresh(second))
    waiting_line.let_in()
    assert fresh(third).state_reason == "Waits for run 1 of Policy from rubrics: 1 may run at once (MAX_RUNNING_RUNS)"


def test_upkeep_lets_in_whoever_was_forgotten(launch, ray, retried_runs, settings):
    first, second = launch(), launch()
    jobs.launch(first.id)
    jobs.launch(second.id)
    Run.objects.filter(id=first.id).update(state="finished")  # without the message that it has finished
    jobs.watch()
    assert retried_runs == [second.id]
    waiting_line.let_in()
    assert retried_runs == [second.id], "it has its try"


def test_more_places_let_in_more(launch, ray, settings, retried_runs):
    runs = [launch() for _ in range(4)]
    for run in runs:
        jobs.launch(run.id)
    settings.MAX_RUNNING_RUNS = 3
    waiting_line.let_in()
    assert retried_runs == [runs[1].id, runs[2].id]
    settings.MAX_RUNNING_RUNS = None
    waiting_line.let_in()
    assert retried_runs == [runs[1].id, runs[2].id, runs[3].id]


def test_runs_of_other_workspaces_are_not_named(launch, ray, team):
    first, second = launch(name="secret plan"), launch()
    jobs.launch(first.id)
    Experiment.objects.filter(id=first.experiment_id).update(workspace=team.outsider.workspace, name="Secret")
    other = Experiment.objects.create(workspace=team.workspace, name="Ours")
    Run.objects.filter(id=second.id).update(experiment=other)
    jobs.launch(second.id)
    assert fresh(second).state_reason == "Waits for another run: 1 may run at once (MAX_RUNNING_RUNS)"


def test_a_workspace_at_its_limit_waits_and_keeps_nobody_else_waiting(launch, ray, team, settings, retried_runs):
    settings.MAX_RUNNING_RUNS = 3
    quotas.change(team.owner.user, team.workspace, quotas.Limits(running_runs=1))
    first, second, other = launch(), launch(), launch()
    theirs = Experiment.objects.create(workspace=team.outsider.workspace, name="Theirs")
    Run.objects.filter(id=other.id).update(experiment=theirs)
    for run in (first, second, other):
        jobs.launch(run.id)
    assert [fresh(run).state for run in (first, second, other)] == ["starting", "queued", "starting"]
    told = "Waits: 1 run of this workspace may run at once. An administrator of this installation can change that"
    assert fresh(second).state_reason == told
    quotas.change(team.owner.user, team.workspace, quotas.Limits(running_runs=2))
    waiting_line.let_in()
    assert retried_runs == [second.id]


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_let_in_no_more_of_a_workspace_than_it_may_have(launch, ray, settings, team):
    settings.MAX_RUNNING_RUNS = None
    quotas.change(team.owner.user, None, quotas.Limits(running_runs=2))
    runs = [launch() for _ in range(5)]
    concurrently([lambda run=run: jobs.launch(run.id) for run in runs])
    assert Run.objects.filter(state="starting").count() == 2


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_let_in_no_more_than_there_are_places(launch, ray, settings):
    settings.MAX_RUNNING_RUNS = 2
    runs = [launch() for _ in range(6)]

    def work(run_id):
        try:
            return jobs.launch(run_id)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, [run.id for run in reversed(runs)]))
    assert [run.state for run in map(fresh, runs)] == ["starting", "starting", *["queued"] * 4]
    assert len(ray.jobs) == 2
