"""Work that needs weights is requested once, handed to Ray once, and stored once. Its end is known in every case."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import ApiClient
from tests.webapp.experiments.conftest import make_version
from tests.webapp.webhooks.hooks import announced_events, listen
from trainer.config import ConfigInvalid
from trainer.contracts import jsonlines
from webapp.accounts.administration.closing import close
from webapp.accounts.models import Membership, Role
from webapp.core.distributed import ray_jobs
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.inference.models import RegisteredModel
from webapp.weights import jobs, services, tokens
from webapp.weights.models import WeightsJob, WeightsLogLine, WeightsResult
from webapp.weights.states import move

from .conftest import Process


def fresh(job) -> WeightsJob:
    return WeightsJob.objects.select_related("workspace").get(pk=job.pk)


def test_the_same_question_is_one_job(job, team, model, version):
    again = services.generate(team.workspace, team.owner.user, model, version, {"split": "", "temperature": 0.0})
    assert again.pk == job.pk
    other = services.generate(team.workspace, team.owner.user, model, version, {"split": "", "seed": 1})
    assert other.pk != job.pk


def test_what_is_asked_for_is_checked(team, model, version):
    with pytest.raises(ConfigInvalid) as caught:
        services.generate(team.workspace, None, model, version, {"samples": 0, "colour": "red"})
    assert {problem.path for problem in caught.value.problems} == {"samples", "colour"}
    with pytest.raises(Invalid) as wrong:
        services.score(team.workspace, None, model, version, {})
    assert "writes text" in wrong.value.fields["model"]


@pytest.mark.parametrize("lost", ["the account is closed", "the role is too low", "the person has left", "nobody"])
def test_a_draft_is_frozen_only_in_the_name_of_somebody_who_still_may(team, model, lost):
    """A worker starts jobs long after somebody asked for them."""
    draft, person = make_version(team.owner, name="draft", state="draft", digest="f" * 64), team.researcher.user
    if lost == "the account is closed":
        close(person, by="the directory")
    elif lost == "the role is too low":
        Membership.objects.filter(pk=team.researcher.pk).update(role=Role.ANNOTATOR)
    elif lost == "the person has left":
        Membership.objects.filter(pk=team.researcher.pk).delete()
    with pytest.raises(Invalid) as refused:
        services.generate(team.workspace, None if lost == "nobody" else person, model, draft, {})
    assert refused.value.sentence == (
        "The job cannot read this version: draft v1 is a draft, and the person who asked may no longer freeze it."
    )
    draft.refresh_from_db()
    assert draft.state == "draft" and not WeightsJob.objects.exists()


def test_a_version_that_somebody_has_frozen_meanwhile_is_read_in_anybody_s_name(team, model):
    draft = make_version(team.owner, name="draft", state="draft", digest="f" * 64)
    DatasetVersion.objects.filter(pk=draft.pk).update(state="frozen")
    assert draft.state == "draft", "as the caller read it"
    assert services.generate(team.workspace, None, model, draft, {}).version == draft


def test_a_draft_that_is_deleted_meanwhile_is_said_to_be_gone(team, model):
    draft = make_version(team.owner, name="draft", state="draft", digest="f" * 64)
    Dataset.objects.filter(pk=draft.dataset_id).delete()
    with pytest.raises(Invalid) as refused:
        services.generate(team.workspace, team.researcher.user, model, draft, {})
    assert refused.value.fields == {"dataset": "was deleted meanwhile"}


def test_a_draft_is_frozen_by_a_job_that_reads_it(team, model):
    draft = make_version(team.owner, name="draft", state="draft", digest="f" * 64)
    services.generate(team.workspace, team.researcher.user, model, draft, {})
    draft.refresh_from_db()
    assert draft.state == "frozen"


def test_the_process_hears_what_to_do_and_gets_its_items(process, job, version):
    told = process.get().json()
    assert (told["kind"], told["total"], told["done"], told["acked"]) == ("generate", 5, 0, 0)
    assert told["models"]["model"]["path"] == "o/m"
    lines = jsonlines.rows(b"".join(process.get("/items")).decode())
    assert [line["key"] for line in lines] == ["e0", "e1", "e2", "e3", "e4"]
    assert lines[0]["messages"] == [{"role": "user", "content": "Prompt 0 ü"}]
    rest = jsonlines.lines(b"".join(process.get("/items?after=3")).decode())
    assert [json.loads(line)["key"] for line in rest] == ["e3", "e4"]


def test_a_split_and_a_limit_choose_the_items(team, model, version):
    job = services.generate(team.workspace, None, model, version, {"split": "train", "max_prompts": 2})
    lines = jsonlines.lines(b"".join(Process(job).get("/items")).decode())
    assert [json.loads(line)["key"] for line in lines] == ["e0", "e1"]


def test_results_are_stored_once_whatever_comes_twice(process, job):
    first, second = {"key": "e0"}, {"key": "e1"}
    assert process.post(1, first).json() == {"acked": 1, "command": "continue"}
    assert process.post(1, first).json()["acked"] == 1
    assert process.post(3, second).json()["acked"] == 1, "after a gap nothing is taken"
    assert process.post(2, second).json()["acked"] == 2
    rows = WeightsResult.objects.filter(job=job).order_by("place")
    assert [(row.place, row.content["key"]) for row in rows] == [(0, "e0"), (1, "e1")]
    found = fresh(job)
    assert (found.state, found.done) == ("running", 2)


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_arrives_twice_at_once_is_stored_once(process, job):
    def post(_):
        try:
            return process.post(1, {"key": "e0"}).json()["acked"]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(post, range(4))) == [1, 1, 1, 1]
    assert WeightsResult.objects.count() == 1


def test_a_job_that_shall_stop_hears_of_it_and_keeps_what_it_has(process, job, team):
    process.post(1, {"key": "e0"})
    services.stop(fresh(job), team.researcher.user)
    assert process.post().json()["command"] == "stop"
    process.post(state="stopped", reason="Stopped")
    assert (fresh(job).state, WeightsResult.objects.count()) == ("stopped", 1)


def test_another_try_goes_on_behind_the_last_result_and_fences_the_first(process, job, team):
    process.post(1, {"key": "e0"}, {"key": "e1"})
    process.post(state="failed", reason="out of memory")
    assert (fresh(job).state, fresh(job).problem) == ("failed", "out of memory")
    again = services.retry(fresh(job), team.researcher.user)
    assert (again.state, again.attempt, again.done) == ("queued", 2, 2)
    assert process.post(2, {"key": "e2"}).status_code == 401
    new = Process(again)
    told = new.get().json()
    assert (told["done"], told["acked"]) == (2, 1)
    assert new.post(2, {"key": "e2"}).json()["acked"] == 2
    with pytest.raises(Conflict):
        services.retry(fresh(job), team.researcher.user)


def test_each_attempt_is_announced_when_it_begins_and_when_it_ends(process, job, team):
    listen(team.owner)
    process.post(1, {"key": "e0"}, state="running")
    process.post(state="running")
    process.post(state="failed", reason="out of memory")
    process.post(state="failed", reason="out of memory")
    again = services.retry(fresh(job), team.researcher.user)
    services.stop(again, team.researcher.user)
    heard = announced_events()
    assert [event for event, _ in heard] == [f"weights_job.{word}" for word in ("started", "failed", "stopped")]
    facts = {"weights_job": job.pk, "kind": "generate", "model": job.model_id, "version": job.version_id}
    assert facts.items() <= heard[1][1].items() and heard[1][1]["reason"] == "out of memory"
    assert [payload["attempt"] for _, payload in heard] == [1, 1, 2]


@pytest.mark.django_db(transaction=True)
def test_of_many_who_end_a_job_at_once_one_is_heard(process, job, team):
    listen(team.owner)
    concurrently([lambda: move(fresh(job), "failed", problem="gone")] * 6)
    assert [event for event, _ in announced_events()] == ["weights_job.failed"]


def test_asking_again_for_what_failed_tries_again(process, job, team, model, version):
    process.post(state="failed", reason="x")
    again = services.generate(team.workspace, None, model, version, {"split": ""})
    assert (again.pk, again.state, again.attempt) == (job.pk, "queued", 2)


def test_the_log_keeps_what_the_process_says(process, job):
    process.post(lines=[{"message": "loading"}, {"level": "error", "message": "a\u0000b"}])
    assert [(line.level, line.message) for line in WeightsLogLine.objects.order_by("id")] == [
        ("info", "loading"),
        ("error", "a␀b"),
    ]


def test_a_job_that_is_over_is_told_to_end(process, job):
    process.post(state="finished")
    assert fresh(job).state == "finished"
    assert process.post().json()["command"] == "abandon"


def test_only_its_own_token_opens_a_job(process, job, team, model, version):
    other = Process(services.generate(team.workspace, None, model, version, {"seed": 5}))
    other.job = job
    assert other.get().status_code == 401 and other.post().status_code == 401


def test_a_launch_hands_the_job_to_ray_once(job, ray, settings):
    for _ in range(3):
        assert jobs.launch(job.pk) is None
    assert ray.posts == 1
    sent = ray.jobs[f"weights-{job.pk}-1"]["body"]
    assert sent["entrypoint"] == settings.TRAINER_COMMAND
    environment = sent["runtime_env"]["env_vars"]
    assert environment["TOUCHSTONE_WEIGHTS_JOB"] == str(job.pk)
    assert tokens.is_current_token(environment["TOUCHSTONE_RUN_TOKEN"], fresh(job))


def test_a_cluster_that_is_away_is_waited_for(job, ray):
    ray.broken = True
    assert jobs.launch(job.pk) == 1.0
    assert fresh(job).state == "starting" and "tried again" in fresh(job).problem


def test_a_job_that_died_says_how_and_shows_its_last_lines(process, job, ray):
    ray.jobs[f"weights-{job.pk}-1"] = {"status": "FAILED", "message": "", "logs": "a\nKilled\n", "exit_code": 137}
    WeightsJob.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    jobs.watch()
    found = fresh(job)
    assert found.state == "failed" and "memory runs out" in found.problem
    assert "Killed" in WeightsLogLine.objects.values_list("message", flat=True)


def test_a_job_without_a_sign_of_life_is_given_up(process, job, ray):
    ray.jobs[f"weights-{job.pk}-1"] = {"status": "RUNNING", "message": "", "logs": ""}
    WeightsJob.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    jobs.watch()
    assert fresh(job).state == "starting", "it may be loading"
    WeightsJob.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=6))
    jobs.watch()
    assert fresh(job).state == "starting", "we have only heard for a moment: perhaps the clock was set forward"
    now = timezone.now()
    cache.set(jobs.HEARING_KEY, ((now - timedelta(minutes=10)).isoformat(), now.isoformat()), None)
    jobs.watch()
    assert fresh(job).state == "failed" and ray.stopped == [f"weights-{job.pk}-1"]


def test_a_launch_whose_task_was_lost_is_queued_again(job, monkeypatch):
    sent = []
    monkeypatch.setattr(ray_jobs, "enqueue", lambda name, pk: sent.append((name, pk)))
    WeightsJob.objects.filter(pk=job.pk).update(next_try_at=timezone.now() - timedelta(minutes=1))
    jobs.watch()
    assert sent == [("workers.weights.launch", job.pk)]
    # the clock was set back
    WeightsJob.objects.filter(pk=job.pk).update(next_try_at=timezone.now() + timedelta(hours=2))
    jobs.watch()
    jobs.watch()
    assert sent == 2 * [("workers.weights.launch", job.pk)]


def test_a_job_whose_submission_was_never_noted_is_watched_once_it_speaks(process, job, ray):
    spoke = timezone.now() - timedelta(minutes=1)
    WeightsJob.objects.filter(pk=job.pk).update(state="running", ray_job_id="", heartbeat_at=spoke)
    ray.jobs[f"weights-{job.pk}-1"] = {"status": "FAILED", "message": "", "logs": "a\n", "exit_code": 1}
    jobs.watch()
    assert (fresh(job).state, fresh(job).ray_job_id) == ("failed", f"weights-{job.pk}-1")


def test_a_queued_job_stops_at_once(job, team):
    assert services.stop(job, team.researcher.user).state == "stopped"
    assert jobs.launch(job.pk) is None and fresh(job).state == "stopped"


def test_jobs_over_the_api(api, team, model, version):
    body = {"kind": "generate", "model": model.pk, "dataset_version": version.pk, "params": {"split": ""}}
    job = api.post("/weights-jobs", body).json()
    assert (job["state"], job["kind"], job["title"]) == ("queued", "generate", "m answers demo v1")
    assert api.post("/weights-jobs", body).json()["id"] == job["id"]
    process = Process(WeightsJob.objects.get(pk=job["id"]))
    WeightsJob.objects.update(state="starting")
    process.post(1, *({"key": f"e{i}"} for i in range(3)))
    found = api.get(f"/weights-jobs/{job['id']}/results", limit=2).json()
    assert [item["content"]["key"] for item in found["items"]] == ["e0", "e1"]
    rest = api.get(f"/weights-jobs/{job['id']}/results", after=found["next"]).json()
    assert [item["place"] for item in rest["items"]] == [2] and rest["next"] is None
    assert api.post(f"/weights-jobs/{job['id']}/stop").json()["state"] == "stopping"
    assert api.post(f"/weights-jobs/{job['id']}/retry").status_code == 409
    missing = api.post("/weights-jobs", body | {"model": 99999})
    assert missing.json()["error"]["fields"][0]["path"] == "model"
    assert ApiClient(team.outsider).get(f"/weights-jobs/{job['id']}").status_code == 404
    assert ApiClient(team.outsider).post("/weights-jobs", body).status_code == 422
    assert ApiClient(team.annotator).get("/weights-jobs").status_code == 403
    assert ApiClient(team.reviewer).post("/weights-jobs", body).status_code == 403


def test_resources_are_asked_of_ray_and_what_was_used_is_told(team, model, version, ray):
    params = {"split": "", "resources": {"cpus": 2.0, "gpus": 1.0, "memory_gb": 8.0}}
    job = services.generate(team.workspace, None, model, version, params)
    assert jobs.launch(job.pk) is None
    body = ray.jobs[f"weights-{job.pk}-1"]["body"]
    assert (body["entrypoint_num_cpus"], body["entrypoint_num_gpus"], body["entrypoint_memory"]) == (
        2.0,
        1.0,
        8 * 10**9,
    )
    ray.jobs[f"weights-{job.pk}-1"]["status"] = "PENDING"
    WeightsJob.objects.filter(pk=job.pk).update(state_at=timezone.now() - timedelta(minutes=20))
    jobs.watch()
    assert fresh(job).state == "starting" and "2 CPUs, 1 GPU, 8 GB of memory free" in fresh(job).problem
    used = {"device": "CPU", "cpu_seconds": 1.5, "memory_bytes": 10**8, "gpu_bytes": None, "processors": 2}
    assert Process(job).post(used=used).status_code == 200
    assert fresh(job).used == used and fresh(job).problem == ""
    other = services.generate(team.workspace, None, model, version, {"split": "", "resources": {"cpus": 1.0}})
    assert other.pk == job.pk, "resources say how, not what"


def test_log_probabilities_and_embeddings_have_their_items(team, api, model, version):
    asked = {"kind": "logprobs", "model": model.pk, "dataset_version": version.pk, "params": {"split": ""}}
    job = WeightsJob.objects.get(pk=api.post("/weights-jobs", asked).json()["id"])
    assert Process(job).get().json()["kind"] == "logprobs"
    asked = {"kind": "embed", "dataset_version": version.pk, "params": {"split": "", "texts": "prompts"}}
    job = WeightsJob.objects.get(pk=api.post("/weights-jobs", asked).json()["id"])
    first = json.loads(jsonlines.lines(b"".join(Process(job).get("/items")).decode())[0])
    assert first == {"key": "e0", "texts": [{"id": "", "text": "Prompt 0 ü"}]} and job.model is None


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"kind": "logprobs"}, "model"),
        ({"kind": "logprobs", "model": "SCALAR"}, "model"),
        ({"kind": "score", "model": "LM"}, "model"),
        ({"kind": "embed", "model": "LM"}, "model"),
        ({"kind": "embed", "params": {"texts": "words"}}, "texts"),
        ({"kind": "embed", "params": {"resources": {"gpus": -1.0}}}, "resources.gpus"),
    ],
)
def test_a_job_that_cannot_work_is_refused_at_its_field(team, api, model, version, asked, field):
    scalar = RegisteredModel.objects.create(workspace=team.workspace, name="s", source="hub", path="o/s", head="scalar")
    if "model" in asked:
        asked = {**asked, "model": {"SCALAR": scalar, "LM": model}[asked["model"]].pk}
    answer = api.post("/weights-jobs", {"dataset_version": version.pk, **asked})
    assert answer.status_code == 422, answer.content
    assert field in {each["path"] for each in answer.json()["error"]["fields"]} and not WeightsJob.objects.exists()
