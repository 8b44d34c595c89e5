"""Pages of the tasks of a project: the table, one task with all its answers, and the gold tasks."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.contracts.plurals import with_noun
from webapp.accounts.access import member, require
from webapp.core.database.paging import page
from webapp.core.problems import Invalid, Problem
from webapp.core.requests.numbers import whole_number

from .. import access, kinds, page_context
from ..agreement.raters import Rater, raters
from ..jobs.queries import jobs
from ..models import Answer, Assignment, Project, Task
from ..tasks import gold_candidates
from ..tasks.gold_answers import MATCHED
from . import gold_services as marking
from . import task_queries as queries
from . import task_services as services

PAGE = 50
LABELS = {
    "": "All",
    "open": "Untouched",
    "in_work": "In work",
    "complete": "Complete",
    "gold": "Gold",
    "skipped": "Skipped",
    "flagged": "Flagged",
}


@member(access.READER)
@never_cache
@require_GET
def project_tasks(request: HttpRequest, project_id: int) -> HttpResponseBase:
    membership = require(request)
    project = access.project_read(membership, project_id)
    state, words = request.GET.get("state", ""), request.GET.get("q", "")[:200].replace("\0", "").strip()
    rater = _rater(project, request.GET.get("annotator", ""))
    try:
        found = page(
            queries.tasks(project, state, words, rater.user if rater else None), request.GET.get("cursor"), PAGE, "id"
        )
    except Invalid:
        return redirect("project_tasks", project_id)
    rest = request.GET.copy()
    rest["cursor"] = found.next or ""
    counts = queries.counts(project)
    context = page_context.context(membership, project, "tasks") | {
        "rows": found.items,
        "next": rest.urlencode() if found.next else "",
        "state": state,
        "words": words,
        "rater": rater,
        "filters": [{"name": name, "label": label, "count": counts[name or "all"]} for name, label in LABELS.items()],
    }
    template = (
        "annotation/_project_task_rows.html" if request.headers.get("HX-Request") else "annotation/project_tasks.html"
    )
    return render(request, template, context)


def _rater(project: Project, text: str) -> Rater | None:
    """The person with this number in the project."""
    number = whole_number(text)
    return next((each for each in raters(project).values() if each.number == number), None) if number else None


@member(access.READER)
@never_cache
@require_GET
def project_task(request: HttpRequest, project_id: int, task_id: int) -> HttpResponseBase:
    """The example, the seats, the answers side by side, and the remarks."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    task = _task(request, project, task_id)
    record = task.example.record
    sides = kinds.subject_sides(task.subject)
    before, after = queries.neighbours(task)
    seats, people = queries.seats(task), page_context.seen_as(request, membership, project)
    context = page_context.context(membership, project, "tasks") | {
        "task": task,
        "record": record,
        "responses": [each for each in record.responses if each.id in sides] or list(record.responses),
        "sides": sides,
        "named": people.named,
        "seats": [(seat, people.label(seat.user_id)) for seat in seats],
        "answers": [(seat, people.label(seat.user_id), given[0]) for seat in seats if (given := _standing(seat))],
        "comments": [(row, people.author(row.author)) for row in queries.comments(task)],
        "before": before,
        "after": after,
        "labelled": gold_candidates.from_labels(project.kind, task.subject, task.example.content),
        "criteria": {each.id: each for each in record.rubric.criteria} if record.rubric else {},
    }
    return render(request, "annotation/project_task.html", context)


def _standing(seat: Assignment) -> list[Answer]:
    """The revisions of an answer that stands, newest first."""
    given: list[Answer] = getattr(seat, "given", [])
    return given if given and given[0].current else []


def _task(request: HttpRequest, project: Project, task_id: int) -> Task:
    task = access.task_read(require(request), task_id)
    if task.project_id != project.pk:
        raise Http404("no such task")
    return task


@member(access.WRITER)
@require_POST
def task_gold(request: HttpRequest, project_id: int, task_id: int) -> HttpResponseBase:
    """Gives the task a known answer: from the labels, from a given answer, or none any more."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    task = _task(request, project, task_id)
    try:
        services.set_gold(membership, task, _content(request.POST.get("source", ""), project, task))
    except Problem as problem:
        messages.error(request, " ".join([problem.message, *problem.fields.values()]))
    if request.POST.get("back") == "gold":
        return redirect("project_gold", project_id)
    return redirect("project_task", project_id, task_id)


def _content(source: str, project: Project, task: Task) -> dict[str, Any] | None:
    """The known answer from `source`. Raises Invalid if there is none."""
    if source == "none":
        return None
    found = None
    if source == "labels":
        found = gold_candidates.from_labels(project.kind, task.subject, task.example.content)
    elif (answer_id := whole_number(source)) is not None:
        answer = Answer.objects.filter(pk=answer_id, assignment__task=task).first()
        found = gold_candidates.bare(project.kind, answer.content) if answer else None
    if found is None:
        raise Invalid("There is no known answer.", {"source": "choose an answer of this task, or its labels"})
    return found


@member(access.READER)
@never_cache
@require_http_methods(["GET", "POST"])
def project_gold(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """All gold tasks with the share of right answers. A POST makes more gold tasks from known answers."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    problems: dict[str, str] = {}
    if request.method == "POST":
        access.project_write(membership, project_id)
        try:
            done = marking.mark(membership, project, request.POST.get("source", ""), *_amounts(request))
            tone = messages.success if done.made else messages.info
            tone(request, f"{with_noun(done.made, 'gold tasks')} made; {with_noun(done.looked, 'tasks')} looked at.")
            return redirect("project_gold", project_id)
        except Problem as problem:
            problems = problem.fields or {"": problem.message}
    context = page_context.context(membership, project, "tasks") | {
        "rows": list(queries.gold(project)[:200]),
        "accuracy": queries.gold_accuracy(project),
        "job": jobs(project).get("match"),
        "labels": project.kind in gold_candidates.LABELLED,
        "matched": project.kind in MATCHED,
        "recall": kinds.Settings.model_validate(project.settings).gold_recall,
        "problems": problems,
        "posted": request.POST,
    }
    return render(request, "annotation/project_gold.html", context, status=422 if problems else 200)


def _amounts(request: HttpRequest) -> tuple[int, int]:
    """(most, least) as typed. Text that is not a number becomes 0, which the service refuses at its field."""
    typed = (request.POST.get(name, "") for name in ("most", "least"))
    most, least = (whole_number(text, 6) or 0 for text in typed)
    return most, least


urls: list[URLPattern] = [
    path("projects/<int:project_id>/tasks", project_tasks, name="project_tasks"),
    path("projects/<int:project_id>/tasks/<int:task_id>", project_task, name="project_task"),
    path("projects/<int:project_id>/tasks/<int:task_id>/gold", task_gold, name="task_gold"),
    path("projects/<int:project_id>/gold", project_gold, name="project_gold"),
]
