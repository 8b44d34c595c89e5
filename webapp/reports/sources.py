"""The runs that a block is about, for its reader: by numbers, a query or a saved view."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from webapp.experiments import recipe_metrics
from webapp.experiments.table import comparing, queries
from webapp.experiments.table.language import QueryProblem

from . import language
from .access import ReportReader
from .language import ReportBlock

MOST_NAMED = 10  # runs that are not there, by number
ASKED_FOR_RESULT = 50  # of the block's runs: enough to know what such runs measure
SOME_GONE = "Some of these runs were deleted, or are not shared."


class NothingToShow(LookupError):
    """The reason why a block shows nothing, in words."""


@dataclass(frozen=True)
class BlockRuns:
    """The runs of a block: their ids, and how the API is asked for them."""

    ids: list[int]
    asked: dict[str, str]
    notes: tuple[str, ...] = ()


def block_runs(reader: ReportReader, block: ReportBlock) -> BlockRuns:
    """The runs that it names or its query finds. Raises NothingToShow."""
    if "runs" in block.given:
        return _numbered(reader, block.given["runs"])
    query = asked(reader, block)
    try:
        rows = queries.find_runs(reader.membership, query, reader.only).order_by("-pk")
        ids = list(rows.values_list("pk", flat=True)[: comparing.MOST_RUNS + 1])
    except QueryProblem as problem:
        raise unreadable(block, problem) from problem
    if not ids:
        raise NothingToShow(f"The query finds no run: {query}" if query else "There is no run in this workspace.")
    if len(ids) > comparing.MOST_RUNS:
        raise NothingToShow(f"The query finds more than {comparing.MOST_RUNS:,} runs. Narrow it: {query}")
    return BlockRuns(ids, {"q": query})


def result_metric(reader: ReportReader, block: ReportBlock) -> str:
    """The key of the result that most of its runs have measured; empty if none has, or if there is no such run."""
    try:
        ids = block_runs(reader, block).ids[:ASKED_FOR_RESULT]
    except NothingToShow:
        return ""
    rows = reader.runs.filter(pk__in=ids).select_related(None).only("recipe", "summary", "step", "start_step")
    found = [each.metric.key for each in map(recipe_metrics.result, rows) if each.metric and each.last is not None]
    return Counter(found).most_common(1)[0][0] if found else ""


def asked(reader: ReportReader, block: ReportBlock) -> str:
    """The query with which it asks the table of runs. Raises NothingToShow."""
    if "runs" in block.given:
        return f"is:any run:{','.join(map(str, block.given['runs']))}"
    return block.given["query"] if "query" in block.given else _of_view(reader, block.given["view"])


def unreadable(block: ReportBlock, problem: QueryProblem) -> NothingToShow:
    line = next((block.lines[name] for name in language.SOURCES if name in block.lines), block.line)
    return NothingToShow(f"Line {line}: the query cannot be read. {problem.message}")


def _numbered(reader: ReportReader, wanted: Sequence[int]) -> BlockRuns:
    there = set(reader.runs.filter(pk__in=wanted).values_list("pk", flat=True))
    ids = [run_id for run_id in wanted if run_id in there]
    lost = [run_id for run_id in wanted if run_id not in there]
    if not ids:
        raise NothingToShow(deleted_text(lost))
    return BlockRuns(
        ids,
        {"ids": ",".join(map(str, ids))},
        (SOME_GONE if reader.is_stranger else deleted_text(lost),) if lost else (),
    )


def deleted_text(ids: Sequence[int]) -> str:
    named = ", ".join(map(str, ids[:MOST_NAMED])) + (
        f" and {len(ids) - MOST_NAMED} others" if len(ids) > MOST_NAMED else ""
    )
    if len(ids) == 1:
        return f"Run {named} is not here: it was deleted, or belongs to another workspace."
    return f"Runs {named} are not here: they were deleted, or belong to another workspace."


def _of_view(reader: ReportReader, name: str) -> str:
    view = queries.views(reader.membership.workspace_id).filter(name=name).first()
    if view is None:
        raise NothingToShow(f"There is no saved view “{name}” of the table of runs here.")
    return view.query
