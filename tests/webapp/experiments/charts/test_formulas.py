"""Expressions of charts: their values, and the places of their errors. The test of the browser reads the same `computed.json`."""

import json
from pathlib import Path

import numpy as np
import pytest

from webapp.experiments.charts import formulas

CASES = json.loads((Path(__file__).parent / "computed.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["expression"])
def test_an_expression_comes_to_its_values_place_by_place(case):
    formula = formulas.parse(case["expression"])
    assert set(formula.keys) <= set(case["values"])
    columns = {key: np.array(values, np.float64) for key, values in case["values"].items()}
    found = formulas.computed(formula, columns)
    wanted = [np.nan if value in (None, "absent") else value for value in case["gives"]]
    finite = np.where(np.isfinite(found), found, np.nan)
    assert finite.tolist() == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("", (0, 0), "Write an expression."),
        ("  ", (0, 2), "Write an expression."),
        ("1 + 2", (0, 5), "Name at least one metric."),
        ("a b", (2, 3), "Write an operator instead of “b”."),
        ("a +", (3, 4), "Write a number, a metric or “(” at the end."),
        ("a + * b", (4, 5), "Write a number, a metric or “(” instead of “*”."),
        ("(a", (2, 3), "Write an operator or “)” at the end."),
        ("a ^ 2", (2, 3), "“^” cannot be here in an expression."),
        ("2a", (0, 1), "“2” cannot be here in an expression."),
        ('a * "b', (4, 6), "This quote has no end."),
        ('a * ""', (4, 6), "Write a metric between the quotes."),
        ("median(a)", (0, 6), "There is no function median"),
        ("min(a)", (5, 6), "min has 2 arguments or more"),
        ("clip(a, 0, 1, 2)", (12, 13), "Write an operator or “)” instead of “,”."),
        ("a * 1e999", (4, 9), "This number is too large."),
        ("a" * 501, (500, 501), "at most 500 characters"),
        ("(" * 40 + "a" + ")" * 40, (24, 25), "At most 24 levels"),
        (" + ".join(f"k{i}" for i in range(9)), (0, 42), "at most 8 metrics"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text, place, told):
    with pytest.raises(formulas.FormulaProblem) as caught:
        formulas.parse(text)
    assert told in caught.value.message
    assert (caught.value.start, caught.value.end) == place
