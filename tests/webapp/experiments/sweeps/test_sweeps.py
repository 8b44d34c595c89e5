"""A sweep from its launch to its best trial: what is checked, when trials are launched and stopped, and what can be reproduced."""

import pytest
from django.db import IntegrityError, transaction

from tests.concurrency import concurrently
from trainer.config import ConfigInvalid
from webapp.accounts.administration.closing import close
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.core.requests.idempotency import KeyReused
from webapp.datasets.models import Dataset
from webapp.experiments.launch import services as launching
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Experiment, Run, Sweep, SweepRun, SweepTrial
from webapp.experiments.sweeps import checking, choosing, reading, rounds, services

from .conftest import begin, finish, measure, runs

LR = {"path": "optim.lr", "low": 1e-5, "high": 1e-3, "scale": "log"}


def refusals(team, wish) -> dict[str, str]:
    with pytest.raises(ConfigInvalid) as caught:
        services.launch(team.researcher, wish)
    assert not Sweep.objects.exists() and Run.objects.count() == 1
    return {problem.path: problem.message for problem in caught.value.problems}


def test_each_combination_is_a_trial_with_its_seeds_as_ordinary_runs(team, sweep):
    row = sweep()
    assert row.state == "running" and row.wanted == 3 and row.higher
    found = Run.objects.filter(swept__trial__sweep=row).select_related("swept__trial", "experiment").order_by("id")
    assert [(each.swept.trial.number, each.swept.seed) for each in found] == [(t, s) for t in (1, 2, 3) for s in (0, 1)]
    assert [each.config["optim"]["lr"] for each in found] == [1e-4, 1e-4, 3e-4, 3e-4, 1e-3, 1e-3]
    assert [each.config["seed"] for each in found] == [0, 1] * 3
    assert {each.experiment.name for each in found} == {"rates"} and {each.state for each in found} == {"queued"}
    assert {each.group for each in found} == {f"sweep {row.pk}"} and {each.config["steps"] for each in found} == {4}
    assert found[3].name == "Sweep of optim.lr, trial 2, seed 1"
    assert len({each.family for each in found}) == 3  # the table folds runs by seed
    assert AuditEntry.objects.get(action="sweep.launch").detail["method"] == "grid"


def test_every_wrong_field_is_told_at_its_place_and_nothing_is_launched(team, wish):
    assert refusals(team, wish(axes=[{"path": "optim.lr", "values": [1e-4, -1.0]}])).keys() == {"axes.0.values"}
    assert "axes.0.path" in refusals(team, wish(axes=[{"path": "optim.speed", "values": [1]}]))
    assert (
        "seeds are not a key of a sweep" in refusals(team, wish(axes=[{"path": "seed", "values": [1]}]))["axes.0.path"]
    )
    assert refusals(team, wish(axes=[])).keys() == {"axes"}
    twice = [{"path": "optim.lr", "values": [1e-4]}, {"path": "optim.lr", "values": [1e-3]}]
    assert refusals(team, wish(axes=twice)).keys() == {"axes.1.path"}
    assert refusals(team, wish(axes=[{"path": "optim.lr", "values": [1e-4, 1e-4]}])).keys() == {"axes.0.values"}
    assert refusals(team, wish(axes=[LR])).keys() == {"axes.0.points"}
    assert refusals(team, wish(method="random", axes=[LR | {"low": 0.0}])).keys() == {"axes.0.low"}
    assert refusals(team, wish(method="random", axes=[LR | {"high": 1e-6}])).keys() == {"axes.0.high"}
    assert refusals(team, wish(method="random", axes=[LR | {"high": -1.0, "low": -2.0, "scale": "linear"}])).keys() == {
        "axes.0.low"
    }
    assert refusals(team, wish(axes=[{"path": "rollout.truncated", "low": 1, "high": 2}])).keys() == {"axes.0.low"}
    found = refusals(team, wish(seeds=0, at_once=99, method="luck", metric="no/metric", first_rung=4))
    assert found.keys() == {"seeds", "at_once", "method", "metric", "first_rung"}
    big = [{"path": "steps", "low": 1, "high": 9000, "scale": "linear", "points": 50}, LR | {"points": 50}]
    assert "2,500 combinations" in refusals(team, wish(axes=big))["axes"]
    assert "1,000 trials x 20 seeds" in refusals(team, wish(method="random", axes=[LR], trials=1000, seeds=20))["seeds"]


