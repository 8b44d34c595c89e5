"""The report of recorded verdicts about their judges, as JSON."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from trainer.metrics.audit import audit_packed, human_range, pack
from trainer.metrics.classification import Confusion, accuracy, confusion, kappa, macro

from ..lines.audits import shown
from ..lines.sides import SIDE_NAMES
from .formats.base import GradedTree, Record, RecordedPair


def report(records: Iterable[Record]) -> dict[str, Any]:
    """Counts and measures per judge and collection of pairs, and graded trees with their roll-ups.

    Reads `records` once. It keeps only what the numbers need: the sides of a pair, and what people said about it.
    """
    judges: dict[tuple[str, str], _Judge] = defaultdict(_Judge)
    trees: list[dict[str, Any]] = []
    for record in records:
        if isinstance(record, GradedTree):
            trees.append(of_tree(record))
        else:
            judges[record.judge, record.collection].add(record)
    found = [{"judge": name, "collection": where, **judges[name, where].json(name)} for name, where in sorted(judges)]
    return {"judges": found, "trees": trees}


class _Judge:
    """One judge on one collection. Pairs without a label are counted, and left out if a label is needed."""

    def __init__(self) -> None:
        self.pairs = self.unlabelled = self.unreadable = 0
        self.table: Counter[tuple[int, int | None]] = Counter()
        self.orders: dict[str, array[int]] = defaultdict(lambda: array("b"))  # by group: label, given, swapped
        self.given: dict[str, int | None] = {}
        self.humans: dict[str, Mapping[str, int]] = {}

    def add(self, record: RecordedPair) -> None:
        self.pairs += 1
        self.unreadable += bool(record.raw_given) + bool(record.raw_swapped)
        if record.humans:
            self.humans[record.pair], self.given[record.pair] = record.humans, record.given
        if record.label is None:
            self.unlabelled += 1
            return
        self.table[record.label, record.given] += 1
        if record.orders == "both":
            self.orders[record.group].extend(pack((record.label, record.given, record.swapped)))

    def json(self, judge: str) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "unlabelled": self.unlabelled,
            "unreadable": self.unreadable,
            "given": {
                "missing_is_wrong": _measures(_table(self.table)),
                "missing_is_tie": _measures(_table(self.table, missing=0)),
            },
            "orders": shown(audit_packed({judge: self.orders})) if self.orders else [],
            "humans": _humans(self.given, self.humans),
        }


def _table(counts: Counter[tuple[int, int | None]], missing: int | None = None) -> Confusion:
    pairs = [(label, missing if given is None else given) for label, given in counts.elements()]
    return confusion([label for label, _ in pairs], [said for _, said in pairs], (-1, 0, 1))


def _measures(table: Confusion) -> dict[str, Any]:
    return {
        "n": table.n,
        "missing": table.missing,
        "values": [SIDE_NAMES[value] for value in table.values],
        "cells": [list(row) for row in table.cells_VV],
        "accuracy": accuracy(table).json(),
        "kappa": kappa(table).json(),
        **{f"macro_{name}": found.json() for name, found in macro(table).items()},
    }


def _humans(given: Mapping[str, int | None], humans: Mapping[str, Mapping[str, int]]) -> dict[str, Any] | None:
    """Agreement with people, beside the agreement among people; None if no record tells what people said."""
    if not humans:
        return None
    found = human_range(given, humans)
    return {
        "judge": found.judge.json(),
        "humans": found.humans.json(),
        "difference": found.difference.json(),
        "raters": {rater: each.json() for rater, each in found.raters.items()},
        "place": found.place,
    }


def of_tree(tree: GradedTree) -> dict[str, Any]:
    missing = sum(leaf.met is None for leaf in tree.leaves)
    problem = {"undefined": f"{missing} leaves have no valid grade"} if tree.root is None else {}
    return {
        "judge": tree.judge,
        "tree": tree.tree,
        "leaves": len(tree.leaves),
        "missing": missing,
        "root": tree.root,
        **problem,
        "inner": tree.inner,
        "stored": tree.stored,
        "matching": tree.matching,
    }
