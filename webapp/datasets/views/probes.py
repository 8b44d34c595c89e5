"""The map of a version by its pass rates: solved, learnable, out of reach."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.pages import confirmation
from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number

from .. import access, probe_services, written_rates
from ..columns.filters import REACH
from ..exploration import probes
from ..models import DatasetVersion, Probe
from .explore import address

NAMES = {"solved": "Solved", "learnable": "Learnable", "out": "Out of reach", "unknown": "Not known"}


@member(access.READER)
@require_GET
def pass_rates(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    """The map by the probe that `probe` names or that `evaluation` has measured, otherwise by the newest one."""
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    listed = probes.of_dataset(dataset_id)
    probe = _wanted(membership, version, listed, request.GET)
    if probe is not None and probe not in listed:  # an older probe that somebody has linked
        listed.append(probe)
    context: dict[str, Any] = {
        "dataset": version.dataset,
        "version": version,
        "tab": "pass_rates",
        "probes": listed,
        "may_write": membership.may(Role.RESEARCHER),
        "measure": urlencode({"recipe": "pass_rate", "dataset": f"{dataset_id}:{number}"}),
    }
    if probe is not None:
        context |= {"probe": probe, **_drawn(version, probes.map_of(version, probe))}
    return render(request, "datasets/pass_rates.html", context)


def _wanted(
    membership: Membership, version: DatasetVersion, listed: list[Probe], given: Mapping[str, str]
) -> Probe | None:
    """The requested probe. Raises 404 if it does not exist."""
    if evaluation := given.get("evaluation"):
        number = whole_number(evaluation) or 0  # text that is not a number belongs to no evaluation
        measured = probes.all_of(version.dataset_id).filter(evaluation=number).order_by("-id").first()
        if measured is None:
            raise Http404("no such probe of this dataset")
        return measured
    if asked := given.get("probe"):
        return access.probe_of(membership, version, whole_number(asked) or 0)
    return listed[0] if listed else None


def _drawn(version: DatasetVersion, found: probes.Map) -> dict[str, Any]:
    most = max((bar.count for bar in found.bars), default=0)
    return {
        "map": found,
        "parts": [(NAMES[part.name], REACH[part.name], part, _link(version, part)) for part in found.parts],
        "bars": [(bar, _link(version, bar), bar.count / most if most else 0) for bar in found.bars],
        "domains": [(name, [(part, _link(version, part)) for part in parts]) for name, parts in found.domains],
        "names": list(NAMES.values()),
    }


def _link(version: DatasetVersion, part: probes.VersionPart) -> str:
    return address(version, dict(part.query))


@member(access.WRITER)
@require_POST
def write(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    """The next version, with the pass rates of the chosen probes in its examples."""
    membership = require(request)
    version = access.version_write(membership, dataset_id, number)
    chosen = dict.fromkeys(whole_number(each) or 0 for each in request.POST.getlist("probe") if each)
    try:
        made = written_rates.write(membership, version, [access.probe_of(membership, version, each) for each in chosen])
    except Invalid as problem:
        messages.error(request, f"{problem.message} {'; '.join(problem.fields.values())}")
        return redirect(reverse("dataset_pass_rates", args=[dataset_id, number]))
    messages.success(request, f"Version {made.number} has the pass rates as meta.pass_rate.")
    return redirect(reverse("dataset_version", args=[dataset_id, made.number]))


@member(access.WRITER)
@require_POST
def delete(request: HttpRequest, probe_id: int) -> HttpResponseBase:
    membership = require(request)
    probe = access.probe_write(membership, probe_id)
    back = reverse("dataset_pass_rates", args=[probe.version.dataset_id, probe.version.number])
    text = "Filters and saved views that use them no longer work. The evaluation that measured them stays."
    title = f"Delete the pass rates of {probe.model}?"
    if asked := confirmation.question(request, title=title, text=text, yes="Delete them", back=back):
        return asked
    probe_services.delete(membership, probe)
    messages.success(request, f"The pass rates of {probe.model} are deleted.")
    return redirect(back)