@pytest.mark.parametrize(("first_rung", "accepted"), [(1, True), (8, True), (9, False), (20, False)])
def test_the_first_comparison_comes_before_the_end_of_the_shortest_trial(team, wish, first_rung, accepted):
    """The config has 4 steps, which no trial has."""
    asked = wish(axes=[{"path": "steps", "values": [30, 9]}], first_rung=first_rung)
    found = {each.path: each.message for each in checking.check(team.researcher, asked).problems}
    assert found == ({} if accepted else {"first_rung": "a step before the last of the shortest trial, 9; 0 for none"})


def test_a_combination_that_cannot_work_is_found_beforehand(team, wish):
    axes = [{"path": "steps", "values": [4, 8]}, {"path": "optim.warmup_steps", "values": [0, 8]}]
    alone = refusals(team, wish(axes=axes))  # 8 steps of warm-up are too many for the run's own 4
    assert "longer than the run" in alone["axes.1.values"]
    axes = [{"path": "steps", "values": [3, 4]}, {"path": "optim.warmup_steps", "values": [0, 4]}]
    assert "steps = 3, optim.warmup_steps = 4" in refusals(team, wish(axes=axes))["axes"]


def test_a_key_launches_once(team, wish):
    first = services.launch(team.researcher, wish(), "k")
    assert services.launch(team.researcher, wish(), "k") == first and Sweep.objects.count() == 1
    with pytest.raises(KeyReused):
        services.launch(team.researcher, wish(seeds=3), "k")


def test_values_are_means_over_seeds_and_the_best_has_a_value_for_every_seed(sweep):
    row = sweep()
    for trial, values in ((1, (0.4, 0.6)), (2, (0.9, None)), (3, (0.2, 0.3))):
        for run, value in zip(runs(row, trial), values, strict=True):
            finish(run, value, row.metric)
    rounds.advance(row.pk)
    row.refresh_from_db()
    found = reading.standing(row)
    assert row.state == "finished" and row.ended_at is not None
    first, lost, last = found.rows
    assert first.estimate.value == pytest.approx(0.5) and first.estimate.n == 2
    # Student's t with one degree of freedom: 12.706 x 0.1
    assert first.estimate.high == pytest.approx(0.5 + 12.706 * 0.1, rel=1e-3)
    assert lost.trial.state == "lost" and (lost.estimate.value, lost.estimate.missing) == (0.9, 1)
    assert found.best.trial.number == 1 and [each.trial.number for each in found.ranked] == [1, 3, 2]
    assert first.trial.told == {"at": 1, "state": "finished", "value": pytest.approx(0.5)} and last.complete


def test_the_page_says_why_runs_failed_and_leads_to_them(sweep, as_researcher):
    row = sweep()
    page = f"/experiments/sweeps/{row.pk}"
    assert "failed" not in as_researcher.get(page).content.decode()
    lost = [*runs(row, 1), *runs(row, 2)]
    for run, why in zip(lost, ["Out of memory.\nTraceback", "Out of memory.\nOther", "Bad <data>.", ""], strict=True):
        Run.objects.filter(pk=run.pk).update(state="failed", state_reason=why)
    found = reading.standing(row)
    assert (found.failed, found.failures) == (4, [("Out of memory.", 2), ("Bad <data>.", 1), ("No reason is known", 1)])
    shown = as_researcher.get(page).content.decode()
    assert "4 of 6 runs failed" in shown and "2 × Out of memory." in shown and "1 × Bad &lt;data&gt;." in shown
    assert f'href="/experiments?q=sweep%3A{row.pk}%20state%3Afailed%20is%3Aany"' in shown
    told = as_researcher.get("/experiments/count", {"q": f"sweep:{row.pk} state:failed is:any"})
    assert "4 runs" in told.content.decode()


