"""Datasets: list, versions, freeze."""

from .. import terminal
from ..terminal import PAGE, AsJson, Limit, Lines, group, print_json, print_rows, refusals_printed, say

app = group("Datasets: list, show, freeze. `touchstone import` makes versions, `touchstone export` writes them.")
COLUMNS = {
    "id": "id",
    "dataset": "name",
    "version": "latest.number",
    "state": "latest.state",
    "examples": "latest.counts.examples",
    "held out": "latest.counts.heldout",
}
VERSIONS = {
    "version": "number",
    "state": "state",
    "examples": "counts.examples",
    "made": "created_at",
    "digest": "digest",
}


@app.command("list")
def datasets_list(limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists datasets with their newest versions."""
    with refusals_printed():
        print_rows(terminal.server().datasets.all(page_size=min(limit, PAGE)), COLUMNS, as_json, limit)


@app.command("show")
def datasets_show(dataset: int, limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists the versions of a dataset, the newest first."""
    with refusals_printed():
        known = terminal.server()
        if not as_json:
            say(known.datasets.get(dataset)["name"], "bold")
        print_rows(known.datasets.list_versions(dataset, page_size=min(limit, PAGE)), VERSIONS, as_json, limit)


@app.command("freeze")
def datasets_freeze(dataset: int, version: int, as_json: AsJson = False) -> None:
    """Freezes a version, so that it never changes. A launch does the same with the version on which it trains."""
    with refusals_printed():
        found = terminal.server().datasets.freeze(dataset, version)
        if as_json:
            print_json(found)
            return
        say(f"version {found['number']} · {found['state']} · {found['digest']}", "bold")
