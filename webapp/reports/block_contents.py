"""The contents of a report's blocks for one reader: each object is fetched with the workspace and role of the reader.

What was deleted, lies elsewhere or cannot be found is said in its block, and the rest of the page is shown.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.http import urlencode

from webapp.experiments.table import columns

from . import language, queries, sources, tables
from .access import ReportReader, may_read
from .language import ReportBlock, ReportWords
from .sources import NothingToShow

API = "/api/v1/runs/table/"
GONE = "The row that was shown here was deleted, or is not shared."


@dataclass(frozen=True)
class ShownBlock:
    """A block as one reader sees it. `why` says why it is empty; `notes` lists missing parts; `facts` is what it draws."""

    block: ReportBlock
    why: str = ""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.block.kind

    @property
    def title(self) -> str:
        return self.block.title

    @property
    def drawing(self) -> str:
        """The data of a chart for the page's script."""
        return json.dumps({name: value for name, value in self.facts.items() if name != "ids"})

    @property
    def template(self) -> str:
        return f"reports/_{self.kind}.html"


def pieces_of(reader: ReportReader, text: str) -> list[ReportWords | ShownBlock]:
    """A report piece by piece. It never raises: a block that cannot be shown says so."""
    may_read(reader.membership)
    return [part if isinstance(part, ReportWords) else one(reader, part) for part in language.pieces(text)]


def one(reader: ReportReader, block: ReportBlock) -> ShownBlock:
    """The reason why there is nothing is told in detail to members alone: the reason may name a query, a view or a metric."""
    if block.problems:
        return ShownBlock(block)
    try:
        notes, facts = SHOW[block.kind](reader, block)
    except NothingToShow as problem:
        return ShownBlock(block, GONE if reader.is_stranger else str(problem))
    return ShownBlock(block, "", tuple(notes), facts)


def _chart(reader: ReportReader, block: ReportBlock) -> tuple[Sequence[str], dict[str, Any]]:
    source = sources.block_runs(reader, block)
    given = block.given
    recipes = list(reader.runs.filter(pk__in=source.ids).order_by("pk").values_list("recipe", flat=True))
    facts = {
        "source": API,
        "asked": urlencode(source.asked),
        "ids": source.ids,
        "metrics": [_metric(key, recipes) for key in given["metric"]],
        "apart": given.get("seeds") == "apart",
        "axis": "time" if given.get("across") == "time" else "step",
        "log": given.get("scale") == "log",
        "smoothing": given.get("smoothing", 0.0),
        "range": given.get("range"),
        "band": given.get("band", "interval"),
    }
    return source.notes, facts


def _metric(key: str, recipes: Sequence[str]) -> dict[str, Any]:
    declared = columns.metric_of(key, recipes)
    return {"key": key, "label": columns.metric_label(key, recipes), "share": bool(declared and declared.share)}


def _rollout(reader: ReportReader, block: ReportBlock) -> tuple[Sequence[str], dict[str, Any]]:
    given = block.given
    run = reader.runs.filter(pk=given["run"]).first()
    if run is None:
        raise NothingToShow(sources.deleted_text([given["run"]]))
    phase, index = given.get("phase", "train"), given.get("response", 1)
    row = queries.rollout(run, given)
    if row is None:
        where = f"step {given['step']} ({phase})"
        raise NothingToShow(
            f"{run} has no response {index} to prompt {given['prompt']} at {where}: it was not kept, or does not exist yet."
        )
    record = row.content
    facts = {"run": run, "row": row, "phase": phase, "prompt": given["prompt"], "index": index, "record": record}
    return (), facts | {"criteria": [_criterion(each) for each in record.get("criteria") or ()]}


def _criterion(result: Mapping[str, Any]) -> dict[str, Any]:
    """A criterion with its verdict in words; `tone` says whether that is as the rubric wishes."""
    met, points = result["verdict"]["met"], result["points"]
    tone = "warn" if met is None else "good" if met == (points > 0) else "bad"
    word = "no verdict" if met is None else "met" if met else "not met"
    icon = "circle-help" if met is None else "check" if met else "x"
    worth = f"{'+' if points > 0 else '−'}{abs(points):g}"
    return {
        "text": result["text"],
        "points": worth,
        "tone": tone,
        "word": word,
        "icon": icon,
        "note": result["verdict"].get("note", ""),
    }


SHOW: Mapping[str, Callable[[ReportReader, ReportBlock], tuple[Sequence[str], dict[str, Any]]]] = {
    "chart": _chart,
    "runs": tables.table,
    "rollout": _rollout,
}