def test_the_page_says_how_many_runs_failed_for_reasons_that_it_does_not_show(sweep, as_researcher, monkeypatch):
    row = sweep()
    for run, why in zip([*runs(row, 1), *runs(row, 2)], ["A.", "A.", "B.", "C."], strict=True):
        Run.objects.filter(pk=run.pk).update(state="failed", state_reason=why)
    page = f"/experiments/sweeps/{row.pk}"
    assert "for other reasons" not in as_researcher.get(page).content.decode()
    monkeypatch.setattr(reading, "MOST_REASONS", 1)
    shown = as_researcher.get(page).content.decode()
    assert "2 × A." in shown and "and 2 more for other reasons" in shown and "× B." not in shown


def test_trials_are_launched_as_others_end(sweep):
    row = sweep(at_once=1)
    assert row.trials.count() == 1
    finish(runs(row, 1)[0], 0.1, row.metric)
    rounds.advance(row.pk)
    assert row.trials.count() == 1  # its other seed is still active
    finish(runs(row, 1)[1], 0.1, row.metric)
    rounds.advance(row.pk)
    assert row.trials.count() == 2


@pytest.mark.django_db(transaction=True)
def test_rounds_at_once_start_no_trial_twice(sweep):
    row = sweep(method="random", axes=[LR], trials=4, at_once=1, seeds=1)
    finish(runs(row, 1)[0], 0.1, row.metric)
    concurrently([lambda: rounds.advance(row.pk)] * 12, threads=12)
    assert [each.number for each in row.trials.order_by("number")] == [1, 2]
    assert SweepRun.objects.filter(trial__sweep=row).count() == 2


def test_the_database_refuses_a_second_trial_of_a_number_or_a_configuration(sweep):
    row = sweep()
    first = row.trials.first()
    for number, digest in ((1, "x"), (9, first.digest)):
        with pytest.raises(IntegrityError), transaction.atomic():
            SweepTrial.objects.create(sweep=row, number=number, values={}, digest=digest, asked=0)


def test_a_worker_that_dies_while_it_launches_leaves_a_whole_trial_or_none(sweep, wish, team, monkeypatch):
    row = services.launch(team.researcher, wish(at_once=1))
    real, launched = launching.launch, []

    def dies(*args, **kwargs):
        launched.append(1)
        if len(launched) == 2:
            raise SystemExit
        return real(*args, **kwargs)

    monkeypatch.setattr(launching, "launch", dies)
    with pytest.raises(SystemExit):
        rounds.advance(row.pk)
    assert not row.trials.exists() and Run.objects.count() == 1
    monkeypatch.setattr(launching, "launch", real)
    rounds.advance(row.pk)
    assert row.trials.count() == 1 and len(runs(row, 1)) == 2


def test_stopping_stops_its_runs_and_launches_nothing_more(team, sweep):
    row = sweep(at_once=2)
    finish(runs(row, 1)[0], 0.1, row.metric)
    process = begin(runs(row, 2)[0])
    services.stop(team.researcher, row)
    services.stop(team.researcher, row)
    rounds.advance(row.pk)
    assert [run.state for trial in (1, 2) for run in runs(row, trial)] == [
        "finished", "stopped", "stopping", "stopped",
    ]  # fmt: skip
    row.refresh_from_db()
    assert row.state == "stopping" and AuditEntry.objects.filter(action="sweep.stop").count() == 1
    assert process.post(process.event("state", 2, state="stopped")).status_code == 200
    rounds.advance(row.pk)
    row.refresh_from_db()
    assert row.state == "stopped" and row.trials.count() == 2
    assert ends(row) == [("sweep.stopped", {"before": "stopping", "trials": 2})]
    assert {each.state for each in row.trials.all()} == {"lost"}
    services.resume(team.researcher, row)
    rounds.advance(row.pk)
    assert row.trials.count() == 3 and {run.state for run in runs(row, 3)} == {"queued"}
    with pytest.raises(Conflict):
        services.resume(team.researcher, row)


