"""The rationale command: its output, unusual but valid input, and errors by line and field. The trainer's tests test the measures."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command


def run(tmp_path: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    file = tmp_path / "samples.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    out = StringIO()
    call_command("rationale", str(file), stdout=out)
    return json.loads(out.getvalue())


def test_means_by_hand(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        [
            {"id": "1", "matrix": [[1.0, 0.0], [0.0, 0.6]], "human": 2, "label": "A", "verdict": "A"},  # RC .8, AP 1
            {"id": "2", "matrix": [[0.0, 0.8]], "human": 1, "label": "A", "verdict": "B"},  # RC .8, AP 1/2
            {"id": "3", "matrix": [], "human": 3, "label": "B", "verdict": "B"},  # no model reasons: 0
            # excluded, because its verdict is wrong
            {"id": "4", "matrix": [], "human": 0, "label": "B", "verdict": None},
        ],
    )
    assert found["RC"]["value"] == pytest.approx((0.8 + 0.8 + 0) / 3)
    assert found["AP"]["value"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert found["hybrid"]["value"] == pytest.approx(1 / 3)
    assert found["accuracy"]["value"] == pytest.approx(2 / 4)
    counts = ("n", "excluded_no_human_reasons", "no_model_reasons", "missing_labels", "missing_verdicts")
    assert [found[name] for name in counts] == [4, 1, 1, 0, 1]
    for name in ("RC", "AP", "hybrid", "accuracy"):
        assert found[name]["low"] <= found[name]["value"] <= found[name]["high"]


def test_odd_but_legal_lines(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        [
            {"id": 1, "matrix": [[1]], "human": 1, "label": -1, "verdict": -2},  # five verdicts, compared by sign
            # no reasons of the model, given as rows
            {"matrix": [[], []], "human": 2, "label": "tie", "verdict": "A=B"},
            {"id": None, "matrix": [[0, 1]], "label": "B", "verdict": "B much better"},  # reasons of people: the rows
            {"id": "1", "matrix": [], "human": 1},  # neither a label nor a verdict
        ],
    )
    assert found["accuracy"]["value"] == 1 and found["accuracy"]["n"] == 3
    assert found["RC"]["value"] == pytest.approx(2 / 4)
    assert (found["no_model_reasons"], found["missing_labels"], found["hybrid"]["missing"]) == (2, 1, 1)


def test_human_may_be_null_and_may_be_large(tmp_path: Path) -> None:
    found = run(tmp_path, [{"matrix": [[1]], "human": None}, {"matrix": [], "human": 10**30}])
    assert found["RC"]["value"] == pytest.approx((1 + 0) / 2)


def test_without_human_reasons_nothing_is_invented(tmp_path: Path) -> None:
    found = run(tmp_path, [{"id": "1", "matrix": [], "human": 0, "label": "A", "verdict": "A"}])
    assert found["RC"]["undefined"] and found["RC"]["value"] is None
    assert found["AP"]["undefined"]
    assert found["accuracy"]["value"] == 1
    assert run(tmp_path, [])["accuracy"]["undefined"] == "no sample has a label"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"matrix": [[0.5], [0.1, 0.2]], "human": 2}, "'matrix': rows differ"),
        ({"matrix": [[0.5]], "human": 2}, "'matrix': 1 row for 2"),
        ({"matrix": [[0.5]], "human": 0}, "'matrix': 1 row for 0"),
        ({"matrix": [[0.5, 1.5]], "human": 1}, r"'matrix': \[0\]\[1\]: expected a score in \[0, 1\], found 1\.5"),
        ({"matrix": [[float("nan")]], "human": 1}, "found nan"),
        ({"matrix": [[10**400]], "human": 1}, "'matrix'"),
        ({"matrix": [[True]], "human": 1}, "found True"),
        ({"matrix": "x", "human": 1}, "list of rows"),
        ({"matrix": None, "human": 1}, "list of rows"),
        ({"matrix": [], "human": -1}, "'human'"),
        ({"matrix": [], "human": 1.5}, "'human'"),
        ({"matrix": [], "human": 1, "verdict": "perhaps"}, "'verdict'"),
        ({"matrix": [], "human": 1, "id": [1]}, "'id'"),
    ],
)
def test_bad_lines_name_their_field(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=rf"line 1: field {message}" if message[0] == "'" else message):
        run(tmp_path, [{"id": "x", "label": "A", "verdict": "A", **row}])
