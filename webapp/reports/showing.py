"""What the blocks of a report show to one reader: each object is fetched through the workspace and role of whoever reads.

What was deleted, lies elsewhere or cannot be found is said in its block, and the rest of the page is shown.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.http import urlencode

from webapp.accounts.models import Membership
from webapp.experiments.access import may_read
from webapp.experiments.queries import runs
from webapp.experiments.table import columns, comparing, queries
from webapp.experiments.table.language import QueryProblem

from . import language
from .language import Block, Words

MOST_NAMED = 10  # runs that are not there, by number


@dataclass(frozen=True)
class Shown:
    """A block as one reader sees it. `why` says why there is nothing; `notes` what of it is not there; `facts` what it draws."""

    block: Block
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
        """What the page's script needs of a chart."""
        return json.dumps({name: value for name, value in self.facts.items() if name != "ids"})

    @property
    def template(self) -> str:
        return f"reports/_{self.kind}.html"


class Missing(LookupError):
    """Why a block shows nothing, in words."""


@dataclass(frozen=True)
class Found:
    """The runs of a block: their ids, and how the API is asked for them."""

    ids: list[int]
    asked: dict[str, str]
    notes: tuple[str, ...] = ()


def shown(membership: Membership, text: str) -> list[Words | Shown]:
    """A report piece by piece. Nothing in it raises: what cannot be shown says so."""
    may_read(membership)
    return [part if isinstance(part, Words) else one(membership, part) for part in language.pieces(text)]


def one(membership: Membership, block: Block) -> Shown:
    if block.problems:
        return Shown(block)
    try:
        notes, facts = SHOW[block.kind](membership, block)
    except Missing as problem:
        return Shown(block, str(problem))
    return Shown(block, "", tuple(notes), facts)


def found(membership: Membership, block: Block) -> Found:
    """The runs that it names or its query finds. Raises Missing."""
    if "runs" in block.given:
        return _numbered(membership, block.given["runs"])
    query = block.given["query"] if "query" in block.given else _of_view(membership, block.given["view"])
    try:
        ids = list(
            queries.found(membership, query).order_by("-pk").values_list("pk", flat=True)[: comparing.MOST_RUNS + 1]
        )
    except QueryProblem as problem:
        line = next((block.lines[name] for name in language.SOURCES if name in block.lines), block.line)
        raise Missing(f"Line {line}: the query cannot be read. {problem.message}") from problem
    if not ids:
        raise Missing(f"The query finds no run: {query}" if query else "There is no run in this workspace.")
    if len(ids) > comparing.MOST_RUNS:
        raise Missing(f"The query finds more than {comparing.MOST_RUNS:,} runs. Narrow it: {query}")
    return Found(ids, {"q": query})


def _numbered(membership: Membership, wanted: Sequence[int]) -> Found:
    there = set(runs(membership.workspace_id).filter(pk__in=wanted).values_list("pk", flat=True))
    ids = [run_id for run_id in wanted if run_id in there]
    gone = [run_id for run_id in wanted if run_id not in there]
    if not ids:
        raise Missing(_gone(gone))
    return Found(ids, {"ids": ",".join(map(str, ids))}, (_gone(gone),) if gone else ())


def _gone(ids: Sequence[int]) -> str:
    named = ", ".join(map(str, ids[:MOST_NAMED])) + (
        f" and {len(ids) - MOST_NAMED} others" if len(ids) > MOST_NAMED else ""
    )
    if len(ids) == 1:
        return f"Run {named} is not here: it was deleted, or belongs to another workspace."
    return f"Runs {named} are not here: they were deleted, or belong to another workspace."


def _of_view(membership: Membership, name: str) -> str:
    view = queries.views(membership.workspace_id).filter(name=name).first()
    if view is None:
        raise Missing(f"There is no saved view “{name}” of the table of runs here.")
    return view.query


def _chart(membership: Membership, block: Block) -> tuple[Sequence[str], dict[str, Any]]:
    source = found(membership, block)
    given = block.given
    facts = {
        "asked": urlencode(source.asked),
        "ids": source.ids,
        "metrics": [_metric(key) for key in given["metric"]],
        "apart": given.get("seeds") == "apart",
        "axis": "time" if given.get("across") == "time" else "step",
        "log": given.get("scale") == "log",
        "smoothing": given.get("smoothing", 0.0),
    }
    return source.notes, facts


def _metric(key: str) -> dict[str, Any]:
    declared = columns.declared_metrics().get(key)
    return {"key": key, "label": comparing.label_of(key), "share": bool(declared and declared.share)}


SHOW: Mapping[str, Callable[[Membership, Block], tuple[Sequence[str], dict[str, Any]]]] = {"chart": _chart}
