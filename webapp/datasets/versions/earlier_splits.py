"""The sides of keys, prompts and groups in the earlier versions of a dataset."""

from collections.abc import Iterator

import numpy as np
from django.db.models import Exists, OuterRef

from trainer.contracts import Example as Record
from webapp.files.records import RowProblem

from ..columns import packed
from ..columns.prompt_hashes import hashes
from ..models import Dataset, VersionMember
from .split_rule import EarlierSides, Ground, Rule, Settled


def of_keys(dataset: Dataset, keys: list[str]) -> dict[str, str]:
    """The sides of these keys in earlier versions. A version that is still being filled does not count."""
    rows = dataset.examples.filter(key__in=keys).exclude(split="")
    listed = VersionMember.objects.filter(example=OuterRef("pk")).exclude(version__digest="")
    return dict(rows.filter(Exists(listed)).values_list("key", "split"))


def of_units(dataset: Dataset) -> EarlierSides:
    """The sides of all prompts and groups in the versions of the dataset."""
    train, heldout = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for columns in packed.split_columns(dataset.versions.values_list("id", flat=True)).values():
        for hashed in (columns.prompts, columns.groups):
            train.append(np.unique(hashed[columns.train]))
            heldout.append(np.unique(hashed[columns.heldout]))
    return EarlierSides.of(np.concatenate(train), np.concatenate(heldout))


class Settler:
    """Gives the records of one new version their sides, in their order: earlier records decide for later ones."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._settled: dict[int, Settled] = {}
        self._rule = Rule(dataset.heldout_share, dataset.group_by, of_units(dataset), self._settled)

    def settle(self, rows: list[tuple[int, Record]]) -> Iterator[tuple[int, Record] | RowProblem]:
        """The rows with their sides. A row whose own split contradicts an earlier one is returned as a problem."""
        before = of_keys(self._dataset, [example.key for _, example in rows])
        for line, example in rows:
            group = self._rule.group_of(example)
            grouped = example if group == example.group else example.model_copy(update={"group": group})
            yield self._decided(line, grouped, before)

    def _decided(self, line: int, example: Record, before: dict[str, str]) -> tuple[int, Record] | RowProblem:
        found = hashes(example)
        decision = self._rule.decide(line, example, found, before)
        if isinstance(decision, RowProblem):
            return decision
        split, ground = decision
        if split and ground != Ground.MIXED:
            for unit in filter(None, found):
                self._settled.setdefault(unit, Settled(split, f"record {line}"))
        return line, example if split == example.split else example.model_copy(update={"split": split})
