"""PaperBench (Starace et al., 2025): rubric trees whose leaves a judge or a person has graded. A file holds one tree."""

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from trainer.rubrics import trees
from webapp.datasets.formats.paperbench import check, leaf_ids

from .base import Beside, GradedTree, Leaf, Row, VerdictFormat

NEEDED = {"id", "requirements", "weight", "sub_tasks", "score"}
GRADES: dict[object, bool] = {0: False, 1: True}
SAME = 1e-9


def knows(row: Row) -> float:
    return 0.98 if row.keys() >= NEEDED else 0.0


def bind(beside: Beside) -> Callable[[Row], Iterator[GradedTree]]:
    name = PurePosixPath(beside.name).name.removesuffix(".gz").removesuffix(".json")

    def convert(row: Row) -> Iterator[GradedTree]:
        check(row, "", 0)
        yield tree(row, name)

    return convert


def tree(row: Row, name: str) -> GradedTree:
    """The tree with its scores rolled up from its leaves; grades that are marked invalid, or not 0 or 1, are missing."""
    leaves = tuple(
        Leaf(
            id=id,
            text=leaf["requirements"],
            category=str(leaf.get("task_category") or ""),
            share=share,
            met=_met(leaf),
            note=str(leaf.get("explanation") or ""),
        )
        for id, share, leaf in zip(leaf_ids(row), trees.effective_weights(row), trees.leaves(row), strict=True)
    )
    scores = trees.roll_up(row, [None if leaf.met is None else float(leaf.met) for leaf in leaves])
    inner = [(node, score) for node, score in zip(trees.walk(row), scores, strict=True) if node["sub_tasks"]]
    stored = [(node["score"], score) for node, score in inner if isinstance(node.get("score"), int | float)]
    return GradedTree(
        judge=_judge(row),
        tree=name,
        leaves=leaves,
        root=scores[0],
        inner=len(inner),
        stored=len(stored),
        matching=sum(score is not None and abs(score - told) < SAME for told, score in stored),
    )


def _met(leaf: trees.Node) -> bool | None:
    score = leaf.get("score")
    return GRADES.get(score) if leaf.get("valid_score", True) and not isinstance(score, list | dict) else None


def _judge(row: Row) -> str:
    """The model that graded the first leaf, if the file names one; otherwise a person graded it."""
    details: Any = next(trees.leaves(row)).get("judge_metadata")
    return str(details.get("model") or "judge") if isinstance(details, dict) else "human grader"


FORMAT = VerdictFormat(
    name="paperbench",
    label="PaperBench graded trees",
    help="one tree per file, its nodes with requirements, weight, sub_tasks and score",
    knows=knows,
    bind=bind,
)
