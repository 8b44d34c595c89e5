"""Pausing: a run saves, gives its place to others, counts as unfinished, and continues from there when it is resumed."""

import pytest

from tests.concurrency import concurrently
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.experiments.after import queries as chains
from webapp.experiments.after.models import ChainStep
from webapp.experiments.lifecycle import jobs, resources, tokens
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import ACTIVE, ALIVE, OVER, Run
from webapp.experiments.runs import history

from .test_jobs import ago, fresh, live, set_row, watch_for  # noqa: F401 - fixtures among them

MINUTES = 60


def pause(team, run):
    return lifecycle.pause(team.researcher, fresh(run))


def audited_actions(run):
    found = AuditEntry.objects.filter(object_type="run", object_id=run.pk).order_by("id")
    return [action.removeprefix("run.") for action in found.values_list("action", flat=True)]


def test_it_saves_after_its_step_and_gives_its_place_back(live, run, ray, team, launch, settings):  # noqa: F811
    settings.MAX_RUNNING_RUNS = 1
    waiting = launch()
    jobs.launch(waiting.id)
    assert fresh(waiting).state_reason.startswith("Waits for run 1")
    set_row(run, begun_at=ago(100))
    for _ in range(2):  # the button is pressed twice
        assert pause(team, run).state == "pausing"
    assert fresh(run).state_reason == "Rosa asked it to pause"
    assert live.post().json()["command"] == "stop", "to the process it is a stop"
    jobs.launch(waiting.id)
    assert fresh(waiting).state == "queued", "until it has saved it keeps its place"
    live.post(live.event("state", 3, state="stopped", reason="Stopped after step 3"))
    found = fresh(run)
    assert (found.state, found.state_reason, found.begun_at) == ("paused", "Paused after step 3", None)
    assert 100 <= found.under_way.total_seconds() < 160 and found.ended_at is not None
    jobs.launch(waiting.id)
    assert fresh(waiting).state == "starting"
    watch_for(1_000)
    assert (fresh(run).state, ray.stopped) == ("paused", []), "upkeep leaves it alone"


def test_resumed_it_waits_in_the_line_again_as_a_new_attempt(live, run, ray, team):  # noqa: F811
    pause(team, run)
    with pytest.raises(Conflict, match="Only paused, stopped and failed runs can be resumed; this one is pausing"):
        lifecycle.resume(team.researcher, fresh(run))
    live.post(live.event("state", 3, state="stopped", reason="Stopped after step 3"))
    found = lifecycle.resume(team.researcher, fresh(run))
    assert (found.state, found.attempt, found.ended_at) == ("queued", 2, None)
    assert live.post().status_code == 401, "the old process, if it still lives, is nobody"
    ray.jobs[f"run-{run.id}-1"].update(status="SUCCEEDED")
    jobs.launch(run.id)
    assert (fresh(run).state, fresh(run).ray_job_id) == ("starting", f"run-{run.id}-2")


def test_one_that_waits_is_paused_where_it_stands_and_no_worker_takes_it(run, ray, team):  # noqa: F811
    for _ in range(2):
        assert pause(team, run).state == "paused"
    assert fresh(run).state_reason == "Paused before it started"
    jobs.launch(run.id)
    jobs.watch()
    assert (fresh(run).state, ray.posts) == ("paused", 0)
    resumed = lifecycle.resume(team.researcher, fresh(run))
    assert (resumed.state, resumed.attempt) == ("queued", 1), "no process has begun it"
    jobs.launch(run.id)
    assert list(ray.jobs) == [f"run-{run.id}-1"] and tokens.is_current_token(tokens.run_token(fresh(run)), fresh(run))


def test_one_that_waits_again_after_it_ran_keeps_the_number_of_that_attempt(live, run, ray, team):  # noqa: F811
    pause(team, run)
    live.post(live.event("state", 3, state="stopped", reason="Stopped after step 3"))
    for _ in range(2):
        assert lifecycle.resume(team.researcher, fresh(run)).attempt == 2
        pause(team, run)


