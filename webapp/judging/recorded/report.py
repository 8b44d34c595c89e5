"""What recorded verdicts say of their judges, as JSON: the numbers of a page before there is one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from trainer.benchmarks.audit import Case, human_range
from trainer.benchmarks.classification import Confusion, accuracy, confusion, kappa, macro
from webapp.judging.audit import report as audits

from .base import Pairwise, Record, Tree

SIDES = {-1: "A", 0: "tie", 1: "B"}


def report(records: Iterable[Record]) -> dict[str, Any]:
    """Per judge (and collection of pairs): counts and measures; graded trees with their roll-ups."""
    pairs: dict[tuple[str, str], list[Pairwise]] = defaultdict(list)
    found: list[dict[str, Any]] = []
    for record in records:
        if isinstance(record, Tree):
            found.append(of_tree(record))
        else:
            pairs[record.judge, record.collection].append(record)
    judges = [{"judge": judge, "collection": name, **of_judge(pairs[judge, name])} for judge, name in sorted(pairs)]
    return {"judges": judges, "trees": found}


def of_judge(records: Sequence[Pairwise]) -> dict[str, Any]:
    """One judge on one collection. Pairs without a label are counted and leave everything that needs one."""
    labelled = [record for record in records if record.label is not None]
    both = [record for record in labelled if record.orders == "both"]
    return {
        "pairs": len(records),
        "unlabelled": len(records) - len(labelled),
        "unreadable": sum(bool(record.raw_given) + bool(record.raw_swapped) for record in records),
        "given": {
            "missing_is_wrong": _measures(_table(labelled)),
            "missing_is_tie": _measures(_table(labelled, missing=0)),
        },
        "orders": audits(map(as_case, both)) if both else [],
        "humans": _humans(records),
    }


def as_case(record: Pairwise) -> Case:
    """For audits, which take labelled pairs only."""
    if record.label is None:
        raise ValueError(f"pair {record.pair!r} has no label")
    return Case(record.judge, record.pair, record.group, record.label, record.given, record.swapped)


def _table(records: Sequence[Pairwise], missing: int | None = None) -> Confusion:
    said = [missing if record.given is None else record.given for record in records]
    return confusion([record.label for record in records], said, (-1, 0, 1))


def _measures(table: Confusion) -> dict[str, Any]:
    return {
        "n": table.n,
        "missing": table.missing,
        "values": [SIDES[value] for value in table.values],
        "cells": [list(row) for row in table.cells_VV],
        "accuracy": accuracy(table).json(),
        "kappa": kappa(table).json(),
        **{f"macro_{name}": found.json() for name, found in macro(table).items()},
    }


def _humans(records: Sequence[Pairwise]) -> dict[str, Any] | None:
    """Agreement with people beside that among people; None where no record says what people said."""
    if not any(record.humans for record in records):
        return None
    found = human_range({r.pair: r.given for r in records}, {r.pair: r.humans for r in records})
    return {
        "judge": found.judge.json(),
        "humans": found.humans.json(),
        "difference": found.difference.json(),
        "raters": {rater: each.json() for rater, each in found.raters.items()},
        "place": found.place,
    }


def of_tree(tree: Tree) -> dict[str, Any]:
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
