"""Which side an example falls on, once and for all: train or held out."""

from collections.abc import Iterator, Mapping
from typing import cast

from trainer.contracts import Example as Record
from trainer.contracts.example import Split

from .digests import side
from .importers import RowProblem
from .models import Dataset, Example


class Splits:
    """Gives each example its side. A key that has one in an earlier version of the dataset keeps it; a new key without
    one is drawn by `share` of held-out examples, or left without one where `share` is None. `as_given` takes what the
    rows say, nothing included, and only refuses contradictions.
    """

    def __init__(self, dataset: Dataset | None, share: float | None, as_given: bool = False) -> None:
        self.dataset = dataset
        self.share = share
        self.as_given = as_given
        self._until: int | None = None

    def until_now(self) -> None:
        """From here on, "earlier" is what the dataset held at this moment: rows stored meanwhile are not."""
        self._until = Example.objects.order_by("-id").values_list("id", flat=True).first() or 0

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
        """The sides that these keys have in earlier versions."""
        if self.dataset is None:
            return {}
        rows = self.dataset.examples.filter(key__in=keys).exclude(split="")
        if self._until is not None:
            rows = rows.filter(id__lte=self._until)
        return dict(rows.values_list("key", "split"))

    def decide(self, line: int, example: Record, before: Mapping[str, str]) -> Split | None | RowProblem:
        """The side of one example, None for none, or why its own split cannot stand."""
        had = before.get(example.key)
        if example.split and had and example.split != had:
            reason = f"{example.key!r} is {had} in an earlier version; an example never changes side"
            return RowProblem(line, "split", reason)
        if example.split or self.as_given:
            return example.split
        return cast(Split, had) if had else None if self.share is None else side(example.key, self.share)
