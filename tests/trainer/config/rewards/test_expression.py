"""Reward expressions: compared with Python's arithmetic, the exclusion of responses, and the places that errors name."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trainer.config.rewards.expression import DEEPEST, LONGEST, Evaluated, ExpressionInvalid, parse

NAMES = ("outcome", "rc", "format", "rubric")
VALUES = {"outcome": 1.0, "rc": 0.5, "format": 2.0, "rubric": -3.0}


def value(text: str, **changed: float | None) -> float | None:
    return parse(text, NAMES).evaluate({**VALUES, **changed}).value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("outcome * rc + 0.1 * format", 0.7),
        ("1 - 2 - 3", -4),
        ("8 / 4 / 2", 1),
        ("8 / (4 / 2)", 4),
        ("2 + 3 * 4 - 1", 13),
        ("-rc * 2", -1),
        ("--rc", 0.5),
        ("- (rc + 1)", -1.5),
        ("(format >= 1) * rubric", -3),
        ("(format < 1) * rubric", 0),
        ("1 + 1 == 2", 1),
        ("rc != 0.5", 0),
        ("(rc > 0) + (rc >= 0.5) + (rc <= 0.4)", 2),
        ("min(rc, rubric, 7)", -3),
        ("max(rc, rubric)", 0.5),
        ("clip(rubric, -1, 1)", -1),
        ("clip(rc, -1, 1)", 0.5),
        ("clip(format, -1, 1)", 1),
        ("gate(format >= 1, rubric)", -3),
        ("gate(format >= 3, rubric)", 0),
        ("gate(rubric, rc)", 0.5),  # every value other than 0 is true
        (".5 + 1.e0 + 1e-1", 1.6),
        ("\tmin( 1 ,2 )\n", 1),
        ("-0 * 1", 0),
    ],
)
def test_by_hand(text, expected) -> None:
    assert value(text) == pytest.approx(expected)


def test_zero_has_no_sign() -> None:
    assert math.copysign(1, value("-0 * rc") or 0.0) == 1


def test_parts_are_named_once_in_order() -> None:
    assert parse("rubric * max(format, rc) - rubric", NAMES).parts == ("rubric", "format", "rc")
    assert parse("1 + 1", ()).parts == ()


# exclusion of a response


def test_a_missing_part_excludes_with_its_own_reason() -> None:
    found = parse("outcome * rc + 0.1 * format", NAMES).evaluate({**VALUES, "rc": None}, {"rc": "no human reasons"})
    assert found == Evaluated(None, "rc: no human reasons")


def test_every_missing_part_is_named_once() -> None:
    expression = parse("(rc + 1) * rubric - rc", NAMES)
    assert (
        expression.evaluate({"rubric": None}, {"rubric": "no verdict"}).why == "rc: it has no value; rubric: no verdict"
    )


def test_nothing_times_a_missing_part_is_still_missing() -> None:
    assert value("(format >= 9) * rubric", rubric=None) is None


def test_a_closed_gate_does_not_need_what_is_behind_it() -> None:
    assert value("gate(format >= 9, rubric / rc)", rubric=None, rc=0) == 0
    assert value("gate(format >= 1, rubric)", rubric=None) is None
    assert value("gate(format >= 1, rubric)", format=None) is None


def test_a_division_by_a_part_that_is_0_excludes() -> None:
    assert parse("rc / (format - 2)", NAMES).evaluate(VALUES) == Evaluated(None, "division by zero: format - 2 is 0")
    assert value("rc / format", format=-0.0) is None


def test_a_range_that_turns_out_empty_excludes() -> None:
    found = parse("clip(rc, format, 1)", NAMES).evaluate(VALUES)
    assert found == Evaluated(None, "clip(rc, format, 1) has no range: its low 2 is above its high 1")


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_part_that_is_no_number_excludes(wrong) -> None:
    assert parse("rc + 1", NAMES).evaluate({"rc": wrong}) == Evaluated(None, "rc is not a finite number")


def test_a_value_that_overflows_excludes() -> None:
    assert parse("rc * rc", NAMES).evaluate({"rc": 1e200}) == Evaluated(None, "rc * rc is not a finite number")
    assert parse("1 / (rc * rc)", NAMES).evaluate({"rc": 1e200}).value is None  # not 0


# errors


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "expected a number, a part, a function or “(”, found the end"),
        ("rc +", 5, "expected a number, a part, a function or “(”, found the end"),
        ("rc + * 2", 6, "expected a number, a part, a function or “(”, found “*”"),
        ("rc ** 2", 5, "expected a number"),
        ("rc rubric", 4, "expected an operator or the end, found “rubric”"),
        ("(rc", 4, "expected an operator or “)”, found the end"),
        ("rc)", 3, "expected an operator or the end, found “)”"),
        ("rc + quality", 6, "unknown part “quality”; known: outcome, rc, format, rubric"),
        ("mean(rc, 1)", 1, "unknown function “mean”; known: min, max, clip, gate"),
        ("min", 4, "expected “(” behind the function min"),
        ("min(rc)", 7, "expected an operator or “,”: min takes 2 or more, found “)”"),
        ("clip(rc, 0, 1, 2)", 14, "expected an operator or “)”: clip takes 3 arguments, found “,”"),
        ("gate(rc > 1)", 12, "expected an operator or “,”: gate takes 2 arguments"),
        ("min(rc 1, 2)", 8, "expected an operator or “,”"),
        ("0 < rc < 1", 8, "expected the end of the comparison"),
        ("rc = 1", 4, "expected a number, a part or an operator, found “=” (equality is ==)"),
        ("rc; 1", 3, "expected a number, a part or an operator, found “;”"),
        ("__import__('os')", 12, "expected a number, a part or an operator, found “'”"),
        ("rc / 0", 6, "expected something to divide by, found 0"),
        ("rc / -(1 - 1)", 6, "expected something to divide by, found -(1 - 1)"),
        ("rc * (2 / 0.0)", 11, "expected something to divide by"),
        ("clip(rc, 1, 0)", 1, "expected a low that is not above the high"),
        ("rc + 1e999", 6, "expected a finite number"),
        ("rc + 1e308 * 10", 6, "expected something to compute, but 1e+308 * 10 is not a finite number"),
        ("9" * 500, 1, "expected a finite number, found “99"),
        (" " * LONGEST + "1", LONGEST + 1, "expected at most 20,000 characters"),
        ("-" * DEEPEST + "1", DEEPEST + 1, "expected at most 32 levels"),
        ("(" * 5000 + "1", 401, "expected the end: at most 400"),
        ("rc" + " + rc" * 200, 1001, "expected the end: at most 400"),
    ],
)
def test_an_error_points_at_the_place(text, column, said) -> None:
    with pytest.raises(ExpressionInvalid) as caught:
        parse(text, NAMES)
    error = caught.value
    assert error.column == column and error.message.startswith(said.split("“")[0]) and said in error.message
    assert str(error) == f"column {column}: {error.message}" and len(str(error)) < 300


@given(st.text(max_size=40) | st.text(alphabet="rcgate(),.+-*/<>=!0123456789e mnaxlip", max_size=60))
def test_any_text_is_an_expression_or_an_error_with_a_column(text) -> None:
    try:
        found = parse(text, NAMES)
    except ExpressionInvalid as error:
        assert 1 <= error.column <= len(text) + 1
    else:
        assert parse(str(found), NAMES) == found


# against Python


def _unary(inner):
    return st.one_of(
        inner.map(lambda a: (f"-({a[0]})", lambda v: -a[1](v))),
        inner.map(lambda a: (f"({a[0]})", a[1])),
    )


def _python(op: str):
    return {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
        "<": lambda a, b: float(a < b),
        ">=": lambda a, b: float(a >= b),
        "==": lambda a, b: float(a == b),
    }[op]


def _binary(inner):
    def joined(drawn):
        (text_a, a), op, (text_b, b) = drawn
        return f"({text_a}) {op} ({text_b})", lambda v: _python(op)(a(v), b(v))

    return st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "<", ">=", "=="]), inner).map(joined)


def _called(inner):
    return st.one_of(
        st.tuples(inner, inner).map(
            lambda a: (f"min({a[0][0]}, {a[1][0]})", lambda v: min(a[0][1](v), a[1][1](v))),
        ),
        st.tuples(inner, inner).map(
            lambda a: (f"gate({a[0][0]}, {a[1][0]})", lambda v: a[1][1](v) if a[0][1](v) else 0.0),
        ),
    )


def _inner(inner):
    return st.one_of(_unary(inner), _binary(inner), _called(inner))


leaves = st.one_of(
    st.floats(0, 100).map(lambda x: (repr(x), lambda v: x)),
    st.sampled_from(NAMES).map(lambda name: (name, lambda v: v[name])),
)
built = st.recursive(leaves, _inner, max_leaves=12)
numbers = st.one_of(st.sampled_from([0.0, 1.0, -1.0]), st.floats(-100, 100))


@settings(max_examples=300)
@given(built, st.fixed_dictionaries(dict.fromkeys(NAMES, numbers)))
def test_python_s_arithmetic_agrees(case, values) -> None:
    text, python = case
    try:
        expected = python(values)
    except ZeroDivisionError:
        expected = None
    try:
        expression = parse(text, NAMES)
    except ExpressionInvalid as error:
        assume("divide" in error.message)  # by a value that is 0 for all parts
        return
    assert parse(str(expression), NAMES) == expression
    found = expression.evaluate(values)
    if expected is None or not math.isfinite(expected):
        assert found.value is None and found.why
    elif found.value is None:
        assert "finite" in found.why  # an intermediate number was not finite, and Python continued with infinity
    else:
        assert found.value == expected


operators = st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 9)), max_size=12)


@given(st.integers(0, 9), operators)
def test_precedence_is_python_s(first, rest) -> None:
    text = str(first) + "".join(f"{op}{number}" for op, number in rest)
    products = [first]
    for op, number in rest:
        if op == "*":
            products[-1] *= number
        else:
            products.append(number if op == "+" else -number)
    assert parse(text, ()).evaluate({}).value == sum(products)
