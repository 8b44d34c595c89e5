"""A sweep whose runs train in one process: they share one job and one place, and have everything else separately."""

import json
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from trainer.config import ConfigInvalid
from trainer.contracts import CARRIES
from webapp.experiments.lifecycle import claimants, jobs, line_order, resources, together, tokens
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Run, Sweep
from webapp.experiments.sweeps import rounds, services

from ..conftest import Trainer


@pytest.fixture
def ray(ray, settings):
    settings.MAX_RUNNING_RUNS = 1
    return ray


def of(row: Sweep) -> list[Run]:
    return list(Run.objects.with_names().filter(swept__trial__sweep=row).order_by("pk"))


def set_row(run, **fields):
    Run.objects.filter(id=run.id).update(**fields)


def watch_for(seconds: float) -> None:
    now = timezone.now()
    cache.set(jobs.HEARING_KEY, ((now - timedelta(seconds=seconds)).isoformat(), now.isoformat()), None)
    jobs.watch()


@pytest.fixture
def started(sweep, run, ray):
    """Six runs that are one job for Ray, and the messages of each to the server. The run from which the sweep began has finished."""
    set_row(run, state="finished", next_try_at=None)
    row = sweep(together=True)
    jobs.launch(of(row)[0].id)
    found = of(row)
    processes = [Trainer(each) for each in found]
    for process in processes:
        assert process.post(process.event("state", state="running")).status_code == 200
    return of(row), processes


def test_runs_that_share_no_base_are_refused_at_the_option_with_the_reason(team, run, wish):
    whole = run.config | {"model": run.config["model"] | {"lora": None}}
    with pytest.raises(ConfigInvalid) as caught:
        services.launch(team.researcher, wish(config=whole, together=True))
    (problem,) = caught.value.problems
    assert (problem.path, problem.message.partition(":")[0]) == ("together", "model.lora is empty")
    dtypes = {"path": "model.dtype", "values": ["float32", "bfloat16"]}
    with pytest.raises(ConfigInvalid, match="model.dtype differs"):
        services.launch(team.researcher, wish(axes=[dtypes], together=True))
    assert services.launch(team.researcher, wish(axes=[dtypes])).together is False


def test_all_start_as_one_job_with_one_place_and_a_token_each(started, ray):
    found, _ = started
    host, *guests = found
    assert ray.posts == 1 and list(ray.jobs) == [f"run-{host.id}-1"]
    assert {each.state for each in found} == {"running"} and {each.ray_job_id for each in found} == {f"run-{host.id}-1"}
    assert [each.carried_by for each in found] == ["", *[f"run-{host.id}-1"] * 5]
    environment = ray.jobs[f"run-{host.id}-1"]["body"]["runtime_env"]["env_vars"]
    assert environment["TOUCHSTONE_RUN_ID"] == str(host.id)
    carried = json.loads(environment[CARRIES])
    assert carried.keys() == {str(each.id) for each in guests}
    assert all(tokens.is_current_token(carried[str(each.id)], each) for each in guests)
    assert len(claimants.placed()) == 1 and line_order.Shares(line_order.Free()).places == 1
    assert resources.taken_resources() == resources.requested_resources(host)


def test_nobody_starts_before_the_others_are_there(wish, team, run, ray):
    set_row(run, state="finished", next_try_at=None)
    row = services.launch(team.researcher, wish(together=True))
    assert rounds._round(row.pk)
    first, _ = of(row)
    jobs.launch(first.id)
    assert ray.posts == 0 and {each.state for each in of(row)} == {"queued"}
    assert Run.objects.get(pk=first.pk).next_try_at is None
    rounds.advance(row.pk)
    assert Run.objects.get(pk=first.pk).next_try_at is not None, "there is a place, and now it is time"
    jobs.launch(first.id)
    assert ray.posts == 1 and {each.state for each in of(row)} == {"starting"} and len(of(row)) == 6


def test_runs_of_another_sweep_or_of_a_usual_one_start_by_themselves(sweep, run, ray, settings):
    settings.MAX_RUNNING_RUNS = None
    set_row(run, state="finished", next_try_at=None)
    row = sweep()
    for each in of(row):
        jobs.launch(each.id)
    assert ray.posts == 6 and {each.carried_by for each in of(row)} == {""}


