"""Which side an example falls on, once and for all: train or held out."""

from collections.abc import Iterator

from django.db.models import Exists, OuterRef

from trainer.contracts import Example as Record

from .importers import RowProblem
from .models import Dataset, VersionMember
from .sides import Rule


class Splits:
    """Gives each example its side by a rule, and by what the earlier versions of a dataset say."""

    def __init__(self, dataset: Dataset | None, rule: Rule) -> None:
        self.dataset = dataset
        self.rule = rule

    def settle(self, rows: list[tuple[int, Record]]) -> Iterator[tuple[int, Record] | RowProblem]:
        """The rows with their sides; a row whose own split contradicts the earlier one comes back as a problem."""
        before = self.before([example.key for _, example in rows])
        for line, example in rows:
            split = self.rule.decide(line, example, before)
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
