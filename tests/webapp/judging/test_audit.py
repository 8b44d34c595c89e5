"""Audits of recorded verdicts: hand-worked cases, degenerate ones, and JudgeBench's Table 3."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.shared import SHARED, needs_shared
from webapp.judging.audit import Case, CaseProblem, audit, measures, parse_case
from webapp.judging.verdicts import side

A, TIE, B = -1, 0, 1


def case(label: int, given: int | None, swapped: int | None, pair: str = "p") -> Case:
    return Case("judge", pair, "", label, given, swapped)


def test_swapped_verdicts_are_read_as_said() -> None:
    found = measures([case(A, given=A, swapped=B)])  # in swapped order, B is the response called A elsewhere
    assert found["accuracy_both"]["value"] == 1
    assert found["order_consistency"]["value"] == 1


def test_by_hand() -> None:
    cases = [case(A, A, B), case(A, A, A), case(B, TIE, A), case(B, A, None), case(A, None, None), case(TIE, TIE, TIE)]
    found = measures(cases)
    assert found["n"] == 6
    assert found["missing"] == {"given": 1, "swapped": 2, "both": 1}
    assert found["accuracy_given"]["value"] == pytest.approx(3 / 6)  # A, A and the tie
    assert found["accuracy_swapped"]["value"] == pytest.approx(3 / 6)  # first, third, last
    assert found["accuracy_both"]["value"] == pytest.approx(2 / 6)
    assert found["accuracy_net"]["value"] == pytest.approx(3 / 6)  # 2, 0, 0 + 1, -1, 0, 2
    assert found["order_consistency"]["n"] == 4
    assert found["order_consistency"]["value"] == pytest.approx(2 / 4)
    assert found["first_position_share"]["n"] == 6  # decided: A B, A A, A, A
    assert found["first_position_share"]["value"] == pytest.approx(5 / 6)


def test_nothing_but_missing_verdicts_is_wrong_and_otherwise_undefined() -> None:
    found = measures([case(A, None, None)])
    assert found["accuracy_net"]["value"] == 0
    for key in ("order_consistency", "first_position_share", "kappa_orders"):
        assert found[key]["undefined"]


def test_groups_and_overall_per_judge() -> None:
    rows = [("x", "1", "math"), ("x", "2", "code"), ("y", "1", "math")]
    records = audit(Case(judge, pair, group, A, A, B) for judge, pair, group in rows)
    assert [(r["judge"], r["group"], r["n"]) for r in records] == [
        ("x", "code", 1),
        ("x", "math", 1),
        ("x", "overall", 2),
        ("y", "math", 1),
        ("y", "overall", 1),
    ]


def test_a_pair_judged_twice_is_refused() -> None:
    with pytest.raises(CaseProblem, match="twice"):
        audit([case(A, A, A), case(A, A, A)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", -1),
        ("b", 1),
        ("tie", 0),
        ("A>B", -1),
        ("B>>A", 1),
        ("A=B", 0),
        ("A < B", 1),
        (None, None),
        (-2, -1),
        ("B much better", 1),
    ],
)
def test_verdicts_are_understood(text, expected) -> None:
    assert side(text) == expected


@pytest.mark.parametrize("text", ["", "both", "A>A", True, [1]])
def test_what_is_no_verdict_is_refused(text) -> None:
    with pytest.raises(ValueError, match="verdict"):
        side(text)


def test_a_missing_label_names_its_field() -> None:
    with pytest.raises(CaseProblem, match="'label'"):
        parse_case({"judge": "j", "pair": "p", "label": None, "given": "A", "swapped": "B"})


def test_command_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text('{"judge": "j", "pair": "1", "label": "A", "given": "maybe"}\n')
    with pytest.raises(CommandError, match="line 1: field 'given'"):
        call_command("audit", str(file))


DOMAINS = {
    "mmlu-pro": "knowledge",
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}
TABLE_3 = {
    "Skywork-Reward-Gemma-2-27B": (59.74, 66.33, 83.93, 50.00, 64.29),
    "Skywork-Reward-Llama-3.1-8B": (59.09, 64.29, 76.79, 50.00, 62.29),
    "internlm2-20b-reward": (62.34, 69.39, 66.07, 50.00, 63.43),
}


@needs_shared
def test_judgebench_table_3(tmp_path: Path) -> None:
    file = tmp_path / "judgebench.jsonl"
    with (SHARED / "judgebench/judgments.jsonl").open() as source, file.open("w") as target:
        for line in source:
            row = json.loads(line)
            if row["judge_name"] != "reward_model" or "gpt-4o" not in row["response_model"]:
                continue
            group = next(name for prefix, name in DOMAINS.items() if row["source"].startswith(prefix))
            audit_row = {
                "judge": row["judge_model"].split("_", 1)[1],
                "pair": row["pair_id"],
                "group": group,
                "label": row["label"],
            }
            target.write(json.dumps({**audit_row, "given": row["decision_AB"], "swapped": row["decision_BA"]}) + "\n")
    out = StringIO()
    call_command("audit", str(file), stdout=out)
    found = {
        (r["judge"], r["group"]): round(100 * r["accuracy_net"]["value"], 2)
        for r in json.loads(out.getvalue())["audits"]
    }
    for judge, row in TABLE_3.items():
        assert tuple(found[judge, g] for g in ("knowledge", "reasoning", "math", "coding", "overall")) == row
