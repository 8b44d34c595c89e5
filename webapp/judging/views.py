"""Pages of judges, their versions and their verdicts."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.judges.spec import KINDS
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.numbers import whole
from webapp.core.paging import page
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.models import Example

from . import access, differences, queries, services
from .forms import ExtraForm
from .models import Judge, JudgeVersion, Verdict


@member(Role.REVIEWER)
@require_GET
def judges(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    archived = request.GET.get("archived") == "1"
    try:
        rows = queries.judges(membership.workspace_id, archived=archived)
        found = page(rows, request.GET.get("cursor"), 50, "-id")
    except Invalid:
        return redirect("judges")
    context = {"rows": found.items, "next": found.next, "archived": archived}
    return render(request, "judging/judges.html", {**context, "may_write": membership.may(Role.RESEARCHER)})


@member(Role.REVIEWER)
@require_GET
def judge(request: HttpRequest, judge_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.judge_read(membership, judge_id)
    context = {
        "judge": row,
        "kind": KINDS[row.kind],
        "versions": list(queries.versions(row)[:100]),
        "fixed": _fixed(row),
        "trials": queries.trials(row)[:10],
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "judging/judge.html", context)


def _fixed(row: Judge) -> list[Example]:
    """The judge's fixed examples that still exist, as they were ordered."""
    found = Example.objects.only("id", "key", "excerpt").in_bulk(row.fixed_examples)
    return [found[each] for each in row.fixed_examples if each in found]


@member(Role.RESEARCHER)
@require_POST
def judge_act(request: HttpRequest, judge_id: int) -> HttpResponseBase:
    """Buttons of the page: rename, archive, restore."""
    membership = require(request)
    row = access.judge_write(membership, judge_id)
    action = request.POST.get("action", "")
    try:
        if action == "rename":
            services.rename(membership, row, request.POST.get("name", "").replace("\0", ""))
        elif action == "archive":
            services.archive(membership, row)
        elif action == "restore":
            services.restore(membership, row)
    except Invalid as problem:
        messages.error(request, " ".join([problem.message, *problem.fields.values()]))
    return redirect("judge", row.pk)


@member(Role.REVIEWER)
@require_http_methods(["GET", "POST"])
def judge_compare(request: HttpRequest, judge_id: int) -> HttpResponseBase:
    """The difference between two versions, and what it does to the fixed examples; a POST has them judged."""
    membership = require(request)
    row = access.judge_read(membership, judge_id)
    asked = request.POST if request.method == "POST" else request.GET
    before, after = _version(row, asked.get("before")), _version(row, asked.get("after"))
    if before.pk == after.pk:
        return redirect("judge", row.pk)
    if request.method == "POST":
        access.may_write(membership)
        form = ExtraForm(KINDS[row.kind], request.POST)
        try:
            if not form.is_valid():
                raise Invalid("It cannot be run.", {name: str(each[0]) for name, each in form.errors.items()})
            services.start_comparison(membership, row, before=before, after=after, extra=form.extra())
        except (Invalid, Conflict) as problem:
            messages.error(request, " ".join([problem.message, *problem.fields.values()]))
        return redirect(f"{request.path}?before={before.number}&after={after.number}")
    latest = row.trials.filter(before=before, after=after).select_related("before", "after").order_by("-id").first()
    context = {
        "judge": row,
        "before": before,
        "after": after,
        "versions": queries.versions(row),
        "templates": differences.templates(before, after),
        "fields": differences.fields(before, after),
        "trial": latest,
        "extra_form": ExtraForm(KINDS[row.kind], initial=ExtraForm.initial_from(latest.extra if latest else {})),
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "judging/compare.html", context)


def _version(row: Judge, number: str | None) -> JudgeVersion:
    wanted = whole(number or "", 9)
    found = None if wanted is None else queries.versions(row).filter(number=wanted).first()
    if found is None:
        raise Http404("no such version")
    return found


@member(Role.REVIEWER)
@require_GET
def version(request: HttpRequest, judge_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    row = access.version_read(membership, judge_id, number)
    state = request.GET.get("state", "")
    try:
        wanted = state if state in Verdict.State.values else ""
        found = page(queries.verdict_list(row, wanted), request.GET.get("cursor"), 50, "-id")
    except Invalid:
        return redirect("judge_version", judge_id, number)
    spec = row.resolved
    kind = KINDS[spec.kind]
    context = {
        "version": row,
        "judge": row.judge,
        "kind": kind,
        "facts": _facts(row),
        "schema": kind.schema(spec),
        "states": queries.states(row),
        "state": wanted,
        "rows": found.items,
        "next": found.next,
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "judging/version.html", context)


def _facts(row: JudgeVersion) -> list[tuple[str, object]]:
    hidden = ("system", "prompt", "kind", "sampling")
    facts = [(name, value) for name, value in row.spec.items() if name not in hidden]
    return [*facts, *row.spec["sampling"].items()]


@member(Role.REVIEWER)
@require_GET
def verdict(request: HttpRequest, verdict_id: int) -> HttpResponseBase:
    """One call: what was asked, what came back to the letter, and what was read from it."""
    row = access.verdict_read(require(request), verdict_id)
    example_id = row.subject.get("example_id")
    example = Example.objects.filter(pk=example_id, dataset__workspace=require(request).workspace).only("id", "key")
    context = {
        "verdict": row,
        "version": row.version,
        "judge": row.version.judge,
        "example": example.first() if isinstance(example_id, int) else None,
        "samples": queries.samples(row),
    }
    return render(request, "judging/verdict.html", context)
