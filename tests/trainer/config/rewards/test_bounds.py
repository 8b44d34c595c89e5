"""Bounds of rewards hold for all values of the parts. They are known if a person could compute them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config.rewards.arm import ArmPart
from trainer.config.rewards.bounds import RewardBounds, bounds_of
from trainer.config.rewards.expression import parse
from trainer.config.rewards.parts import PART_KINDS
from trainer.config.rewards.tasks import TaskPart

NAMES = ("a", "b", "c")
PARTS = {"a": RewardBounds(0.0, 1.0), "b": RewardBounds(-1.0, 0.5), "c": RewardBounds(-math.inf, 2.0)}


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a + 2 * b", -2.0, 2.0),
        ("a - b", -0.5, 2.0),
        ("a * b", -1.0, 0.5),
        ("-b", -0.5, 1.0),
        ("a * c", -math.inf, 2.0),
        ("a / 4", 0.0, 0.25),
        ("1 / a", 1.0, math.inf),
        ("1 / -a", -math.inf, -1.0),
        ("a / b", -math.inf, math.inf),
        ("min(a, c)", -math.inf, 1.0),
        ("max(a, b, c)", 0.0, 2.0),
        ("clip(c, 0, 0.7)", 0.0, 0.7),
        ("clip(a, b, 0.7)", 0.0, 0.7),
        ("gate(a > 2, c)", 0.0, 0.0),
        ("gate(a >= 0, b)", -1.0, 0.5),
        ("gate(a, b)", -1.0, 0.5),
        ("gate(a, 3 + a)", 0.0, 4.0),
        ("a < b", 0.0, 1.0),
        ("b <= 0.5", 1.0, 1.0),
        ("(b == 2) + (b != 2)", 1.0, 1.0),
        # in order of importance: a later part cannot make up for an earlier one
        ("100 * a + 10 * (b > 0) + clip(c, 0, 9)", 0.0, 112.0),
    ],
)
def test_by_hand(text: str, low: float, high: float) -> None:
    assert bounds_of(parse(text, NAMES).root, PARTS) == (low, high)


texts = st.recursive(
    st.sampled_from([*NAMES, "0.5", "2"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda each: "({} {} {})".format(*each)),
        st.tuples(inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner).map(
            lambda each: "({} {} {})".format(*each)
        ),
        st.tuples(st.sampled_from(["min", "max", "gate"]), inner, inner).map(lambda each: "{}({}, {})".format(*each)),
        inner.map(lambda each: f"clip({each}, -1, 0.25)"),
    ),
    max_leaves=6,
)
worth = st.tuples(*(st.floats(max(each.low, -1e6), each.high) | st.just(each.high) for each in PARTS.values()))


@given(texts, worth)
def test_no_value_is_outside(text: str, values: tuple[float, ...]) -> None:
    try:
        expression = parse(text, NAMES)
    except ValueError:
        return  # it divides by a constant 0, for example
    value = expression.evaluate(dict(zip(NAMES, values, strict=True))).value
    low, high = bounds_of(expression.root, PARTS)
    if value is not None:
        slack = 1e-9 * max(1.0, abs(value))
        assert low - slack <= value <= high + slack


def test_a_part_says_its_bounds_only_where_its_kind_has_some() -> None:
    known = {name: kind.values for name, kind in PART_KINDS.items() if kind.values != RewardBounds()}
    assert known == {
        "rubric": (-math.inf, 1.0),
        "verifier": (-math.inf, 1.0),
        "format": (0.0, 1.0),
        "overlong": (-1.0, 0.0),
    }
    judge = PART_KINDS["judge"].model_validate
    assert judge({"kind": "judge", "judge": "J", "protocol": "pairwise", "against": "reference"}).bounds == (0.0, 1.0)
    assert judge({"kind": "judge", "judge": "J", "protocol": "pointwise"}).bounds == RewardBounds()
    assert judge({"kind": "judge", "judge": "J", "protocol": "pointwise", "at_most": 9.0}).bounds == (-math.inf, 9.0)
    assert all(kind.values != RewardBounds() for kind in (*TaskPart.__args__, *ArmPart.__args__))
