"""PaperBench (Starace et al., 2025): the requirements for replicating a paper, as a weighted tree.

The leaves become criteria whose points are their share of the root's score, so that the rubric's score is the tree's. The tree itself stays
in `meta.tree`, whole. A graded tree also gives the verdicts of its human grader.
"""

from collections import Counter
from pathlib import PurePosixPath
from typing import Any

from trainer.rubrics import trees
from webapp.files.records import BadRow, Row

from .base_importer import Beside, Importer
from .convert import Convert, Mapping

NEEDED = {"id", "requirements", "weight", "sub_tasks"}
SUBMISSION = "submission"
MAX_DEPTH = 60


def knows(row: Row) -> float:
    return 0.98 if row.keys() >= NEEDED else 0.0


def bind(beside: Beside) -> Convert:
    paper = PurePosixPath(beside.name).name.removesuffix(".gz").removesuffix(".json") or "paper"

    def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
        check(row, "", 0)
        graded = "score" in row
        data: dict[str, Any] = {
            "key": f"{paper}/graded" if graded else paper,
            "prompt": [{"role": "user", "content": _task(paper)}],
            "source": "PaperBench",
            "domain": "paper replication",
            "tags": [paper],
            "rubric": {"criteria": _criteria(row)},
            "meta": {"paper": paper, "tree": row},
        }
        return data | _grades(row, data) if graded else data

    return convert


def _task(paper: str) -> str:
    return f"Replicate the research paper “{paper}” from scratch: write and run code that reproduces its core results."


def check(node: Any, at: str, depth: int) -> None:
    """Raises BadRow at the first node of the tree that is malformed."""
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        raise BadRow(at, "must be a node" if depth <= MAX_DEPTH else f"lies deeper than {MAX_DEPTH} levels")
    prefix = f"{at}." if at else ""
    for field, kind in (("id", str), ("requirements", str), ("sub_tasks", list)):
        if not isinstance(node.get(field), kind):
            raise BadRow(prefix + field, "is missing" if field not in node else f"must be a {kind.__name__}")
    weight = node.get("weight")
    if not isinstance(weight, int | float) or isinstance(weight, bool) or weight <= 0:
        raise BadRow(f"{prefix}weight", f"must be a number above 0, found {weight!r}")
    for index, child in enumerate(node["sub_tasks"]):
        check(child, f"{prefix}sub_tasks.{index}", depth + 1)


def leaf_ids(tree: Row) -> list[str]:
    """The ids of the criteria: those of the leaves. A few trees use an id twice; a repeated one gets a number at its end."""
    seen: Counter[str] = Counter()
    found = []
    for leaf in trees.leaves(tree):
        seen[leaf["id"]] += 1
        found.append(leaf["id"][:60] if seen[leaf["id"]] == 1 else f"{leaf['id'][:56]}~{seen[leaf['id']]}")
    return found


def _criteria(tree: Row) -> list[Row]:
    return [
        {
            "id": id,
            "text": leaf["requirements"],
            "points": weight,
            "tags": [str(leaf[name]) for name in ("task_category", "finegrained_task_category") if leaf.get(name)],
        }
        for id, leaf, weight in zip(leaf_ids(tree), trees.leaves(tree), trees.effective_weights(tree), strict=True)
    ]


def _grades(tree: Row, data: dict[str, Any]) -> dict[str, Any]:
    """The submission and its grader's verdict on every leaf, in the words of `contracts.Verdict`."""
    verdicts = [
        {"criterion_id": id, "met": _met(leaf), "source": "human", "note": leaf.get("explanation") or ""}
        for id, leaf in zip(leaf_ids(tree), trees.leaves(tree), strict=True)
    ]
    words = f"[the submission is a repository that replicates “{data['meta']['paper']}”; it is not part of the file]"
    given = {"response": SUBMISSION, "rater": "human grader", "verdicts": verdicts}
    return {
        "responses": [{"id": SUBMISSION, "text": words}],
        "meta": data["meta"] | {"verdicts": [given], "score": tree["score"]},
    }


def _met(leaf: trees.Node) -> bool | None:
    """Whether the leaf is met; None if the grade is marked invalid, or is neither 0 nor 1."""
    known: dict[object, bool] = {0: False, 1: True}
    return known.get(leaf.get("score")) if leaf.get("valid_score", True) else None


IMPORTER = Importer(
    name="paperbench",
    label="PaperBench rubric trees",
    help="One tree of weighted requirements per file, graded or not; the file's name is the paper's.",
    knows=knows,
    bind=bind,
)
