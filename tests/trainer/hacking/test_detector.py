"""The change detector and the payment: numbers by hand, the budget of false alarms, and state that survives JSON."""

import json
import math
import random

import pytest

from trainer.hacking import Payment, Rise
from trainer.hacking.detector import upper


def test_the_upper_limit_by_hand() -> None:
    # z^2 = 2.705543; without a success: z^2 / n over 1 + z^2 / n
    assert upper(0.0, 40) == pytest.approx((2.705543 / 40) / (1 + 2.705543 / 40), rel=1e-5)
    assert upper(1.0, 3) == 1.0


def test_evidence_by_hand() -> None:
    rise = Rise(0.2, level=1000)
    # bets 0.25, 0.5 and 0.9: 1 + b (1 - 0.2) / 0.2 = 2, 3, 4.6
    assert not rise.see(6, [1.0])
    assert rise.evidence == pytest.approx(math.log((2 + 3 + 4.6) / 3))
    # then 1 - b = 0.75, 0.5, 0.1, times one more than before: 3, 4, 5.6
    rise.see(7, [0.0])
    assert rise.evidence == pytest.approx(math.log((3 * 0.75 + 4 * 0.5 + 5.6 * 0.1) / 3))


def test_a_rise_is_told_with_the_step_it_began() -> None:
    rise = Rise.of([0.0] * 40, level=1000, slack=0.05)
    assert rise.usual == pytest.approx(0.06335, abs=1e-4) and rise.reference == pytest.approx(0.11335, abs=1e-4)
    assert not rise.see(6, [0.0] * 8) and rise.since is None
    assert not rise.see(7, [0.1] * 8) and rise.since == 7
    assert rise.see(8, [0.9] * 8) and (rise.since, rise.share) == (7, pytest.approx(0.9))


def test_a_step_that_is_usual_ends_the_rise() -> None:
    rise = Rise(0.2, level=1e9)
    for step, share in enumerate([0.3, 0.1, 0.4, 0.4]):
        rise.see(step, [share])
    assert rise.since == 2


def test_no_more_false_alarms_than_the_budget() -> None:
    chooser = random.Random(3)  # noqa: S311 - a play
    steps, budget, alarms = 40, 0.05, 0
    for _ in range(600):
        rise = Rise(0.2, level=steps / budget)
        values = [[float(chooser.random() < 0.2) for _ in range(8)] for _ in range(steps)]
        alarms += any(rise.see(step, row) for step, row in enumerate(values))
    assert alarms / 600 <= budget


def test_a_step_without_groups_changes_nothing() -> None:
    rise = Rise(0.2, level=10)
    rise.see(1, [1.0])
    before = rise.state_dict()
    rise.see(2, [])
    assert rise.state_dict() == before


def test_state_survives_json() -> None:
    whole, first = Rise(0.2, level=1e6), Rise(0.2, level=1e6)
    for each in (whole, first):
        each.see(1, [0.4, 0.1])
    again = Rise.from_state(json.loads(json.dumps(first.state_dict())))
    assert [whole.see(2, [0.9]), whole.evidence] == [again.see(2, [0.9]), again.evidence]
    assert Rise.from_state(json.loads(json.dumps(Rise(0.3, 5).state_dict()))).evidence == -math.inf


def test_a_reference_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Rise(0.0, level=10)


def test_payment_by_hand() -> None:
    payment = Payment()
    assert payment.z is None
    payment.see([([1.0, 0.0], [1.0, 0.0])])  # C = 0.5, V = 0.5 * 0.5 / 1
    assert payment.z == pytest.approx(1.0)
    payment = Payment()
    payment.see([([1.0, 0.0], [1.0, 0.0]), ([0.0, 1.0], [3.0, 5.0])])  # 0.5 + 1, 0.25 + 0.5 * 2
    assert payment.z == pytest.approx(1.5 / math.sqrt(1.25))


def test_what_all_responses_have_leaves_the_payment_as_it_was() -> None:
    payment = Payment()
    payment.see([([1.0, 0.0, 0.0], [2.0, 0.0, 1.0])])
    before = payment.z
    payment.see([([1.0, 1.0], [0.0, 5.0]), ([1.0], [9.0])])
    assert payment.z == pytest.approx(before)


def test_what_costs_reward_is_not_paid() -> None:
    payment = Payment()
    payment.see([([1.0, 0.0], [0.0, 1.0])] * 9)
    assert payment.z == pytest.approx(-3.0)
