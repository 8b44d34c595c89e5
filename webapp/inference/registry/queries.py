"""The origin of a model, and everything that was made with it."""

from dataclasses import dataclass
from typing import Any

from ..models import Endpoint, RegisteredModel

MOST_RELATED = 20


@dataclass(frozen=True)
class Lineage:
    """The origin of a model, and the rows that depend on it. `run` and `version` are None if no run here has made it."""

    run: Any
    step: int | None
    version: Any
    runs: list[Any]
    slots: list[Any]
    """Rows of runs that use the model, but not as their base. Each has `run` and `role`."""
    derived: list[RegisteredModel]
    endpoints: list[Endpoint]

    @property
    def is_used(self) -> bool:
        return bool(self.runs or self.slots or self.derived or self.endpoints)


def lineage(model: RegisteredModel) -> Lineage:
    """The newest MOST_RELATED of each. Needs `artifact.run` loaded with the row."""
    artifact = getattr(model, "artifact", None)
    run = artifact.run if artifact is not None else None
    return Lineage(
        run,
        artifact.step if artifact is not None else None,
        run.dataset_version if run is not None else None,
        list(model.runs.select_related("experiment").order_by("-id")[:MOST_RELATED]),
        list(model.run_slots.exclude(role="base").select_related("run__experiment").order_by("-id")[:MOST_RELATED]),
        list(model.derived.order_by("-id")[:MOST_RELATED]),
        list(model.endpoints.order_by("-id")[:MOST_RELATED]),
    )
