"""Judges over the API, one module for each room."""

from ninja import Router

from .judges import api as judges
from .suggestions import api as suggestions
from .trials import api as trials
from .verdicts import api as verdicts

router = Router(tags=["judges"])
for _part in (judges, verdicts, trials, suggestions):
    router.add_router("", _part.router)
