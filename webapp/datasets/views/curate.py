"""Pages that search a version for problems or for the examples worth training on, show the findings, and can remove examples."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from trainer.contracts.plurals import with_noun
from trainer.selection import FAULTS
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number

from .. import access, queries
from ..curation import model_measures, services
from ..exploration import bias_report
from ..leakage import leaks
from ..leakage.near_leaks import VersionPair, near_leaks_of
from ..models import CurationJob, DatasetVersion
from . import job_settings
from .curation_searches import FAULTS_OF_DATA, SELECTIONS, CurationSearch, RefusedSearch, drawn_fields

SHOWN = 30


@member(access.READER)
@require_GET
def curate(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    return _page(request, membership, version)


def _page(
    request: HttpRequest, membership: Membership, version: DatasetVersion, refused: RefusedSearch | None = None
) -> HttpResponseBase:
    latest: dict[str, CurationJob] = {}
    for job in queries.curations(version).exclude(kind=CurationJob.Kind.DERIVE)[:50]:
        latest.setdefault(job.kind, job)
    others = leaks.newest_of_others(version.dataset.workspace_id, version.dataset_id)[:100]
    offers = model_measures.offers(version)

    def drawn(search: CurationSearch) -> dict[str, Any]:
        job = latest.get(search.kind)
        found = {"told": result_text(job) if job.result else "", "asked": job_settings.in_words(job)} if job else {}
        ours = refused if refused and refused.search is search else None
        return {
            "search": search,
            "row": job,
            "fields": drawn_fields(search, offers, ours),
            "missing": search.needed and not offers[search.needed],
            "problem": ours.elsewhere if ours else "",
            **found,
        }

    context = {
        "dataset": version.dataset,
        "version": version,
        "tab": "curate",
        "surface": bias_report.report(version),
        "others": others,
        "along": refused.along if refused else [],
        "faults": [drawn(search) for search in FAULTS_OF_DATA],
        "selections": [drawn(search) for search in SELECTIONS],
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "datasets/curate.html", context, status=422 if refused else 200)


@member(access.WRITER)
@require_POST
def start(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    version = access.version_write(membership, dataset_id, number)
    kind = request.POST.get("kind", "")
    search = next((each for each in (*FAULTS_OF_DATA, *SELECTIONS) if each.kind == kind), None)
    if search is None:
        messages.error(request, "There is no such check on this page.")
        return redirect("dataset_curate", dataset_id, number)
    given = {field.name: request.POST.get(field.name, "") for field in search.fields}
    params: dict[str, Any] = {name: _number(text) for name, text in given.items() if text}
    if kind == CurationJob.Kind.LEAKS:
        params["versions"] = [whole_number(each) for each in request.POST.getlist("along")]
    try:
        return redirect("curation", services.curate(membership, version, kind, params).pk)
    except Invalid as problem:
        return _page(request, membership, version, RefusedSearch(search, given, request.POST.getlist("along"), problem))


def result_text(job: CurationJob) -> str:
    """The findings of a finished job in one sentence."""
    found = job.result
    if job.kind == CurationJob.Kind.DUPLICATES:
        if not found["groups"]:
            return f"No duplicates among {with_noun(found['examples'], 'examples')}."
        repeated = f"{found['exact']:,} exact and {found['near']:,} near duplicates of {with_noun(found['groups'], 'examples')}"
        return f"{repeated}, among {found['examples']:,}."
    if job.kind == CurationJob.Kind.LEAKS:
        along = f" and {found['along']:,} other versions" if found["along"] else ""
        where = f"among {with_noun(found['examples'], 'examples')} of this version{along}"
        if not found["exact"] + found["near"]:
            return f"No leak {where}."
        side = "for training" if job.params["remove"] == "train" else "held out"
        told = f"{with_noun(found['exact'], 'examples')} {side} ask the same as one on the other side, {found['near']:,} nearly the same"
        return f"{told}, {where}."
    if job.kind == CurationJob.Kind.CRITERIA:
        if not found["judged"]:
            return (
                f"None of the {with_noun(found['without_verdicts'], 'criteria')} has two verdicts to compare. "
                "Grade the responses in a project and publish it, or give criteria verifiers."
            )
        return (
            f"{found['idle']:,} of {with_noun(found['judged'], 'criteria')} with verdicts never discriminate; "
            f"{found['without_verdicts']:,} have fewer than two."
        )
    if job.kind == CurationJob.Kind.STRUCTURE:
        named = ", ".join(f"{count:,} {code.replace('_', ' ')}" for code, count in found["codes"].items())
        return f"{found['flagged']:,} of {with_noun(found['rubrics'], 'rubrics')} raise hints" + (
            f": {named}." if named else "."
        )
    return _selected(job)


def _selected(job: CurationJob) -> str:
    """The number of examples that a selection would leave, and its limit."""
    found = job.result
    without = (
        f" {with_noun(found['without'], 'examples')} do not have this number and stay." if found["without"] else ""
    )
    gone = f"{found['removed']:,} of {with_noun(found['known'], 'examples')} would be removed"
    if job.kind == CurationJob.Kind.SHORTEST:
        least = found["shortest_kept"]
        line = f"; the responses of those that stay have {least:,} characters or more" if least is not None else ""
    elif job.kind == CurationJob.Kind.BALANCE:
        line = f"; of each of {with_noun(found['domains'], 'domains')} at most {found['most']:,} stay"
        without = f" {with_noun(found['without'], 'examples')} have no domain and stay." if found["without"] else ""
    elif job.kind == CurationJob.Kind.HARDEST:
        least = found["easiest_kept"]
        line = f"; the hardest window of those that stay has {least:.2f} nats or more" if least is not None else ""
    elif job.kind == CurationJob.Kind.MEANING:
        line = f"; {with_noun(found['groups'], 'examples')} stay in their place"
        without = f" {with_noun(found['without'], 'examples')} have no embedding and stay." if found["without"] else ""
    elif job.kind == CurationJob.Kind.FAULTY:
        counts, rare = found["faults"], found["rare"]
        seen = ", ".join(
            f"{name} {counts[name]:,}{' (not rare)' if counts[name] and name not in rare else ''}" for name in FAULTS
        )
        line = f"; of {with_noun(found['responses'], 'responses')}: {seen}"
        without = f" {with_noun(found['without'], 'examples')} have no response and stay." if found["without"] else ""
    else:
        line = f"; {with_noun(found['known'] - found['removed'], 'examples')} cover the rest"
    return f"{gone}{line}.{without}"


def _number(text: str) -> float | str:
    try:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else float(text)
    except ValueError:
        return text  # the service refuses it, and says what it must be


@member(access.READER)
@require_GET
def curation(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """The page of a job: its progress, and its findings, page by page."""
    membership = require(request)
    job = access.curation_read(membership, job_id)
    context: dict[str, Any] = {
        "job": job,
        "dataset": job.version.dataset,
        "version": job.version,
        "tab": "curate",
        "may_write": membership.may(Role.RESEARCHER),
        "alive": job.state in ("queued", "running"),
        "asked": job_settings.in_words(job),
    }
    if request.headers.get("HX-Request") and not request.GET.get("cursor"):
        response = render(request, "datasets/_curation.html", context)
        if not context["alive"]:
            response["HX-Refresh"] = "true"  # the job is over: the page shows the findings
        return response
    if job.state == "finished" and job.kind != CurationJob.Kind.DERIVE:
        context |= {"told": result_text(job), "removable": queries.removable(job)}
    if job.made and job.kind == CurationJob.Kind.DERIVE:
        context["near"] = near_leaks_of([VersionPair(job.made, job.made)])
    try:
        found = queries.findings(job, request.GET.get("cursor"), SHOWN)
    except Invalid:
        return redirect("curation", job_id)
    context |= {"found": queries.found_examples(job, found.items), "next": found.next}
    template = "datasets/_findings.html" if request.headers.get("HX-Request") else "datasets/curation.html"
    return render(request, template, context)
