"""The start of a new sweep: a run, or an earlier sweep. Its trials keep this config, except for the keys that change."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse

from trainer.config import ConfigInvalid, upgrade_stored

from ..launch import named_rows
from ..launch.checks import DatasetChoice
from ..lifecycle.limits import RunLimits
from ..models import Run, Sweep
from . import keys
from .space import SweepAxis


@dataclass(frozen=True)
class SweepBase:
    """`run` becomes the source of the new sweep. `search` and `axes` are those of an earlier sweep, in the words of `checking.Wish`."""

    kind: str
    name: str
    url: str
    recipe: str
    config: dict[str, Any]
    dataset: DatasetChoice
    run: Run | None
    experiment: str
    search: Mapping[str, Any] = field(default_factory=dict)
    axes: list[SweepAxis] = field(default_factory=list)


def of_run(run: Run) -> SweepBase:
    return SweepBase(
        kind="run",
        name=str(run),
        url=reverse("run", args=[run.pk]),
        recipe=run.recipe,
        config=named_rows.config_today(run),
        dataset=DatasetChoice(id=run.data.dataset_id, version=run.data.number),
        run=run,
        experiment=run.experiment.name,
    )


def of_sweep(sweep: Sweep) -> SweepBase:
    """The same search again, to be changed before it starts: without its name, which belongs to the earlier sweep."""
    config = upgrade_stored(sweep.recipe, sweep.config)
    with suppress(ConfigInvalid):  # a model was deleted: the form says that there is none of its name
        config = named_rows.renamed(sweep.workspace_id, sweep.recipe, config, sweep.named_rows)
    return SweepBase(
        kind="sweep",
        name=sweep.name,
        url=reverse("sweep", args=[sweep.pk]),
        recipe=sweep.recipe,
        config=config,
        dataset=DatasetChoice(id=sweep.dataset, version=sweep.version),
        run=sweep.source,
        experiment=sweep.experiment.name,
        search={
            "method": sweep.method,
            "metric": sweep.metric,
            "better": "higher" if sweep.higher else "lower",
            "trials": sweep.wanted,
            "limits": RunLimits.of(sweep.limits),
            **{name: getattr(sweep, name) for name in ("seeds", "at_once", "seed", "first_rung", "factor", "together")},
        },
        axes=[SweepAxis.of(each) for each in sweep.axes],
    )


def typed(axis: SweepAxis) -> str:
    """The values of a key as a person types them."""
    if axis.is_range:
        return f"{keys.value_text(axis.low)} to {keys.value_text(axis.high)}"
    return ", ".join(map(keys.value_text, axis.values))
