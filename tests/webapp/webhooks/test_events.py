"""Events are announced once for each change, and the documentation lists all of them."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from tests.webapp.annotation.conftest import make_version as make_pairs
from tests.webapp.experiments.conftest import launch, model, places_enough, run, version  # noqa: F401 - fixtures
from tests.webapp.experiments.sweeps.conftest import runs, sweep, wish  # noqa: F401 - fixtures
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401 - fixtures
from tests.webapp.webhooks.hooks import announced_events, listen
from webapp.annotation.projects import services as projects
from webapp.core.problems import Conflict
from webapp.experiments import recipe_metrics
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle import stalls
from webapp.experiments.lifecycle.states import move
from webapp.experiments.models import MetricPoint, Run, RunJudge
from webapp.experiments.sweeps import rounds
from webapp.experiments.sweeps import services as sweeps
from webapp.inference.models import RegisteredModel
from webapp.inference.promotion import services as promotion
from webapp.inference.registry import services as registry
from webapp.judging.judges.services import create_judge
from webapp.tracking import services as tracking
from webapp.webhooks.events import EVENTS
from webapp.webhooks.services import announce

pytestmark = pytest.mark.django_db
API = Path(__file__).parents[3] / "docs/api.md"


def heard(about: str) -> list[str]:
    return [event for event, _ in announced_events() if event.startswith(f"{about}.")]


def test_the_documentation_lists_every_event_and_no_other():
    rows = re.findall(r"^\| (`[a-z_]+\.[a-z_]+`.*?) \|", API.read_text(), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([a-z_.]+)`", row)]
    assert sorted(listed) == sorted(EVENTS)


def test_an_event_belongs_into_the_transaction_of_its_change_and_into_the_list(team):
    with pytest.raises(ValueError, match="run.exploded is not in EVENTS"):
        announce(team.workspace.pk, "run.exploded", {})


def test_a_run_begins_once_for_each_attempt_and_going_on_is_no_beginning(run, team):  # noqa: F811
    listen(team.owner)
    for state in ("starting", "running", "blocked", "running", "stopped"):
        assert move(run, state)
    assert heard("run") == ["run.started", "run.blocked", "run.stopped"]
    lifecycle.resume(team.researcher, run)
    for state in ("starting", "running"):
        assert move(run, state)
    assert heard("run")[3:] == ["run.resumed", "run.started"] and announced_events()[-1][1]["attempt"] == 2


def test_a_run_that_becomes_blocked_is_told_once_each_time_with_its_judge(run, team, endpoint):  # noqa: F811
    listen(team.owner)
    judge = create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)
    row = RunJudge.objects.create(run=run, version=judge)
    why = "Step 4 waits. rubric: Strict v1 cannot be asked: the budget is used up."
    for state in ("starting", "running", "blocked", "blocked", "blocked", "running", "blocked"):
        move(run, state, reason=why if state == "blocked" else "")
        row.problem = why
        row.save()
    blocked = [facts for event, facts in announced_events() if event == "run.blocked"]
    assert [(facts["run"], facts["reason"], facts["judge"]) for facts in blocked] == [
        (run.pk, why, "Strict v1"),
        (run.pk, why, "Strict v1"),
    ]


@pytest.mark.django_db(transaction=True)
def test_of_many_who_report_the_same_at_once_one_is_heard(run, team):  # noqa: F811
    listen(team.owner)
    Run.objects.filter(pk=run.pk).update(state="starting")

    def report(state):
        return move(Run.objects.with_names().get(pk=run.pk), state)

    assert sum(concurrently([lambda: report("running")] * 8)) == 1
    assert sum(concurrently([lambda: report("failed")] * 8)) == 1
    assert heard("run") == ["run.started", "run.failed"]


def test_a_run_that_is_logged_here_begins_and_ends(team):
    listen(team.owner)
    where = tracking.experiment(team.researcher, "elsewhere")
    row = tracking.begin(team.researcher, where, "mlflow", key="once")
    tracking.begin(team.researcher, where, "mlflow", key="once")
    tracking.settle(team.researcher, row, state="failed")
    tracking.settle(team.researcher, row, state="failed")
    assert heard("run") == ["run.started", "run.failed"]


def still(run: Run, minutes: int) -> None:  # noqa: F811
    key = recipe_metrics.recipe_of(run.recipe).pulse.key
    began, last = timezone.now() - timedelta(hours=9), timezone.now() - timedelta(minutes=minutes)
    step = Run.objects.get(pk=run.pk).step + 100
    Run.objects.filter(pk=run.pk).update(state="running", step=step, first_metric_at=began)
    MetricPoint.objects.create(run=run, key=key, step=step, value=1.0, time=last)


def test_a_run_that_stands_still_is_told_once_until_its_steps_come_again(run, team):  # noqa: F811
    listen(team.owner)
    still(run, 1)
    assert stalls.watch() == 0
    still(run, 200)
    assert [stalls.watch(), stalls.watch()] == [1, 0]
    [(event, facts)] = announced_events()
    assert (event, facts["run"], facts["quiet_s"] >= 12_000) == ("run.stalled", run.pk, True)
    still(run, 1)
    assert stalls.watch() == 0 and Run.objects.get(pk=run.pk).stalled_at is None
    still(run, 100)
    assert stalls.watch() == 1


@pytest.mark.django_db(transaction=True)
def test_rounds_at_once_tell_of_a_still_run_once(run, team):  # noqa: F811
    listen(team.owner)
    still(run, 200)
    concurrently([stalls.watch] * 6)
    assert heard("run") == ["run.stalled"]


@pytest.mark.django_db(transaction=True)
def test_a_sweep_starts_and_is_over_once_however_many_rounds_see_it(sweep, team):  # noqa: F811
    listen(team.owner)
    row = sweep(seeds=1)
    for trial, state in ((1, "failed"), (2, "stopped"), (3, "stopped")):
        for each in runs(row, trial):
            move(each, state)
    concurrently([lambda: rounds.advance(row.pk)] * 6, threads=6)
    assert heard("sweep") == ["sweep.started", "sweep.finished"]
    facts = announced_events()[-1][1]
    assert (facts["sweep"], facts["trials"], facts["wanted"]) == (row.pk, 3, 3)
    assert (facts["failed_runs"], facts["failed_trials"], facts["measured_trials"]) == (1, 1, 0)


def test_a_sweep_that_was_stopped_is_told_when_its_last_run_is_over(sweep, team):  # noqa: F811
    listen(team.owner)
    row = sweep(at_once=1)
    sweeps.stop(team.researcher, row)
    rounds.advance(row.pk)
    assert heard("sweep") == ["sweep.started", "sweep.stopped"]


def test_a_project_tells_of_its_states(team):
    listen(team.owner)
    made = projects.create(
        team.researcher, name="Colours", kind="pairwise", dataset=make_pairs(team.owner, name="fruit", examples=2)
    )
    for state in ("open", "open", "paused", "open", "closed"):
        projects.set_state(team.researcher, made, state)
    assert heard("project") == ["project.opened", "project.paused", "project.opened", "project.closed"]


def test_a_model_is_told_with_where_it_comes_from(team, tmp_path):
    listen(team.owner)
    made = registry._add(team.researcher, name="tiny", source=RegisteredModel.Source.LOCAL, path=str(tmp_path))
    assert announced_events()[-1] == (
        "model.registered",
        {"model": made.pk, "name": "tiny", "source": "local", "role": made.role},
    )


def test_each_version_of_a_judge_is_told(team, endpoint):  # noqa: F811
    listen(team.owner)
    made = create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)
    [(event, facts)] = announced_events()
    assert (event, facts["judge"], facts["name"], facts["version"]) == ("judge.versioned", made.judge_id, "Strict", 1)


def test_a_moved_alias_and_a_new_stage_are_told_once(team):
    listen(team.owner)
    old, new = (
        RegisteredModel.objects.create(workspace=team.workspace, name=n, source="hub", path="o/m")
        for n in ("old", "new")
    )
    promotion.move(team.researcher, "champion", old)
    for _ in range(2):
        promotion.move(team.researcher, "champion", new, reason="better")
        promotion.set_stage(team.researcher, new, "production")
    facts = {"model": new.pk, "name": "new"}
    assert announced_events()[1:] == [
        ("model.alias_moved", {**facts, "alias": "champion", "before": "old", "reason": "better"}),
        ("model.stage_changed", {**facts, "stage": "production", "before": "", "reason": ""}),
    ]


def test_an_alias_that_is_removed_and_a_model_that_is_deleted_are_told_once(team):
    listen(team.owner)
    made = RegisteredModel.objects.create(workspace=team.workspace, name="old", source="hub", path="o/m")
    pk, alias = made.pk, promotion.move(team.researcher, "champion", made)
    with pytest.raises(Conflict):  # the alias points at it already, so nothing happens
        registry.delete(team.researcher, made)
    for _ in range(2):
        promotion.remove(team.researcher, alias, reason="worse")
    registry.delete(team.researcher, made)
    facts = {"model": pk, "name": "old"}
    assert announced_events()[1:] == [
        ("model.alias_removed", {**facts, "alias": "champion", "reason": "worse"}),
        ("model.deleted", {**facts, "source": "hub", "role": ""}),
    ]


def test_a_run_that_is_paused_and_one_that_somebody_resumes_are_told_once(run, team):  # noqa: F811
    listen(team.owner)
    for _ in range(2):
        lifecycle.pause(team.researcher, Run.objects.with_names().get(pk=run.pk))
    assert heard("run") == ["run.paused"] and announced_events()[-1][1]["reason"] == "Paused before it started"
    first, second = (Run.objects.with_names().get(pk=run.pk) for _ in range(2))
    lifecycle.resume(team.researcher, first)
    lifecycle.resume(team.researcher, second)
    assert heard("run") == ["run.paused", "run.resumed"] and announced_events()[-1][1]["attempt"] == 1
    for state in ("starting", "running"):
        move(first, state)
    assert lifecycle.go_on(first, "its process was lost")
    assert heard("run")[2:] == ["run.started"], "by itself"
