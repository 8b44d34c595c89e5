"""Agreement of a project by field, domain and pair of annotators, with the counts behind it.

`measure` takes time in proportion to the answers. It runs in a job, or at once if they are few; its result is stored in
`AgreementReport`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import compress, islice
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Count, Q

from trainer.metrics.agreement import Level, ac1, alpha, cohen_of, counted, fleiss, percent
from trainer.metrics.estimate import proportion, undefined_estimate
from webapp.annotation.kinds import example_labels
from webapp.annotation.kinds.fields import Field
from webapp.annotation.models import AgreementReport, Answer, Project, Task

from . import matched_items
from .fields import fields
from .rating_columns import Ints, RatingColumns, Value, read

NAMES = ("percent", "fleiss", "ac1", "alpha")
MAX_DOMAINS = 30
MAX_PAIRS = 300  # confusion matrices kept; the coefficients themselves use everything
MAX_CRITERIA = 30
SHARED_BY = 5  # a criterion gets its own coefficients once this many tasks share it
TASKS_AT_A_TIME = 500


# Compared as a row, so that only the index of a project's answers has the order. Otherwise, if other projects are newer, the planner may
# walk back through all of their answers
_NEWEST = """
    SELECT project_id, id FROM annotation_answer WHERE current AND (project_id, id) <= (%s, %s)
    ORDER BY project_id DESC, id DESC LIMIT 1
"""


def newest_answer(project: Project) -> int:
    """The id of the newest current answer, which tells how fresh the report is. 0 if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [project.pk, 2**63 - 1])
        owner, answer = cursor.fetchone() or (None, 0)
    return answer if owner == project.pk else 0


def fresh(report: AgreementReport, project: Project) -> bool:
    """Whether the report counts every answer of its project so far."""
    return report.computed_at is not None and report.through == newest_answer(project)


def measure(project: Project) -> dict[str, Any]:
    """Everything that the agreement page shows. Raters are user ids."""
    standing = Q(current=True, assignment__state="submitted", assignment__task__overlap__isnull=False)
    answers = Answer.objects.filter(standing, project=project)
    counted = answers.aggregate(answers=Count("id"), raters=Count("assignment__user", distinct=True))
    tasks = answers.values("assignment__task").annotate(n=Count("id")).filter(n__gte=2).count()
    return {
        "kind": project.kind,
        **counted,
        "tasks": tasks,
        "fields": [_field(project, each) for each in fields(project)],
        "items": matched_items.report(project),
    }


def _field(project: Project, field: Field) -> dict[str, Any]:
    given = read(project, field)
    domains = [{"domain": name, **_coefficients(field, part)} for name, part in islice(given.by_domain(), MAX_DOMAINS)]
    return {
        "key": field.key,
        "label": field.label,
        "level": field.level,
        "values": [{"value": _key(value), "label": field.says(value)} for value in given.values],
        "missing": given.missing,
        **_coefficients(field, given, every_level=True),
        "domains": domains,
        "domains_left_out": max(0, len(given.domains) - MAX_DOMAINS),
        **(_criteria(project, given, field) if field.items == "criterion" else {}),
        **_pairs(given),
    }


def _key(value: Value) -> str:
    """A value in the form in which the SQL of its field writes it."""
    return value if isinstance(value, str) else f"{value:g}"


def _coefficients(field: Field, given: RatingColumns, every_level: bool = False) -> dict[str, Any]:
    table = counted(given.units_R, given.values_R, given.values, given.tasks_R)
    if not len(table.counts_UV):
        return {
            "units": 0,
            "ratings": 0,
            **{name: undefined_estimate("nobody has answered yet").json() for name in NAMES},
            "alphas": {},
        }
    ordered = field.level != "nominal" and every_level
    levels: tuple[Level, ...] = ("nominal", "ordinal", "interval") if ordered else (field.level,)
    alphas = {level: alpha(table, level).json() for level in levels}
    return {
        "units": len(table.paired_UV),
        "ratings": int(table.counts_UV.sum()),
        "percent": percent(table).json(),
        "fleiss": fleiss(table).json(),
        "ac1": ac1(table).json(),
        "alpha": alphas[field.level],
        "alphas": alphas,
    }


