"""The sides of the split on which the first rows of a file would be, and the prompts that they share with other datasets."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from webapp.files.records import RowProblem

from ..leakage import leaks
from ..models import Dataset
from ..versions import earlier_splits
from ..versions.split_rule import Decision, Ground, Rule
from . import split_conflicts
from .inspection import InspectedRow
from .split_conflicts import InMemory, SideClaim
from .target import ImportTarget, rule_of


@dataclass(frozen=True)
class Sided:
    """Rows by side and by the reason for it, the number of prompts with several rows, contradictions, and what other datasets have on the
    other side."""

    counts: dict[str, int]
    grounds: dict[str, int]
    repeated_prompts: int
    groups: int
    problems: list[RowProblem]
    overlaps: leaks.Overlaps
    splits: dict[int, str]  # position of the row -> its side

    def json(self) -> dict[str, Any]:
        named = ("counts", "grounds", "repeated_prompts", "groups")
        return {name: getattr(self, name) for name in named} | {"overlaps": self.overlaps.json()}


def known(target: ImportTarget) -> Dataset | None:
    """The dataset of this name, if there is one already."""
    return Dataset.objects.filter(workspace_id=target.workspace_id, name=target.name).first()


def sided(
    rows: Sequence[InspectedRow], names: Sequence[str], format: str, target: ImportTarget, dataset: Dataset | None
) -> Sided:
    """`names` are those of the files; `dataset` is the one with the target's name, if there is one."""
    rule = rule_of(format, dataset, target)
    before = earlier_splits.of_keys(dataset, [row.key for row in rows]) if dataset else {}
    decided = [_decide(rule, row, before) for row in rows]
    claims = [
        SideClaim(*row.hashes, decision.split or "", decision.ground, (row.file, row.line))
        for row, decision in zip(rows, decided, strict=True)
        if isinstance(decision, Decision)
    ]
    if settled := split_conflicts.settled(InMemory(claims), names):
        rule = replace(rule, settled=settled)
        decided = [_decide(rule, row, before) for row in rows]
    return _told(rows, names, decided, target, dataset)


def _decide(rule: Rule, row: InspectedRow, before: dict[str, str]) -> Decision | RowProblem:
    return rule.decide(row.line, row, row.hashes, before)


def _told(
    rows: Sequence[InspectedRow],
    names: Sequence[str],
    decided: Sequence[Decision | RowProblem],
    target: ImportTarget,
    dataset: Dataset | None,
) -> Sided:
    stand = [(row.hashes, said) for row, said in zip(rows, decided, strict=True) if isinstance(said, Decision)]
    prompts = Counter(each.prompt for each, _ in stand)
    sides = {
        side: np.array([each.prompt for each, said in stand if said.split == side], np.int64)
        for side in ("train", "heldout")
    }
    return Sided(
        counts={side: len(each) for side, each in sides.items()},
        grounds={ground.name.lower(): sum(said.ground == ground for _, said in stand) for ground in Ground},
        repeated_prompts=sum(count > 1 for count in prompts.values()),
        groups=len({each.group for each, _ in stand} - {0}),
        problems=[
            replace(said, file=names[row.file])
            for row, said in zip(rows, decided, strict=True)
            if isinstance(said, RowProblem)
        ],
        overlaps=leaks.with_others(
            target.workspace_id, dataset.pk if dataset else None, sides["train"], sides["heldout"]
        ),
        splits={place: said.split for place, said in enumerate(decided) if isinstance(said, Decision) and said.split},
    )
