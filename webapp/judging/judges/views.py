"""Pages of judges and their versions. Reading needs the role reviewer, changing anything researcher."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from trainer.judges.spec import KINDS
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.database.paging import page
from webapp.core.problems import Invalid

from .. import access, queries
from ..models import JudgeVersion, Verdict
from ..verdicts.queries import states, verdict_list
from . import services

LABELS = {
    "max_tokens": "Longest reply, tokens"
}  # as the form of a version says it; other fields are called by their names


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
        "fixed": queries.fixed_examples(row),
        "trials": queries.trials(row)[:10],
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "judging/judge.html", context)


@member(Role.RESEARCHER)
@require_POST
def judge_act(request: HttpRequest, judge_id: int) -> HttpResponseBase:
    """Does what the buttons of the page say: rename, archive, restore."""
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
@require_GET
def version(request: HttpRequest, judge_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    row = access.version_read(membership, judge_id, number)
    state = request.GET.get("state", "")
    try:
        wanted = state if state in Verdict.State.values else ""
        found = page(verdict_list(row, wanted), request.GET.get("cursor"), 50, "-id")
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
        "states": states(row),
        "state": wanted,
        "rows": found.items,
        "next": found.next,
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "judging/version.html", context)


def _facts(row: JudgeVersion) -> list[tuple[str, object]]:
    hidden = ("system", "prompt", "kind", "sampling")
    facts = [(name, value) for name, value in row.spec.items() if name not in hidden]
    facts += row.spec["sampling"].items()
    return [(LABELS.get(name, name.replace("_", " ").capitalize()), value) for name, value in facts]


urls = [
    path("judges", judges, name="judges"),
    path("judges/<int:judge_id>", judge, name="judge"),
    path("judges/<int:judge_id>/act", judge_act, name="judge_act"),
    path("judges/<int:judge_id>/versions/<int:number>", version, name="judge_version"),
]
