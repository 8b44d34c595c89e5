"""The choice of the next configuration: grids, draws, TPE and rungs, without a database."""

import math
import random
from typing import Any

import pytest

from webapp.experiments.sweeps import choosing, space, tpe
from webapp.experiments.sweeps.choosing import KnownTrial, TrialAsked
from webapp.experiments.sweeps.space import SweepAxis

LR = SweepAxis("optim.lr", low=1e-5, high=1e-3, scale="log", points=3)
RANK = SweepAxis("model.lora.rank", low=2, high=5, whole=True, points=4)
LIST = SweepAxis("rollout.truncated", values=("train", "mask"))


def trial_asked(axes, number=1, known=(), seed=0, higher=True) -> TrialAsked:
    return TrialAsked(axes, seed, number, higher, tuple(known))


def test_a_grid_has_every_combination_and_then_nothing():
    found = [choosing.chosen("grid", trial_asked((LR, LIST), number)) for number in range(1, 8)]
    assert [(each["optim.lr"], each["rollout.truncated"]) for each in found[:6]] == [
        (1e-5, "train"),
        (1e-5, "mask"),
        (1e-4, "train"),
        (1e-4, "mask"),
        (1e-3, "train"),
        (1e-3, "mask"),
    ]
    assert found[6] is None and space.size((LR, LIST), grid=True) == 6


def test_points_of_a_range_of_whole_numbers_are_whole_and_none_comes_twice():
    assert RANK.in_grid() == [2, 3, 4, 5]
    assert SweepAxis("k", low=1, high=3, whole=True, points=9).in_grid() == [1, 2, 3]


def test_draws_come_from_seed_and_number_alone_and_stay_between_the_ends():
    axes = (LR, RANK, LIST)
    found = [choosing.chosen("random", trial_asked(axes, number)) for number in range(1, 200)]
    assert found == [choosing.chosen("random", trial_asked(axes, number)) for number in range(1, 200)]
    assert found != [choosing.chosen("random", trial_asked(axes, number, seed=1)) for number in range(1, 200)]
    rates: list[Any] = [each["optim.lr"] for each in found]
    assert all(1e-5 <= rate <= 1e-3 for rate in rates) and {each["model.lora.rank"] for each in found} == {2, 3, 4, 5}
    # log: half of the draws are below the geometric mean; 199 coins give 70 to 130 except in one of 20,000 cases
    assert 70 < sum(rate < 1e-4 for rate in rates) < 130


def test_a_configuration_is_drawn_once_and_a_small_space_is_used_up():
    axes, known = (LIST, RANK), []
    for number in range(1, 9):
        values = choosing.chosen("random", trial_asked(axes, number, known))
        known.append(KnownTrial(number, values, "finished", 0.0))
    assert len({space.digest(each.values) for each in known}) == 8 == space.size(axes)
    assert choosing.chosen("random", trial_asked(axes, 9, known)) is None


def test_values_are_laid_at_their_places_and_nothing_else_moves():
    config: dict[str, Any] = {
        "steps": 4,
        "optim": {"lr": 1.0, "b": 2},
        "rewards": [{"weight": 1}, {"weight": 2}],
        "off": None,
    }
    values = {"optim.lr": 3.0, "rewards.1.weight": 5, "steps": 9, "off.x": 1}
    assert space.with_values(config, values) == {
        "steps": 9,
        "optim": {"lr": 3.0, "b": 2},
        "rewards": [{"weight": 1}, {"weight": 5}],
        "off": None,
    }
    assert config["optim"]["lr"] == 1.0


def test_rungs_lie_by_factors_and_none_at_the_end():
    assert choosing.rungs(5, 3, 100) == [5, 15, 45]
    assert choosing.rungs(25, 2, 100) == [25, 50]
    assert choosing.rungs(0, 3, 100) == []


def test_of_those_that_come_to_a_rung_one_in_so_many_goes_on():
    assert choosing.goes_on(0.5, [], 3, True)
    assert not choosing.goes_on(0.4, [0.5], 3, True) and choosing.goes_on(0.6, [0.5], 3, True)
    assert choosing.goes_on(0.4, [0.5], 3, False)
    # the best two of six
    assert choosing.goes_on(0.5, [0.1, 0.2, 0.3, 0.4, 0.6], 3, True)
    assert not choosing.goes_on(0.35, [0.1, 0.2, 0.3, 0.4, 0.6], 3, True)


def test_the_rule_of_rungs_is_that_of_optuna():
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for higher in (True, False):
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=5, reduction_factor=3)
        study = optuna.create_study(direction="maximize" if higher else "minimize", pruner=pruner)
        draw, held = random.Random(7), {5: [], 15: [], 45: []}  # noqa: S311
        for _ in range(60):
            trial, alive = study.ask(), True
            for step in choosing.rungs(5, 3, 100):
                if not alive:
                    break
                value = draw.random()
                trial.report(value, step)
                ours = choosing.goes_on(value, held[step], 3, higher)
                held[step].append(value)
                assert trial.should_prune() is not ours
                alive = ours
            study.tell(trial, value) if alive else study.tell(trial, state=optuna.trial.TrialState.PRUNED)


def bowl(values) -> float:
    """A function that is lowest at a rate of 1e-4 and rank 3."""
    return (math.log10(values["optim.lr"]) + 4) ** 2 + (values["model.lora.rank"] - 3) ** 2 * 0.1


def searched(method: str, seed: int, trials: int = 40) -> list[KnownTrial]:
    known: list[KnownTrial] = []
    for number in range(1, trials + 1):
        wide = (SweepAxis("optim.lr", low=1e-7, high=1.0, scale="log"), RANK)
        values = choosing.chosen(method, trial_asked(wide, number, known, seed, higher=False))
        known.append(KnownTrial(number, values, "finished", bowl(values)))
    return known


def test_tpe_chooses_the_same_again_and_finds_more_than_chance():
    pytest.importorskip("optuna", reason="Optuna is not installed")
    found = searched("tpe", 0)
    assert found == searched("tpe", 0)
    late = {method: [] for method in ("tpe", "random")}
    for method, values in late.items():
        for seed in range(5):
            values += [each.value for each in searched(method, seed)[20:]]
    assert sorted(late["tpe"])[50] < sorted(late["random"])[50] / 4


def test_tpe_knows_of_trials_under_way_stopped_early_and_without_a_value():
    pytest.importorskip("optuna", reason="Optuna is not installed")
    known = [KnownTrial(n, {"optim.lr": 1e-5 * n}, "finished", float(n)) for n in range(1, 12)]
    known += [
        KnownTrial(12, {"optim.lr": 5e-4}, "pruned", None, {5: 0.1}),
        KnownTrial(13, {"optim.lr": 6e-4}, "running"),
        KnownTrial(14, {"optim.lr": 7e-4}, "lost"),
        KnownTrial(15, {"optim.lr": 8e-4}, "refused"),
    ]
    rate: Any = choosing.chosen("tpe", trial_asked((LR,), 16, known))["optim.lr"]
    assert 1e-5 <= rate <= 1e-3


def test_without_optuna_tpe_is_not_offered(monkeypatch):
    monkeypatch.setattr(tpe, "PACKAGE", "optuna_that_is_not_there")
    assert choosing.offered() == ["grid", "random"]
    with pytest.raises(ImportError):
        choosing.chosen("tpe", trial_asked((LR,)))
