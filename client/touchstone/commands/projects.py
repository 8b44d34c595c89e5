"""Projects in which people annotate: list, start, show how far they are, fetch and publish answers."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from .. import terminal
from ..terminal import PAGE, AsJson, Limit, Lines, group, print_json, print_rows, refusals_printed, say

app = group("Projects in which people annotate: list, start, show, answers, publish.")
COLUMNS = {
    "id": "id",
    "project": "name",
    "kind": "kind",
    "state": "state",
    "dataset": "version.dataset",
    "complete": "progress.complete",
    "tasks": "progress.tasks",
    "people": "people",
    "alpha": "alpha",
}


@app.command("list")
def projects_list(limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists the newest projects."""
    with refusals_printed():
        print_rows(terminal.server().projects.all(page_size=min(limit, PAGE)), COLUMNS, as_json, limit)


@app.command("start")
def projects_start(
    file: Annotated[
        Path, typer.Argument(help="YAML file with name, kind and dataset; if needed also overlap, settings, guidelines")
    ],
) -> None:
    """Creates a project, and prints its number."""
    with refusals_printed():
        print(terminal.server().post("/projects", terminal.body_of(file, "name, kind and dataset"))["id"])


@app.command("show")
def projects_show(project: int, as_json: AsJson = False) -> None:
    """Shows the progress of a project, and its warnings."""
    with refusals_printed():
        known = terminal.server()
        found, status = known.projects.get(project), known.projects.progress(project)
        if as_json:
            print_json({**found, "status": status})
            return
        at = found["progress"]
        say(f"{found['name']} · {found['kind']} · {found['state']} · {at['complete']} of {at['tasks']} tasks", "bold")
        for line in (status["reason"], *status["warnings"]):
            if line:
                say(f"  {line}")


@app.command("set")
def projects_set(project: int, state: Annotated[Literal["open", "paused", "closed"], typer.Argument()]) -> None:
    """Opens, pauses or closes a project."""
    with refusals_printed():
        found = terminal.server().projects.set_state(project, {"state": state})
        say(f"{found['name']} · {found['state']}", "bold")


@app.command("answers")
def projects_answers(
    project: int,
    to: Annotated[Path, typer.Option("--to", "-o", help="File to write; - is the terminal")] = Path("-"),
    format: Annotated[Literal["jsonl", "csv"], typer.Option(help="jsonl or csv")] = "jsonl",
) -> None:
    """Writes all answers of a project, under pseudonyms."""
    with refusals_printed():
        known = terminal.server()
        if str(to) == "-":
            known.save(f"/api/v1/projects/{project}/answers/export", sys.stdout.buffer, format=format)
        else:
            known.projects.export(project, to, format=format)


@app.command("publish")
def projects_publish(project: int) -> None:
    """Publishes the answers as a frozen version of the dataset, and prints what became of every label, as JSON."""
    with refusals_printed():
        print_json(terminal.server().post(f"/projects/{project}/publish"))
