"""The failed runs of a sweep are resumed together: which ones, once for two requests, and what the sweep and its method then know."""

from datetime import timedelta

import pytest

from tests.concurrency import concurrently
from tests.team import browser
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.experiments.models import Run, Sweep
from webapp.experiments.sweeps import choosing, failed_runs, reading, rounds, services

from .conftest import begin, finish, measure, runs

LR = {"path": "optim.lr", "low": 1e-5, "high": 1e-3, "scale": "log"}


def fail(run: Run, why: str = "Out of memory.") -> None:
    process = begin(run)
    begins = process.seq
    failed = process.event("state", 1, state="failed", reason=why)
    assert process.post(failed, begins=begins).status_code == 200


@pytest.fixture
def ended(sweep) -> Sweep:
    """A sweep of three trials with a seed each: one has finished, two have failed."""
    row = sweep(seeds=1)
    finish(runs(row, 1)[0], 0.4, row.metric)
    fail(runs(row, 2)[0])
    fail(runs(row, 3)[0], "The disk is full.")
    return settled(row)


def settled(row: Sweep) -> Sweep:
    rounds.advance(row.pk)
    row.refresh_from_db()
    return row


def told(row: Sweep, number: int) -> dict:
    return row.trials.get(number=number).told


def test_all_failed_runs_wait_in_the_line_again_and_then_count(team, ended):
    assert ended.state == "finished" and reading.standing(ended).best.trial.number == 1
    found = failed_runs.resume_failed(team.researcher, ended)
    assert found.runs == [runs(ended, 2)[0].pk, runs(ended, 3)[0].pk] and found.refused == []
    assert found.words == "2 failed runs wait in the line again."
    assert [runs(ended, n)[0].state for n in (1, 2, 3)] == ["finished", "queued", "queued"]
    assert [runs(ended, n)[0].attempt for n in (1, 2, 3)] == [1, 2, 2]
    assert ended.state == "running" and settled(ended).state == "running", "it waits for them"
    finish(runs(ended, 2)[0], 0.9, ended.metric)
    fail(runs(ended, 3)[0])
    assert settled(ended).state == "finished" and reading.standing(ended).best.trial.number == 2
    assert ended.trials.count() == 3
    entry = AuditEntry.objects.get(action="sweep.resume_failed")
    assert (entry.actor, entry.detail["runs"]) == (team.researcher.user, 2)


def test_a_sweep_in_which_every_run_failed_is_not_shown_as_a_success(ended, sweep, as_researcher):
    row, words = sweep(seeds=1, experiment="worse"), "Finished without a value"
    for number in (1, 2, 3):
        fail(runs(row, number)[0])
    settled(row)
    shown = [as_researcher.get(f"/experiments/sweeps{of}") for of in ("", f"/{row.pk}", f"/{ended.pk}")]
    assert [page.content.decode().count(words) for page in shown] == [1, 1, 0]


def test_each_outcome_is_told_once_and_the_first_one_stays(team, ended):
    first = told(ended, 2)
    assert (first["state"], first["value"], "later" in first) == ("lost", None, False)
    settled(ended)
    assert told(ended, 2) == first, "another round tells nothing new"
    failed_runs.resume_failed(team.researcher, ended)
    settled(ended)
    finish(runs(ended, 2)[0], 0.9, ended.metric)
    fail(runs(ended, 3)[0])
    settled(settled(ended))
    again = told(ended, 2)
    assert {name: again[name] for name in first} == first
    assert [(each["state"], each["value"]) for each in again["later"]] == [
        ("running", None),
        ("finished", pytest.approx(0.9)),
    ]
    assert [each["state"] for each in told(ended, 3)["later"]] == ["running", "lost"]
    assert "later" not in told(ended, 1)


def test_a_choice_after_it_knows_the_new_value_and_earlier_choices_can_be_made_again(team, sweep):
    row = sweep(method="random", axes=[LR], trials=2, at_once=1, seeds=1)
    fail(runs(row, 1)[0])
    finish(runs(settled(row), 2)[0], 0.5, row.metric)
    failed_runs.resume_failed(team.researcher, settled(row))
    finish(runs(row, 1)[0], 0.8, row.metric)
    services.add(team.researcher, settled(row), 1)
    trials = list(settled(row).trials.order_by("number"))
    known = [rounds.outcomes_known_at(row, each.number, each.asked, trials) for each in trials]
    assert [(each.state, each.value) for each in known[1].known] == [("lost", None)]
    assert [(each.state, each.value) for each in known[2].known] == [("finished", 0.8), ("finished", 0.5)]
    assert [choosing.chosen("random", each) for each in known] == [each.values for each in trials]


