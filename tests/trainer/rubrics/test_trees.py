"""Weighted trees: scores are weighted means from the leaves up, and shares of the root are computed from the root down."""

import json

import pytest

from tests.shared import SHARED, needs_shared
from trainer.rubrics import trees

GRADED = SHARED / "paperbench/judge_eval_human_graded"
ROOTS = {
    "all-in-one": 0.7139,
    "pinn": 0.8342,
    "rice": 0.1857,
    "semantic-self-consistency": 0.9100,
    "stay-on-topic-with-classifier-free-guidance": 0.4815,
}


def node(weight, *children):
    return {"weight": weight, "sub_tasks": list(children)}


TREE = node(1, node(3, node(1), node(1)), node(1))


def test_each_node_is_the_weighted_mean_of_its_children() -> None:
    assert trees.roll_up(TREE, [1.0, 0.0, 1.0]) == [0.75 * 0.5 + 0.25, 0.5, 1.0, 0.0, 1.0]


def test_effective_weights_are_the_leaves_shares_of_the_root() -> None:
    assert trees.effective_weights(TREE) == [0.375, 0.375, 0.25]
    assert trees.effective_weights(node(7)) == [1.0]


def test_a_missing_score_is_missing_up_to_the_root_and_never_zero() -> None:
    assert trees.roll_up(TREE, [None, 0.0, 1.0]) == [None, None, None, 0.0, 1.0]


@pytest.mark.parametrize("scores", [[1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
def test_the_scores_must_be_as_many_as_the_leaves(scores) -> None:
    with pytest.raises(ValueError, match="than the tree has leaves"):
        trees.roll_up(TREE, scores)


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2)])
def test_weights_that_make_no_mean_are_refused(weights) -> None:
    with pytest.raises(ValueError, match="weights"):
        trees.effective_weights(node(1, *map(node, weights)))


@needs_shared
def test_all_838_inner_nodes_of_paperbench_get_their_stored_score() -> None:
    inner = matching = 0
    for paper, root in ROOTS.items():
        tree = json.loads((GRADED / f"{paper}.json").read_text())
        scores = trees.roll_up(tree, [leaf["score"] for leaf in trees.leaves(tree)])
        assert round(scores[0] or 0, 4) == root
        for each, score in zip(trees.walk(tree), scores, strict=True):
            inner += bool(each["sub_tasks"])
            matching += bool(each["sub_tasks"]) and abs((score or 0) - each["score"]) < 1e-9
        weighted = zip(trees.effective_weights(tree), trees.leaves(tree), strict=True)
        assert sum(weight * leaf["score"] for weight, leaf in weighted) == pytest.approx(tree["score"])
    assert (matching, inner) == (838, 838)
