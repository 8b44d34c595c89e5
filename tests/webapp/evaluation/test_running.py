"""An evaluation from its start to its numbers, also if a process dies or a person pauses or cancels it."""

from dataclasses import replace

import pytest
from django.utils import timezone

from tests.webapp.webhooks.hooks import announced_events, listen
from trainer.config.errors import ConfigInvalid
from webapp.core import tasks
from webapp.core.background import jobs
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.evaluation.launch import services
from webapp.evaluation.models import Case, Evaluation
from webapp.evaluation.recipes import RECIPES
from webapp.evaluation.recipes.base import ClusterWaiting
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.sources import answering, judges
from webapp.evaluation.work import running

from .conftest import as_file, lines

pytestmark = pytest.mark.django_db
State = Evaluation.State


def row_of(evaluation: Evaluation, judge: str, block: int = 0) -> dict:
    """The cells of one judge in a table of the report, by the words of their columns."""
    table = evaluation.results["blocks"][block]
    cells = next(row for row in table["rows"] if row[0]["text"] == judge)
    return {words: cell for (words, _), cell in zip(table["columns"], cells, strict=True)}


def test_both_judges_get_their_numbers_by_hand(finished):
    assert finished.state == State.FINISHED
    good, hasty = row_of(finished, "good"), row_of(finished, "hasty")
    assert (good["Accuracy"]["value"], good["Accuracy"]["n"]) == (1.0, 4)
    assert (
        hasty["Accuracy"]["value"] == 0.5
    )  # p0: right and wrong cancel; p1 alike; p2 right; p3 right once, else missing
    assert hasty["Both orders"]["value"] == 0.25
    assert (hasty["Consistent"]["value"], hasty["Consistent"]["n"]) == (pytest.approx(1 / 3), 3)
    assert hasty["Missing"]["value"] == 1
    assert good["Accuracy"]["low"] < 1.0 == good["Accuracy"]["high"]


def test_the_headline_is_the_best_judge_with_its_interval(finished):
    assert finished.results["headline"]["label"] == "Accuracy of good"
    assert finished.results["headline"]["cell"]["n"] == 4


def test_every_number_leads_to_its_cases(finished):
    hasty = row_of(finished, "hasty")
    wrong = Case.objects.filter(evaluation=finished, tags__contains=hasty["Accuracy"]["tags"])
    assert {case.subject["pair"] for case in wrong} == {"p0", "p1"}
    changed = Case.objects.filter(evaluation=finished, tags__contains=hasty["Consistent"]["tags"])
    assert {case.subject["pair"] for case in changed} == {"p0", "p1"}
    missing = Case.objects.filter(evaluation=finished, tags__contains=hasty["Missing"]["tags"])
    assert [case.values["given"] for case in missing] == [None]
    assert finished.results["tags"]["judge:hasty"] == 4


