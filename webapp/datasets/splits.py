"""Which side an example falls on, once and for all: train or held out."""

from collections.abc import Iterator, Mapping
from typing import cast

from django.db.models import Exists, OuterRef

from trainer.contracts import Example as Record
from trainer.contracts.example import Split

from .digests import side
from .importers import RowProblem
from .models import Dataset, VersionMember


class Splits:
    """Gives each example its side. A key that has one in an earlier version of the dataset keeps it; a new key without
    one is drawn by `share` of held-out examples, or left without one where `share` is None. `as_given` takes what the
    rows say, nothing included, and only refuses contradictions.
    """

    def __init__(self, dataset: Dataset | None, share: float | None, as_given: bool = False) -> None:
        self.dataset = dataset
        self.share = share
        self.as_given = as_given

    def settle(self, rows: list[tuple[int, Record]]) -> Iterator[tuple[int, Record] | RowProblem]:
        """The rows with their sides; a row whose own split contradicts the earlier one comes back as a problem."""
        before = self.before([example.key for _, example in rows])
        for line, example in rows:
            split = self.decide(line, example, before)
            if isinstance(split, RowProblem):
                yield split
            else:
                yield line, example if split == example.split else example.model_copy(update={"split": split})

    def before(self, keys: list[str]) -> dict[str, str]:
        """The sides that these keys have in earlier versions; a version that is still filled is none."""
        if self.dataset is None:
            return {}
        rows = self.dataset.examples.filter(key__in=keys).exclude(split="")
        listed = VersionMember.objects.filter(example=OuterRef("pk")).exclude(version__digest="")
        return dict(rows.filter(Exists(listed)).values_list("key", "split"))

    def decide(self, line: int, example: Record, before: Mapping[str, str]) -> Split | None | RowProblem:
        """The side of one example, None for none, or why its own split cannot stand."""
        had = before.get(example.key)
        if example.split and had and example.split != had:
            reason = f"{example.key!r} is {had} in an earlier version; an example never changes side"
            return RowProblem(line, "split", reason)
        if example.split or self.as_given:
            return example.split
        return cast(Split, had) if had else None if self.share is None else side(example.key, self.share)
