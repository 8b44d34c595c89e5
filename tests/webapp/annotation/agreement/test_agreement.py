"""The agreement command: every coefficient of a file, and errors by line and field."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.trainer.metrics.test_agreement import FOUR_BY_TWELVE, ratings
from webapp.annotation.templatetags.review import interval


def test_command_prints_every_coefficient(tmp_path: Path) -> None:
    file = tmp_path / "ratings.jsonl"
    file.write_text(
        "\n".join(json.dumps({"unit": r.unit, "rater": r.rater, "value": r.value}) for r in ratings(FOUR_BY_TWELVE))
    )
    out = StringIO()
    call_command("agreement", str(file), "--level", "interval", stdout=out)
    printed = json.loads(out.getvalue())
    assert round(printed["alpha"]["value"], 3) == 0.849
    assert len(printed["cohen"]) == 6
    assert {"percent", "fleiss", "ac1", "missing"} <= set(printed)


def test_command_names_the_line_and_field(tmp_path: Path) -> None:
    file = tmp_path / "ratings.jsonl"
    file.write_text('{"unit": 1, "rater": 1, "value": 1}\n{"unit": 1, "value": 1}\n')
    with pytest.raises(CommandError, match=r"line 2: field 'rater' is missing"):
        call_command("agreement", str(file))


def test_command_names_the_lines_of_a_second_rating(tmp_path: Path) -> None:
    file = tmp_path / "ratings.jsonl"
    file.write_text('{"unit": 1, "rater": "a", "value": 1}\n\n{"unit": "1", "rater": "a", "value": 1}\n')
    with pytest.raises(CommandError, match=r"line 3: field 'rater': 'a' rated unit '1' already on line 1"):
        call_command("agreement", str(file))


def test_command_counts_missing_ratings(tmp_path: Path) -> None:
    file = tmp_path / "ratings.jsonl"
    given = [(1, 1), (2, None), (2, 1)]
    file.write_text("\n".join(json.dumps({"unit": 1, "rater": rater, "value": value}) for rater, value in given))
    out = StringIO()
    call_command("agreement", str(file), stdout=out)
    assert json.loads(out.getvalue())["missing"] == 1


def test_an_interval_has_no_negative_zero() -> None:
    shown = interval({"value": 0.001, "low": -0.00004, "high": 0.31, "n": 40})
    assert "0.00 – 0.31" in shown and "-0.0" not in shown
    assert "-0.13 – 0.31" in interval({"value": 0.001, "low": -0.13, "high": 0.31, "n": 40})
