"""Imports of datasets: what became of a file that was sent."""

import json
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from .. import terminal
from ..terminal import (
    FOLLOW_S,
    PAGE,
    AsJson,
    Every,
    Limit,
    Lines,
    err,
    group,
    print_json,
    print_rows,
    refusals_printed,
    say,
)

app = group("Imports of datasets: list, show, wait, cancel.")
COLUMNS = {
    "id": "id",
    "dataset": "dataset",
    "file": "file",
    "state": "state",
    "examples": "counts.examples",
    "refused": "rejected_count",
    "error": "error",
}
SHOWN = 10  # refused lines that people see; --json has all that the server keeps


@app.command("list")
def imports_list(limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists the newest imports."""
    with refusals_printed():
        print_rows(terminal.server().datasets.list_imports(page_size=min(limit, PAGE)), COLUMNS, as_json, limit)


@app.command("show")
def imports_show(number: int, as_json: AsJson = False) -> None:
    """Shows the state of an import, which lines were refused and why, and what was left out."""
    with refusals_printed():
        job = terminal.server().datasets.get_import(number)
        if as_json:
            print_json(job)
            return
        say(_headline(job), "bold")
        for name, count in job["counts"].items():
            say(f"  {name}: {count:,}")
        complaints(job)


@app.command("wait")
def imports_wait(number: int, every: Every = FOLLOW_S) -> None:
    """Waits until an import is over, and prints its version and counts as JSON. The exit code is 0 if it finished, otherwise 2."""
    with refusals_printed():
        known = terminal.server()
        report(known.imported(known.get(f"/imports/{number}"), every))


@app.command("cancel")
def imports_cancel(number: int) -> None:
    """Cancels an import; none of its rows stay."""
    with refusals_printed():
        say(_headline(terminal.server().datasets.cancel_import(number)), "bold")


def _headline(job: Mapping[str, Any]) -> str:
    version = f" · version {job['version']['number']}" if job["version"] else ""
    at = f" · {job['rows_done']:,} rows read" if job["state"] == "running" else ""
    wrong = f" · {job['error']}" if job["error"] else ""
    return f"import {job['id']} · {job['dataset']} · {job['state']}{version}{at}{wrong}"


def complaints(job: Mapping[str, Any]) -> None:
    """Prints the first refused lines and what was left out, for people: to stderr, so that stdout stays JSON."""
    for line in job["rejected"][:SHOWN]:
        err.print(Text(json.dumps(line, ensure_ascii=False), style="yellow"), soft_wrap=True)
    if (more := job["rejected_count"] - min(len(job["rejected"]), SHOWN)) > 0:
        err.print(
            Text(f"and {more:,} more; touchstone imports show {job['id']} --json", style="yellow"), soft_wrap=True
        )
    for reason, rows in job["unsaid"].items():
        err.print(Text(f"left out in {rows:,} rows: {reason}", style="yellow"), soft_wrap=True)


def report(job: Mapping[str, Any]) -> None:
    """Prints what an import that is over has made, as one line of JSON. Raises ValueError if it has made nothing."""
    complaints(job)
    if job["state"] != "finished":
        raise ValueError(job["error"] or f"The import is {job['state']}.")
    version = job["version"] or {}
    made = {
        "dataset": job["dataset"],
        "id": version.get("dataset_id"),
        "version": version.get("number"),
        "counts": job["counts"],
    }
    print(json.dumps(made, ensure_ascii=False))
