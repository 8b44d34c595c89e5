"""A run that reserves no memory: the line counts what it is expected to need. The cluster is a value in these tests."""

import json
from functools import partial

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from tests.trainer.memory.shapes import QWEN_7B
from trainer.config import resolve
from webapp.core.distributed import cluster
from webapp.experiments.launch import memory
from webapp.experiments.lifecycle import jobs, line_page, memory_needs, waiting_line
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import MetricPoint, Run
from webapp.weights.models import WeightsJob

from ..conftest import ray as ray_server  # noqa: F401 - a fixture
from .test_jobs import fresh, set_row
from .test_reserved import GB, HERE, asks, machines, many_places, small, states  # noqa: F401 - fixtures
from .test_resources import body, reason
from .test_waiting_line import ray, retried_runs  # noqa: F401 - fixtures

GIB = 2**30


@pytest.fixture
def needing(launch):
    """Launches a run that is expected to need so many GB."""

    def _needing(gigabytes, **kwargs) -> Run:
        run = launch(**kwargs)
        set_row(run, memory_needed=gigabytes and round(gigabytes * GB))
        return fresh(run)

    return _needing


def start(*runs):
    for run in runs:
        jobs.launch(run.id)


def held(run, gib):
    """The process of the run has held so much."""
    MetricPoint.objects.create(run=run, key=memory_needs.HELD, step=1, value=gib, time=timezone.now())
    set_row(run, first_metric_at=timezone.now(), step=1)


def test_two_runs_that_are_too_large_together_do_not_start_together(needing, ray, small, retried_runs):  # noqa: F811
    first, second, third = needing(5), needing(5), needing(1)
    start(first, second, third)
    assert states(first, second, third) == ["starting", "queued", "queued"]
    assert reason(second) == (
        "Waits for memory: it is expected to need 5 GB of memory, the cluster has 8 GB, and 3 GB is free "
        f"(run 1 {HERE} has 5 GB)"
    )
    assert "1 more is before it in the line" in reason(third), "nobody overtakes one that waits for more"
    set_row(first, state="running", eta_s=360, heartbeat_at=timezone.now())
    waiting_line.update_waiting_reasons()
    assert reason(second).endswith(f"(run 1 {HERE} (about 6 min left) has 5 GB). Its turn comes in about 6 min")
    retried_runs.clear()
    set_row(first, state="finished")
    waiting_line.let_in()
    assert retried_runs == [second.id, third.id]


def test_ray_is_not_asked_for_it(needing, ray, small):  # noqa: F811
    run = needing(5)
    start(run)
    assert "entrypoint_memory" not in body(ray, run)


def test_what_the_config_reserves_counts_instead(needing, ray, small):  # noqa: F811
    first, second = needing(7, config=asks(memory_gb=2)), needing(5)
    start(first, second)
    assert states(first, second) == ["starting", "starting"]


def test_a_run_that_needs_more_than_there_is_starts_alone_and_is_never_refused(needing, ray, small, retried_runs):  # noqa: F811
    first, large, after = needing(1), needing(20), needing(1)
    start(first, large, after)
    assert states(first, large, after) == ["starting", "queued", "queued"]
    assert reason(large).startswith("Waits for memory: it is expected to need 20 GB of memory, the cluster has 8 GB")
    set_row(first, state="running", eta_s=600, heartbeat_at=timezone.now())
    waiting_line.update_waiting_reasons()
    assert reason(large).endswith("Its turn comes in about 10 min"), (
        "its turn is known though it never fits beside others"
    )
    set_row(first, state="finished")
    start(after, large)
    assert states(large, after) == ["starting", "queued"]
    set_row(large, state="failed")
    start(after)
    assert states(after) == ["starting"]


@pytest.mark.parametrize(
    "node", [cluster.Node(cpus=2), cluster.Node(cpus=2, gpus=2, lends=8 * GB)], ids=["not known", "GPUs"]
)
def test_it_keeps_nobody_waiting_where_memory_is_not_known_or_each_run_has_a_gpu(needing, ray, machines, node):  # noqa: F811
    machines(node)
    first, second = needing(5), needing(5)
    start(first, second)
    assert states(first, second) == ["starting", "starting"]