def test_a_run_that_somebody_deletes_meanwhile_keeps_no_other_from_being_stopped(team, sweep, monkeypatch):
    row = sweep(at_once=2)
    first, usual = runs(row, 1)[0], lifecycle.stop

    def late(membership, run):
        Run.objects.filter(pk=first.pk, pk__in=[run.pk]).delete()
        return usual(membership, run)

    monkeypatch.setattr(lifecycle, "stop", late)
    services.stop(team.researcher, row)
    assert {run.state for trial in (1, 2) for run in runs(row, trial)} == {"stopped"}


def ends(row: Sweep) -> list[tuple[str, dict]]:
    """The audit entries of the ends of a sweep."""
    actions = ("sweep.finished", "sweep.failed", "sweep.stopped")
    rows = AuditEntry.objects.filter(object_type="sweep", object_id=row.pk, action__in=actions, actor=None)
    return list(rows.order_by("id").values_list("action", "detail"))


def test_a_sweep_moves_only_as_its_states_allow(sweep):
    row = sweep(at_once=1)
    with pytest.raises(ValueError, match="a sweep that is running cannot become stopped"):
        services.move(row, Sweep.State.STOPPED)
    services.move(row, Sweep.State.FAILED, "Nobody may launch it")
    assert ends(row) == [("sweep.failed", {"before": "running", "trials": 1, "reason": "Nobody may launch it"})]
    with pytest.raises(ValueError, match="a sweep that is failed cannot become finished"):
        services.move(row, Sweep.State.FINISHED)
    assert len(ends(row)) == 1


def test_a_round_stops_what_a_lost_request_has_left(team, sweep):
    row = sweep(at_once=1)
    Sweep.objects.filter(pk=row.pk).update(state="stopping")
    rounds.advance(row.pk)
    assert {run.state for run in runs(row, 1)} == {"stopped"}
    rounds.watch()
    row.refresh_from_db()
    assert row.state == "stopped"


def test_trials_are_added_to_a_sweep_that_is_over_but_not_to_a_grid(team, sweep):
    row = sweep(method="random", axes=[LR], trials=1, seeds=1)
    finish(runs(row, 1)[0], 0.1, row.metric)
    rounds.advance(row.pk)
    row.refresh_from_db()
    assert row.state == "finished"
    assert ends(row) == [("sweep.finished", {"before": "running", "trials": 1})]
    services.add(team.researcher, row, 2)
    rounds.advance(row.pk)
    assert row.state == "running" and row.trials.count() == 3
    with pytest.raises(ConfigInvalid):
        services.add(team.researcher, row, 0)
    with pytest.raises(ConfigInvalid):
        services.add(team.researcher, row, 1000)
    with pytest.raises(Conflict):
        services.add(team.researcher, sweep(experiment="grid"), 1)


def test_the_page_says_how_far_the_sweep_is_and_where_trials_are_compared(team, sweep, as_researcher):
    row = sweep(first_rung=1, factor=2, axes=[{"path": "optim.lr", "values": [1e-4, 3e-4]}], seeds=2)
    first, second, *_ = runs(row, 1)
    Run.objects.filter(pk=first.pk).update(state="finished", step=4)
    Run.objects.filter(pk=second.pk).update(state="running", step=2, steps_total=4)
    page = as_researcher.get(f"/experiments/sweeps/{row.pk}").content.decode()
    assert "1 of 4 runs over" in page and 'max="1" value="0.3750"' in page
    assert "compared at step 1, 2; 1 trial in 2 continues" in " ".join(page.split())
    assert "no trial has a value for every seed yet" in " ".join(page.split())
    Sweep.objects.filter(pk=row.pk).update(state="stopped")
    page = as_researcher.get(f"/experiments/sweeps/{row.pk}").content.decode()
    assert "runs over" not in page and "for every seed yet" not in page, "nothing more comes"