def _criteria(project: Project, given: RatingColumns, field: Field) -> dict[str, Any]:
    """Coefficients of each criterion that many tasks share, such as those of one rubric for all. Criteria of two rubrics are the same if
    their words are, because an id has no meaning outside its rubric."""
    texts, text_R = _texts(project, given)
    known_R = text_R >= 0
    together = np.unique(np.column_stack([text_R, given.tasks_R])[known_R], axis=0)
    tasks = np.bincount(together[:, 0], minlength=len(texts))
    shared = sorted(np.flatnonzero(tasks >= SHARED_BY).tolist(), key=lambda text: (-tasks[text], texts[text]))
    kept = shared[:MAX_CRITERIA]
    found = [{"criterion": texts[text], **_coefficients(field, given.only(text_R == text))} for text in kept]
    return {"criteria": found, "criteria_left_out": len(shared) - len(kept)}


def _texts(project: Project, given: RatingColumns) -> tuple[list[str], Ints]:
    """The words of criteria, and for each value the position of its criterion in them; -1 if it has none."""
    units_U, unit_R = np.unique(given.units_R, return_inverse=True)
    text_U = np.full(len(units_U), -1)
    texts: dict[str, int] = {}
    for units, words in _worded(project, given):
        places = np.searchsorted(units_U, units)
        there = places < len(units_U)
        there[there] = units_U[places[there]] == units[there]
        text_U[places[there]] = [texts.setdefault(text, len(texts)) for text in compress(words, there)]
    return list(texts), text_U[unit_R]


def _worded(project: Project, given: RatingColumns) -> Iterator[tuple[Ints, list[str]]]:
    """The units of answered tasks with the words of their criteria, a few hundred tasks at a time."""
    answered = Task.objects.filter(project=project, done__gt=0).select_related("example").defer("suggestion")
    listed = answered.iterator(chunk_size=TASKS_AT_A_TIME)
    while tasks := list(islice(listed, TASKS_AT_A_TIME)):
        found = [
            (given.unit(task.pk, one["id"]), one["text"])
            for task in tasks
            for one in example_labels.criteria(task.example.content)
            if one["text"] and one["id"] in given.items
        ]
        yield np.array([unit for unit, _ in found], np.int64), [text for _, text in found]


def _pairs(given: RatingColumns) -> dict[str, Any]:
    """For every two raters who share a unit: percent, Cohen's kappa and the confusion matrix (rows: the first rater)."""
    shared = _shared(given)
    ordered = sorted(shared, key=lambda pair: (-shared[pair].total(), pair))
    places = range(len(given.values))
    found = []
    for pair in ordered[:MAX_PAIRS]:
        cells = shared[pair]
        n = cells.total()
        found.append(
            {
                "raters": list(pair),
                "n": n,
                "percent": proportion(sum(cells[v, v] for v in places), n).json(),
                "cohen": cohen_of(cells).json(),
                "matrix": [[cells[v, w] for w in places] for v in places],
            }
        )
    return {"pairs": found, "pairs_left_out": max(0, len(ordered) - MAX_PAIRS)}


def _shared(given: RatingColumns) -> dict[tuple[int, int], Counter[tuple[int, int]]]:
    """For every two raters, the one with the smaller id first: how often they gave each pair of values to one unit."""
    order = np.lexsort((given.users_R, given.units_R))
    unit_R, user_R, value_R = given.units_R[order], given.users_R[order], given.values_R[order]
    found: dict[tuple[int, int], Counter[tuple[int, int]]] = defaultdict(Counter)
    for apart in range(1, len(order)):
        one = np.flatnonzero(unit_R[apart:] == unit_R[:-apart])
        if not len(one):
            break  # no unit has more ratings than that
        two = one + apart
        cells, times = np.unique(
            np.column_stack([user_R[one], user_R[two], value_R[one], value_R[two]]), axis=0, return_counts=True
        )
        for (first, second, v, w), n in zip(cells.tolist(), times.tolist(), strict=True):
            found[first, second][v, w] += n
    return found
