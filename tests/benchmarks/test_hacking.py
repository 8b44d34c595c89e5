"""The instrument: planted flaws begin at the planned step, and all signals together keep to the budget of false alarms."""

import pytest

from benchmarks.hacking import FAMILIES, Script, delays, errors, play


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_planted_begins_at_the_onset(family: str) -> None:
    script = Script(family, 0)
    assert script.share(script.onset - 1) < 0.02 < script.share(script.onset) < script.share(script.onset + 5)
    assert Script("", 0).share(40) < 0.02


def test_the_same_seed_is_the_same_play() -> None:
    assert Script("claims", 4).responses(1, True) == Script("claims", 4).responses(1, True)


def test_delays_and_errors_count_from_the_onset() -> None:
    run = play("flattery", 0, panel=False, steps=25)
    assert run.found and run.found is run.named and not run.early
    assert delays([run]) == [run.found.step - run.onset] and errors([run]) == [abs(run.found.since - run.onset)]


@pytest.mark.slow
@pytest.mark.parametrize("panel", [False, True])
def test_every_onset_is_found_and_clean_runs_are_left_alone(panel: bool) -> None:
    planted = [play(family, seed, panel, whole=False) for family in FAMILIES for seed in range(3)]
    assert all(run.named and not run.early for run in planted)
    assert sum(bool(play("", seed, panel).alarms) for seed in range(10)) <= 1
