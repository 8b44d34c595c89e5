"""What is wrong with a version, and what of it to train on: each is looked for, shown, and can be removed."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from trainer.contracts.counted import counted
from trainer.selection import FAULTS
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.numbers import whole
from webapp.core.problems import Invalid

from .. import access, queries
from ..curation import model_measures, services
from ..exploration import bias_report
from ..leakage import leaks
from ..leakage.near_leaks import Pair, near
from ..models import CurationJob
from .asked import asked

SHOWN = 30
CARDS = {
    "duplicates": {
        "title": "Duplicates",
        "text": "Examples that say the same as an earlier one, word for word or nearly. The first one stays.",
    },
    "leaks": {
        "title": "Leaks",
        "text": "Prompts that are in train and held out as well, the same or nearly the same. The example on one side is "
        "removed. The first page of the version counts groups that are on both sides.",
    },
    "structure": {
        "title": "Rubrics by their words",
        "text": "Compound, vague, doubled or contradicting criteria, too few or too many of them, verifiers that cannot "
        "run. These are hints, not verdicts: only contradictions and broken verifiers can be removed here.",
    },
    "criteria": {
        "title": "Criteria that never discriminate",
        "text": "Criteria that every recorded response meets, or none. Verifiers and recorded grades decide; a criterion "
        "with fewer than two verdicts counts as unknown.",
    },
}

SELECTIONS = {
    "shortest": {
        "title": "Drop the shortest",
        "text": "Removes the examples with the shortest responses: the prompts that need long responses are the harder half (GLM-4.5).",
    },
    "balance": {
        "title": "Balance domains",
        "text": "Keeps at most this many examples of each domain, drawn at random. The same seed draws the same examples.",
    },
    "hardest": {
        "title": "Keep what is hard for a model",
        "text": "Removes the easy examples. The hardest window of a response decides: its mean negative log-likelihood "
        "under the model (LongCat, 2026).",
        "job": "logprobs",
        "needs": "log-probabilities of each token",
    },
    "cover": {
        "title": "Keep what covers the rest",
        "text": "K-center on embeddings: each pick is the example farthest from those picked before, with the distance "
        "weighted by how hard it is for a model (LongCat, 2026). The rest is removed.",
        "job": "embed",
        "needs": "embeddings",
    },
    "meaning": {
        "title": "Near duplicates by meaning",
        "text": "Finds examples whose embeddings are nearly the same, within clusters. The example that is least like its "
        "cluster stays (SemDeDup). This also finds examples with other words and the same meaning.",
        "job": "embed",
        "needs": "embeddings",
    },
    "faulty": {
        "title": "Keep what provokes rare faults",
        "text": "Looks for mixed scripts, repetition and broken format. If a fault is rare among all responses, the "
        "prompts that provoke it stay, so that training can remove it (GLM-4.5). The rest is removed.",
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
        "surface": bias_report.report(version),
        "others": leaks.newest_of_others(version.dataset.workspace_id, version.dataset_id)[:100],
        "cards": [_card(kind, words, latest.get(kind)) for kind, words in CARDS.items()],
        "selections": [_card(kind, words, latest.get(kind)) for kind, words in SELECTIONS.items()],
        "offers": model_measures.offers(version),
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "datasets/curate.html", context)


def _card(kind: str, words: dict[str, str], job: CurationJob | None) -> dict[str, Any]:
    found = {"told": told(job) if job.result else "", "asked": asked(job)} if job else {}
    return {"kind": kind, **words, "row": job, **found}


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
    if kind in SELECTIONS:
        names = ("share", "most", "seed", "window", "log_probs", "embeddings", "likeness", "below")
        params = {name: _number(request.POST[name]) for name in names if request.POST.get(name)}
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
    return _selected(job)


def _selected(job: CurationJob) -> str:
    """What a selection would leave, and by which number it drew the line."""
    found = job.result
    without = f" {counted(found['without'], 'examples')} do not have this number and stay." if found["without"] else ""
    gone = f"{found['removed']:,} of {counted(found['known'], 'examples')} would go"
    if job.kind == CurationJob.Kind.SHORTEST:
        least = found["shortest_kept"]
        line = f"; the responses of those that stay have {least:,} characters or more" if least is not None else ""
    elif job.kind == CurationJob.Kind.BALANCE:
        line = f"; of each of {counted(found['domains'], 'domains')} at most {found['most']:,} stay"
        without = f" {counted(found['without'], 'examples')} have no domain and stay." if found["without"] else ""
    elif job.kind == CurationJob.Kind.HARDEST:
        least = found["easiest_kept"]
        line = f"; the hardest window of those that stay has {least:.2f} nats or more" if least is not None else ""
    elif job.kind == CurationJob.Kind.MEANING:
        line = f"; {counted(found['groups'], 'examples')} stay for them"
        without = f" {counted(found['without'], 'examples')} have no embedding and stay." if found["without"] else ""
    elif job.kind == CurationJob.Kind.FAULTY:
        counts, rare = found["faults"], found["rare"]
        seen = ", ".join(
            f"{name} {counts[name]:,}{' (not rare)' if counts[name] and name not in rare else ''}" for name in FAULTS
        )
        line = f"; of {counted(found['responses'], 'responses')}: {seen}"
        without = f" {counted(found['without'], 'examples')} have no response and stay." if found["without"] else ""
    else:
        line = f"; {counted(found['known'] - found['removed'], 'examples')} cover the rest"
    return f"{gone}{line}.{without}"


def _number(text: str) -> float | str:
    try:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else float(text)
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
        "asked": asked(job),
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