def test_trials_of_different_lengths_are_compared_up_to_the_longest(team, sweep, as_researcher):
    row = sweep(first_rung=1, factor=2, axes=[{"path": "steps", "values": [3, 9]}])
    page = as_researcher.get(f"/experiments/sweeps/{row.pk}").content.decode()
    assert "compared at step 1, 2, 4, 8; 1 trial in 2 continues" in " ".join(page.split())
    row = sweep(
        first_rung=1,
        factor=2,
        method="random",
        trials=2,
        axes=[{"path": "steps", "low": 2, "high": 3, "scale": "linear"}],
        experiment="short",
    )
    page = as_researcher.get(f"/experiments/sweeps/{row.pk}").content.decode()
    assert "compared at step 1, 2; 1 trial" in " ".join(page.split()), "no trial has the 4 steps of the config"


def test_weak_trials_are_stopped_at_a_rung_by_an_ordinary_stop(team, sweep):
    row = sweep(first_rung=1, factor=2, axes=[{"path": "optim.lr", "values": [1e-4, 3e-4, 1e-3]}], seeds=2)
    processes = {trial: [begin(run) for run in runs(row, trial)] for trial in (1, 2, 3)}
    for trial, value in ((1, 0.5), (2, 0.1), (3, 0.6)):
        measure(processes[trial][0], 1, value, row.metric)
    rounds.watch()
    assert all(each.rungs == [] for each in row.trials.all())  # one seed is not enough
    for trial, value in ((1, 0.5), (2, 0.2), (3, 0.7)):
        measure(processes[trial][1], 1, value, row.metric)
    rounds.watch()
    first, weak, best = row.trials.order_by("number")
    assert [each.state for each in (first, weak, best)] == ["running", "pruned", "running"]
    assert weak.rungs[0]["value"] == pytest.approx(0.15) and not weak.rungs[0]["goes_on"]
    assert {run.state for run in runs(row, 2)} == {"stopping"}
    assert "at step 1 trial 2 was not among the best" in runs(row, 2)[0].state_reason
    for process in processes[2]:
        assert process.post(process.event("state", 1, state="stopped")).status_code == 200
    rounds.watch()
    weak.refresh_from_db()
    assert weak.state == "pruned" and weak.told["state"] == "pruned"
    found = reading.standing(row).rows[1]
    assert found.early == (pytest.approx(0.15), 1) and found.estimate.value is None and found.estimate.missing == 2
    # a run that a person resumes by hand is not stopped
    lifecycle.resume(team.researcher, runs(row, 2)[0])
    rounds.watch()
    weak.refresh_from_db()
    assert weak.state == "running" and runs(row, 2)[0].state == "queued"


def test_a_trial_that_ends_before_it_is_stopped_is_not_called_stopped(sweep, as_researcher):
    row = sweep(first_rung=1, factor=2, axes=[{"path": "optim.lr", "values": [1e-4, 3e-4]}], seeds=1)
    for trial, value in ((1, 0.5), (2, 0.1)):
        measure(begin(runs(row, trial)[0]), 1, value, row.metric)
        finish(runs(row, trial)[0], value, row.metric)
    rounds.watch()
    weak = row.trials.get(number=2)
    assert weak.state == "finished" and not weak.rungs[0]["goes_on"]
    told = as_researcher.get(f"/api/v1/sweeps/{row.pk}/trials").json()["items"][1]
    assert (told["state"], told["stopped_at"], told["value_there"]) == ("finished", None, None)


