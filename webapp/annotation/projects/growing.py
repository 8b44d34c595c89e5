"""Projects whose dataset grows while people work: each addition makes the next version, to which the project moves.

So the examples of its tasks, its publications and the models trained on them are in a version, as with any other project.
"""

from collections.abc import Sequence

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.annotation.models import Project
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.versions import services as datasets


def version(
    membership: Membership,
    dataset: Dataset,
    records: Sequence[Example],
    base: DatasetVersion | None,
    lineage: str,
    **facts: object,
) -> DatasetVersion:
    """The frozen version of `base` and `records`; `lineage["from"]` says what adds to the dataset, and `facts` stand beside it."""
    told = {"from": lineage, **facts}
    return datasets.freeze(membership, datasets.new_version(membership, dataset, records, base, told))


def grow(membership: Membership, project: Project, records: Sequence[Example], lineage: str, **facts: object) -> None:
    """Moves the project, whose row the caller has locked, to the version with `records`."""
    made = version(membership, project.version.dataset, records, project.version, lineage, **facts)
    Project.objects.filter(pk=project.pk).update(version=made)
    project.version = made
