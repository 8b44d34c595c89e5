"""The command that reads recorded verdicts: one JSON object, or every problem by file and line."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.shared import SHARED, needs_shared

LINE = {"judge": "j", "pair": 1, "group": "g", "label": "A", "given": "A", "swapped": "B"}


def imported(path: Path, *options: str) -> dict[str, Any]:
    out = StringIO()
    try:
        call_command("import_verdicts", str(path), *options, stdout=out)
    except CommandError:
        assert json.loads(out.getvalue()).keys() == {"error"}  # there is no result for a part of a file
        raise
    return json.loads(out.getvalue())


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_was_read_and_what_it_says(tmp_path: Path) -> None:
    rows = [
        LINE,
        {**LINE, "pair": 2, "given": "tie"},
        {**LINE, "pair": 3, "label": None},
        {**LINE, "pair": 4, "given": None},
    ]
    found = imported(written(tmp_path / "f.jsonl", *rows))
    assert (found["format"], found["files"], found["records"], found["trees"]) == ("audit", 1, 4, [])
    [judge] = found["judges"]
    assert (judge["judge"], judge["pairs"], judge["unlabelled"], judge["humans"]) == ("j", 4, 1, None)
    assert judge["given"]["missing_is_wrong"]["accuracy"]["value"] == pytest.approx(1 / 3)
    assert judge["given"]["missing_is_wrong"]["missing"] == 1
    assert judge["given"]["missing_is_tie"]["cells"] == [[1, 2, 0], [0, 0, 0], [0, 0, 0]]
    assert [r["accuracy_net"]["value"] for r in judge["orders"]] == [1, 1]


def test_every_problem_is_named_and_no_result_printed(tmp_path: Path) -> None:
    file = written(tmp_path / "f.jsonl", LINE, {**LINE, "pair": 2, "given": "?"}, [1], LINE)
    with pytest.raises(CommandError) as caught:
        imported(file)
    told = str(caught.value).splitlines()
    assert told[0].startswith("f.jsonl, line 2: field 'given': no verdict")
    assert told[1].startswith("f.jsonl, line 3: expected a JSON object")
    assert told[2] == "f.jsonl, line 4: repeats f.jsonl, line 1"


def test_a_format_may_be_named_and_a_wrong_one_says_why(tmp_path: Path) -> None:
    file = written(tmp_path / "f.jsonl", LINE)
    assert imported(file, "--format", "audit")["records"] == 1
    with pytest.raises(CommandError, match="line 1: field 'idx': is missing"):
        imported(file, "--format", "pandalm")


def test_files_without_verdicts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no recorded verdicts of a known format"):
        imported(written(tmp_path / "f.jsonl", {"text": "hello"}))
    with pytest.raises(CommandError, match="holds no verdicts"):
        imported(written(tmp_path / "e.jsonl"), "--format", "audit")
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        imported(tmp_path / "none.jsonl")


GROUPS = ("knowledge", "reasoning", "math", "coding", "overall")
TABLE_3 = {  # JudgeBench (Tan et al., 2024), Table 3: reward models, on the pairs of gpt-4o
    "Skywork_Skywork-Reward-Gemma-2-27B": (59.74, 66.33, 83.93, 50.00, 64.29),
    "Skywork_Skywork-Reward-Llama-3.1-8B": (59.09, 64.29, 76.79, 50.00, 62.29),
    "internlm_internlm2-20b-reward": (62.34, 69.39, 66.07, 50.00, 63.43),
    "Ray2333_GRM-Gemma-2B-rewardmodel-ft": (62.99, 53.06, 64.29, 54.76, 59.43),
    "internlm_internlm2-7b-reward": (56.49, 61.22, 71.43, 50.00, 59.43),
}


@needs_shared
def test_all_25_cells_of_judgebench_table_3(tmp_path: Path) -> None:
    judges = {each["judge"]: each for each in imported(SHARED / "judgebench/judgments.jsonl")["judges"]}
    for model, published in TABLE_3.items():
        judge = judges[f"reward_model:{model}"]
        found = {r["group"]: round(100 * r["accuracy_net"]["value"], 2) for r in judge["orders"]}
        assert tuple(found[group] for group in GROUPS) == published
        assert judge["collection"] == "gpt-4o-2024-05-13" and judge["pairs"] == 350


@needs_shared
def test_judgebench_through_the_audit_command(tmp_path: Path) -> None:
    """The same cells from plain audit lines. The second decision is given as the judge said it."""
    prefixes = {"mmlu-pro": "knowledge", "livebench-r": "reasoning", "livebench-m": "math", "livecode": "coding"}
    file = tmp_path / "lines.jsonl"
    with (SHARED / "judgebench/judgments.jsonl").open() as source, file.open("w") as target:
        for row in map(json.loads, source):
            if row["judge_name"] != "reward_model":
                continue
            group = next(name for prefix, name in prefixes.items() if row["source"].startswith(prefix))
            line = {"judge": row["judge_model"], "pair": row["pair_id"], "group": group, "label": row["label"]}
            target.write(json.dumps({**line, "given": row["decision_AB"], "swapped": row["decision_BA"]}) + "\n")
    out = StringIO()
    call_command("audit", str(file), stdout=out)
    cells = {
        (r["judge"], r["group"]): round(100 * r["accuracy_net"]["value"], 2)
        for r in json.loads(out.getvalue())["audits"]
    }
    assert cells == {(judge, g): value for judge, row in TABLE_3.items() for g, value in zip(GROUPS, row, strict=True)}


@needs_shared
@pytest.mark.parametrize(
    ("file", "published"),
    [
        ("gpt-3.5-turbo-testset-v1.json", (71.07, 58.79, 57.36, 57.55)),
        ("pandalm-7b-testset-v1.json", (66.77, 57.38, 57.50, 57.43)),
    ],
)
def test_pandalms_judges_score_as_published(file: str, published: tuple[float, ...]) -> None:
    """The published row counts unreadable verdicts as ties. The count without them is beside it."""
    [judge] = imported(SHARED / "pandalm" / file)["judges"]
    assert judge["pairs"] == 999 and judge["unlabelled"] == 0
    measured = judge["given"]["missing_is_tie"]
    names = ("accuracy", "macro_precision", "macro_recall", "macro_f1")
    assert tuple(round(100 * measured[name]["value"], 2) for name in names) == published
    assert [sum(row) for row in measured["cells"]] == [422, 105, 472]  # labels 1, tie and 2
    strict = judge["given"]["missing_is_wrong"]
    assert strict["missing"] == judge["unreadable"] and strict["accuracy"]["value"] <= measured["accuracy"]["value"]
    assert judge["humans"]["place"] == "below"


@needs_shared
def test_paperbenchs_graded_trees_roll_up_to_their_stored_scores() -> None:
    found = imported(SHARED / "paperbench/judge_eval_human_graded")
    roots = {tree["tree"]: round(tree["root"], 4) for tree in found["trees"]}
    assert roots == {
        "all-in-one": 0.7139,
        "pinn": 0.8342,
        "rice": 0.1857,
        "semantic-self-consistency": 0.9100,
        "stay-on-topic-with-classifier-free-guidance": 0.4815,
    }
    assert sum(tree["matching"] for tree in found["trees"]) == sum(tree["inner"] for tree in found["trees"]) == 838
    assert sum(tree["leaves"] for tree in found["trees"]) == 2693


def test_good_records_are_kept_when_asked_and_the_bad_ones_named(tmp_path: Path) -> None:
    file = written(tmp_path / "f.jsonl", LINE, {**LINE, "pair": 2, "given": "?"}, LINE, {**LINE, "pair": 3})
    out, errors = StringIO(), StringIO()
    call_command("import_verdicts", str(file), "--keep-good", stdout=out, stderr=errors)
    found = json.loads(out.getvalue())
    assert (found["records"], found["bad_lines"], found["judges"][0]["pairs"]) == (2, 2, 2)
    told = errors.getvalue().splitlines()
    assert told[0].startswith("f.jsonl, line 2: field 'given': no verdict")
    assert told[1] == "f.jsonl, line 3: repeats f.jsonl, line 1"