def test_one_that_a_worker_has_taken_gets_a_new_attempt(run, ray, team):  # noqa: F811
    ray.broken = True
    jobs.launch(run.id)
    pause(team, run)
    jobs.stop(run.id)
    assert lifecycle.resume(team.researcher, fresh(run)).attempt == 2, "Ray may have heard of the first"


def test_before_ray_has_it_it_is_paused_at_once(run, ray, team):  # noqa: F811
    ray.broken = True
    jobs.launch(run.id)
    assert pause(team, run).state == "pausing"
    jobs.stop(run.id)
    assert (fresh(run).state, fresh(run).state_reason) == ("paused", "Paused before it started")


@pytest.mark.parametrize("state", [*sorted(OVER), "stopping"])
def test_what_is_over_or_stops_cannot_be_paused(run, team, state):
    set_row(run, state=state)
    with pytest.raises(Conflict, match=f"can be paused; this one is {state}"):
        pause(team, run)
    assert fresh(run).state == state


def test_one_that_finishes_meanwhile_has_finished(live, run, team):  # noqa: F811
    pause(team, run)
    live.post(live.event("state", 4, state="finished"))
    assert fresh(run).state == "finished"


def test_stopped_while_it_pauses_or_is_paused_it_is_over(live, run, launch, team):  # noqa: F811
    pause(team, run)
    assert lifecycle.stop(team.researcher, fresh(run)).state == "stopping"
    live.post(live.event("state", 3, state="stopped", reason="Stopped after step 3"))
    assert (fresh(run).state, fresh(run).state_reason) == ("stopped", "Stopped after step 3")
    other = launch()
    since = pause(team, other).ended_at
    for _ in range(2):
        assert lifecycle.stop(team.researcher, fresh(other)).state == "stopped"
    assert fresh(other).state_reason == "Stopped while it was paused" and fresh(other).ended_at == since


@pytest.mark.parametrize("how", ["its process died", "it did not save in time", "it lost a worker"])
def test_one_whose_process_ends_otherwise_is_paused_all_the_same(live, run, ray, team, how):  # noqa: F811
    set_row(run, losses=0, step=3)
    pause(team, run)
    if how == "its process died":
        ray.jobs[f"run-{run.id}-1"].update(status="FAILED", exit_code=-9)
    if how == "it did not save in time":
        set_row(run, state_at=ago(30 * MINUTES))
    if how == "it lost a worker":
        live.post(live.event("state", 3, state="failed", reason="A worker was lost", lost=True))
    watch_for(10_000)
    found = fresh(run)
    assert (found.state, found.attempt) == ("paused", 1)
    assert how == "its process died" or "t had made no checkpoint" in found.state_reason


def test_a_process_that_speaks_after_its_pause_must_end_and_is_nobody_an_hour_later(live, run, team):  # noqa: F811
    pause(team, run)
    live.post(live.event("state", 3, state="stopped"))
    assert live.post(live.metrics(4, **{"reward/mean": 1.0})).json()["command"] == "abandon"
    assert (fresh(run).state, fresh(run).step) == ("paused", 4)
    set_row(run, ended_at=ago(2 * 60 * MINUTES))
    assert not tokens.is_current_token(live.token, fresh(run))


def test_what_a_process_waits_for_is_no_pause(live, run, team):  # noqa: F811
    live.post(live.event("state", 2, state="paused", reason="Step 2 waits. The judge is away"))
    assert (fresh(run).state, fresh(run).state_reason) == ("blocked", "Step 2 waits. The judge is away")
    assert pause(team, run).state == "pausing"
    live.post(live.event("state", 2, state="running"))
    assert fresh(run).state == "pausing", "it was asked to"


def test_it_counts_as_unfinished_and_takes_nothing(run, team):
    assert pause(team, run).state in ACTIVE
    assert not {"paused"} & (ALIVE | OVER | set(resources.RUNNING))
    with pytest.raises(Conflict, match="Stop the run first"):
        lifecycle.delete(team.researcher, fresh(run))
    step = ChainStep(pk=1, after=fresh(run), state="waiting", kind="evaluation")
    assert chains.waiting_reason(step) == "run 1 is paused. It is launched once that is resumed and finishes"


