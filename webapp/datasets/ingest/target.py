"""The dataset of an import, and the rule by which its examples get their sides of the split."""

from dataclasses import dataclass

from webapp.core.problems import Invalid

from ..formats.importers import REGISTRY
from ..models import Dataset
from ..versions import earlier_splits, split_rule
from ..versions.split_rule import EarlierSides, Rule


@dataclass(frozen=True)
class ImportTarget:
    """The dataset of an import, and the choices of the person who imports about the sides."""

    workspace_id: int
    name: str = ""
    heldout_share: float | None = None
    group_by: str = ""


def rule_of(format: str, dataset: Dataset | None, target: ImportTarget) -> Rule:
    """The rule by which an import of this format into `dataset`, None for a new one, gives sides."""
    earlier = earlier_splits.of_units(dataset) if dataset else EarlierSides.none()
    share = share_of(format, dataset, target.heldout_share)
    return Rule(share, dataset.group_by if dataset else target.group_by, earlier)


def share_of(format: str, dataset: Dataset | None, asked: float | None) -> float:
    """The requested held-out share, or the dataset's, or the default of the format."""
    known = dataset.heldout_share if dataset else None
    suits = REGISTRY[format].heldout_share if known is None else known
    return suits if asked is None else asked


def checked_target(workspace_id: int, name: str, heldout_share: float | None, group_by: str) -> ImportTarget:
    """The target of an import that is not requested yet, so the name may be missing. Raises Invalid at `group_by`."""
    name = " ".join(name.replace("\0", " ").split())
    return ImportTarget(workspace_id, name, heldout_share, group_field(workspace_id, name, group_by))


def group_field(workspace_id: int, name: str, group_by: str) -> str:
    """The field to group by, checked. Raises Invalid at `group_by`."""
    try:
        field = split_rule.group_field(group_by)
    except ValueError as error:
        raise Invalid("The field to group by is not known.", {"group_by": str(error)}) from error
    known = Dataset.objects.filter(workspace_id=workspace_id, name=name).first()
    if known and field and field != known.group_by:
        kept = f"{name} keeps examples of one {known.group_by or 'prompt'} on one side, and the sides are already drawn"
        raise Invalid("The groups of a dataset cannot change.", {"group_by": kept})
    return known.group_by if known else field
