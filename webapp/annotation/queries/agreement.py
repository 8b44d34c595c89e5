"""Agreement of a project: per field, domain and pair of annotators, with the counts behind it.

`measure` costs as much as there are answers and runs in a job (or at once, where they are few); what it returns is
kept in `AgreementReport`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from django.db import connection
from django.db.models import Count, Q

from trainer.benchmarks.agreement import Level, Rating, ac1, alpha, cohen, fleiss, percent, tabulate
from trainer.benchmarks.estimate import proportion, undefined
from webapp.annotation import shown
from webapp.annotation.models import AgreementReport, Answer, Project, Task

from . import matched
from .fields import Field, Row, fields, rows

NAMES = ("percent", "fleiss", "ac1", "alpha")
MAX_DOMAINS = 30
MAX_PAIRS = 300  # confusion matrices kept; the coefficients themselves use everything
MAX_CRITERIA = 30
SHARED_BY = 5  # a criterion has coefficients of its own once this many tasks share it


# compared as a row, so that only the index of a project's answers has the order: where other projects are newer, the
# planner may else walk back through all of theirs
_NEWEST = """
    SELECT project_id, id FROM annotation_answer WHERE current AND (project_id, id) <= (%s, %s)
    ORDER BY project_id DESC, id DESC LIMIT 1
"""


def newest_answer(project: Project) -> int:
    """The id of the newest current answer: what the report's freshness is told by. 0 without one."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [project.pk, 2**63 - 1])
        owner, answer = cursor.fetchone() or (None, 0)
    return answer if owner == project.pk else 0


def fresh(report: AgreementReport, project: Project) -> bool:
    """Whether everything answered so far in the project, whose report this is, is counted in."""
    return report.computed_at is not None and report.through == newest_answer(project)


def measure(project: Project) -> dict[str, Any]:
    """Everything the agreement page shows. Raters are user ids."""
    standing = Q(current=True, assignment__state="submitted", assignment__task__overlap__isnull=False)
    answers = Answer.objects.filter(standing, project=project)
    counted = answers.aggregate(answers=Count("id"), raters=Count("assignment__user", distinct=True))
    tasks = answers.values("assignment__task").annotate(n=Count("id")).filter(n__gte=2).count()
    return {
        "kind": project.kind,
        **counted,
        "tasks": tasks,
        "fields": [_field(project, each) for each in fields(project)],
        "items": matched.report(project),
    }


def _field(project: Project, field: Field) -> dict[str, Any]:
    given: list[Row] = []
    missing = 0
    for row in rows(project, field):
        if row[3] is None:
            missing += 1
        else:
            given.append(row)
    by_domain: dict[str, list[Row]] = defaultdict(list)
    for row in given:
        by_domain[row[4]].append(row)
    domains = sorted(by_domain, key=lambda name: (-len(by_domain[name]), name))
    values = sorted({field.value(str(row[3])) for row in given}, key=lambda value: (isinstance(value, str), value))
    return {
        "key": field.key,
        "label": field.label,
        "level": field.level,
        "values": [{"value": _key(value), "label": field.says(value)} for value in values],
        "missing": missing,
        **_coefficients(field, given, every_level=True),
        "domains": [{"domain": name, **_coefficients(field, by_domain[name])} for name in domains[:MAX_DOMAINS]],
        "domains_left_out": max(0, len(domains) - MAX_DOMAINS),
        **(_criteria(project, given, field) if field.items == "criterion" else {}),
        **_pairs(field, given, values),
    }


def _key(value: str | float) -> str:
    """A value as the SQL of its field writes it."""
    return value if isinstance(value, str) else f"{value:g}"


def _coefficients(field: Field, given: Iterable[Row], every_level: bool = False) -> dict[str, Any]:
    table = tabulate(
        Rating(f"{task}:{item}", str(user), field.value(str(value))) for task, user, item, value, _ in given
    )
    if not len(table.counts_UV):
        return {
            "units": 0,
            "ratings": 0,
            **{name: undefined("nobody has answered yet").json() for name in NAMES},
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


def _criteria(project: Project, given: list[Row], field: Field) -> dict[str, Any]:
    """Criteria that many tasks share, such as those of one rubric for all, have coefficients of their own. Two rubrics share
    a criterion where its words are the same: an id says nothing outside of its rubric."""
    texts = _texts(project)
    tasks: dict[str, set[int]] = defaultdict(set)
    for task, _, item, _, _ in given:
        if text := texts.get((task, item)):
            tasks[text].add(task)
    shared = [text for text in tasks if len(tasks[text]) >= SHARED_BY]
    kept = sorted(shared, key=lambda text: (-len(tasks[text]), text))[:MAX_CRITERIA]
    by_text: dict[str, list[Row]] = {text: [] for text in kept}
    for row in given:
        text = texts.get((row[0], row[2]), "")
        if text in by_text:
            by_text[text].append(row)
    found = [{"criterion": text, **_coefficients(field, by_text[text])} for text in kept]
    return {"criteria": found, "criteria_left_out": len(shared) - len(kept)}


def _texts(project: Project) -> dict[tuple[int, str], str]:
    """{(task, criterion's id): its words} of the tasks somebody has answered; equal words are one object."""
    words: dict[str, str] = {}
    answered = Task.objects.filter(project=project, done__gt=0).select_related("example").defer("suggestion")
    return {
        (task.pk, one["id"]): words.setdefault(one["text"], one["text"])
        for task in answered.iterator(chunk_size=500)
        for one in shown.criteria(task.example.content)
    }


def _pairs(field: Field, given: Iterable[Row], values: list[str | float]) -> dict[str, Any]:
    """Every two raters who share a unit: percent, Cohen's kappa and the confusion matrix (rows: the first rater)."""
    index = {value: place for place, value in enumerate(values)}
    shared: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for unit in _units(field, given):
        for (first, v), (second, w) in combinations(sorted(unit), 2):
            shared[first, second].append((index[v], index[w]))
    ordered = sorted(shared, key=lambda pair: (-len(shared[pair]), pair))
    found = []
    for pair in ordered[:MAX_PAIRS]:
        cells = Counter(shared[pair])
        matrix = [[cells[v, w] for w in range(len(values))] for v in range(len(values))]
        same = sum(cells[v, v] for v in range(len(values)))
        n = len(shared[pair])
        found.append(
            {
                "raters": list(pair),
                "n": n,
                "percent": proportion(same, n).json(),
                "cohen": cohen(shared[pair]).json(),
                "matrix": matrix,
            }
        )
    return {"pairs": found, "pairs_left_out": max(0, len(ordered) - MAX_PAIRS)}


def _units(field: Field, given: Iterable[Row]) -> Iterator[list[tuple[int, str | float]]]:
    units: dict[tuple[int, str], list[tuple[int, str | float]]] = defaultdict(list)
    for task, user, item, value, _ in given:
        units[task, item].append((user, field.value(str(value))))
    yield from units.values()
