"""Training compared with a held-out panel: by hand, on clean runs, and on runs whose training leaves the panel behind."""

import json
import random

import pytest

from trainer.hacking import Gap, HeldOut


def test_a_gap_by_hand() -> None:
    gap = Gap.of([1.0, 1.0, 0.0, 1.0], [0.5, 0.0])
    assert gap.value == pytest.approx(4 / 6 - 1.5 / 4)
    assert gap.variance == pytest.approx(4 / 6 * 2 / 6 / 6 + 1.5 / 4 * 2.5 / 4 / 4)


def test_values_that_are_all_alike_are_no_certainty() -> None:
    assert Gap.of([1.0] * 4, [1.0] * 4).variance > 0.04


def drawn(chooser: random.Random, share: float, count: int) -> list[float]:
    return [float(chooser.random() < share) for _ in range(count)]


def alarms(seed: int, shares: list[tuple[float, float]], restart: int = -1) -> list[int]:
    """The turns with an alarm. Both sides have 40 examples."""
    chooser = random.Random(seed)  # noqa: S311 - a simulation, not a secret
    watch, found = HeldOut(0.05, len(shares) - 1), []
    for turn, (training, panel) in enumerate(shares):
        if turn == restart:
            kept, watch = json.loads(json.dumps(watch.state_dict())), HeldOut(0.05, len(shares) - 1)
            watch.load_state_dict(kept)
        if watch.look(Gap.of(drawn(chooser, training, 40), drawn(chooser, panel, 40))) is not None:
            found.append(turn)
    return found


def test_clean_runs_that_learn_raise_none() -> None:
    """The training score is above that of the panel from the first turn on, and both rise."""
    told = [alarms(seed, [(0.6 + 0.05 * turn, 0.5 + 0.05 * turn) for turn in range(6)]) for seed in range(200)]
    assert sum(map(bool, told)) <= 2


def test_training_that_leaves_the_panel_behind_raises_one_as_a_rule() -> None:
    """The panel's score falls from the third turn on. Of 20 runs, one gets no alarm and one gets an alarm too early."""
    shares = [(0.6, 0.55), (0.7, 0.6), (0.97, 0.5), (1.0, 0.4), (1.0, 0.3)]
    told = [alarms(seed, shares) for seed in range(20)]
    assert all(len(found) <= 1 for found in told)
    assert sum(bool(found) and found[0] in (2, 3) for found in told) >= 18


def test_a_restart_changes_nothing() -> None:
    shares = [(0.6, 0.55), (0.7, 0.6), (0.97, 0.5), (1.0, 0.4), (1.0, 0.3)]
    for restart in range(1, 5):
        assert alarms(3, shares, restart) == alarms(3, shares)