def test_every_state_is_a_draft_over_or_under_way():
    assert {"draft", *ACTIVE, *OVER} == set(Run.State.values)
    assert len(Run.State.values) == 1 + len(ACTIVE) + len(OVER)


@pytest.mark.django_db(transaction=True)
def test_two_people_and_two_workers_at_once_pause_it_once(run, ray, team):  # noqa: F811
    calls = [lambda: pause(team, run), lambda: jobs.launch(run.id)] * 4
    concurrently(calls)
    found, entries = fresh(run), audited_actions(run)
    assert found.state in ("paused", "pausing") and ray.posts <= 1
    assert entries.count("paused") + entries.count("pausing") == 1, entries
    jobs.stop(run.id)
    assert fresh(run).state == ("paused" if not fresh(run).ray_job_id else "pausing")


@pytest.mark.django_db(transaction=True)
def test_pressed_at_once_pause_stop_and_resume_leave_one_story(run, team):
    def press(does):
        return lambda: does(team.researcher, fresh(run))

    concurrently([press(lifecycle.pause), press(lifecycle.stop), press(lifecycle.resume)] * 4)
    found, entries = fresh(run), audited_actions(run)
    assert entries[-1] == found.state and found.state in ("queued", "paused", "stopped")
    assert found.attempt == 1 + entries.count("queued"), "each resume is one attempt"
    follows = {"launch": {"paused", "stopped"}, "queued": {"paused", "stopped"}}
    follows |= {"paused": {"queued", "stopped"}, "stopped": {"queued"}}
    assert all(after in follows[before] for before, after in zip(entries, entries[1:], strict=False)), entries


@pytest.mark.django_db(transaction=True)
def test_the_last_word_of_the_process_that_comes_many_times_pauses_once(live, run, team):  # noqa: F811
    pause(team, run)
    last = live.event("state", 3, state="stopped", reason="Stopped after step 3")
    concurrently([lambda: live.post(last) and None] * 6)
    assert audited_actions(run)[-2:] == ["pausing", "paused"]


def test_by_the_page_and_the_api(run, as_researcher, as_annotator, as_outsider):
    shown = as_researcher.get(f"/runs/{run.id}").content.decode()
    assert f'action="/runs/{run.id}/pause"' in shown
    assert as_annotator.post(f"/runs/{run.id}/pause").status_code == 403
    assert as_outsider.post(f"/runs/{run.id}/pause").status_code == 404
    for _ in range(2):
        assert as_researcher.post(f"/runs/{run.id}/pause").status_code == 302
    assert fresh(run).state == "paused"
    url = f"/api/v1/runs/{run.id}"
    assert as_researcher.post(f"{url}/pause").json()["state"] == "paused"
    assert [row["id"] for row in as_researcher.get("/api/v1/runs?state=active").json()["items"]] == [run.id]
    assert as_researcher.post(f"{url}/resume").json()["state"] == "queued"
    assert as_researcher.post(f"{url}/stop").json()["state"] == "stopped"
    assert as_researcher.post(f"{url}/pause").json()["error"]["code"] == "not_pausable"


def test_a_logged_run_is_not_ours_to_pause(run, team, as_researcher):
    set_row(run, recipe="logged", state="running", dataset_version=None, model=None)
    with pytest.raises(Conflict, match="Another program"):
        pause(team, run)
    assert "/pause" not in as_researcher.get(f"/runs/{run.id}").content.decode()


def test_the_history_tells_a_pause_from_what_was_called_so_before(run, team):
    AuditEntry.objects.create(
        workspace=team.workspace, action="run.paused", object_type="run", object_id=run.pk, detail={"attempt": 1}
    )
    pause(team, run)
    newest, older, *_ = history.events(fresh(run))[0]
    assert (newest.what, newest.state, newest.who) == ("Paused", "paused", "Rosa")
    assert (older.what, older.state) == ("Blocked", "blocked")