def test_a_run_of_which_nothing_is_known_starts_beside_others(needing, ray, small):  # noqa: F811
    first, unknown, second = needing(8), needing(None), needing(1)
    start(first, unknown, second)
    assert states(first, unknown, second) == ["starting", "starting", "queued"]


def test_one_that_waits_for_processors_is_passed_by_one_that_needs_memory_that_is_free(needing, ray, small):  # noqa: F811
    first, second = needing(1, config=asks(2)), needing(1, config=asks(2))
    other, large = needing(5), needing(3)
    start(first, second, other, large)
    assert states(first, second, other, large) == ["starting", "queued", "starting", "queued"]
    assert reason(second).startswith("Waits for CPUs: ")


def test_jobs_that_set_memory_aside_count_beside_runs(needing, ray, small, team):  # noqa: F811
    fields = {"state": "running", "params": {"resources": {"memory_gb": 6}}, "heartbeat_at": timezone.now()}
    WeightsJob.objects.create(workspace=team.workspace, kind="generate", key="j", **fields)
    run = needing(3)
    start(run)
    assert states(run) == ["queued"] and "expected to need 3 GB" in reason(run)


@pytest.mark.django_db(transaction=True)
def test_of_runs_that_come_at_once_only_as_many_start_as_fit(needing, ray, small):  # noqa: F811
    runs = [needing(3) for _ in range(5)]
    concurrently([partial(jobs.launch, run.id) for run in runs])
    assert sorted(states(*runs)) == ["queued"] * 3 + ["starting"] * 2


def test_the_line_says_what_is_expected_and_what_is_not_known(needing, ray, small, as_researcher, team):  # noqa: F811
    start(needing(2.5), needing(None), needing(1, config=asks(memory_gb=3)))
    found = as_researcher.get("/api/v1/runs/line").json()
    assert [(row["memory_gb"], row["memory_expected"]) for row in found["running"]] == [
        (2.5, True),
        (0, False),
        (3, False),
    ]
    assert found["memory_gb_free"] == 2.5
    page = " ".join(as_researcher.get("/experiments/line").content.decode().split())
    assert "about 2.5 GB" in page and "its need is not known" in page and '<td class="num"> 3 GB </td>' in page
    assert line_page.whole(team.workspace.pk).memory_free == 2.5


def test_it_comes_from_the_forecast(launch, model, tmp_path):
    assert launch().memory_needed is None, "the files of the model are not here"
    (tmp_path / "config.json").write_text(json.dumps(QWEN_7B))
    model.path = str(tmp_path)
    model.save()
    found = resolve("policy", {"steps": 4})
    assert fresh(launch()).memory_needed == memory.on_processors(found, model) > 7 * 4 * GIB


def test_it_comes_from_what_the_newest_run_like_it_has_held(launch):
    old, newest, unlike = launch(config={"seed": 1}), launch(config={"seed": 2}), launch(config={"steps": 5})
    held(old, 9.0), held(newest, 1.5), held(unlike, 7.0)
    assert fresh(launch(config={"seed": 3})).memory_needed == round(1.5 * GIB)
    assert fresh(launch(config={"steps": 6})).memory_needed is None


def test_a_resumed_run_is_expected_to_need_what_it_held(needing, team):
    run = needing(1)
    held(run, 2.0)
    set_row(run, state="failed")
    assert lifecycle.resume(team.researcher, fresh(run)).memory_needed == 2 * GIB
    set_row(run, state="failed", memory_needed=3 * GIB)
    assert lifecycle.resume(team.researcher, fresh(run)).memory_needed == 3 * GIB


def test_more_runs_ask_the_cache_no_more(needing, small, monkeypatch):  # noqa: F811
    asked, known = [], cluster.last_state
    monkeypatch.setattr(cluster, "last_state", lambda: asked.append(1) or known())

    def questions() -> int:
        asked.clear()
        waiting_line.update_waiting_reasons()
        return len(asked)

    needing(1)
    few = questions()
    for _ in range(5):
        needing(1)
    assert questions() == few
