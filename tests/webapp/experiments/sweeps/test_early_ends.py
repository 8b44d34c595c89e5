"""Trials whose runs end before their last step: by the rule of early stopping, at a comparison of trials, at a limit, by a failure. Each outcome
is told to the method once, and the page gives its reason.
"""

import pytest
from django.utils import timezone

from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle.early_stop import EarlyStop
from webapp.experiments.lifecycle.limits import RunLimits
from webapp.experiments.models import Run
from webapp.experiments.sweeps import choosing, reading, rounds, tpe

from .conftest import begin, finish, measure, runs

RULE = EarlyStop("eval/rubric_score", 2)
TOLD = "Stopped early: Held-out rubric score (eval/rubric_score) has not improved in 2 evaluations"


def end_early(run: Run) -> None:
    """The run reports values that do not improve, is stopped by its rule, and saves."""
    process = begin(run)
    for step, value in enumerate((0.5, 0.3, 0.4)):
        measure(process, step, value, RULE.metric)
    lifecycle.stop_used_up(Run.objects.with_names().get(pk=run.pk), timezone.now())
    stopped = process.event("state", 2, state="stopped", reason="Stopped after step 2")
    assert process.post(stopped).status_code == 200


def test_a_run_that_its_rule_ends_has_its_last_value(sweep, as_researcher):
    row = sweep(seeds=1, limits=RunLimits(stop_early=RULE))
    end_early(runs(row, 1)[0])
    finish(runs(row, 2)[0], 0.3, row.metric)
    for _ in range(3):  # a round may come again
        rounds.advance(row.pk)
    assert runs(row, 1)[0].state == "stopped" and runs(row, 1)[0].state_reason.startswith(TOLD)
    first, second, _ = row.trials.order_by("number")
    assert first.state == "finished" and first.told == {"at": 1, "state": "finished", "value": 0.4}
    assert second.told["at"] == 2, "each is told once"
    assert reading.standing(row).best.trial.number == 1
    page = as_researcher.get(f"/experiments/sweeps/{row.pk}").content.decode()
    assert f"seed 0: {TOLD}. Stopped after step 2" in page


def test_a_trial_that_a_rule_ended_counts_in_a_sweep_that_was_over_before_such_trials_did(sweep, as_researcher):
    row = sweep(seeds=1, limits=RunLimits(stop_early=RULE))
    end_early(runs(row, 1)[0])
    row.trials.filter(number=1).update(state="lost")
    standing = reading.standing(row)
    assert standing.best.trial.number == 1 and standing.rows[0].state == "finished"
    assert "Seeds missing" not in as_researcher.get(f"/experiments/sweeps/{row.pk}").content.decode()


def test_a_run_that_its_rule_ends_counts_also_if_somebody_stops_it_at_once(team, sweep):
    row = sweep(seeds=1, limits=RunLimits(stop_early=RULE))
    process = begin(runs(row, 1)[0])
    for step, value in enumerate((0.5, 0.3, 0.4)):
        measure(process, step, value, RULE.metric)
    run = Run.objects.with_names().get(pk=runs(row, 1)[0].pk)
    lifecycle.stop_used_up(run, timezone.now())
    lifecycle.stop_now(team.researcher, Run.objects.with_names().get(pk=run.pk))
    assert Run.objects.get(pk=run.pk).state_reason.startswith(TOLD)


def test_a_run_that_a_person_or_a_limit_stops_has_no_value_and_says_why(team, sweep, as_researcher):
    row = sweep(seeds=1, limits=RunLimits(stop_early=RULE))
    process = begin(runs(row, 1)[0])
    measure(process, 1, 0.5, row.metric)
    lifecycle.stop(team.researcher, Run.objects.with_names().get(pk=runs(row, 1)[0].pk))
    assert process.post(process.event("state", 1, state="stopped", reason="Stopped after step 1")).status_code == 200
    rounds.advance(row.pk)
    assert row.trials.get(number=1).told["state"] == "lost" and reading.standing(row).best is None
    assert "seed 0: Stopped after step 1" in as_researcher.get(f"/experiments/sweeps/{row.pk}").content.decode()


def test_optuna_hears_of_each_trial_once(sweep, monkeypatch):
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed")
    monkeypatch.setattr(tpe, "AT_FIRST", 1)
    told = []
    real = optuna.study.Study.add_trial
    monkeypatch.setattr(optuna.study.Study, "add_trial", lambda study, trial: (told.append(trial), real(study, trial)))
    rates = {"path": "optim.lr", "low": 1e-5, "high": 1e-3, "scale": "log"}
    row = sweep(method="tpe", axes=[rates], trials=6, at_once=4, seeds=1, first_rung=1, factor=2)
    for number, value in ((1, 0.5), (2, 0.1)):
        measure(begin(runs(row, number)[0]), 1, value, row.metric)
    rounds.advance(row.pk)
    finish(runs(row, 1)[0], 0.6, row.metric)
    failed, weak = begin(runs(row, 3)[0]), runs(row, 2)[0]
    assert failed.post(failed.event("state", 1, state="failed", reason="Out of memory.")).status_code == 200
    Run.objects.filter(pk=weak.pk).update(state="stopped", state_reason="It was not among the best")
    rounds.advance(row.pk)
    assert row.trials.count() == 6
    trials = list(row.trials.order_by("number"))
    told.clear()
    choosing.chosen("tpe", rounds.outcomes_known_at(row, 6, trials[5].asked, trials))
    states = optuna.trial.TrialState
    assert [each.state for each in told][:4] == [states.COMPLETE, states.PRUNED, states.FAIL, states.RUNNING]
    assert len(told) == 5, "one for each earlier trial"
    assert told[1].intermediate_values == {1: 0.1} and told[0].value == 0.6
