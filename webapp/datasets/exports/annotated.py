"""Describes how people annotated the data of a version. The app of annotation registers the function, because this app knows nothing of
projects."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from ..models import DatasetVersion


@dataclass(frozen=True)
class Annotated:
    """The present answers of one project: `answers` to `tasks`, by `people`, between `first` and `last`. `least` and `most` are the answers
    of a task. `guidelines` are the numbers of the versions by which people worked; empty if they had none."""

    project: str
    kind: str
    guidelines: tuple[int, ...]
    people: int
    tasks: int
    answers: int
    least: int
    most: int
    suggested: int
    """The number of answers before which a model's view was shown; `suggested_by` lists the sources of the views."""
    suggested_by: tuple[str, ...]
    first: date
    last: date


Asked = Callable[[DatasetVersion, list[int]], list[Annotated]]
ANNOTATED: list[Asked] = []
"""Functions that each return how the projects with these ids annotated, for a version of the same workspace."""


def annotated_projects(version: DatasetVersion, line: list[dict[str, object]]) -> list[Annotated]:
    """The projects in the version's line of descent, as `data_card.line` gives it, each once."""
    made = (step["lineage"] for step in line)
    ids = [
        each["project"]
        for each in made
        if isinstance(each, dict) and each.get("from") == "annotation" and isinstance(each.get("project"), int)
    ]
    return [found for ask in ANNOTATED for found in ask(version, list(dict.fromkeys(ids)))]
