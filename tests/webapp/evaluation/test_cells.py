"""How numbers of a report are written."""

import pytest

from webapp.evaluation import report as r
from webapp.evaluation.templatetags.evaluation import amount, cell, subject


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.5, "share", "50.0%"),
        (0.05, "gap", "+5.0 pp"),
        (-0.1, "gap", "-10.0 pp"),
        (0.128, "p", "0.128"),
        (0.0000004, "p", "< 0.001"),
        (1234, "count", "1,234"),
        (None, "gap", "–"),
    ],
)
def test_a_value_is_written_in_its_unit(value, unit, words):
    assert amount(value, unit) == words


def test_a_difference_of_percentages_is_not_a_percentage():
    found = {"value": 0.05, "low": -0.033, "high": 0.133, "n": 60, "missing": 0}
    shown = cell(r.estimate(found, unit="gap"))
    assert "+5.0 pp" in shown and "-3.3 to 13.3" in shown and "%" not in shown


def test_words_in_place_of_an_interval_may_break_and_its_numbers_may_not():
    alone = {"value": 1.0, "low": None, "high": None, "interval": "one case has no spread", "n": 1, "missing": 0}
    assert '<span class="why">one case has no spread</span>' in cell(r.estimate(alone))
    assert "why" not in cell(r.estimate({**alone, "low": 0.2, "high": 1.0}))


def test_what_a_case_is_about_is_said_once():
    assert subject({"example": "p1", "a": "x", "b": "y"}).count("p1") == 1
    assert "p1 · c" in subject({"judge": "j", "example": "p1", "criterion": "c"})
