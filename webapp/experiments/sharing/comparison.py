"""A comparison as people without an account see it: its page, and what its charts ask for."""

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from webapp.core.requests.numbers import whole_number

from ..models import SharedRun, ShareLink
from ..table.compare_api import written
from . import comparison_contents, kinds
from .access import OpenedLink
from .models import COMPARISON
from .public import opens

MOST_KEY = 80


def page(request: HttpRequest, opened: OpenedLink) -> HttpResponse:
    return render(request, "shared/comparison.html", {"count": len(opened.runs), "source": f"{request.path}/"})


@opens(COMPARISON)
def compare(request: HttpRequest, opened: OpenedLink) -> HttpResponse:
    """`?baseline=` is the place of a run, 0 for none."""
    return written(comparison_contents.comparison(opened, whole_number(request.GET.get("baseline", ""))))


@opens(COMPARISON)
def curves(request: HttpRequest, opened: OpenedLink) -> HttpResponse:
    return written(comparison_contents.curves(opened, request.GET.get("key", "")[:MOST_KEY]))


def listed(links: Sequence[ShareLink]) -> Mapping[int, kinds.ListedLink]:
    ids: dict[int, list[int]] = {link.pk: [] for link in links}
    for link_id, run_id in SharedRun.objects.filter(link__in=links).order_by("place").values_list("link_id", "run_id"):
        ids[link_id].append(run_id)
    return {link_id: _told(runs) for link_id, runs in ids.items()}


def _told(runs: list[int]) -> kinds.ListedLink:
    if not runs:
        return kinds.ListedLink("no run", "", "its runs were deleted")
    words = f"{len(runs):,} run{'' if len(runs) == 1 else 's'}"
    return kinds.ListedLink(words, f"{reverse('runs_compare')}?{urlencode({'ids': ','.join(map(str, runs))})}")


kinds.KINDS[COMPARISON] = kinds.SharedKind(page, listed)