def test_every_choice_can_be_made_again_from_the_rows(team, sweep):
    row = sweep(method="random", axes=[LR], trials=6, at_once=2, seeds=1)
    for number in (2, 1, 3, 4):
        finish(runs(row, number)[0], 0.1 * number, row.metric)
        rounds.advance(row.pk)
    trials = list(row.trials.order_by("number"))
    assert len(trials) == 6 and [each.asked for each in trials] == [0, 0, 1, 2, 3, 4]
    for each in trials:
        again = rounds.outcomes_known_at(row, each.number, each.asked, trials)
        assert choosing.chosen(row.method, again) == each.values
    sixth = rounds.outcomes_known_at(row, 6, trials[5].asked, trials)
    assert [known.state for known in sixth.known] == ["finished"] * 4 + ["running"]


def test_a_run_that_is_resumed_and_finishes_counts_but_what_was_told_stays(team, sweep):
    row = sweep(seeds=1)
    lifecycle.stop(team.researcher, runs(row, 1)[0])
    rounds.advance(row.pk)
    assert row.trials.get(number=1).state == "lost"
    lifecycle.resume(team.researcher, runs(row, 1)[0])
    finish(runs(row, 1)[0], 0.7, row.metric)
    rounds.advance(row.pk)
    trial = row.trials.get(number=1)
    assert trial.state == "finished" and trial.told["state"] == "lost"
    assert reading.standing(row).best.estimate.value == pytest.approx(0.7)


def test_a_deleted_run_is_a_missing_seed_and_is_not_launched_again(team, sweep):
    row = sweep()
    for run, value in zip(runs(row, 1), (0.4, 0.6), strict=True):
        finish(run, value, row.metric)
    lifecycle.delete(team.researcher, Run.objects.with_names().get(pk=runs(row, 1)[0].pk))
    rounds.advance(row.pk)
    found = reading.standing(row).rows[0]
    assert found.estimate.missing == 1 and not found.complete and row.trials.count() == 3


def test_it_launches_nothing_for_a_closed_account(team, sweep):
    row = sweep(at_once=1, seeds=1)
    close(team.researcher.user, by="the directory")
    finish(runs(row, 1)[0], 0.1, row.metric)
    rounds.advance(row.pk)
    row.refresh_from_db()
    assert row.state == "failed" and "is no longer allowed to launch" in row.state_reason


def test_it_fails_with_a_reason_when_it_can_launch_nothing_any_more(team, sweep):
    row = sweep(at_once=1, seeds=1)
    team.researcher.role = "reviewer"
    team.researcher.save()
    finish(runs(row, 1)[0], 0.1, row.metric)
    rounds.advance(row.pk)
    row.refresh_from_db()
    assert row.state == "failed" and "is no longer allowed to launch" in row.state_reason
    team.researcher.role = "researcher"
    team.researcher.save()
    services.resume(team.researcher, row)
    Dataset.objects.filter(pk=row.dataset).update(workspace=team.outsider.workspace)
    rounds.advance(row.pk)
    row.refresh_from_db()
    assert row.state == "failed" and "has no dataset" in row.state_reason and row.trials.count() == 1


def test_a_configuration_that_is_refused_is_shown_and_the_others_go_on(team, sweep):
    axes = [{"path": "steps", "values": [3, 4]}, {"path": "optim.warmup_steps", "values": [0, 4]}]
    row = sweep(method="random", axes=axes, trials=4, at_once=4, seeds=1)
    refused = row.trials.get(state="refused")
    assert refused.values == {"steps": 3, "optim.warmup_steps": 4} and "longer than the run" in refused.problem
    assert row.trials.count() == 4 and SweepRun.objects.filter(trial__sweep=row).count() == 3
    assert Experiment.objects.get(name="rates").runs.count() == 3


def test_the_end_of_a_run_asks_for_the_next_round(sweep, eager, django_capture_on_commit_callbacks, monkeypatch):
    row = sweep(at_once=1, seeds=1)
    seen = []
    monkeypatch.setattr(rounds, "advance", seen.append)
    with django_capture_on_commit_callbacks(execute=True):
        finish(runs(row, 1)[0], 0.1, row.metric)
    assert seen == [row.pk]
