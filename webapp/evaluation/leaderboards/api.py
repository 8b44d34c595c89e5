"""Leaderboards over the API. They need the role reviewer."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Router

from webapp.accounts.access import require

from .. import access
from .. import schemas as s
from . import boards, serializers

router = Router()


@router.get("/leaderboards", response=s.BoardList, summary="Benchmarks that something was measured on")
def leaderboards(request: HttpRequest) -> dict[str, Any]:
    """The last measured benchmark first. A benchmark is a recipe on data with settings; its rows can be compared."""
    found = boards.boards(access.may_read(require(request)).workspace_id)
    return {"items": [serializers.board(each) for each in found], "next": None}


@router.get("/leaderboards/{benchmark}", response=s.BoardOut, summary="One leaderboard, the best first")
def leaderboard(request: HttpRequest, benchmark: str) -> dict[str, Any]:
    found = boards.board(access.may_read(require(request)).workspace_id, benchmark.replace("\0", ""))
    if found is None:
        raise Http404("no such benchmark")
    return serializers.board(found)
