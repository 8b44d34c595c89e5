"""People who watch and may read get one notice for each change, and nobody else gets any."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from tests.concurrency import concurrently
from trainer.contracts import ModelFacts, ModelFile
from webapp import needs
from webapp.accounts.models import Membership, User
from webapp.annotation.models import Task
from webapp.annotation.projects import services as projects
from webapp.annotation.work import queue
from webapp.backups import services as backups
from webapp.backups.models import Backup, Origin
from webapp.backups.problems import BackupProblem
from webapp.evaluation.models import Evaluation
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle.states import facts, move
from webapp.experiments.models import ChainStep, ClaimStudy, Run, RunRepeat
from webapp.experiments.sweeps import rounds
from webapp.experiments.sweeps import services as sweeps
from webapp.inference.registry import services as registry
from webapp.notices import services, words
from webapp.notices.models import Notice
from webapp.tracking import services as tracking
from webapp.webhooks.events import EVENTS
from webapp.webhooks.services import announce

from ..annotation.seed import ANSWER, make_project
from ..experiments.sweeps.conftest import runs
from .conftest import notice_events

pytestmark = pytest.mark.django_db


def test_whoever_launched_a_run_is_told_and_so_is_who_watches_it(run, team):
    services.watch(team.reviewer, run, True)
    move(run, "failed", reason="The disk is full.\nTraceback")
    assert notice_events(team.researcher) == notice_events(team.reviewer) == ["run.failed"]
    assert notice_events(team.owner) == notice_events(team.annotator) == []
    row = Notice.objects.get(user=team.reviewer.user)
    assert words.title(row) == f"{str(run).capitalize()} of {run.experiment.name} failed"
    assert (words.text(row), words.href(row)) == ("The disk is full.", f"/runs/{run.pk}/log")


def test_who_watches_a_run_is_told_each_time_that_it_becomes_blocked(run, team):
    services.watch(team.reviewer, run, True)
    why = "Step 4 waits. No space left on the disk of /runs. Free some space; the run then continues by itself"
    for state in ("starting", "blocked", "blocked", "running", "blocked"):
        move(run, state, reason=why if state == "blocked" else "")
    assert notice_events(team.reviewer) == ["run.blocked", "run.started", "run.blocked"]
    assert notice_events(team.researcher) == notice_events(team.reviewer) and notice_events(team.owner) == []
    row = Notice.objects.filter(user=team.reviewer.user).latest("id")
    assert (words.title(row).endswith(" is blocked"), words.text(row)) == (True, why)
    assert words.href(row) == f"/runs/{run.pk}"
    row.facts["judge"] = "Strict v1"
    assert words.href(row) == f"/runs/{run.pk}#judges"


def test_what_one_launches_is_told_unless_one_has_said_otherwise(launch, team):
    quiet = launch()
    services.watch(team.researcher, quiet, False)
    move(quiet, "failed")
    services.change_settings(team.researcher, own=False)
    watched = launch()
    move(launch(), "failed")
    services.watch(team.researcher, watched, True)
    move(watched, "stopped")
    assert notice_events(team.researcher) == ["run.stopped"]


def test_who_does_something_is_not_told_of_it(project, team):
    services.watch(team.reviewer, project, True)
    projects.set_state(team.researcher, project, "open")
    projects.set_state(team.owner, project, "paused")
    assert notice_events(team.researcher) == ["project.paused"]
    assert notice_events(team.reviewer) == ["project.opened", "project.paused"]


def test_of_the_runs_of_a_sweep_those_who_watch_it_hear_what_went_wrong(sweep, team):
    row = sweep(seeds=1)
    services.watch(team.reviewer, row, True)
    first, second, third = (runs(row, trial)[0] for trial in (1, 2, 3))
    services.watch(team.owner, second, True)
    services.watch(team.reviewer, third, False)
    for each, states in ((first, ["starting", "running", "finished"]), (second, ["failed"]), (third, ["failed"])):
        for state in states:
            assert move(Run.objects.with_names().get(pk=each.pk), state)
    rounds.advance(row.pk)
    assert notice_events(team.researcher) == ["run.failed", "run.failed", "sweep.finished"]
    assert notice_events(team.reviewer) == ["run.failed", "sweep.finished"]
    assert notice_events(team.owner) == ["run.failed"]


def test_a_sweep_that_finished_without_any_value_is_a_warning_and_earlier_notices_stay_readable(sweep, team):
    row = sweep(seeds=1)
    for trial in (1, 2, 3):
        assert move(runs(row, trial)[0], "failed")
    rounds.advance(row.pk)
    told = Notice.objects.get(user=team.researcher.user, event="sweep.finished")
    assert (words.kind(told).tone, words.text(told)) == ("warn", "3 trials, 3 with failed runs.")
    told.facts |= {"failed_trials": 2, "measured_trials": 1}
    assert (words.kind(told).tone, words.text(told)) == ("good", "3 trials, 2 with failed runs.")
    told.facts |= {"failed_trials": 2, "measured_trials": 0}
    assert (words.kind(told).tone, words.text(told)) == ("warn", "3 trials, 2 with failed runs, none with a value.")
    told.facts = {name: told.facts[name] for name in ("name", "trials")}
    assert (words.kind(told).tone, words.text(told)) == ("good", "3 trials.")


def test_who_lost_access_or_never_had_it_is_told_nothing(run, team):
    for membership in (team.reviewer, team.owner):
        services.watch(membership, run, True)
    Membership.objects.filter(pk=team.reviewer.pk).delete()
    Membership.objects.filter(pk=team.owner.pk).update(role="annotator")
    Membership.objects.filter(pk=team.researcher.pk).update(role="reviewer")
    move(run, "failed")
    assert (notice_events(team.reviewer), notice_events(team.owner), notice_events(team.researcher)) == (
        [],
        [],
        ["run.failed"],
    )


def test_a_change_that_is_undone_tells_nobody(run, team):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        move(run, "failed")
        raise ZeroDivisionError
    assert notice_events(team.researcher) == []


@pytest.mark.django_db(transaction=True)
def test_of_many_who_report_the_same_at_once_each_person_is_told_once(run, team):
    services.watch(team.reviewer, run, True)
    concurrently([lambda: move(Run.objects.with_names().get(pk=run.pk), "failed")] * 8)
    assert notice_events(team.researcher) == notice_events(team.reviewer) == ["run.failed"]


@pytest.mark.django_db(transaction=True)
def test_runs_of_a_sweep_that_fail_at_once_all_tell(sweep, team):
    row = sweep(seeds=2)
    services.watch(team.reviewer, row, True)
    ids = [run.pk for trial in (1, 2, 3) for run in runs(row, trial)]
    concurrently([lambda pk=pk: move(Run.objects.with_names().get(pk=pk), "failed") for pk in ids], threads=6)
    assert notice_events(team.reviewer) == ["run.failed"] * 6


def test_a_run_that_is_logged_here_tells_who_logs_it_how_it_ended(team):
    row = tracking.begin(team.researcher, tracking.experiment(team.researcher, "elsewhere"), "mlflow")
    tracking.settle(team.researcher, row, state="finished")
    assert notice_events(team.researcher) == ["run.finished"]


def test_an_evaluation_an_import_and_a_sweep_tell_who_asked_for_them(sweep, team, version):
    made = Evaluation.objects.create(
        workspace=team.workspace, name="e", recipe="judge_audit", config={}, created_by=team.reviewer.user
    )
    facts = {"evaluation": made.pk, "name": "e", "headline": {"label": "Accuracy", "value": 0.5}}
    announce(team.workspace.pk, "evaluation.finished", facts)
    assert (
        notice_events(team.reviewer) == ["evaluation.finished"] and words.text(Notice.objects.get()) == "Accuracy: 0.5."
    )
    row = sweep(at_once=1)
    sweeps.stop(team.owner, row)
    rounds.advance(row.pk)
    assert notice_events(team.researcher) == ["sweep.stopped"]


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_project_is_complete_though_no_webhook_listens(team, tasks):
    people = [team.annotator]
    project = make_project(team.owner, tasks, overlap=1, people=people)
    services.watch(team.reviewer, project, True)
    while Task.objects.filter(project=project, open=True).exists():
        for seat in queue.claim(team.annotator, project):
            queue.submit(team.annotator, seat, ANSWER)
    assert notice_events(team.reviewer) == ["project.complete"]


def test_every_kind_of_notice_is_an_event_and_has_a_page(team):
    assert set(words.KINDS) <= set(EVENTS)
    for event in words.KINDS:
        about = words.about(event)
        facts = {"name": "n", "experiment": "e", "step": 3, "version": 2, "trials": 1, "tasks": 2, "quiet_s": 700}
        facts |= {"text": "it fell", "level": "ERROR", "then": "second", "source": "run", "title": "t"}
        facts |= {"signal": "length", "subject": "", "role": "", "alias": "a", "before": "", "stage": "retired"}
        row = Notice(event=event, about=about, subject=7, facts=facts)
        assert words.title(row) and words.href(row).startswith("/") and isinstance(words.text(row), str)


def test_who_pauses_or_stops_a_run_is_not_told_of_it_when_the_process_has_ended(launch, team):
    for ask, ended in (("pause", "paused"), ("stop", "stopped")):
        run = launch()
        services.watch(team.reviewer, run, True)
        for state in ("starting", "running"):
            move(run, state)
        Notice.objects.all().delete()
        getattr(lifecycle, ask)(team.researcher, run)
        assert move(run, ended, reason="after step 3")
        assert notice_events(team.researcher) == [] and notice_events(team.reviewer) == [f"run.{ended}"]
    services.watch(team.owner, run, True)
    lifecycle.resume(team.reviewer, run)
    assert notice_events(team.researcher) == ["run.resumed"] and notice_events(team.owner) == ["run.resumed"]
    move(run, "stopped", reason="by its time limit")
    assert notice_events(team.researcher) == ["run.resumed", "run.stopped"], "nobody asked this attempt to stop"


def test_who_stops_a_sweep_is_not_told_of_it(sweep, team):
    row = sweep(at_once=1)
    services.watch(team.reviewer, row, True)
    sweeps.stop(team.researcher, row)
    rounds.advance(row.pk)
    assert "sweep.stopped" not in notice_events(team.researcher) and "sweep.stopped" in notice_events(team.reviewer)


def test_a_model_tells_those_who_watch_its_base_or_the_run_that_has_left_it(run, model, team):
    base = model
    services.watch(team.reviewer, base, True)
    services.watch(team.owner, run, True)
    file = ModelFile(path="model.safetensors", bytes=1, digest="d" * 64)
    told_of_it = ModelFacts(name="m", role="policy", format="hf", base="b", files=(file,))
    given: dict[str, Any] = {"facts": told_of_it, "digest": "d" * 64, "path": "/m"}
    with transaction.atomic():
        made = registry.add_output(team.workspace, "m", "", base=base, run=run.pk, **given)
    assert (
        notice_events(team.reviewer) == notice_events(team.owner) == ["model.registered"]
        and notice_events(team.researcher) == []
    )
    row = Notice.objects.filter(user=team.owner.user).get()
    assert (words.title(row), words.text(row)) == (f"Model “{made.name}” was registered", "A run has left it.")
    assert words.href(row) == f"/models/{made.pk}"


def test_a_refused_step_and_a_refused_claim_tell_who_asked_for_them(run, team):
    step = ChainStep.objects.create(
        after=run, workspace=team.workspace, kind="run", name="second", asked={}, created_by=team.reviewer.user
    )
    about = {"chain_step": step.pk, "kind": "run", "then": "second", "reason": "The dataset was deleted"}
    announce(team.workspace.pk, "run.then_refused", facts(run) | about)
    assert notice_events(team.reviewer) == notice_events(team.researcher) == ["run.then_refused"]
    row = Notice.objects.filter(user=team.reviewer.user).get()
    assert words.title(row).endswith(f"{run.experiment.name} is not followed by “second”")
    assert (words.text(row), words.href(row)) == ("The dataset was deleted", f"/runs/{run.pk}/chain")
    again = RunRepeat.objects.create(workspace=team.workspace, run=run, every_hours=1, created_by=team.reviewer.user)
    why = {"repeat": again.pk, "due": "2026-11-30T02:00:00+00:00", "reason": "steps: too many"}
    announce(team.workspace.pk, "run.repeat_refused", facts(run) | why)
    row = Notice.objects.filter(user=team.reviewer.user, event="run.repeat_refused").get()
    assert words.title(row).endswith("could not be launched again")
    assert (words.text(row), words.href(row)) == ("steps: too many", "/experiments/repeats")
    study = ClaimStudy.objects.create(workspace=team.workspace, plan="toggle", created_by=team.owner.user)
    claim = {"claim": study.pk, "plan": "toggle", "name": "Budgets", "reason": "No model"}
    announce(team.workspace.pk, "claim.refused", claim)
    row = Notice.objects.filter(user=team.owner.user).get()
    assert (words.title(row), words.text(row)) == ("Claim “Budgets” cannot launch its runs", "No model")
    assert words.href(row) == f"/experiments/claims/{study.pk}"


def test_a_refused_run_behind_a_project_tells_who_asked_for_it_and_who_runs_the_project(team):
    project = make_project(team.owner, 1, created_by=team.researcher.user)
    step = ChainStep.objects.create(
        project=project, workspace=team.workspace, kind="run", asked={"recipe": "dpo"}, created_by=team.reviewer.user
    )
    about = {"project": project.pk, "name": project.name, "chain_step": step.pk, "kind": "run"}
    announce(team.workspace.pk, "project.then_refused", about | {"then": str(step), "reason": "The model was renamed"})
    assert notice_events(team.reviewer) == ["project.then_refused"] and "project.then_refused" in notice_events(
        team.researcher
    )
    row = Notice.objects.filter(user=team.reviewer.user).get()
    assert words.title(row) == f"Project “{project.name}” is not followed by “Train (dpo)”"
    assert (words.text(row), words.href(row)) == ("The model was renamed", f"/projects/{project.pk}/then")


def test_a_failed_backup_tells_administrators_in_the_workspaces_that_they_own(team, tmp_path, monkeypatch):
    def full(*args):
        raise BackupProblem("The disk is full. Free some space.")

    User.objects.update(is_administrator=False)
    User.objects.filter(pk=team.owner.user_id).update(is_administrator=True)
    monkeypatch.setattr(backups, "_make", full)
    backup = backups.start(tmp_path, Origin.COMMAND)
    backups.carry_out(backup.pk, None)
    assert (
        notice_events(team.owner) == ["backup.failed"]
        and notice_events(team.researcher) == notice_events(team.outsider) == []
    )
    row = Notice.objects.get()
    assert (row.workspace_id, words.text(row)) == (team.workspace.pk, "The disk is full. Free some space.")
    assert words.href(row) == "/installation/backups"
    lost = backups.start(tmp_path, Origin.COMMAND)
    Backup.objects.filter(pk=lost.pk).update(state="running", seen_at=timezone.now() - timedelta(hours=1))
    backups.look()
    assert notice_events(team.owner) == ["backup.failed"] * 2


def test_a_name_in_a_reason_is_kept_only_of_what_went_wrong(run, team):
    move(run, "stopped", actor=team.owner.user, reason=f"{team.owner.user} asked it to stop")
    assert "reason" not in Notice.objects.get(user=team.researcher.user).facts


def test_a_notice_says_which_limit_has_stopped_a_run(run, team):
    told = "The 600 tokens that it may generate are used up. Stopped after step 4"
    move(run, "stopped", reason=told)
    assert words.text(Notice.objects.get(user=team.researcher.user)) == told


@pytest.mark.parametrize(
    ("said", "begins"),
    [("路" * 400, "路" * 298), (f"Error: {'x' * 400}", f"Error: {'x' * 291}"), ("\nNo room.\nTraceback", "No room.")],
)
def test_a_long_reason_without_spaces_keeps_its_beginning(run, team, said, begins):
    move(run, "failed", reason=said)
    text = words.text(Notice.objects.get(user=team.researcher.user))
    assert text == (begins if len(said) < words.MOST_WORDS else f"{begins} …")
    Run.objects.filter(pk=run.pk).update(state_reason=said)
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert need.text == text


def test_a_long_reason_ends_between_two_words_and_says_that_there_is_more(run, team):
    move(run, "failed", reason="sampler " * 100)
    told = words.text(Notice.objects.get(user=team.researcher.user))
    assert told.endswith("sampler …") and len(told) <= words.MOST_WORDS
