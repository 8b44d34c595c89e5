"""The name of a version as one side of a leak."""

from dataclasses import dataclass

from ..models import DatasetVersion

HELDOUT = "heldout"


@dataclass(frozen=True)
class Side:
    """A version as one side of a leak."""

    version: int
    dataset: int
    name: str
    number: int


def side_of(version: DatasetVersion) -> Side:
    return Side(version.pk, version.dataset_id, version.dataset.name, version.number)
