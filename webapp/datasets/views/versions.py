"""Pages of versions: their line of descent, the differences of two, and what the next one would lose."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.core.requests.numbers import whole_number

from .. import access, housekeeping, queries
from ..columns.filters import parse, query, words
from ..curation import services as curating
from ..leakage.near_leaks import VersionPair, near_leaks_of
from ..versions import differences, lineage
from ..versions import services as datasets
from .explore import address

DIFFERENCES = 20
KINDS: tuple[differences.Kind, ...] = ("changed", "added", "removed")


@member(access.READER)
@require_GET
def versions(request: HttpRequest, dataset_id: int) -> HttpResponseBase:
    membership = require(request)
    version = access.version_read(membership, dataset_id)
    context = {
        "dataset": version.dataset,
        "version": version,
        "tab": "versions",
        "line": lineage.line(list(queries.versions(version.dataset).prefetch_related("tags")[:200])),
        "may_write": membership.may(Role.RESEARCHER),
        "dependents": housekeeping.dependents(version.dataset),
    }
    return render(request, "datasets/versions.html", context)


@member(access.WRITER)
@require_POST
def keep_house(request: HttpRequest, dataset_id: int) -> HttpResponseBase:
    """Renames, archives, restores or deletes the dataset, as `action` says. To delete it, a person types its name."""
    membership = require(request)
    dataset = access.dataset_write(membership, dataset_id)
    action, name = request.POST.get("action", ""), request.POST.get("name", "").strip()
    try:
        if action == "rename":
            housekeeping.rename(membership, dataset, name)
        elif action in ("archive", "restore"):
            housekeeping.archive(membership, dataset, archived=action == "archive")
        elif action == "delete" and name == dataset.name:
            gone = housekeeping.delete(membership, dataset)
            told = "is deleted." if gone else "is being deleted. It is large, so this takes a while."
            messages.success(request, f"“{name}” {told}")
            return redirect("datasets")
        else:
            messages.error(
                request, "Type the dataset's name to delete it." if action == "delete" else "Nothing was done."
            )
    except (Invalid, Conflict) as problem:
        messages.error(request, _told(problem))
    return redirect("dataset_versions", dataset_id)


@member(access.READER)
@require_GET
def diff(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    """The differences from `base`; without `base`, from the version from which it was made, or the previous one."""
    membership = require(request)
    after = access.version_read(membership, dataset_id, number)
    base = whole_number(request.GET.get("base", ""), 9)
    base = after.lineage.get("base") or max(number - 1, 1) if base is None else base
    before = access.version_read(membership, dataset_id, base)
    counts = differences.counts(before, after)
    first = next((each for each in KINDS if counts[each]), "changed")
    kind = next((each for each in KINDS if each == (request.GET.get("kind") or first)), None)
    if kind is None:
        return redirect("dataset_diff", dataset_id, number)
    page = differences.page(before, after, kind, request.GET.get("cursor"), DIFFERENCES)
    context = {
        "dataset": after.dataset,
        "version": after,
        "tab": "versions",
        "before": before,
        "counts": counts,
        "tabs": [(each, counts[each]) for each in KINDS],
        "kind": kind,
        "entries": page.items,
        "next": page.next,
        "missing": differences.MISSING,
        "versions": queries.versions(after.dataset)[:200],
        "may_write": membership.may(Role.RESEARCHER),
    }
    template = "datasets/_differences.html" if request.headers.get("HX-Request") else "datasets/diff.html"
    return render(request, template, context)


@member(access.WRITER)
@require_http_methods(["GET", "POST"])
def derive(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    """Shows what would be removed. A POST queues the work and goes to its page."""
    membership = require(request)
    version = access.version_write(membership, dataset_id, number)
    given = request.GET
    keep = given.get("remove") != "1"
    try:
        filters = parse(given)
        job_id = whole_number(given.get("job", ""))
        job = None if job_id is None else access.curation_of(membership, version, job_id)
        if request.method == "POST":
            note = request.POST.get("note", "")
            return redirect("curation", curating.derive(membership, version, filters, keep=keep, job=job, note=note).pk)
        removal = queries.removal(version, filters, keep, job)
    except (Invalid, Conflict) as problem:
        messages.error(request, _told(problem))
        return redirect("dataset_version", dataset_id, number)
    context = {
        "dataset": version.dataset,
        "version": version,
        "tab": "curate" if job else "explore",
        "words": [text for _, text in words(filters)],
        "keep": keep,
        "job": job,
        "removal": removal,
        "near": near_leaks_of([VersionPair(version, version)]),
        "back": f"/curations/{job.pk}" if job else address(version, query(filters)),
        "other": address(version, {**query(filters), **({"remove": "1"} if keep else {})}, "dataset_derive"),
        "narrow": filters.narrow or job,
    }
    return render(request, "datasets/derive.html", context)


def _told(problem: Problem) -> str:
    return " ".join([problem.message, *(f"{field}: {reason}" for field, reason in problem.fields.items())])


@member(access.WRITER)
@require_POST
def tag(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    """Adds the tag `name`, or removes it if `remove` is sent as well."""
    membership = require(request)
    version = access.version_write(membership, dataset_id, number)
    name = request.POST.get("name", "").strip()
    try:
        if request.POST.get("remove"):
            datasets.untag(membership, version, name)
        else:
            datasets.tag(membership, version, name)
    except Invalid as problem:
        messages.error(request, f"{problem.message} It {problem.fields['name']}.")
    return redirect("dataset_versions", dataset_id)


@member(access.WRITER)
@require_POST
def freeze(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    version = datasets.freeze(membership, access.version_write(membership, dataset_id, number))
    messages.success(request, f"Version {version.number} is frozen: it stays as it is.")
    return redirect("dataset_version", dataset_id, number)
