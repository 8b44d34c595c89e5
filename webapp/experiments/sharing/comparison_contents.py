"""The contents of a shared comparison: those of the workspace's own page, with places instead of ids, and without links to other pages."""

import re
from typing import Any

from ..table import compare_api, comparing
from .access import OpenedLink

LONGEST = 60
"""Characters: a longer text of a config is a prompt or a template."""
ELSEWHERE = re.compile(r"://|@|^[/~]|\w:\d|[\r\n]")
"""Addresses of servers and people, places on disks, texts of several lines."""
HIDDEN = "a text that is not shared"
UNLIKE = "measured in another way than most of the others"


def comparison(opened: OpenedLink, baseline: int | None) -> dict[str, Any]:
    """Like `compare_api.told`, but each run has its place, from 1, for its id. `baseline` is such a place; 0: none; None: the link's."""
    found = comparing.compare_runs(opened.link.workspace_id, opened.runs, shown=value)
    places = _places(opened)
    chosen = (
        {place: run_id for run_id, place in places.items()}.get(baseline) if baseline is not None else opened.baseline
    )
    told = compare_api.told(found, chosen)
    runs = [{**run, "id": places[run["id"]]} for run in told["runs"]]
    return {**told, "runs": runs, "unlike": {str(places[int(pk)]): UNLIKE for pk in told["unlike"]}}


def curves(opened: OpenedLink, key: str) -> dict[str, Any]:
    told = compare_api.told_curves(key, comparing.curves(opened.runs, key))
    places = _places(opened)
    return {**told, "curves": [{**curve, "run": places[curve["run"]]} for curve in told["curves"]]}


def value(held: Any) -> Any:
    """A value of a config as strangers may see it."""
    if isinstance(held, str) and (len(held) > LONGEST or ELSEWHERE.search(held)):
        return HIDDEN
    return held


def _places(opened: OpenedLink) -> dict[int, int]:
    return {run.pk: place for place, run in enumerate(opened.runs, 1)}
