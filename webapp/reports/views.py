"""Pages of reports: the list, one report for readers, its editor, and the preview beside the editor."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.core.database.paging import page
from webapp.core.problems import Invalid, Problem
from webapp.core.requests.numbers import whole_number
from webapp.core.text.text_diff import DiffLine, lines

from . import access, block_contents, export, language, queries, services, sources
from .access import ReportReader
from .models import ReportPage, ReportPageVersion

PAGE = 50
VERSIONS = 30  # on one page of the history
MOST_OFFERED = 500  # experiments and projects in a list to choose from
USUAL = "eval/rubric_score"
SAMPLE = """## What we asked


## What we saw

```chart
metric: {metric}
{runs}{band}
```

## What follows
"""


@dataclass
class ReportForm:
    """The values of the editor. `base`: the version with which it began; 0 for a new report."""

    title: str = ""
    body: str = ""
    base: int = 0
    experiment: int | None = None
    project: int | None = None
    problem: str = ""
    problems: dict[str, str] = field(default_factory=dict)
    meanwhile: dict[str, Any] | None = None  # the version that came between, and what saving would change about it


@member(access.READER)
@never_cache
@require_GET
def reports(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    archived = request.GET.get("archived") == "1"
    try:
        found = page(
            queries.reports(membership.workspace_id, archived=archived), request.GET.get("cursor"), PAGE, "-id"
        )
    except Invalid:
        return redirect("reports")
    newest = queries.newest_of(found.items)
    context = {
        "rows": [(row, newest[row.pk]) for row in found.items],
        "next": found.next,
        "archived": archived,
        "may_write": membership.may(access.WRITER),
    }
    return render(request, "reports/reports.html", context)


@member(access.READER)
@never_cache
@require_GET
def report(request: HttpRequest, report_id: int) -> HttpResponseBase:
    """The newest version, as its reader may see it."""
    membership = require(request)
    row = access.report_read(membership, report_id)
    version = queries.newest(row)
    context = {
        "report": row,
        "version": version,
        "parts": block_contents.pieces_of(ReportReader(membership), version.body),
        "may_write": membership.may(access.WRITER),
    }
    return render(request, "reports/report.html", context)


@member(access.READER)
@never_cache
@require_GET
def report_version(request: HttpRequest, report_id: int, number: int) -> HttpResponseBase:
    """An older version: its words of that time, and its blocks with today's values."""
    membership = require(request)
    version = access.version_read(membership, report_id, number)
    context = {
        "report": version.report,
        "version": version,
        "parts": block_contents.pieces_of(ReportReader(membership), version.body),
        "may_write": membership.may(access.WRITER),
        "is_old": number != version.report.newest,
    }
    return render(request, "reports/report.html", context)


@member(access.READER)
@never_cache
@require_GET
def report_history(request: HttpRequest, report_id: int) -> HttpResponseBase:
    """Versions, newest first; `?before=` gives those before one."""
    membership = require(request)
    row = access.report_read(membership, report_id)
    found = queries.versions(row)
    if before := whole_number(request.GET.get("before", ""), 9):
        found = found.filter(number__lt=before)
    versions = list(found[: VERSIONS + 1])
    pairs = zip(versions[:VERSIONS], [*versions[1:], None], strict=False)
    history = [(each, *_changed(each, older)) for each, older in pairs]
    context = {
        "report": row,
        "history": history,
        "older": versions[VERSIONS - 1].number if len(versions) > VERSIONS else None,
        "may_write": membership.may(access.WRITER),
    }
    return render(request, "reports/history.html", context)


def _changed(version: ReportPageVersion, older: ReportPageVersion | None) -> tuple[list[DiffLine], int, int]:
    """The changes to the previous version, and how many lines were added and removed."""
    found = lines(_whole(older), _whole(version)) if older else []
    return found, sum(each.kind == "added" for each in found), sum(each.kind == "removed" for each in found)


