"""The audit command: its output, unusual but valid input, and errors by file, line and field. The trainer's tests test the measures."""

import json
import tracemalloc
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

ESTIMATES = {
    "accuracy_given",
    "accuracy_swapped",
    "accuracy_both",
    "accuracy_net",
    "order_consistency",
    "first_position_share",
    "kappa_orders",
}
GOOD = {"judge": "j", "pair": "p", "group": "g", "label": "A", "given": "A", "swapped": "B"}


def audit(tmp_path: Path, text: str | bytes) -> dict[str, Any]:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    out = StringIO()
    try:
        call_command("audit", str(file), stdout=out)
    except CommandError:
        assert json.loads(out.getvalue()).keys() == {"error"}  # there is no result for a part of a file
        raise
    return json.loads(out.getvalue())


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_every_judge_and_group_has_every_number_with_its_interval(tmp_path: Path) -> None:
    rows = [
        {
            **GOOD,
            "judge": judge,
            "pair": str(i),
            "group": "ab"[i % 2],
            "given": "AB"[i % 3 % 2],
            "swapped": "BA"[i % 4 % 2],
        }
        for judge in ("x", "y")
        for i in range(12)
    ]
    found = audit(tmp_path, lines(*rows))
    assert found["cases"] == 24
    shown = [(r["judge"], r["group"], r["overall"], r["n"]) for r in found["audits"]]
    assert shown == [
        (j, g, o, n) for j in "xy" for g, o, n in (("a", False, 6), ("b", False, 6), ("overall", True, 12))
    ]
    for record in found["audits"]:
        assert record.keys() >= ESTIMATES | {"missing"}
        for name in ESTIMATES:
            estimate = record[name]
            if estimate["value"] is None:
                assert estimate["undefined"]
            elif estimate["low"] is None:  # where all cases agree, no resample says how certain that is
                assert estimate["interval"] and estimate["n"]
            else:
                assert estimate["low"] <= estimate["value"] <= estimate["high"] and estimate["n"]


def test_missing_verdicts_are_wrong_and_shown(tmp_path: Path) -> None:
    rows = [
        GOOD,
        {**GOOD, "pair": "q", "given": None},
        {k: v for k, v in GOOD.items() if k != "swapped"} | {"pair": "r"},
    ]
    overall = audit(tmp_path, lines(*rows))["audits"][-1]
    assert overall["missing"] == {"given": 1, "swapped": 1, "either": 2, "both": 0}
    assert overall["accuracy_given"]["value"] == overall["accuracy_swapped"]["value"] == pytest.approx(2 / 3)
    assert overall["accuracy_both"]["value"] == pytest.approx(1 / 3)
    assert overall["accuracy_net"] | {"low": 0, "high": 0} == {"value": 1, "n": 3, "low": 0, "high": 0, "missing": 2}
    assert (overall["order_consistency"]["n"], overall["order_consistency"]["missing"]) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + lines(GOOD),
        lines(GOOD).replace("\n", "\r\n"),
        "\n\n" + lines(GOOD) + "\n  \n",
        lines(GOOD).rstrip("\n"),
        lines({**GOOD, "extra": [1, 2], "judge": 7, "pair": 1, "group": 3}),
        lines({**GOOD, "label": "a", "given": "[[A>>B]]", "swapped": "B is better"}),
        lines({k: v for k, v in GOOD.items() if k != "group"}),
        lines({**GOOD, "group": None}),
    ],
)
def test_odd_but_legal_files_are_read(tmp_path: Path, text: str) -> None:
    found = audit(tmp_path, text)
    assert found["cases"] == 1
    assert found["audits"][-1]["accuracy_both"]["value"] == 1


def test_an_empty_file_has_no_judges(tmp_path: Path) -> None:
    assert audit(tmp_path, "") == audit(tmp_path, "\n\n") == {"cases": 0, "audits": []}


