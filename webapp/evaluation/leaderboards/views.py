"""Pages of the leaderboards."""

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require

from .. import access
from . import boards


@member(access.READER)
@never_cache
@require_GET
def leaderboards(request: HttpRequest) -> HttpResponseBase:
    """The benchmarks with measurements."""
    found = boards.boards(require(request).workspace_id)
    return render(request, "evaluation/leaderboards.html", {"boards": found})


@member(access.READER)
@never_cache
@require_GET
def leaderboard(request: HttpRequest, benchmark: str) -> HttpResponseBase:
    board = boards.board(require(request).workspace_id, benchmark)
    if board is None:
        raise Http404("no such benchmark")
    return render(request, "evaluation/leaderboard.html", {"board": board})


urls = [
    path("leaderboards", leaderboards, name="leaderboards"),
    path("leaderboards/<slug:benchmark>", leaderboard, name="leaderboard"),
]
