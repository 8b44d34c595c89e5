"""Services of runs: launching, stopping, resuming, forking; two tabs; and the entries of each in the audit log."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from types import SimpleNamespace

import pytest
from django.db import connection
from django.http import Http404
from django.utils import timezone

from tests.team import browser
from tests.timeouts import SECONDS
from tests.webapp.webhooks.hooks import announced_events, listen
from trainer.config import ConfigInvalid
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.experiments import access
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch_services
from webapp.experiments.lifecycle import early_stop, schedule, spending, states, time_limit, token_limit, tokens
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle.early_stop import EarlyStop
from webapp.experiments.models import Experiment, Run
from webapp.experiments.outputs import starting_points
from webapp.tracking import services as tracking

from ..conftest import make_version
from .test_jobs import fresh


def actions(run) -> list[str]:
    return list(
        AuditEntry.objects.filter(object_id=run.id, object_type="run").order_by("id").values_list("action", flat=True)
    )


def at_once(count, work):
    """Calls `work(i)` in `count` threads that start together. Returns the results in order, with exceptions as values."""
    barrier = Barrier(count)

    def one(i):
        try:
            barrier.wait(SECONDS)
            return work(i)
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_a_launch_writes_one_queued_run_and_says_so(launch, team, monkeypatch):
    sent = []
    monkeypatch.setattr(launch_services, "enqueue", lambda *args: sent.append(args))
    run = launch(name=" first try ")
    assert (run.state, run.number, run.name, run.attempt) == ("queued", 1, "first try", 1)
    assert run.experiment.name == "Policy from rubrics"
    assert sent == [("workers.runs.launch", run.id)]
    assert actions(run) == ["run.launch"]
    assert tokens.is_current_token(tokens.run_token(run), run)
    assert tokens.run_token(run) not in str(Run.objects.filter(id=run.id).values().get()), "only a hash is stored"


def test_a_draft_is_frozen_with_the_launch(launch, team):
    draft = make_version(team.owner, "draft", state="draft")
    run = launch(dataset=checks.DatasetChoice(id=draft.dataset_id))
    assert run.dataset_version.state == "frozen"


def test_without_evaluation_no_heldout_examples_are_needed(launch, team):
    unfit = make_version(team.owner, name="unfit", heldout=0)
    config = {"steps": 2, "evaluation": {"max_examples": 0}}
    assert launch(dataset=checks.DatasetChoice(name="unfit"), config=config).dataset_version == unfit


def test_runs_count_within_their_experiment(launch):
    numbers = [launch(experiment=name).number for name in ("a", "a", "b", "a")]
    assert numbers == [1, 2, 1, 3]


def test_names_have_bounds(launch, team):
    for kwargs, field in (({"name": "x" * 121}, "name"), ({"experiment": " "}, "experiment")):
        with pytest.raises(Invalid) as refused:
            launch(**kwargs)
        assert list(refused.value.fields) == [field]
    assert not Run.objects.exists()


def test_a_queued_run_stops_at_once_and_can_be_resumed(run, team):
    assert lifecycle.stop(team.researcher, run).state == "stopped"
    assert lifecycle.stop(team.researcher, run).state == "stopped"
    old = tokens.run_token(run)
    resumed = lifecycle.resume(team.researcher, run)
    assert (resumed.state, resumed.attempt, resumed.ended_at) == ("queued", 2, None)
    assert not tokens.is_current_token(old, resumed)
    assert tokens.is_current_token(tokens.run_token(resumed), resumed)
    assert actions(run) == ["run.launch", "run.stopped", "run.queued"]


@pytest.mark.parametrize("state", ["queued", "starting", "running", "blocked", "pausing", "stopping", "finished"])
def test_only_runs_that_were_interrupted_can_be_resumed(run, team, state):
    Run.objects.filter(id=run.id).update(state=state)
    run.refresh_from_db()
    with pytest.raises(Conflict):
        lifecycle.resume(team.researcher, run)
    run.refresh_from_db()
    assert (run.state, run.attempt) == (state, 1)


@pytest.mark.parametrize("state", ["starting", "running", "blocked", "pausing"])
def test_a_live_run_is_asked_to_stop(run, team, state):
    Run.objects.filter(id=run.id).update(state=state)
    run.refresh_from_db()
    stopped = lifecycle.stop(team.researcher, run)
    assert (stopped.state, stopped.state_reason) == ("stopping", "Rosa asked it to stop")


def test_every_move_that_the_table_lacks_is_refused(run):
    for source in Run.State.values:
        for target in Run.State.values:
            Run.objects.filter(id=run.id).update(state=source)
            run.refresh_from_db()
            assert states.move(run, target) == (source in states.SOURCES[target]), (source, target)


def test_a_fork_keeps_what_is_not_changed(run, team):
    forked = launch_services.fork(team.researcher, run, overrides={"optim": {"lr": 0.001}, "scaffold": None})
    assert forked.forked_from == run
    assert (forked.experiment, forked.number) == (run.experiment, 2)
    assert forked.config == run.config | {"optim": run.config["optim"] | {"lr": 0.001}, "scaffold": None}


def test_a_fork_is_checked_like_a_launch(run, team):
    with pytest.raises(ConfigInvalid) as refused:
        launch_services.fork(team.researcher, run, overrides={"optim": {"minibatch_size": 7}})
    assert [p.path for p in refused.value.problems] == ["optim.minibatch_size"]


def test_only_runs_that_are_over_can_be_deleted(run, team):
    with pytest.raises(Conflict):
        lifecycle.delete(team.researcher, run)
    lifecycle.stop(team.researcher, run)
    lifecycle.delete(team.researcher, run)
    assert not Run.objects.exists()
    assert AuditEntry.objects.filter(action="run.delete", object_id=run.id).exists()


@pytest.mark.django_db(transaction=True)
def test_launches_at_once_get_different_numbers(launch):
    found = at_once(6, lambda i: launch().number)
    assert sorted(found) == [1, 2, 3, 4, 5, 6]
    assert Experiment.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_double_click_launches_one_run(launch):
    found = at_once(4, lambda i: launch(key="click-1").id)
    assert len(set(found)) == 1, found
    assert Run.objects.count() == 1


def test_rubrics_that_only_a_judge_could_score_are_refused_before_the_queue(launch, team):
    make_version(team.owner, name="judged", verifier=None)
    with pytest.raises(ConfigInvalid) as caught:
        launch(dataset=checks.DatasetChoice(name="judged"))
    (problem,) = caught.value.problems
    assert problem.path == "data.unjudged" and problem.message.startswith("5 criteria of 5 prompts have no verifier")
    for choice in ("drop_criteria", "drop_prompts"):
        with pytest.raises(ConfigInvalid, match="no training prompt is left"):
            launch(dataset=checks.DatasetChoice(name="judged"), config={"data": {"unjudged": choice}})
    assert not Run.objects.exists()


def test_a_key_of_another_workspace_is_refused_with_what_to_do(launch, team, run):
    Run.objects.filter(id=run.id).update(launch_key="nightly")
    Experiment.objects.filter(id=run.experiment_id).update(workspace=team.outsider.workspace)
    with pytest.raises(Conflict, match="Send another key"):
        launch(key="nightly")


def changes(team, run):
    """Everything that somebody can press on the page of a run that is over."""
    member, now = team.researcher, timezone.now()
    return {
        "stop": lambda: lifecycle.stop(member, run),
        "stop now": lambda: lifecycle.stop_now(member, run),
        "pause": lambda: lifecycle.pause(member, run),
        "resume": lambda: lifecycle.resume(member, run),
        "extend": lambda: lifecycle.extend(member, run, 50),
        "rename": lambda: lifecycle.rename(member, run, "x"),
        "delete": lambda: lifecycle.delete(member, run),
        "priority": lambda: lifecycle.prioritise(member, run, Run.Priority.HIGH),
        "time": lambda: time_limit.change(member, run, timedelta(hours=1), now),
        "tokens": lambda: token_limit.change(member, run, 10),
        "budget": lambda: spending.change(member, run, 10),
        "early": lambda: early_stop.change(member, run, EarlyStop("reward/mean", 3)),
        "schedule": lambda: schedule.change(member, run, now + timedelta(hours=1)),
    }


@pytest.mark.parametrize("pressed", list(changes(SimpleNamespace(researcher=None), None)))
def test_a_run_that_somebody_deletes_meanwhile_is_not_there(run, team, pressed, monkeypatch):
    """The other person's page has been read, and the row goes before the change reaches it."""
    lifecycle.stop(team.researcher, run)
    monkeypatch.setattr(starting_points, "checkpoints", lambda run: [1])
    stale = fresh(run)
    lifecycle.delete(team.owner, fresh(run))
    if pressed in ("stop", "stop now"):  # it was over when the page was read: nothing is left to do
        assert changes(team, stale)[pressed]().state == "stopped"
        stale.state = "running"
    with pytest.raises(Http404):
        changes(team, stale)[pressed]()