@pytest.mark.django_db(transaction=True)
def test_of_requests_at_once_one_resumes_a_run(team, ended):
    asked = [Sweep.objects.get(pk=ended.pk) for _ in range(6)]
    found = concurrently([lambda row=row: failed_runs.resume_failed(team.researcher, row) for row in asked], threads=6)
    assert sorted(pk for each in found for pk in each.runs) == [runs(ended, 2)[0].pk, runs(ended, 3)[0].pk]
    assert not any(each.refused for each in found)
    assert {runs(ended, n)[0].attempt for n in (2, 3)} == {2}
    assert AuditEntry.objects.filter(action="run.queued").count() == 2
    ended.refresh_from_db()
    assert ended.state == "running"


def test_a_run_with_a_used_up_limit_or_another_config_stays_and_the_reason_is_told(team, ended, as_researcher):
    limited, odd = runs(ended, 2)[0], runs(ended, 3)[0]
    Run.objects.filter(pk=limited.pk).update(time_limit=timedelta(minutes=1), under_way=timedelta(minutes=2))
    Run.objects.filter(pk=odd.pk).update(config=odd.config | {"optim": odd.config["optim"] | {"speed": 1}})
    answer = as_researcher.post(f"/api/v1/sweeps/{ended.pk}/failed/resume")
    assert answer.status_code == 200 and answer.json()["runs"] == []
    assert [each["run"] for each in answer.json()["refused"]] == [limited.pk, odd.pk]
    why = [each["reason"] for each in answer.json()["refused"]]
    assert why[0].startswith("Its time limit is used up")
    assert why[1].startswith("Its config is no longer valid: optim.speed: ")
    ended.refresh_from_db()
    assert ended.state == "finished" and not AuditEntry.objects.filter(action="sweep.resume_failed").exists()
    page = as_researcher.post(f"/experiments/sweeps/{ended.pk}/failed", follow=True).content.decode()
    assert "0 failed runs wait in the line again. 2 runs stayed as before: 1 × Its time limit is used up" in page


def test_runs_of_a_trial_that_was_stopped_early_stay(team, sweep):
    row = sweep(first_rung=1, factor=2, axes=[{"path": "optim.lr", "values": [1e-4, 3e-4]}], seeds=1)
    for trial, value in ((1, 0.5), (2, 0.1)):
        measure(begin(runs(row, trial)[0]), 1, value, row.metric)
    rounds.watch()
    weak = runs(row, 2)[0]
    Run.objects.filter(pk=weak.pk).update(state="failed", state_reason="It died while it saved.")
    finish(runs(row, 1)[0], 0.6, row.metric)
    assert settled(row).state == "finished" and row.trials.get(number=2).state == "pruned"
    found = failed_runs.resume_failed(team.researcher, row)
    assert found.runs == [] and [each.run for each in found.refused] == [weak.pk]
    assert "stopped early at step 1" in found.refused[0].reason


def test_a_sweep_that_stops_or_has_trials_left_is_refused(team, sweep):
    row = sweep(seeds=1, at_once=2)
    fail(runs(row, 1)[0])
    begin(runs(row, 2)[0])
    services.stop(team.researcher, row)
    with pytest.raises(Conflict, match="is stopping"):
        failed_runs.resume_failed(team.researcher, row)
    Run.objects.filter(pk=runs(row, 2)[0].pk).update(state="stopped")
    assert settled(row).state == "stopped"
    with pytest.raises(Conflict, match="was stopped before all of its trials were launched"):
        failed_runs.resume_failed(team.researcher, row)
    assert runs(row, 1)[0].state == "failed"
    services.resume(team.researcher, row)
    assert len(failed_runs.resume_failed(team.researcher, settled(row)).runs) == 1
    assert row.state == "running" and runs(row, 1)[0].state == "queued"


def test_the_page_offers_it_and_says_why_each_trial_lacks_a_value(team, ended, as_researcher):
    as_reviewer = browser(team.reviewer)
    address = f"/experiments/sweeps/{ended.pk}"
    page = as_researcher.get(address).content.decode()
    assert "Resume failed runs" in page and "seed 0: Out of memory." in page and "seed 0: The disk is full." in page
    assert "Resume failed runs" not in as_reviewer.get(address).content.decode()
    assert as_reviewer.post(f"{address}/failed").status_code == 403
    assert as_reviewer.post(f"/api/v1{address.removeprefix('/experiments')}/failed/resume").status_code == 403
    trials = as_researcher.get(f"/api/v1/sweeps/{ended.pk}/trials").json()["items"]
    assert [each["runs"][0]["state_reason"] for each in trials] == ["", "Out of memory.", "The disk is full."]
    shown = as_researcher.post(f"{address}/failed", follow=True).content.decode()
    assert "2 failed runs wait in the line again." in shown and "Resume failed runs" not in shown
    again = as_researcher.post(f"{address}/failed", follow=True).content.decode()
    assert "No failed run is left" in again