def test_a_judge_that_only_ties_and_labels_of_one_kind(tmp_path: Path) -> None:
    rows = [{**GOOD, "pair": i, "given": "tie", "swapped": "tie"} for i in range(3)]
    overall = audit(tmp_path, lines(*rows))["audits"][-1]
    assert overall["accuracy_net"]["value"] == 0 and overall["order_consistency"]["value"] == 1
    assert overall["first_position_share"]["undefined"] and overall["kappa_orders"]["undefined"]
    ties = audit(tmp_path, lines(*[{**row, "label": "tie"} for row in rows]))["audits"][-1]
    assert ties["accuracy_both"]["value"] == 1


def test_one_pair_may_be_judged_by_two_judges_and_in_two_groups(tmp_path: Path) -> None:
    assert audit(tmp_path, lines(GOOD, {**GOOD, "judge": "k"}, {**GOOD, "group": "h"}))["cases"] == 3


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**GOOD, "given": "maybe"}, "line 2: field 'given': no verdict: 'maybe'"),
        ({**GOOD, "swapped": 1}, "line 2: field 'swapped': no verdict: 1"),
        ({**GOOD, "given": ""}, "line 2: field 'given'"),
        ({**GOOD, "label": None}, "line 2: field 'label': is missing"),
        ({**GOOD, "judge": ""}, "line 2: field 'judge': is missing"),
        ({**GOOD, "pair": [1]}, r"line 2: field 'pair': expected a name or a whole number, found \[1\]"),
        ({**GOOD, "group": True}, "line 2: field 'group'"),
        ([1], "line 2: expected an object"),
        (GOOD, "line 2: field 'pair': judge 'j' judged 'p' already on line 1"),
    ],
)
def test_a_bad_line_is_named_with_its_field_and_the_reason(tmp_path: Path, row: Any, message: str) -> None:
    with pytest.raises(CommandError, match=rf"cases\.jsonl, {message}"):
        audit(tmp_path, lines(GOOD, row))


@pytest.mark.parametrize("line", ["{", "[" * 100_000, '{"a": }', "nonsense"])
def test_a_line_that_is_not_json_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(CommandError, match="line 2: not JSON"):
        audit(tmp_path, lines(GOOD) + line + "\n")


def test_every_bad_line_is_told_up_to_a_number(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        audit(tmp_path, lines(*[{**GOOD, "pair": i, "given": "?"} for i in range(25)]))
    told = str(caught.value).splitlines()
    assert len(told) == 21 and "line 20:" in told[19] and told[20].endswith("and 5 more lines with problems")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none\.jsonl: cannot be read: No such file"):
        call_command("audit", str(tmp_path / "none.jsonl"))
    with pytest.raises(CommandError, match="not UTF-8"):
        audit(tmp_path, b'{"judge": "\xff"}')


def test_good_lines_are_kept_when_asked_and_the_bad_ones_named(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    rows = [GOOD, {**GOOD, "pair": "q", "label": "?"}, GOOD, {**GOOD, "pair": "r"}]
    file.write_bytes(lines(*rows).encode() + b'{"judge": "\xff"}\n')
    out, errors = StringIO(), StringIO()
    call_command("audit", str(file), "--keep-good", stdout=out, stderr=errors)
    found = json.loads(out.getvalue())
    assert (found["cases"], found["bad_lines"], found["audits"][-1]["n"]) == (2, 3, 2)
    told = errors.getvalue().splitlines()
    assert told[0].startswith(f"{file}, line 2: field 'label': no verdict")
    assert told[1] == f"{file}, line 3: field 'pair': judge 'j' judged 'p' already on line 1"
    assert told[2].startswith(f"{file}, line 5: is not UTF-8 text") and "3 lines left out" in told[3]


def test_memory_does_not_grow_with_the_text_of_the_lines(tmp_path: Path) -> None:
    peaks = []
    for count in (2_000, 4_000):
        text = lines(*({**GOOD, "pair": f"{i} {'x' * 2_000}"} for i in range(count)))
        tracemalloc.start()
        audit(tmp_path, text)
        peaks.append(tracemalloc.get_traced_memory()[1] - 2 * len(text))
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 2_000 * 500
