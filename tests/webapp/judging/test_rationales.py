"""The rationale command: means over samples, what is excluded and counted, and errors by line and field."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command


def run(tmp_path: Path, rows: list[dict]) -> dict:
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
            {"id": "4", "matrix": [], "human": 0, "label": "B", "verdict": None},  # excluded, its verdict wrong
        ],
    )
    assert found["RC"]["value"] == pytest.approx((0.8 + 0.8 + 0) / 3)
    assert found["AP"]["value"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert found["hybrid"]["value"] == pytest.approx(1 / 3)
    assert found["accuracy"]["value"] == pytest.approx(2 / 4)
    assert (found["n"], found["excluded_no_human_reasons"], found["no_model_reasons"], found["missing_verdicts"]) == (
        4,
        1,
        1,
        1,
    )


def test_without_human_reasons_nothing_is_invented(tmp_path: Path) -> None:
    found = run(tmp_path, [{"id": "1", "matrix": [], "human": 0, "label": "A", "verdict": "A"}])
    assert "undefined" in found["RC"]
    assert "undefined" in found["AP"]
    assert found["accuracy"]["value"] == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"matrix": [[0.5], [0.1, 0.2]], "human": 2}, "rows differ"),
        ({"matrix": [[0.5]], "human": 2}, "1 rows for 2"),
        ({"matrix": [[1.5]], "human": 1}, r"\[0, 1\]"),
        ({"matrix": "x", "human": 1}, "list of rows"),
        ({"matrix": [], "human": -1}, "'human'"),
        ({"matrix": [], "human": 1, "verdict": "perhaps"}, "'verdict'"),
    ],
)
def test_bad_lines_name_their_field(tmp_path: Path, row: dict, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(tmp_path, [{"id": "x", "label": "A", "verdict": "A", **row}])
