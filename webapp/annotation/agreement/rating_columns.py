"""The values of one field as columns of whole numbers. As rows, a million values would make an object of every task, item and domain, half
a gigabyte in all."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from webapp.annotation.kinds.fields import Field
from webapp.annotation.models import Project

from .fields import rows

Ints = NDArray[np.int64]
Value = str | float


@dataclass(frozen=True)
class RatingColumns:
    """The values that are not `missing`, R of them, with their rater, task, item and domain. Items, values and domains are positions in the
    lists of names beside them; `values` is ascending."""

    tasks_R: Ints
    users_R: Ints
    items_R: Ints
    values_R: Ints
    domains_R: Ints
    items: dict[str, int]
    values: list[Value]
    domains: list[str]
    missing: int

    @property
    def units_R(self) -> Ints:
        """A number for each item of each task."""
        return self.tasks_R * len(self.items) + self.items_R

    def unit(self, task: int, item: str) -> int:
        """The number of one item of a task."""
        return task * len(self.items) + self.items[item]

    def only(self, kept_R: NDArray[np.bool_]) -> "RatingColumns":
        """A selection of the values, under the same names."""
        return replace(
            self,
            tasks_R=self.tasks_R[kept_R],
            users_R=self.users_R[kept_R],
            items_R=self.items_R[kept_R],
            values_R=self.values_R[kept_R],
            domains_R=self.domains_R[kept_R],
        )

    def by_domain(self) -> Iterator[tuple[str, "RatingColumns"]]:
        """The values of each domain, the domain with most values first."""
        counts = np.bincount(self.domains_R, minlength=len(self.domains))
        for place in sorted(range(len(counts)), key=lambda place: (-counts[place], self.domains[place])):
            yield self.domains[place], self.only(self.domains_R == place)


def read(project: Project, field: Field) -> RatingColumns:
    """Every value given so far; see `fields.rows`."""
    columns = [array("q") for _ in range(5)]
    items: dict[str, int] = {}
    texts: dict[str, int] = {}
    domains: dict[str, int] = {}
    missing = 0
    for task, user, item, value, domain in rows(project, field):
        if value is None:
            missing += 1
            continue
        found = (task, user, _place(items, item), _place(texts, str(value)), _place(domains, domain))
        for column, number in zip(columns, found, strict=True):
            column.append(number)
    tasks_R, users_R, items_R, texts_R, domains_R = (np.array(column, np.int64) for column in columns)
    said = [field.value(text) for text in texts]
    values = sorted(set(said), key=lambda value: (isinstance(value, str), value))
    values_R = np.array([values.index(value) for value in said], np.int64)[texts_R]
    return RatingColumns(tasks_R, users_R, items_R, values_R, domains_R, items, values, list(domains), missing)


def _place(known: dict[str, int], name: str) -> int:
    """The position of a name in `known`, where a new name is appended."""
    return known.setdefault(name, len(known))
