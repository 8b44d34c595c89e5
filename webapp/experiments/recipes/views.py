"""The gallery of recipes, and what a dataset's page says of them."""

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.datasets.leakage import leaks

from .. import access
from . import choices, gallery


def gallery_page(request: HttpRequest, dataset: str) -> HttpResponseBase:
    """The gallery, with what the chosen version has for each recipe."""
    workspace_id = require(request).workspace_id
    version = choices.named_version(workspace_id, dataset) or choices.newest_version(workspace_id)
    context = {
        "version": version,
        "datasets": gallery.datasets(workspace_id, version),
        "cards": gallery.cards(workspace_id, version),
        **(leaks.leaks_of_version(version) if version else {}),
        "experiment": request.GET.get("experiment", "")[:120],
    }
    return render(request, "experiments/gallery.html", context)


@member(access.WRITER)
@never_cache
@require_GET
def trainable(request: HttpRequest) -> HttpResponseBase:
    """A fragment for a dataset's page: what this version can train, with counts."""
    workspace_id = require(request).workspace_id
    version = choices.named_version(workspace_id, request.GET.get("dataset", ""))
    if version is None:
        raise Http404("no such version")
    cards = gallery.cards(workspace_id, version)
    context = {
        "version": version,
        "cards": cards,
        "counting": any(card.fit is None for card in cards),
        "nothing": not any(card.fit and card.fit.ok for card in cards),
    }
    return render(request, "experiments/_trainable.html", context)