@pytest.fixture(params=[False, True], ids=["before the request", "during the request"])
def deleted(request, run, team, monkeypatch):
    """The run as it was before the owner deleted it."""
    lifecycle.stop(team.researcher, run)
    stale = fresh(run)
    lifecycle.delete(team.owner, fresh(run))
    if request.param:
        monkeypatch.setattr(access, "run_write", lambda membership, run_id: stale)
    return stale


def test_of_two_who_delete_a_run_the_second_is_told_on_the_list(run, team, as_researcher, deleted):
    answer = as_researcher.post(f"/runs/{run.pk}/delete")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/experiments")
    told = as_researcher.get("/experiments").content.decode()
    assert f"{team.owner.user} has already deleted {deleted} (" in told and " UTC)." in told


@pytest.mark.parametrize(("erased", "who"), [(False, "You have"), (True, "Somebody has")])
def test_who_has_deleted_a_run_is_told_as_far_as_it_is_known(run, team, as_researcher, erased, who):
    lifecycle.stop(team.researcher, run)
    lifecycle.delete(team.researcher, fresh(run))
    if erased:  # the account, and so the name of it in the log
        AuditEntry.objects.filter(action="run.delete").update(actor=None)
    as_researcher.post(f"/runs/{run.pk}/delete")
    assert f"{who} already deleted {run} (" in as_researcher.get("/experiments").content.decode()