def test_one_is_stopped_and_ends_alone_and_its_place_is_kept_by_the_others(started, ray, team):
    (host, second, *rest), (process, *_) = started
    lifecycle.stop(team.researcher, host)
    assert process.post().json()["command"] == "stop"
    assert process.post(process.event("state", 2, state="stopped")).status_code == 200
    assert {each.state for each in Run.objects.filter(pk__in=[each.pk for each in rest])} == {"running"}
    assert len(claimants.placed()) == 1 and ray.stopped == []
    lifecycle.resume(team.researcher, Run.objects.with_names().get(pk=host.pk))
    jobs.launch(host.id)
    assert Run.objects.get(pk=host.pk).state == "queued", "the only place is taken by the process that goes on"
    assert ray.stopped == [], "the process that began as its own is that of the others now"


def test_a_resumed_host_starts_beside_the_process_that_goes_on_for_the_others(started, ray, team, settings):
    settings.MAX_RUNNING_RUNS = 2
    (host, *_), (process, *_) = started
    process.post(process.event("state", 2, state="failed", reason="as planned"))
    lifecycle.resume(team.researcher, Run.objects.with_names().get(pk=host.pk))
    assert jobs.launch(host.id) is None
    assert list(ray.jobs) == [f"run-{host.id}-1", f"run-{host.id}-2"] and ray.stopped == []


def test_a_dead_process_loses_all_its_runs_and_each_goes_on_by_its_own_rule(started, ray, team):
    found, _ = started
    for each in found:
        set_row(each, heartbeat_at=timezone.now() - timedelta(seconds=20), step=3)
    set_row(found[1], retries=0)
    lifecycle.stop(team.researcher, Run.objects.with_names().get(pk=found[2].pk))
    ray.jobs[f"run-{found[0].id}-1"].update(status="FAILED", exit_code=-9)
    watch_for(600)
    after = {each.pk: each for each in of(Sweep.objects.get())}
    assert (after[found[1].pk].state, after[found[2].pk].state) == ("failed", "stopped")
    again = [after[each.pk] for each in (found[0], *found[3:])]
    assert {(each.state, each.attempt, each.carried_by, each.losses) for each in again} == {("queued", 2, "", 1)}
    jobs.launch(again[0].id)
    assert list(ray.jobs)[1:] == [f"run-{again[0].id}-2"], "they are together again"
    assert {Run.objects.get(pk=each.pk).ray_job_id for each in again} == {f"run-{again[0].id}-2"}


def test_who_does_not_stop_is_over_and_the_process_lives_for_the_others(started, ray, team):
    (host, second, *_), processes = started
    lifecycle.stop_now(team.researcher, second)
    jobs.stop(second.id)
    assert Run.objects.get(pk=second.pk).state == "stopped" and ray.stopped == []
    assert processes[1].post(processes[1].event("log", message="late")).status_code in (200, 401)
    assert Run.objects.get(pk=host.pk).state == "running"


def test_a_silent_process_is_killed_once_and_all_go_on(started, ray):
    found, _ = started
    for each in found:
        set_row(each, heartbeat_at=timezone.now() - timedelta(seconds=400), step=3)
    watch_for(600)
    assert set(ray.stopped) == {f"run-{found[0].id}-1"}
    assert {(each.state, each.attempt) for each in of(Sweep.objects.get())} == {("queued", 2)}


def test_whose_carrier_does_not_start_waits_in_the_line_again(sweep, run, ray, team):
    set_row(run, state="finished", next_try_at=None)
    row = sweep(together=True)
    host, *guests = of(row)
    ray.broken = True
    jobs.launch(host.id)
    assert {each.state for each in of(row)} == {"starting"}
    lifecycle.stop(team.researcher, Run.objects.with_names().get(pk=host.pk))
    jobs.stop(host.id)
    ray.broken = False
    jobs.watch()
    assert [each.state for each in of(row)] == ["stopped", *["queued"] * 5]
    jobs.launch(guests[0].id)
    assert list(ray.jobs) == [f"run-{guests[0].id}-1"]
    assert {each.ray_job_id for each in of(row)[1:]} == {f"run-{guests[0].id}-1"}


def test_a_job_that_was_never_noted_is_noted_for_all_once_they_speak(sweep, run, ray, monkeypatch):
    set_row(run, state="finished", next_try_at=None)
    row = sweep(together=True)
    host, guest, *_ = of(row)

    def killed(*args):
        raise OSError("killed")

    with monkeypatch.context() as falling:
        falling.setattr(together, "handed_over", killed)
        with pytest.raises(OSError, match="killed"):
            jobs.launch(host.id)
    assert [each.ray_job_id != "" for each in of(row)] == [True, *[False] * 5]
    process = Trainer(Run.objects.get(pk=guest.pk))
    process.post(process.event("state", state="running"))
    jobs.watch()
    assert {each.ray_job_id for each in of(row)} == {f"run-{host.id}-1"}
