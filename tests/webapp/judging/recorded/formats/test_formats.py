"""Recorded verdicts: each layout is recognised and read unchanged. Unreadable verdicts are missing, and the import names them."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from webapp.files.bundle import Bundle
from webapp.judging.recorded.formats.base import GradedTree, Record, RecordedPair, RowProblem
from webapp.judging.recorded.formats.registry import REGISTRY, UnknownFormat, detect, read

A, TIE, B = -1, 0, 1
LINE = {"judge": "j", "pair": 1, "group": "g", "label": "A", "given": "A", "swapped": None}
COMPACT = {
    "pair_id": "p",
    "source": "mmlu-pro-law",
    "label": "A>B",
    "response_model": "m",
    "judge_name": "arena_hard",
    "judge_model": "o",
    "decision_AB": "A>B",
    "decision_BA": "A=B",
}
FULL = {
    "pair_id": "p",
    "source": "livecodebench",
    "label": "B>A",
    "judge_name": "vanilla",
    "judgments": [
        {"judgment": {"judge_model": "org/o", "response": "..."}, "decision": "B>A"},
        {"judgment": {"judge_model": "org/o", "response": "..."}, "decision": "A>B"},
    ],
}


def leaf(score: Any, **more: Any) -> dict[str, Any]:
    return {"id": "x", "requirements": "r", "weight": 1, "sub_tasks": [], "score": score, **more}


def node(score: Any, *children: dict[str, Any], weight: float = 1) -> dict[str, Any]:
    return {"id": "n", "requirements": "r", "weight": weight, "sub_tasks": list(children), "score": score}


def written(path: Path, rows: Any) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows) if path.suffix == ".jsonl" else json.dumps(rows)
    path.write_text(text)
    return path


def records(path: Path) -> list[Record]:
    found: list[Any] = [record for _, _, record in read(path)]
    assert not any(isinstance(each, RowProblem) for each in found), found
    return found


def problem(path: Path, form: str) -> RowProblem:
    [found] = [record for _, _, record in read(path, REGISTRY[form])]
    assert isinstance(found, RowProblem)
    return found


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([LINE], "audit"),
        ([COMPACT], "judgebench"),
        ([FULL], "judgebench"),
        ([{"idx": 0, "gpt_result": "1"}], "pandalm"),
        ([node(1.0, leaf(1))], "paperbench"),
    ],
)
def test_each_layout_is_recognised(tmp_path: Path, rows: list[dict[str, Any]], name: str) -> None:
    assert detect(Bundle(written(tmp_path / "f.jsonl", rows))).name == name


@pytest.mark.parametrize("rows", [[], [{"question": "?", "answer": "!"}], [1, 2]])
def test_a_file_of_no_known_layout_is_refused_with_those_there_are(tmp_path: Path, rows: list[Any]) -> None:
    with pytest.raises(UnknownFormat, match="Known are audit: .*judgebench: .*pandalm: .*paperbench"):
        read(written(tmp_path / "f.jsonl", rows))


def test_audit_lines(tmp_path: Path) -> None:
    rows = [LINE, {"judge": 2, "pair": "q", "label": None, "given": "tie"}]
    one, other = records(written(tmp_path / "f.jsonl", rows))
    assert one == RecordedPair("j", "1", A, A, None, "both", "g")
    assert other == RecordedPair("2", "q", None, TIE, None, "given")
    bad = problem(written(tmp_path / "b.jsonl", [{**LINE, "given": "?"}]), "audit")
    assert (bad.line, bad.field) == (1, "given") and "no verdict" in bad.reason


def test_judgebench_keeps_the_second_decision_as_it_was_said(tmp_path: Path) -> None:
    [compact] = records(written(tmp_path / "c.jsonl", [COMPACT]))
    assert compact == RecordedPair("arena_hard:o", "p", A, A, TIE, "both", "knowledge", "m")
    [full] = records(written(tmp_path / "f.jsonl", [FULL]))
    assert full == RecordedPair("vanilla:org/o", "p", B, B, A, "both", "coding")


def test_judgebench_decisions_that_failed_or_cannot_be_read_are_missing(tmp_path: Path) -> None:
    rows = [
        {**FULL, "pair_id": "failed", "judgments": [None, FULL["judgments"][1]]},
        {**FULL, "pair_id": "once", "judgments": FULL["judgments"][:1]},
        {**COMPACT, "pair_id": "garbled", "decision_AB": "hm", "decision_BA": None, "source": "elsewhere"},
    ]
    failed, once, garbled = records(written(tmp_path / "f.jsonl", rows))
    assert (failed.given, failed.swapped, failed.judge, failed.orders) == (None, A, "vanilla:org/o", "both")
    assert (once.swapped, once.orders) == (None, "given")
    assert (garbled.given, garbled.raw_given, garbled.raw_swapped, garbled.group) == (None, "hm", "", "elsewhere")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"judgments": []}, "judgments"),
        ({"judgments": ["x"]}, "judgments"),
        ({"label": "?"}, "label"),
        ({"pair_id": None}, "pair_id"),
    ],
)
def test_judgebench_rows_that_cannot_be_used_name_their_field(tmp_path: Path, change: dict, field: str) -> None:
    assert problem(written(tmp_path / "f.jsonl", [{**FULL, **change}]), "judgebench").field == field


def test_pandalm_takes_its_labels_from_the_test_set_beside_it(tmp_path: Path) -> None:
    people = [
        {"idx": 0, "annotator1": 1, "annotator2": 1, "annotator3": 2},
        {"idx": 1, "annotator1": 0, "annotator2": 1, "annotator3": 2},
        {"idx": 2, "annotator1": 2, "annotator2": 2, "annotator3": 2},
    ]
    written(tmp_path / "testset-v1.json", people)
    rows = [
        {"idx": 0, "gpt_result": "1", "gpt_reason": " because "},
        {"idx": 1, "gpt_result": "Tie"},
        {"idx": 2, "gpt_result": "garbage"},
        {"idx": 3, "gpt_result": 0},
    ]
    found = records(written(tmp_path / "judge.json", rows))
    assert [(r.label, r.given, r.raw_given, r.orders) for r in found] == [
        (A, A, "", "given"),
        (None, TIE, "", "given"),  # three people with three opinions
        (B, None, "garbage", "given"),
        (None, TIE, "", "given"),  # not in the test set
    ]
    assert found[0].pair == "pandalm-0"
    assert found[0].humans == {"annotator1": A, "annotator2": A, "annotator3": B} and found[0].reason == "because"


def test_pandalm_without_its_test_set_has_no_labels(tmp_path: Path) -> None:
    [found] = records(written(tmp_path / "judge.json", [{"idx": 0, "gpt_result": 2}]))
    assert (found.label, found.given, found.humans) == (None, B, {})
    assert (
        problem(written(tmp_path / "b.jsonl", [{"idx": 0}]), "pandalm").reason == "has no column that ends in _result"
    )


def test_paperbench_trees_are_rolled_up_from_their_leaves(tmp_path: Path) -> None:
    graded = node(0.75, node(0.5, leaf(1), leaf(0), weight=1), leaf(1, task_category="Code", explanation="seen"))
    [found] = records(written(tmp_path / "paper.json", graded))
    assert isinstance(found, GradedTree)
    assert (found.judge, found.tree, found.root) == ("human grader", "paper", 0.75)
    assert (found.inner, found.stored, found.matching) == (2, 2, 2)
    assert [(each.share, each.met) for each in found.leaves] == [(0.25, True), (0.25, False), (0.5, True)]
    assert (found.leaves[2].category, found.leaves[2].note) == ("Code", "seen")
    assert len({each.id for each in found.leaves}) == 3


@pytest.mark.parametrize("bad", [leaf(1, valid_score=False), leaf(0.5), leaf(None), leaf([1])])
def test_a_leaf_without_a_valid_grade_leaves_the_root_without_one(tmp_path: Path, bad: dict[str, Any]) -> None:
    [found] = records(written(tmp_path / "paper.json", node(0.5, leaf(1), bad)))
    assert found.root is None and [each.met for each in found.leaves] == [True, None]
    assert (found.stored, found.matching) == (1, 0)


def test_a_tree_graded_by_a_model_names_it(tmp_path: Path) -> None:
    [found] = records(written(tmp_path / "paper.json", node(1.0, leaf(1, judge_metadata={"model": "o1"}))))
    assert found.judge == "o1"


def test_a_malformed_tree_names_the_node(tmp_path: Path) -> None:
    bad = problem(written(tmp_path / "paper.json", node(1.0, leaf(1, weight=-1))), "paperbench")
    assert bad.field == "sub_tasks.0.weight"


def test_folders_archives_and_packed_files_are_read_alike(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    written(folder / "one.jsonl", [COMPACT])
    written(folder / "two.jsonl", [FULL])
    written(folder / "notes.jsonl", [{"text": "not a verdict"}])
    assert len(records(folder)) == 2
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for file in folder.iterdir():
            target.write(file, file.name)
    assert len(records(archive)) == 2
    packed = tmp_path / "one.jsonl.gz"
    packed.write_bytes(gzip.compress((folder / "one.jsonl").read_bytes()))
    assert len(records(packed)) == 1


def test_a_line_that_is_not_json_is_a_problem_and_the_next_is_read(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps(LINE) + "\n{\n\n" + json.dumps({**LINE, "pair": 2}) + "\r\n")
    found = [(line, type(record)) for _, line, record in read(file)]
    assert found == [(1, RecordedPair), (2, RowProblem), (4, RecordedPair)]
