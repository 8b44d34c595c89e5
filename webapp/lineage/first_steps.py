"""The first step of a walk where relations alone would find too much or too little: from an example, and down from what people gave."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from webapp.annotation.models import Project, Publication, PublishedCase, Task
from webapp.datasets.models import Example, VersionMember

from .edges import EDGES, KEPT

Way = Literal["down", "up"]
Node = tuple[str, int]

GIVEN = {
    "person": ("s.user_id", "SELECT project_id FROM annotation_participant WHERE user_id = %(id)s"),
    "answer": ("a.id", "SELECT project_id FROM annotation_answer WHERE id = %(id)s"),
    "guidelines": ("a.guidelines_id", "SELECT project_id FROM annotation_guidelines WHERE id = %(id)s"),
}
"""Starts that are, or have, answers of people: the column that says which answers, and their projects, from which indexes lead to them."""

# the labels that the start is behind, by publication and example
_LABELS = f"""
SELECT DISTINCT p.id AS publication, p.version_id AS version, e.dataset_id AS dataset, e.key
FROM annotation_publication p JOIN {KEPT} JOIN annotation_task t ON t.id = c.task_id JOIN datasets_example e ON e.id = t.example_id
WHERE {{column}} = %(id)s AND p.project_id IN ({{projects}})
"""  # noqa: S608  ours
_DERIVED = next(each for each in EDGES if (each.above, each.below) == ("version", "version")).sql("down")
# A version of the dataset holds a label if it was derived from the published version and has the example. In another dataset the example may
# have another key, so there every derived version counts.
_HELD = f"""
WITH RECURSIVE label AS MATERIALIZED ({_LABELS}), held (kind, id) AS (
    SELECT 'version'::text, version FROM label
    UNION
    SELECT found.kind, found.id FROM held r CROSS JOIN LATERAL ({_DERIVED}) AS found (kind, id)
    JOIN datasets_datasetversion v ON v.id = found.id
    WHERE NOT EXISTS (SELECT FROM label WHERE label.dataset = v.dataset_id) OR EXISTS (
        SELECT FROM label JOIN datasets_example e ON e.dataset_id = label.dataset AND e.key = label.key
        JOIN datasets_versionmember m ON m.example_id = e.id AND m.version_id = v.id
        WHERE label.dataset = v.dataset_id
    )
)
SELECT 'publication', publication FROM (SELECT DISTINCT publication FROM label) AS published UNION ALL (SELECT 'held', id FROM held LIMIT %(most)s)
"""  # noqa: S608  ours
_READ = """
SELECT j.id FROM annotation_project j WHERE j.id IN ({projects}) AND EXISTS (
    SELECT FROM annotation_assignment s JOIN annotation_answer a ON a.assignment_id = s.id WHERE s.project_id = j.id AND {column} = %(id)s
)
"""


@dataclass(frozen=True)
class FirstStep:
    """`near`: the rows one step away. `follow`: those from which the walk continues. `further`: other rows that are found already."""

    near: set[Node]
    follow: list[Node]
    further: set[Node] = field(default_factory=set)


def first_step(start: Node, way: Way, most: int) -> FirstStep | None:
    """None: the relations say all about this start."""
    if start[0] == "example":
        return from_example(start[1], way, most)
    return _from_given(start, most) if way == "down" and start[0] in GIVEN else None


def from_example(example_id: int, way: Way, most: int) -> FirstStep:
    """The first step from an example, which is in no relation.

    Down: the versions that hold the example, as it is or with labels added, are known exactly, so that one which was derived without it is
    not among them. Up: the versions that hold this very row.
    """
    if way == "up":
        held = list(VersionMember.objects.filter(example=example_id).values_list("version_id", flat=True)[: most + 1])
        near = {("version", pk) for pk in held}
        return FirstStep(near, sorted(near))
    row = Example.objects.only("dataset_id", "key").get(pk=example_id)
    # the same key in one dataset is the same example, with other labels
    rows = VersionMember.objects.filter(example__dataset_id=row.dataset_id, example__key=row.key)
    held = list(rows.values_list("version_id", flat=True).distinct()[: most + 1])
    near = {("version", pk) for pk in held}
    tasks = Task.objects.filter(example__dataset_id=row.dataset_id, example__key=row.key)
    near |= {("project", pk) for pk in tasks.values_list("project_id", flat=True).distinct()}
    kept = PublishedCase.objects.filter(task__in=tasks, fate=PublishedCase.Fate.KEPT, answers__gt=0)
    near |= {("publication", pk) for pk in kept.values_list("publication_id", flat=True).distinct()}
    return FirstStep(near, [("held", pk) for pk in held])


def _from_given(start: Node, most: int) -> FirstStep:
    """Down from a person, an answer or a version of guidelines: publications whose labels it is behind, the versions that hold one of these
    labels, the projects that annotate such a version, and evaluations that read the answers of a project."""
    column, projects = GIVEN[start[0]]
    with by_indexes() as cursor:
        cursor.execute(_HELD.format(column=column, projects=projects), {"id": start[1], "most": most + 1})
        found = cursor.fetchall()
        cursor.execute(_READ.format(column=column, projects=projects), {"id": start[1]})
        read = {project for (project,) in cursor.fetchall()}
    near = {("publication", each) for name, each in found if name == "publication"}
    held = [each for name, each in found if name == "held"]
    annotating = set(Project.objects.filter(version__in=held).values_list("pk", flat=True)[:most])
    republished = Publication.objects.filter(version__in=held).values_list("pk", flat=True)[:most]
    further = {("project", each) for each in annotating} | {("publication", each) for each in republished}
    return FirstStep(
        near, [*(("held", each) for each in held), *(("read", each) for each in read | annotating)], further
    )


@contextmanager
def by_indexes() -> Iterator[CursorWrapper]:
    """Each step has an index for each of its edges. If nearly all runs begin with one model, the planner expects that of every model, and
    would read all runs for each model on the way. It also expects so much work that a server with JIT would compile the forty queries of
    a step for seconds, to run most of them not once."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL jit = off")
        yield cursor
        cursor.execute("SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL jit TO DEFAULT")