def test_a_run_that_its_program_has_deleted_is_told_of_too(team, as_researcher):
    row = tracking.begin(team.owner, tracking.experiment(team.owner, "elsewhere"), "mlflow", name="one")
    tracking.delete(team.owner, row)
    as_researcher.post(f"/runs/{row.run_id}/delete")
    assert f"{team.owner.user} has already deleted {row.run} (" in as_researcher.get("/experiments").content.decode()


def test_nobody_else_is_told_of_a_deleted_run(run, team, as_outsider, as_researcher, api):
    """Members of another workspace and roles that delete no runs hear nothing, and a number that no run had is not there."""
    lifecycle.stop(team.researcher, run)
    lifecycle.delete(team.owner, fresh(run))
    as_reviewer = browser(team.reviewer)
    assert as_outsider.post(f"/runs/{run.pk}/delete").status_code == 404
    assert as_reviewer.post(f"/runs/{run.pk}/delete").status_code == 403
    assert as_researcher.post(f"/runs/{run.pk + 1}/delete").status_code == 404
    for page in (as_outsider, as_reviewer, as_researcher):
        assert "already deleted" not in page.get("/experiments").content.decode()
    gone = api.delete(f"/runs/{run.pk + 1}")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")
    assert "already deleted" not in gone.json()["error"]["message"]


def test_a_second_deletion_by_the_api_says_who_was_first(run, team, api, deleted):
    answer = api.delete(f"/runs/{run.pk}")
    told = answer.json()["error"]
    assert (answer.status_code, told["code"]) == (404, "not_found")
    assert told["message"].startswith(f"{team.owner.user} has already deleted {deleted} (")


@pytest.mark.django_db(transaction=True)
def test_one_person_deletes_a_run_while_others_resume_it(run, team):
    """Either it is deleted, or it waits in the line again: never both, and nobody gets an error of the server."""
    lifecycle.stop(team.researcher, run)
    does = [lifecycle.delete, lifecycle.resume] * 3
    refused = [
        each
        for each in at_once(6, lambda i: does[i](team.researcher, Run.objects.with_names().get(pk=run.pk)))
        if isinstance(each, Exception)
    ]
    assert all(isinstance(each, Conflict | Http404 | Run.DoesNotExist) for each in refused), refused
    left = Run.objects.filter(pk=run.pk).values_list("state", flat=True).first()
    assert left in (None, "queued") and refused
    assert AuditEntry.objects.filter(action="run.delete").count() == (left is None)


@pytest.mark.django_db(transaction=True)
def test_two_tabs_resume_a_run_once(run, team):
    lifecycle.stop(team.researcher, run)
    found = at_once(4, lambda i: lifecycle.resume(team.researcher, Run.objects.with_names().get(id=run.id)).attempt)
    run.refresh_from_db()
    assert (run.attempt, run.state) == (2, "queued")
    assert {x for x in found if not isinstance(x, Conflict)} == {2}
    assert actions(run).count("run.queued") == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_stops_at_once_one_is_written_down(run, team):
    Run.objects.filter(id=run.id).update(state="running")
    at_once(4, lambda i: lifecycle.stop(team.researcher, Run.objects.with_names().get(id=run.id)))
    assert actions(run) == ["run.launch", "run.stopping"]


def test_webhooks_hear_of_a_runs_end_once_and_in_the_same_transaction(run, trainer, team):
    listen(team.owner)
    assert trainer.post(trainer.event("state", state="finished")).status_code == 200
    [(event, facts)] = announced_events()
    assert (event, facts["run"], facts["attempt"], facts["recipe"]) == ("run.finished", run.id, 1, "policy")
    run.refresh_from_db()
    assert not states.move(run, "failed")
    assert len(announced_events()) == 1


def test_webhooks_hear_why_a_run_failed_or_was_stopped(launch, team):
    listen(team.owner)
    states.move(launch(), "failed", reason="Ray refused the job.")
    lifecycle.stop(team.researcher, launch())
    assert [(event, facts["reason"]) for event, facts in announced_events()] == [
        ("run.failed", "Ray refused the job."),
        ("run.stopped", "Stopped before it started"),
    ]


def test_a_model_that_cannot_be_trained_is_refused_before_the_queue(launch, model):
    model.facts = {"model_type": "gpt2", "trial": {"state": "refused", "reason": "its body has no layers"}}
    model.save()
    with pytest.raises(ConfigInvalid) as refused:
        launch()
    (problem,) = refused.value.problems
    assert problem.path == "model.name" and "its body has no layers" in problem.message
