"""Rows of other apps that a config may name: which there are, and whether one of them is what is wanted.

A field declares its source as `name:detail`, such as `judges:pairwise`. Apps above this one (runs) register theirs when
they start, so that evaluations need not know them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trainer.config.errors import FieldProblem
from webapp.core.formtree import Group, Tree
from webapp.datasets.models import DatasetVersion

from .recipes.base import Rollout

Options = list[tuple[str, str]]


@dataclass(frozen=True)
class Source:
    """`options(workspace id, detail)` offers (id, words); `problem(workspace id, detail, id)` says what is wrong, or ""."""

    options: Callable[[int, str], Options]
    problem: Callable[[int, str, int], str]


SOURCES: dict[str, Source] = {}
# (workspace id, run id, step) -> what the run's evaluation sampled; the runs' app puts its function here
ROLLOUTS: list[Callable[[int, int, int | None], Iterator[Rollout]]] = []
TRAINED: list[Callable[[int, int, int | None], Iterator[Rollout]]] = []  # the same of what it sampled to learn from
# (workspace id, run id, step) -> rho of each of those responses, in their order; raises NotMeasured
NOVELTY: list[Callable[[int, int, int | None], list[float | None]]] = []
# (workspace id, models, runs) -> the versions of datasets that these, and the models they begin with, have trained on
TRAINED_ON: list[Callable[[int, Iterable[int], Iterable[int]], list[DatasetVersion]]] = []


def fill(workspace_id: int, group: Group) -> Group:
    """Gives every field that names a row the rows there are."""
    known: dict[str, tuple[tuple[str, str], ...]] = {}
    for each in group.every_input():
        if each.source:
            if each.source not in known:
                name, _, detail = each.source.partition(":")
                known[each.source] = tuple(SOURCES[name].options(workspace_id, detail)) if name in SOURCES else ()
            each.options = known[each.source]
    return group


def problems(workspace_id: int, schema: dict[str, Any], config: dict[str, Any]) -> Iterator[FieldProblem]:
    """What is wrong with the rows that a resolved config names, each at its field."""
    for each in Tree(schema).draw(config, {}).every_input():
        if not each.source or not each.value:
            continue
        name, _, detail = each.source.partition(":")
        found = SOURCES[name].problem(workspace_id, detail, int(each.value)) if name in SOURCES else f"no {name} here"
        if found:
            yield FieldProblem(each.path, found)
