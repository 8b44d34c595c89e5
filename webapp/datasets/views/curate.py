"""What is wrong with a version: surface biases, duplicates, rubrics; each with a way to remove it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from trainer.contracts.counted import counted
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.numbers import whole
from webapp.core.problems import Invalid

from .. import access, leaks, queries, services, surface
from ..models import CurationJob
from ..near_leaks import Pair, near

SHOWN = 30
CARDS = {
    "duplicates": {
        "title": "Duplicates",
        "text": "Examples that say the same as an earlier one, word for word or nearly. The first of each stays.",
    },
    "leaks": {
        "title": "Leaks",
        "text": "Prompts that stand in train and are held out as well, the same or nearly the same. The example on one side "
        "goes. Groups that stand on both sides are counted on the first page of the version.",
    },
    "structure": {
        "title": "Rubrics by their words",
        "text": "Compound, vague, doubled or contradicting criteria, too few or too many of them, verifiers that cannot "
        "run. Hints, not verdicts: only contradictions and broken verifiers are offered for removal.",
    },
    "criteria": {
        "title": "Criteria that never discriminate",
        "text": "Every recorded response meets them, or none does. Judged by verifiers and by recorded grades; a "
        "criterion with fewer than two verdicts is counted as unknown.",
    },
}


@member(access.READER)
@require_GET
def curate(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    latest: dict[str, CurationJob] = {}
    for job in queries.curations(version).exclude(kind=CurationJob.Kind.DERIVE)[:50]:
        latest.setdefault(job.kind, job)
    context = {
        "dataset": version.dataset,
        "version": version,
        "tab": "curate",
        "surface": surface.report(version),
        "others": leaks.newest_of_others(version.dataset.workspace_id, version.dataset_id)[:100],
        "cards": [
            {
                "kind": kind,
                **words,
                "row": latest.get(kind),
                "told": latest[kind].result and told(latest[kind]) if kind in latest else "",
            }
            for kind, words in CARDS.items()
        ],
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "datasets/curate.html", context)


@member(access.WRITER)
@require_POST
def start(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    version = access.version_write(membership, dataset_id, number)
    kind, params = request.POST.get("kind", ""), dict[str, Any]()
    if kind == CurationJob.Kind.DUPLICATES:
        params = {"scope": request.POST.get("scope", "all"), "threshold": _number(request.POST.get("threshold", ""))}
    if kind == CurationJob.Kind.LEAKS:
        along = [whole(each) for each in request.POST.getlist("along")]
        params = {"remove": request.POST.get("remove", "train"), "versions": along}
        params["threshold"] = _number(request.POST.get("threshold", ""))
    try:
        return redirect("curation", services.curate(membership, version, kind, params).pk)
    except Invalid as problem:
        messages.error(request, " ".join([problem.message, *problem.fields.values()]))
        return redirect("dataset_curate", dataset_id, number)


def told(job: CurationJob) -> str:
    """What a finished job found, in one sentence."""
    found = job.result
    if job.kind == CurationJob.Kind.DUPLICATES:
        if not found["groups"]:
            return f"No duplicates among {counted(found['examples'], 'examples')}."
        repeated = (
            f"{found['exact']:,} exact and {found['near']:,} near duplicates of {counted(found['groups'], 'examples')}"
        )
        return f"{repeated}, among {found['examples']:,}."
    if job.kind == CurationJob.Kind.LEAKS:
        along = f" and {found['along']:,} other versions" if found["along"] else ""
        where = f"among {counted(found['examples'], 'examples')} of this version{along}"
        if not found["exact"] + found["near"]:
            return f"No leak {where}."
        side = "for training" if job.params["remove"] == "train" else "held out"
        told = f"{counted(found['exact'], 'examples')} {side} ask the same as one on the other side, {found['near']:,} nearly the same"
        return f"{told}, {where}."
    if job.kind == CurationJob.Kind.CRITERIA:
        if not found["judged"]:
            return (
                f"None of the {counted(found['without_verdicts'], 'criteria')} has two verdicts to compare. "
                "Grade the responses in a project and publish it, or give criteria verifiers."
            )
        return (
            f"{found['idle']:,} of {counted(found['judged'], 'criteria')} with verdicts never discriminate; "
            f"{found['without_verdicts']:,} have fewer than two."
        )
    if job.kind == CurationJob.Kind.STRUCTURE:
        named = ", ".join(f"{count:,} {code.replace('_', ' ')}" for code, count in found["codes"].items())
        return f"{found['flagged']:,} of {counted(found['rubrics'], 'rubrics')} raise hints" + (
            f": {named}." if named else "."
        )
    return ""


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # refused by the service, which says what it must be


@member(access.READER)
@require_GET
def curation(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """A job: its progress, and what it found, read page by page."""
    membership = require(request)
    job = access.curation_read(membership, job_id)
    context: dict[str, Any] = {
        "job": job,
        "dataset": job.version.dataset,
        "version": job.version,
        "tab": "curate",
        "may_write": membership.may(Role.RESEARCHER),
        "alive": job.state in ("queued", "running"),
    }
    if request.headers.get("HX-Request") and not request.GET.get("cursor"):
        response = render(request, "datasets/_curation.html", context)
        if not context["alive"]:
            response["HX-Refresh"] = "true"  # over: the page shows what was found
        return response
    if job.state == "finished" and job.kind != CurationJob.Kind.DERIVE:
        context |= {"told": told(job), "removable": queries.removable(job)}
    if job.made and job.kind == CurationJob.Kind.DERIVE:
        context["near"] = near([Pair(job.made, job.made)])
    try:
        found = queries.findings(job, request.GET.get("cursor"), SHOWN)
    except Invalid:
        return redirect("curation", job_id)
    context |= {"found": queries.found_examples(job, found.items), "next": found.next}
    template = "datasets/_findings.html" if request.headers.get("HX-Request") else "datasets/curation.html"
    return render(request, template, context)
