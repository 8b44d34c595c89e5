"""Which side an example falls on, once and for all: train or held out."""

from collections.abc import Iterator

from trainer.contracts import Example

from .digests import side
from .importers import RowProblem
from .models import Dataset


class Splits:
    """Gives each example its side. A key that has one in an earlier version of the dataset keeps it; a new key without
    one is drawn by `share` of held-out examples, or left without one where `share` is None. `as_given` takes what the
    rows say, nothing included, and only refuses contradictions.
    """

    def __init__(self, dataset: Dataset | None, share: float | None, as_given: bool = False) -> None:
        self.dataset = dataset
        self.share = share
        self.as_given = as_given

    def settle(self, rows: list[tuple[int, Example]]) -> Iterator[tuple[int, Example] | RowProblem]:
        """The rows with their sides; a row whose own split contradicts the earlier one comes back as a problem."""
        before = self._before([example.key for _, example in rows])
        for line, example in rows:
            had = before.get(example.key)
            if example.split and had and example.split != had:
                reason = f"{example.key!r} is {had} in an earlier version; an example never changes side"
                yield RowProblem(line, "split", reason)
            elif example.split or self.as_given:
                yield line, example
            elif split := had or (None if self.share is None else side(example.key, self.share)):
                yield line, example.model_copy(update={"split": split})
            else:
                yield line, example

    def _before(self, keys: list[str]) -> dict[str, str]:
        if self.dataset is None:
            return {}
        rows = self.dataset.examples.filter(key__in=keys).exclude(split="")
        return dict(rows.values_list("key", "split"))
