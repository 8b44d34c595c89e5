"""A job that reserves no memory: the line counts what it is expected to need, beside runs. The cluster is a value in these tests."""

import json

import pytest
from django.utils import timezone

from tests.trainer.memory.shapes import QWEN_7B, SMALL
from trainer.config.sections.sampler import Sampler
from trainer.memory import jobs as forecasts
from trainer.memory.forecast import PROGRAM
from trainer.memory.shape import ModelShape
from webapp.core.distributed import cluster
from webapp.experiments.lifecycle import waiting_line
from webapp.weights import jobs as weights_jobs
from webapp.weights import memory_needs
from webapp.weights import services as weights
from webapp.weights.kinds import KINDS
from webapp.weights.models import WeightsJob

from ..conftest import ray as ray_server  # noqa: F401 - a fixture
from .test_jobs import fresh, set_row
from .test_memory_needs import needing, start  # noqa: F401 - a fixture
from .test_reserved import GB, HERE, machines, many_places, small, states  # noqa: F401 - fixtures
from .test_resources import reason
from .test_waiting_line import ray, retried_runs  # noqa: F401 - fixtures

QWEN = ModelShape.of(QWEN_7B)


@pytest.fixture
def job(team, model, version):
    """Makes jobs of the workspace, which answer with `model`. Each is different, because it has another seed."""
    made = []

    def _job(needs=None, **params) -> WeightsJob:
        given = {"split": "", "seed": len(made), **params}
        made.append(weights.generate(team.workspace, team.researcher.user, model, version, given))
        if needs:
            WeightsJob.objects.filter(pk=made[-1].pk).update(memory_needed=round(needs * GB))
        return now(made[-1])

    return _job


@pytest.fixture
def here(model, tmp_path):
    """The model's files are on this machine: a model of 7 billion parameters, without its weights."""
    (tmp_path / "config.json").write_text(json.dumps(QWEN_7B))
    model.path = str(tmp_path)
    model.save()
    return tmp_path


def now(job) -> WeightsJob:
    return WeightsJob.objects.select_related("workspace").get(pk=job.pk)


def ends(job, held, **fields):
    """The job has ended, and its process has held so many bytes."""
    fields = {"state": "finished", "acked": 1, "used": {"memory_bytes": held}, **fields}
    WeightsJob.objects.filter(pk=job.pk).update(**fields)


def test_a_job_does_not_start_beside_a_run_if_both_are_too_large_together(needing, job, ray, small, retried_runs):  # noqa: F811
    run, waits = needing(5), job(4)
    start(run)
    weights_jobs.launch(waits.pk)
    assert now(waits).state == "queued"
    assert now(waits).problem == (
        "Waits for memory: it is expected to need 4 GB of memory, the cluster has 8 GB, and 3 GB is free "
        f"(run 1 {HERE} has 5 GB)"
    )
    set_row(run, state="finished")
    retried_runs.clear()
    waiting_line.let_in()
    weights_jobs.launch(waits.pk)
    assert now(waits).state == "starting"


def test_a_run_does_not_start_beside_such_a_job(needing, job, ray, small):  # noqa: F811
    first, run = job(5), needing(4)
    weights_jobs.launch(first.pk)
    start(run)
    assert states(run) == ["queued"]
    assert "it is expected to need 4 GB of memory, the cluster has 8 GB, and 3 GB is free" in reason(run)
    assert f"(job {first.pk}" in reason(run)


def test_ray_is_not_asked_for_it(job, ray, small):  # noqa: F811
    first = job(5)
    weights_jobs.launch(first.pk)
    assert now(first).state == "starting" and "entrypoint_memory" not in ray.jobs[f"weights-{first.pk}-1"]["body"]


def test_what_it_reserves_counts_instead(needing, job, ray, small):  # noqa: F811
    first, run = job(7, resources={"memory_gb": 2}), needing(5)
    weights_jobs.launch(first.pk)
    start(run)
    assert (now(first).state, states(run)) == ("starting", ["starting"])


def test_a_job_that_needs_more_than_there_is_starts_alone(needing, job, ray, small):  # noqa: F811
    run, large = needing(1), job(20)
    start(run)
    weights_jobs.launch(large.pk)
    assert now(large).problem.startswith("Waits for memory: it is expected to need 20 GB of memory")
    set_row(run, state="finished")
    weights_jobs.launch(large.pk)
    assert now(large).state == "starting"
    after = needing(1)
    start(after)
    assert states(after) == ["queued"]


