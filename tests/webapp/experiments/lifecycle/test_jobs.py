"""From the queue to Ray and back, with a server that speaks Ray's API. Nothing runs twice, and nothing runs for ever."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.utils import timezone

from trainer.config import PolicyConfig
from webapp.core.distributed import ray_jobs
from webapp.core.distributed.ray_client import RayAway, RayClient
from webapp.experiments.lifecycle import jobs, tokens
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import RETRIES, LogLine, Run
from webapp.request_id import current_request_id

from ..conftest import Trainer


def set_row(run, **fields):
    Run.objects.filter(id=run.id).update(**fields)


def fresh(run) -> Run:
    return Run.objects.with_names().get(id=run.id)


def ago(seconds):
    return timezone.now() - timedelta(seconds=seconds)


def watch_for(seconds):
    """A round of upkeep. The server has received messages for this many seconds."""
    cache.set(jobs.HEARING_KEY, (ago(seconds).isoformat(), timezone.now().isoformat()), None)
    jobs.watch()


def test_a_launch_hands_the_run_to_ray(run, ray, settings):
    asked = current_request_id.set("abc123")
    assert jobs.launch(run.id) is None
    current_request_id.reset(asked)
    assert (fresh(run).state, fresh(run).ray_job_id) == ("starting", f"run-{run.id}-1")
    sent = ray.jobs[f"run-{run.id}-1"]["body"]
    assert sent["entrypoint"] == settings.TRAINER_COMMAND
    environment = sent["runtime_env"]["env_vars"]
    assert environment["TOUCHSTONE_RUN_ID"] == str(run.id)
    assert tokens.is_current_token(environment["TOUCHSTONE_RUN_TOKEN"], fresh(run))
    assert environment["TOUCHSTONE_REQUEST_ID"] == "abc123"


@pytest.mark.parametrize(("kind", "has_it"), [("vllm", True), ("local", False)])
def test_a_run_with_vllm_starts_in_the_environment_that_has_it(launch, ray, settings, vllm_environment, kind, has_it):
    (vllm_environment / ".installed-0123456789ab").touch()
    run = launch(config={"sampler": {"kind": kind}})
    jobs.launch(run.id)
    sent = ray.jobs[f"run-{run.id}-1"]["body"]["entrypoint"]
    assert sent == (settings.VLLM_TRAINER_COMMAND if has_it else settings.TRAINER_COMMAND)
    assert sent.endswith(" -m trainer job") and (".venv-vllm/bin/" in sent) == has_it


def test_a_repeated_task_submits_nothing(run, ray):
    for _ in range(3):
        jobs.launch(run.id)
    assert ray.posts == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_submits(run, ray):
    def work(_):
        try:
            return jobs.launch(run.id)
        finally:
            connection.close()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    assert ray.posts == 1


def test_while_ray_is_away_the_run_says_so_and_tries_again(run, ray):
    ray.broken = True
    waits = []
    for _ in range(7):
        waits.append(jobs.launch(run.id))
        set_row(run, next_try_at=timezone.now())
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert fresh(run).state == "starting"
    assert "no agent" in fresh(run).state_reason
    ray.broken = False
    assert jobs.launch(run.id) is None
    assert (fresh(run).state_reason, fresh(run).ray_job_id) == ("", f"run-{run.id}-1")


def test_before_its_time_a_second_task_does_not_try(run, ray):
    ray.broken = True
    assert jobs.launch(run.id) == 1
    assert jobs.launch(run.id) is None


def test_a_refused_job_fails_the_run(run, ray):
    ray.token = "changed"
    assert jobs.launch(run.id) is None
    assert fresh(run).state == "failed"
    assert "401" in fresh(run).state_reason


def test_a_run_that_was_stopped_in_the_queue_is_not_submitted(run, ray, team):
    lifecycle.stop(team.researcher, run)
    jobs.launch(run.id)
    assert ray.posts == 0


def test_a_run_that_is_stopped_while_ray_is_away_is_over(run, ray, team):
    ray.broken = True
    jobs.launch(run.id)
    lifecycle.stop(team.researcher, fresh(run))
    jobs.stop(run.id)
    assert fresh(run).state == "stopped"
    ray.broken = False
    assert jobs.launch(run.id) is None
    assert ray.posts == 0


def test_a_job_that_nobody_wants_any_more_is_stopped(run, ray, monkeypatch):
    submit = RayClient.submit

    def slow_submit(self, *args):
        submit(self, *args)
        set_row(run, state="stopped")

    monkeypatch.setattr(RayClient, "submit", slow_submit)
    jobs.launch(run.id)
    assert ray.stopped == [f"run-{run.id}-1"]


@pytest.mark.parametrize("lost", [False, True], ids=["Ray took it", "Ray did not answer"])
def test_a_job_of_a_run_that_was_stopped_and_deleted_meanwhile_is_stopped(run, ray, team, monkeypatch, lost):
    submit = RayClient.submit

    def slow_submit(self, *args):
        submit(self, *args)
        lifecycle.stop(team.researcher, fresh(run))
        jobs.stop(run.id)
        lifecycle.delete(team.researcher, fresh(run))
        if lost:
            raise RayAway("Ray does not answer")

    monkeypatch.setattr(RayClient, "submit", slow_submit)
    after = jobs.launch(run.id)
    if lost:
        monkeypatch.undo()
        assert after and jobs.launch(run.id) is None, "another try finds no run"
    else:
        assert after is None and ray.stopped == [f"run-{run.id}-1"]


def test_a_resumed_run_waits_until_its_old_process_is_gone(run, ray, team):
    jobs.launch(run.id)
    set_row(run, state="failed")
    lifecycle.resume(team.researcher, fresh(run))
    assert jobs.launch(run.id) == 1, "the old job still runs: it is told to stop, and the launch waits"
    assert ray.stopped == [f"run-{run.id}-1"]
    set_row(run, next_try_at=timezone.now())
    assert jobs.launch(run.id) is None
    assert list(ray.jobs) == [f"run-{run.id}-1", f"run-{run.id}-2"]


@pytest.mark.parametrize("state", ["queued", "starting"])
def test_a_launch_whose_task_was_lost_is_queued_again(run, ray, monkeypatch, state):
    sent = []
    monkeypatch.setattr(ray_jobs, "enqueue", lambda *args: sent.append(args))
    set_row(run, state=state, next_try_at=ago(5))
    jobs.watch()
    assert sent == []
    set_row(run, next_try_at=ago(30))
    jobs.watch()
    jobs.watch()
    assert sent == [("workers.runs.launch", run.id)]
    set_row(run, next_try_at=ago(-7200))  # the clock was set back
    jobs.watch()
    jobs.watch()
    assert sent == 2 * [("workers.runs.launch", run.id)]


@pytest.fixture
def live(run, ray):
    """A run whose process reported and has then been silent for 20 s. The run has lost so many processes already that it does not continue
    by itself.
    """
    jobs.launch(run.id)
    process = Trainer(run)
    assert process.post(process.event("state", state="running")).status_code == 200
    set_row(run, heartbeat_at=ago(20), losses=RETRIES)
    return process


@pytest.mark.parametrize("lost", ["its process failed", "Ray forgot it", "it fell silent"])
def test_a_run_that_loses_its_process_goes_on_by_itself(live, run, ray, lost):
    set_row(run, losses=0, heartbeat_at=ago(400 if lost == "it fell silent" else 20), step=3)
    if lost == "its process failed":
        ray.jobs[f"run-{run.id}-1"].update(status="FAILED", exit_code=-9, logs="the last line")
    elif lost == "Ray forgot it":
        ray.jobs.clear()
    asked = fresh(run).attempt_at
    watch_for(600)
    found = fresh(run)
    assert (found.state, found.attempt, found.losses, found.attempt_at) == ("queued", 2, 1, asked)
    assert found.state_reason.endswith("It has no checkpoint and begins again by itself (1 of 2)")
    assert "as attempt 2" in LogLine.objects.filter(level="warning").order_by("id")[0].message
    assert live.post(live.event("log", message="late")).status_code == 401, "the lost one, if it still lives, is nobody"
    if lost == "it fell silent":
        ray.jobs[f"run-{run.id}-1"]["status"] = "STOPPED"
    jobs.launch(run.id)
    assert f"run-{run.id}-2" in ray.jobs


def test_a_run_whose_submission_was_never_noted_is_watched_once_it_speaks(run, ray, monkeypatch):
    def killed(*args):
        raise OSError("terminating connection due to unexpected postmaster exit")

    with monkeypatch.context() as falling:
        falling.setattr(ray_jobs.RayJobKind, "submitted", killed)
        with pytest.raises(OSError, match="postmaster"):
            jobs.launch(run.id)
    process = Trainer(run)
    assert process.post(process.event("state", state="running")).status_code == 200
    assert (fresh(run).state, fresh(run).ray_job_id) == ("running", ""), "Ray has it, and nobody wrote that down"
    jobs.watch()
    assert (fresh(run).ray_job_id, fresh(run).next_try_at) == (f"run-{run.id}-1", None)
    set_row(run, heartbeat_at=ago(20))
    ray.jobs.clear()
    jobs.watch()
    assert (fresh(run).state, fresh(run).attempt) == ("queued", 2)


def test_a_run_whose_submission_was_never_noted_stops_by_itself(live, run, ray, team):
    set_row(run, ray_job_id="", heartbeat_at=timezone.now())
    lifecycle.stop(team.researcher, fresh(run))
    jobs.stop(run.id)
    jobs.watch()
    assert (fresh(run).state, fresh(run).ray_job_id) == ("stopping", f"run-{run.id}-1"), "it may save what it has"


def test_whoever_loses_processes_in_a_row_goes_on_no_more_until_there_is_a_checkpoint_or_somebody_wants_it(
    live, run, ray, team
):
    set_row(run, losses=RETRIES - 1)
    saved = {"role": "checkpoint", "path": "checkpoints/step-000002", "bytes": 1, "digest": "d"}
    live.post(live.event("artifact", 2, **saved))
    assert fresh(run).losses == 0
    for attempt in range(1, RETRIES + 2):
        ray.jobs.clear()
        set_row(run, state="running", ray_job_id=f"run-{run.id}-{attempt}", heartbeat_at=ago(20))
        jobs.watch()
    assert (fresh(run).state, fresh(run).attempt) == ("failed", RETRIES + 1)
    assert lifecycle.resume(team.researcher, fresh(run)).losses == 0


def test_of_two_workers_who_miss_a_process_one_lets_its_run_go_on(live, run):
    set_row(run, losses=0, eta_s=300.0, phase="sampling")
    first, second = fresh(run), fresh(run)
    assert lifecycle.go_on(first, "lost") and not lifecycle.go_on(second, "lost")
    waiting = fresh(run)
    assert (waiting.state, waiting.attempt, waiting.losses) == ("queued", 2, 1)
    assert (waiting.eta_s, waiting.phase) == (None, ""), "nobody is at work"


def test_a_process_that_is_killed_before_it_has_made_a_step_is_not_started_again(live, run, ray):
    set_row(run, losses=0)
    ray.jobs[f"run-{run.id}-1"].update(status="FAILED", exit_code=-9)
    jobs.watch()
    assert fresh(run).state == "failed", "a model that does not fit would take the machine's memory again"


def test_a_run_that_somebody_stops_does_not_go_on_by_itself(live, run, ray, team):
    set_row(run, losses=0)
    lifecycle.stop(team.researcher, fresh(run))
    ray.jobs.clear()
    jobs.watch()
    assert fresh(run).state == "stopped"


def test_a_dead_process_ends_its_run_with_its_last_lines(live, run, ray):
    ray.jobs[f"run-{run.id}-1"].update(status="FAILED", logs="loading\nMemoryError: out of memory\x00\n")
    jobs.watch()
    assert fresh(run).state == "failed"
    assert "without a message (Ray: failed)" in fresh(run).state_reason
    lines = list(LogLine.objects.order_by("id").values_list("message", flat=True))
    assert lines[-2:] == ["loading", "MemoryError: out of memory␀"]


@pytest.mark.parametrize("code", [-9, 137])
def test_a_process_that_was_killed_may_have_wanted_memory_and_the_page_says_what_to_lower(live, run, ray, code):
    ray.jobs[f"run-{run.id}-1"].update(status="FAILED", exit_code=code)
    jobs.watch()
    assert fresh(run).state == "failed"
    assert "the system does this when memory runs out" in fresh(run).state_reason
    assert "lower optim.micro_batch_tokens (now 1024)" in fresh(run).state_reason


def test_a_killed_run_ends_even_where_its_recipe_cannot_say_what_to_lower(live, run, ray, monkeypatch):
    def broken(self):
        raise AttributeError("no such knob")

    monkeypatch.setattr(PolicyConfig, "memory_knobs", broken)
    ray.jobs[f"run-{run.id}-1"].update(status="FAILED", exit_code=137)
    jobs.watch()
    assert fresh(run).state == "failed"
    assert fresh(run).state_reason.endswith("the system does this when memory runs out")


def test_a_job_that_ray_forgot_ends_its_run(live, run, ray):
    ray.jobs.clear()
    jobs.watch()
    assert fresh(run).state == "failed"
    assert "Ray does not know the job any more" in fresh(run).state_reason


def test_a_run_that_speaks_is_left_alone(live, run, ray):
    live.post()
    ray.jobs.clear()
    watch_for(600)
    assert fresh(run).state == "running"


def test_a_silent_process_that_lives_is_killed_after_five_minutes(live, run, ray):
    set_row(run, heartbeat_at=ago(295))
    watch_for(600)
    assert fresh(run).state == "running", "Ray says that it runs: it may only be cut off, and it spools what it does"
    set_row(run, heartbeat_at=ago(301))
    watch_for(600)
    assert fresh(run).state == "failed"
    assert "No sign of life for 301 s" in fresh(run).state_reason
    assert ray.stopped == [f"run-{run.id}-1"]


def test_silence_during_our_own_outage_does_not_count(live, run, ray, monkeypatch):
    set_row(run, heartbeat_at=ago(600))
    watch_for(10)
    assert fresh(run).state == "running", "we have only heard for ten seconds"
    cache.set(jobs.HEARING_KEY, (ago(900).isoformat(), ago(60).isoformat()), None)
    jobs.watch()
    assert fresh(run).state == "running", "there was a gap of a minute in our own rounds"
    monkeypatch.setattr(jobs, "_web_answers", lambda: False)
    watch_for(600)
    assert fresh(run).state == "running", "nobody could have heard it"


def test_a_dead_run_is_found_also_after_the_clock_went_back(live, run, ray):
    ray.jobs[f"run-{run.id}-1"].update(status="FAILED", exit_code=-9, logs="")
    set_row(run, heartbeat_at=ago(-7200), state_at=ago(-7200))
    cache.set(jobs.HEARING_KEY, (ago(-7000).isoformat(), ago(-7190).isoformat()), None)
    jobs.watch()
    assert fresh(run).heartbeat_at <= timezone.now() >= fresh(run).state_at
    set_row(run, heartbeat_at=ago(20))
    jobs.watch()
    assert fresh(run).state == "failed"


def test_who_was_just_asked_to_stop_has_time_also_where_the_clock_is_set_forward(live, run, ray):
    set_row(run, state="stopping", state_at=ago(7200), heartbeat_at=ago(7200))
    cache.set(jobs.HEARING_KEY, (ago(9000).isoformat(), ago(7200).isoformat()), None)
    jobs.watch()
    assert fresh(run).state == "stopping"


def test_a_silent_run_ends_also_while_ray_is_away(live, run, ray):
    ray.broken = True
    watch_for(600)
    assert fresh(run).state == "running"
    set_row(run, heartbeat_at=ago(61))
    watch_for(600)
    assert fresh(run).state == "failed"


def test_a_silent_run_ends_also_when_ray_refuses_us(live, run, ray):
    ray.token = "changed"
    set_row(run, heartbeat_at=ago(61))
    watch_for(600)
    assert fresh(run).state == "failed"
    assert LogLine.objects.filter(message__contains="401").exists(), "why there are no last lines is said"


def test_a_process_may_take_long_to_load(run, ray):
    jobs.launch(run.id)
    set_row(run, state_at=ago(200))
    watch_for(600)
    assert fresh(run).state == "starting"
    set_row(run, state_at=ago(301), losses=RETRIES)
    watch_for(600)
    assert fresh(run).state == "failed"


def test_a_run_that_does_not_stop_is_killed(live, run, ray, team):
    lifecycle.stop(team.researcher, fresh(run))
    live.post()
    set_row(run, state_at=ago(60))
    jobs.watch()
    assert fresh(run).state == "stopping"
    set_row(run, state_at=ago(121))
    watch_for(600)
    assert fresh(run).state == "stopped"
    assert ray.stopped == [f"run-{run.id}-1"]


def test_the_last_event_wins_against_upkeep(live, run, ray):
    ray.jobs[f"run-{run.id}-1"]["status"] = "SUCCEEDED"
    stale = fresh(run)
    live.post(live.event("state", state="finished"))
    jobs._end(stale, "gone", None, None)
    assert fresh(run).state == "finished"
    assert not LogLine.objects.exists()


def test_a_deleted_run_leaves_no_folder(run, settings, team):
    folder = settings.VAR / "runs" / str(run.id)
    folder.mkdir(parents=True)
    jobs.remove_folder(run.id)
    assert folder.exists(), "the run is still there"
    lifecycle.stop(team.researcher, run)
    lifecycle.delete(team.researcher, run)
    jobs.remove_folder(run.id)
    assert not folder.exists()