@member(access.WRITER)
@require_POST
def report_version_restore(request: HttpRequest, report_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    access.report_write(membership, report_id)
    version = access.version_read(membership, report_id, number)
    made = services.restore_version(membership, version.report, number)
    messages.success(request, f"Version {number} is the newest again, as version {made.number}.")
    return redirect("report", report_id)


@member(access.READER)
@never_cache
@require_GET
def report_file(request: HttpRequest, report_id: int) -> HttpResponseBase:
    """One HTML file, with what this reader sees now."""
    membership = require(request)
    return export.as_html(membership, queries.newest(access.report_read(membership, report_id)))


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def report_new(request: HttpRequest) -> HttpResponseBase:
    """`?q=` or `?ids=` begins with a chart of these runs: the page Compare leads here."""
    membership = require(request)
    if request.method == "GET":
        return _editor(
            request, ReportForm(body=_begun(request), experiment=whole_number(request.GET.get("experiment", "")))
        )
    form = _sent(request)
    try:
        about = services.about(membership, form.experiment, form.project)
        row = services.create(membership, form.title, form.body, **about)
    except Problem as problem:
        return _refused(request, form, problem)
    messages.success(request, "Saved.")
    return redirect("report", row.pk)


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def report_edit(request: HttpRequest, report_id: int) -> HttpResponseBase:
    """A POST saves a version, unless somebody has saved another since this form was opened: then both are kept and shown."""
    membership = require(request)
    row = access.report_write(membership, report_id)
    if request.method == "GET":
        newest = queries.newest(row)
        form = ReportForm(newest.title, newest.body, newest.number, row.experiment_id, row.project_id)
        return _editor(request, form, row)
    form = _sent(request)
    try:
        about = services.about(membership, form.experiment, form.project)
        services.write(membership, row, form.base, form.title, form.body)
        if (form.experiment, form.project) != (row.experiment_id, row.project_id):
            services.place(membership, row, **about)
    except services.WrittenMeanwhile as problem:
        form.meanwhile = {"version": problem.newest, "lines": lines(_whole(problem.newest), _whole(form))}
        form.base = problem.newest.number  # a person who has seen it saves on top of it
        return _refused(request, form, problem, row)
    except Problem as problem:
        return _refused(request, form, problem, row)
    messages.success(request, "Saved.")
    return redirect("report", row.pk)


@member(access.WRITER)
@require_POST
def report_act(request: HttpRequest, report_id: int) -> HttpResponseBase:
    """Archives it, or restores it: nothing is deleted."""
    membership = require(request)
    row = access.report_write(membership, report_id)
    if request.POST.get("action") == "archive":
        services.archive(membership, row)
        messages.success(request, f"“{row.title}” is archived. Restore puts it back on the list.")
    elif request.POST.get("action") == "restore":
        services.unarchive(membership, row)
        messages.success(request, f"“{row.title}” is back on the list.")
    return redirect("report", row.pk)


@member(access.WRITER)
@require_POST
def preview(request: HttpRequest) -> HttpResponseBase:
    """The text in `body` as readers will see it, as a fragment; unreadable lines are reported in their place."""
    body = request.POST.get("body", "")[: services.MAX_BODY].replace("\0", "").replace("\r\n", "\n")
    return render(
        request,
        "reports/_parts.html",
        {"parts": block_contents.pieces_of(ReportReader(require(request)), body), "editing": True},
    )


def _whole(text: ReportPageVersion | ReportForm) -> str:
    """Title and text, so that a difference shows both."""
    return f"{' '.join(text.title.split())}\n\n{text.body.rstrip()}"


def _begun(request: HttpRequest) -> str:
    query, ids = request.GET.get("q", ""), ",".join(request.GET.getlist("ids"))
    runs = f"runs: {ids}" if ids else f"query: {query or 'state:finished'}"
    given = {"runs": " ".join(runs.replace("\0", "").split())}
    given["band"] = "\nband: range" if request.GET.get("band") == "range" else ""
    metric = request.GET.get("metric") or _measured(request, SAMPLE.format(metric=USUAL, **given)) or USUAL
    return SAMPLE.format(metric=metric, **given)


def _measured(request: HttpRequest, text: str) -> str:
    """The result of the runs of the first block; empty if they have none, or if the block cannot be read."""
    block = next(each for each in language.pieces(text) if isinstance(each, language.ReportBlock))
    return "" if block.problems else sources.result_metric(ReportReader(require(request)), block)


def _sent(request: HttpRequest) -> ReportForm:
    sent = request.POST
    return ReportForm(
        sent.get("title", ""),
        sent.get("body", ""),
        whole_number(sent.get("base", ""), 9) or 0,
        whole_number(sent.get("experiment", "")),
        whole_number(sent.get("project", "")),
    )


def _refused(
    request: HttpRequest, form: ReportForm, problem: Problem, row: ReportPage | None = None
) -> HttpResponseBase:
    form.problem, form.problems = problem.message, dict(problem.fields)
    return _editor(request, form, row, problem.status)


def _editor(
    request: HttpRequest, form: ReportForm, row: ReportPage | None = None, status: int = 200
) -> HttpResponseBase:
    membership = require(request)
    body = form.body[: services.MAX_BODY].replace("\0", "").replace("\r\n", "\n")
    context = {
        "report": row,
        "form": form,
        "parts": block_contents.pieces_of(ReportReader(membership), body),
        "editing": True,
        "experiments": queries.experiments(membership)[:MOST_OFFERED],
        "projects": queries.projects(membership)[:MOST_OFFERED],
        "examples": language.EXAMPLES.items(),
        "kinds": [(kind, keys.items()) for kind, keys in language.KEYS.items()],
    }
    return render(request, "reports/edit.html", context, status=status)