def test_it_starts_by_itself_once_it_is_committed(audit, eager, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        row = audit()
    row.refresh_from_db()
    assert row.state == State.FINISHED


def test_webhooks_hear_of_an_evaluation_that_has_its_results(team, audit):
    listen(team.owner)
    made = audit()
    running.run(made.pk)
    [(began, _), (event, facts)] = of_evaluations()
    assert began == "evaluation.started"
    assert (event, facts["evaluation"], facts["name"]) == ("evaluation.finished", made.pk, made.name)
    assert facts["headline"]["label"] == "Accuracy of good"
    running.run(made.pk)  # it has ended: nothing is announced twice
    left = audit()
    services.move(team.researcher, left, State.CANCELLED)
    services.move(team.researcher, left, State.CANCELLED)
    assert [event for event, _ in of_evaluations()[2:]] == ["evaluation.cancelled"]


def test_webhooks_hear_once_that_an_evaluation_begins_and_that_it_pauses_by_itself(team, audit, monkeypatch):
    listen(team.owner)
    made = audit()

    def halts(work):
        raise judges.Halted("The budget is spent.")

    monkeypatch.setitem(RECIPES, made.recipe, replace(RECIPES[made.recipe], run=halts))
    running.run(made.pk)
    services.move(team.researcher, made, State.QUEUED)
    running.run(made.pk)
    assert [(event, facts.get("reason")) for event, facts in of_evaluations()] == [
        ("evaluation.started", None),
        ("evaluation.paused", "The budget is spent."),
        ("evaluation.paused", "The budget is spent."),
    ]


def test_webhooks_hear_why_an_evaluation_failed(team, audit, monkeypatch):
    listen(team.owner)
    made = audit()
    monkeypatch.setitem(RECIPES, made.recipe, replace(RECIPES[made.recipe], run=lambda work: 1 / 0))  # type: ignore[arg-type,return-value]
    running.run(made.pk)
    assert [(event, "log" in facts.get("reason", "")) for event, facts in of_evaluations()] == [
        ("evaluation.started", False),
        ("evaluation.failed", True),
    ]


def of_evaluations():
    return [each for each in announced_events() if each[0].startswith("evaluation.")]


def test_the_same_key_makes_one(audit):
    assert (
        audit(key=idempotency.key("k")).pk
        == audit(key=idempotency.key("k")).pk
        != audit(key=idempotency.key("other")).pk
    )


def test_what_is_missing_is_told_at_its_field(team):
    with pytest.raises(ConfigInvalid) as refused:
        services.create(team.researcher, recipe="judge_audit", config={"max_pairs": 0, "no_such": 1})
    assert {problem.path for problem in refused.value.problems} == {"max_pairs", "no_such"}
    with pytest.raises(ConfigInvalid) as refused:
        services.create(team.researcher, recipe="judge_audit", config={})
    assert [problem.path for problem in refused.value.problems] == ["recording"]


def test_a_file_with_bad_lines_names_them(team):
    with pytest.raises(Invalid) as refused:
        recordings.store_recording(team.researcher, "x", b'{"judge": "j"}\nnot json\n')
    assert "line 1" in refused.value.fields["file"] and "line 2: not JSON" in refused.value.fields["file"]


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_what_the_database_cannot_hold_is_refused_by_line(team, name):
    with pytest.raises(Invalid) as refused:
        recordings.store_recording(team.researcher, "x", as_file([lines()[0] | {"judge": name}]))
    assert "line 1: holds a character that cannot be stored" in refused.value.fields["file"]


def test_the_same_pair_twice_is_refused(team):
    with pytest.raises(Invalid) as refused:
        recordings.store_recording(team.researcher, "x", as_file(lines()[:1] * 2))
    assert "judged 'p0' already on line 1" in refused.value.fields["file"]


def test_the_same_file_is_one_recording(team, recording):
    assert recordings.store_recording(team.researcher, "again", as_file(lines())).pk == recording.pk


def test_a_killed_worker_is_replaced_and_the_numbers_are_the_same(audit, finished, monkeypatch):
    row = audit()

    class Killed(BaseException):
        """An error that no handler catches: the process has ended."""

    def die(*args):
        raise Killed

    monkeypatch.setattr(running, "_finish", die)
    with pytest.raises(Killed):
        running.run(row.pk)
    monkeypatch.undo()
    row.refresh_from_db()
    assert row.state == State.RUNNING and row.results is None
    assert jobs.take_up_lost() == 0  # it has reported just now
    for unheard in (-tasks.UNHEARD, 2 * tasks.AHEAD):  # no worker has it, or the clock was set back since
        Evaluation.objects.filter(pk=row.pk).update(seen_at=timezone.now() + unheard)
        assert jobs.take_up_lost() == 1
        assert jobs.take_up_lost() == 0, "queued again once, then left alone for a while"
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.FINISHED and row.results == finished.results
    assert row.cases.count() == finished.cases.count()
    assert moves(row) == [("created", None), ("running", "queued"), ("finished", None)], "it began once"


def moves(row: Evaluation) -> list[tuple[str, str | None]]:
    """The audited moves of an evaluation, with the state from which it came, oldest first."""
    rows = AuditEntry.objects.filter(object_type="evaluation", object_id=row.pk, action__startswith="evaluation.")
    return [(each.action.partition(".")[2], each.detail.get("before")) for each in rows.order_by("id")]


def test_each_move_of_a_worker_is_audited_once(team, audit, monkeypatch):
    row, real = audit(), RECIPES["judge_audit"].run
    waits: dict[str, str | None] = {"why": None}
    monkeypatch.setattr(answering, "in_line", lambda evaluation: waits["why"])

    def waiting(context):
        waits["why"] = "Waits for run 7"
        raise ClusterWaiting

    monkeypatch.setitem(RECIPES, "judge_audit", replaced(waiting))
    assert running.run(row.pk) == running.run(row.pk) == running.LOOK_AGAIN_S  # the second look finds it in the line
    waits["why"] = "Waits for run 8"
    running.run(row.pk)

    def there_and_back(context):
        services.move(team.researcher, Evaluation.objects.get(pk=row.pk), State.PAUSED)
        services.move(team.researcher, Evaluation.objects.get(pk=row.pk), State.QUEUED)
        assert not context.stopped() and not context.stopped()
        return real(context)

    waits["why"] = None
    monkeypatch.setitem(RECIPES, "judge_audit", replaced(there_and_back))
    running.run(row.pk)
    assert moves(row) == [
        ("created", None),
        ("running", "queued"),
        ("queued", "running"),
        ("running", "queued"),
        ("paused", "running"),
        ("queued", "paused"),
        ("running", "queued"),
        ("finished", None),
    ]
    entry = AuditEntry.objects.filter(action="evaluation.queued").earliest("id")
    assert (entry.actor, entry.detail["reason"]) == (None, "Waits for run 7")


def replaced(run):
    from dataclasses import replace

    return replace(RECIPES["judge_audit"], run=run)


def test_paused_in_the_middle_it_keeps_nothing_and_goes_on_when_resumed(team, audit, monkeypatch):
    row = audit()

    def pausing(context):
        services.move(team.researcher, Evaluation.objects.get(pk=row.pk), State.PAUSED)
        context.tell("scoring", 1, 2)
        raise AssertionError("it went on")

    monkeypatch.setitem(RECIPES, "judge_audit", replaced(pausing))
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.PAUSED and row.results is None
    running.run(row.pk)  # a late message of the queue
    row.refresh_from_db()
    assert row.state == State.PAUSED
    monkeypatch.undo()
    services.move(team.researcher, row, State.QUEUED)
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.FINISHED


def test_resumed_before_the_worker_noticed_the_pause_it_simply_goes_on(team, audit, monkeypatch):
    row = audit()
    real = RECIPES["judge_audit"].run

    def there_and_back(context):
        services.move(team.researcher, Evaluation.objects.get(pk=row.pk), State.PAUSED)
        services.move(team.researcher, Evaluation.objects.get(pk=row.pk), State.QUEUED)
        context.tell("scoring", 1, 2)
        return real(context)

    monkeypatch.setitem(RECIPES, "judge_audit", replaced(there_and_back))
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.FINISHED


def test_cancelled_in_the_middle_it_shows_how_far_it_came(team, audit, monkeypatch):
    row = audit()

    def cancelling(context):
        services.move(team.researcher, Evaluation.objects.get(pk=row.pk), State.CANCELLED)
        context.tell("scoring", 1, 2)

    monkeypatch.setitem(RECIPES, "judge_audit", replaced(cancelling))
    running.run(row.pk)
    row.refresh_from_db()
    assert (row.state, row.progress) == (State.CANCELLED, {"phase": "scoring", "done": 1, "total": 2})


@pytest.mark.parametrize("fails", [False, True])
def test_once_it_is_over_its_progress_is_the_last(audit, monkeypatch, fails):
    row = audit()
    real = RECIPES["judge_audit"].run

    def told_late(context):  # less than a second after the progress was stored
        context.evaluation.progress = {"phase": "scoring", "done": 2, "total": 2}
        return 1 / 0 if fails else real(context)

    monkeypatch.setitem(RECIPES, "judge_audit", replaced(told_late))
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == (State.FAILED if fails else State.FINISHED)
    assert row.progress == {"phase": "scoring", "done": 2, "total": 2}


def test_cancelled_in_the_last_moment_it_stays_cancelled(team, audit, monkeypatch):
    row = audit()
    real = RECIPES["judge_audit"].run

    def cancelling(context):
        services.move(team.researcher, Evaluation.objects.get(pk=row.pk), State.CANCELLED)
        return real(context)

    monkeypatch.setitem(RECIPES, "judge_audit", replaced(cancelling))
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.CANCELLED and row.results is None and not row.cases.exists()
    with pytest.raises(Conflict):
        services.move(team.researcher, row, State.QUEUED)


def test_a_mistake_of_ours_fails_it_instead_of_trying_for_ever(audit, monkeypatch):
    row = audit()
    monkeypatch.setitem(RECIPES, "judge_audit", replaced(lambda context: 1 / 0))
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == State.FAILED and "log" in row.problem


def test_run_again_it_finds_the_same_on_the_same_benchmark(team, finished):
    again = services.rerun(team.researcher, finished)
    running.run(again.pk)
    again.refresh_from_db()
    assert again.rerun_of_id == finished.pk
    assert again.results == finished.results and again.benchmark == finished.benchmark


def test_only_one_that_is_over_can_be_deleted(team, audit, finished):
    with pytest.raises(Conflict):
        services.delete(team.researcher, audit())
    services.delete(team.researcher, finished)
    assert not Evaluation.objects.filter(pk=finished.pk).exists()
    assert AuditEntry.objects.filter(action="evaluation.deleted").count() == 1