@pytest.mark.parametrize(
    "node", [cluster.Node(cpus=2), cluster.Node(cpus=2, gpus=2, lends=8 * GB)], ids=["not known", "GPUs"]
)
def test_it_keeps_nobody_waiting_where_memory_is_not_known_or_there_are_gpus(needing, job, ray, machines, node):  # noqa: F811
    machines(node)
    first, second = job(5), job(5)
    weights_jobs.launch(first.pk), weights_jobs.launch(second.pk)
    assert (now(first).state, now(second).state) == ("starting", "starting")


def test_the_line_says_what_a_job_is_expected_to_need(job, ray, small, as_researcher):  # noqa: F811
    first = job(2.5)
    weights_jobs.launch(first.pk)
    found = as_researcher.get("/api/v1/runs/line").json()
    assert [(row["job"], row["memory_gb"], row["memory_expected"]) for row in found["running"]] == [
        (first.pk, 2.5, True)
    ]
    assert found["memory_gb_free"] == 5.5
    page = " ".join(as_researcher.get("/experiments/line").content.decode().split())
    assert "about 2.5 GB" in page


def test_it_comes_from_the_forecast_for_its_model(job, here):
    small_batch, large_batch = job(sampler={"max_batch": 1}), job(sampler={"max_batch": 64})
    assert small_batch.memory_needed == forecasts.generating(QWEN, Sampler(max_batch=1), 256)
    assert QWEN.parameters * 4 < small_batch.memory_needed < large_batch.memory_needed


def test_a_model_whose_files_are_elsewhere_has_no_forecast(job):
    assert job().memory_needed is None


def test_it_comes_from_what_the_newest_job_like_it_has_held(job):
    old, newest, unlike, failed, unfinished = job(), job(), job(max_new_tokens=8), job(), job()
    ends(old, 9 * GB), ends(newest, 2 * GB), ends(unlike, 7 * GB)
    ends(failed, GB, state="failed", acked=0), ends(unfinished, GB, state="running", acked=0)
    assert job().memory_needed == 2 * GB
    assert job(max_new_tokens=9).memory_needed is None


def test_the_larger_of_both_counts(job, here):
    forecast = job().memory_needed
    ends(job(), forecast + GB)
    assert job().memory_needed == forecast + GB
    ends(job(), GB)
    assert job().memory_needed == forecast


def test_a_job_that_is_tried_again_is_expected_to_need_what_it_held(job, team):
    first = job()
    ends(first, 3 * GB, state="failed", acked=0)
    assert now(weights.retry(now(first), team.researcher.user)).memory_needed == 3 * GB


def test_jobs_that_read_texts_need_the_weights_and_a_pass(model, here):
    needed = forecasts.reading(QWEN)
    for kind in ("score", "logprobs", "judge"):
        found = WeightsJob(workspace_id=model.workspace_id, kind=kind, model=model, params={})
        assert memory_needs.expected_memory(found) == needed
    assert QWEN.parameters * 4 < needed < QWEN.parameters * 4 * 1.2
    tiny = ModelShape.of(SMALL)
    assert forecasts.reading(tiny) > PROGRAM


def test_an_export_needs_what_its_run_needs(needing):  # noqa: F811
    run = fresh(needing(3))
    row = WeightsJob(workspace_id=run.experiment.workspace_id, kind="export", params={"run": run.pk})
    assert KINDS["export"].memory(row) == 3 * GB
    row.params = {"run": run.pk + 1}
    assert memory_needs.expected_memory(row) is None, "the run was deleted"


def test_a_job_without_a_model_of_the_registry_has_what_the_newest_like_it_held(team, version):
    first = weights.embed(team.workspace, team.researcher.user, version, {"split": "", "texts": "prompts"})
    assert first.memory_needed is None
    ends(first, GB)
    second = weights.embed(team.workspace, team.researcher.user, version, {"split": "heldout", "texts": "prompts"})
    assert second.memory_needed == GB


def test_params_of_an_older_version_do_not_keep_a_job_from_being_tried_again(job, here, team):
    first = job()
    fields = {"params": {"sampler": {"gone": 1}}, "used": {}}
    WeightsJob.objects.filter(pk=first.pk).update(state="failed", **fields)
    assert weights.retry(now(first), team.researcher.user).memory_needed is None


def test_the_moment_of_the_end_is_no_part_of_it(job, small, ray):  # noqa: F811
    """Only jobs with a place count."""
    first = job(8)
    ends(first, 8 * GB, ended_at=timezone.now())
    second = job(8)
    weights_jobs.launch(second.pk)
    assert now(second).state == "starting"
