"""Rubrics as weighted trees: the score of a node is the weighted mean of its children's scores (PaperBench, 2025).

A node is a mapping with `weight`, and `sub_tasks` (a list of nodes, empty at a leaf).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Node = Mapping[str, Any]


def walk(node: Node) -> Iterator[Node]:
    """Every node, parents before their children."""
    yield node
    for child in node["sub_tasks"]:
        yield from walk(child)


def leaves(node: Node) -> Iterator[Node]:
    """The nodes without children, from left to right."""
    return (each for each in walk(node) if not each["sub_tasks"])


def effective_weights(node: Node) -> list[float]:
    """Each leaf's share of the root's score, in the order of `leaves`: the product of the shares on the way up.

    The shares sum to 1. Raises ValueError if weights of siblings are negative or sum to 0.
    """
    if not node["sub_tasks"]:
        return [1.0]
    return [
        share * weight
        for share, child in zip(_shares(node), node["sub_tasks"], strict=True)
        for weight in effective_weights(child)
    ]


def roll_up(node: Node, leaf_scores: Sequence[float | None]) -> list[float | None]:
    """The scores of all nodes in the order of `walk`, from the scores of the leaves in the order of `leaves`.

    A node above a leaf without a score has no score either: a missing score never counts as zero. Raises ValueError if there are more or
    fewer scores than leaves, or for weights as in `effective_weights`.
    """
    given = iter(leaf_scores)
    try:
        scores = _roll_up(node, given)
    except StopIteration:
        raise ValueError(f"{len(leaf_scores)} scores are fewer than the tree has leaves") from None
    if next(given, given) is not given:
        raise ValueError(f"{len(leaf_scores)} scores are more than the tree has leaves")
    return scores


def _roll_up(node: Node, given: Iterator[float | None]) -> list[float | None]:
    if not node["sub_tasks"]:
        return [next(given)]
    below = [_roll_up(child, given) for child in node["sub_tasks"]]
    own: float | None = 0.0
    for share, scores in zip(_shares(node), below, strict=True):
        own = None if own is None or scores[0] is None else own + share * scores[0]
    return [own, *(score for scores in below for score in scores)]


def _shares(node: Node) -> list[float]:
    weights = [child["weight"] for child in node["sub_tasks"]]
    total = sum(weights)
    if total <= 0 or min(weights) < 0:
        raise ValueError(f"the weights {weights} of siblings must not be negative, nor sum to 0")
    return [weight / total for weight in weights]
