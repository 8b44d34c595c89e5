"""Rows of other apps that a config may name: the options, and whether a named row fits.

A field declares its source as `name:detail`, such as `judges:pairwise`. Apps above this one (runs) register theirs when they start, so that
evaluations need not know them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trainer.config.errors import FieldProblem
from webapp.core.forms.formtree import FormGroup, Tree
from webapp.datasets import queries
from webapp.datasets.models import Dataset, DatasetVersion

from ..recipes.base import Rollout

Options = list[tuple[str, str]]
MAX_CHOICES = 200


@dataclass(frozen=True)
class RowSource:
    """`options(workspace id, detail)` gives (id, words); `problem(workspace id, detail, id)` says what is wrong, or ""."""

    options: Callable[[int, str], Options]
    problem: Callable[[int, str, int], str]


def _datasets(workspace_id: int, detail: str) -> Options:
    return [(str(row.pk), row.name) for row in queries.datasets(workspace_id).order_by("-id")[:MAX_CHOICES]]


def _dataset_problem(workspace_id: int, detail: str, dataset_id: int) -> str:
    row = Dataset.every.filter(workspace_id=workspace_id, pk=dataset_id).first()
    if row is None:
        return "this workspace has no such dataset"
    return f"{row.name} is archived; restore it, or choose another" if row.archived_at else ""


SOURCES: dict[str, RowSource] = {"datasets": RowSource(_datasets, _dataset_problem)}
# (workspace id, run id, step) -> what the run's evaluation sampled; the runs' app puts its function here
ROLLOUTS: list[Callable[[int, int, int | None], Iterator[Rollout]]] = []
TRAINED: list[
    Callable[[int, int, int | None], Iterator[Rollout]]
] = []  # the same for the responses from which it learnt
# (workspace id, run id, step) -> rho of each of those responses, in their order; raises NotMeasured
NOVELTY: list[Callable[[int, int, int | None], list[float | None]]] = []
# (workspace id, models, runs) -> the versions of datasets on which these, and the models they begin with, were trained
TRAINED_ON: list[Callable[[int, Iterable[int], Iterable[int]], list[DatasetVersion]]] = []


def newest(workspace_id: int, dataset_id: int) -> DatasetVersion | None:
    """The newest version of one of the workspace's datasets; None if it is archived, gone or has none."""
    return queries.offered_versions(workspace_id).filter(dataset_id=dataset_id).order_by("-number").first()


def fill(workspace_id: int, group: FormGroup) -> FormGroup:
    """Gives every field that names a row its options."""
    known: dict[str, tuple[tuple[str, str], ...]] = {}
    for each in group.every_input():
        if each.source:
            if each.source not in known:
                name, _, detail = each.source.partition(":")
                known[each.source] = tuple(SOURCES[name].options(workspace_id, detail)) if name in SOURCES else ()
            each.options = known[each.source]
    return group


def problems(workspace_id: int, schema: dict[str, Any], config: dict[str, Any]) -> Iterator[FieldProblem]:
    """Problems of the rows that a resolved config names, each at its field."""
    for each in Tree(schema).draw(config, {}).every_input():
        if not each.source or not each.value:
            continue
        name, _, detail = each.source.partition(":")
        found = SOURCES[name].problem(workspace_id, detail, int(each.value)) if name in SOURCES else f"no {name} here"
        if found:
            yield FieldProblem(each.path, found)
