"""Evaluations over the API, one module for each room."""

from ninja import Router

from .launch import api as launch
from .leaderboards import api as leaderboards
from .licences import api as licences
from .recordings import api as recordings
from .results import api as results
from .studies import api as studies

router = Router(tags=["evaluations"])
for _part in (licences, recordings, launch, results, studies, leaderboards):
    router.add_router("", _part.router)
