"""Evaluations: start, follow, read the results, pause, start again."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.live import Live
from rich.text import Text

from .. import terminal
from ..terminal import FOLLOW_S, PAGE, AsJson, Every, Key, Limit, Lines, listed, out, told, whole

app = typer.Typer(help="Evaluations: start, list, follow, results, pause, again.", no_args_is_help=True)
OVER = ("finished", "failed", "cancelled")
COLUMNS = {
    "id": "id",
    "evaluation": "name",
    "recipe": "recipe",
    "state": "state",
    "dataset": "dataset.name",
    "result": "headline.cell.value",
}


@app.command("list")
def evaluations_list(
    state: Annotated[str, typer.Option(help="Such as running or finished")] = "",
    recipe: Annotated[str, typer.Option(help="Such as judge_audit or generate")] = "",
    limit: Limit = 20,
    as_json: Lines = False,
) -> None:
    """Lists the newest evaluations."""
    with told():
        rows = terminal.server().all("/evaluations", state=state or None, recipe=recipe or None, limit=min(limit, PAGE))
        listed(rows, COLUMNS, as_json, limit)


@app.command("recipes")
def evaluations_recipes(as_json: Lines = False) -> None:
    """Lists what an evaluation can find out."""
    with told():
        rows = terminal.server().get("/evaluations/recipes")["items"]
        listed(rows, {"recipe": "name", "title": "title"}, as_json)


@app.command("record")
def evaluations_record(
    file: Annotated[Path, typer.Argument(help="JSON Lines with verdicts or scores that were given elsewhere")],
) -> None:
    """Stores recorded verdicts or scores for evaluations, and prints their number."""
    with told():
        print(terminal.server().send_file("/evaluations/recordings", file)["id"])


@app.command("start")
def evaluations_start(
    file: Annotated[
        Path, typer.Argument(help="YAML file with recipe and config; if needed also dataset, recording, name")
    ],
    follow: Annotated[bool, typer.Option(help="Show the progress until it is over")] = False,
    key: Key = "",
) -> None:
    """Starts an evaluation, and prints its number."""
    with told():
        body = terminal.body_of(file, "recipe and config")
        number = terminal.server().post("/evaluations", body, key=key or uuid4().hex)["id"]
        print(number)
    if follow:
        evaluations_follow(number)


@app.command("again")
def evaluations_again(
    evaluation: int,
    resample: Annotated[bool, typer.Option("--resample", help="Ask judges for new samples")] = False,
    key: Key = "",
) -> None:
    """Starts an evaluation with the same config once more, and prints its number."""
    with told():
        address = f"/evaluations/{evaluation}/rerun{'?resample=true' if resample else ''}"
        print(terminal.server().post(address, key=key or uuid4().hex)["id"])


@app.command("show")
def evaluations_show(evaluation: int, as_json: AsJson = False) -> None:
    """Shows how an evaluation stands, and its config."""
    with told():
        found = terminal.server().get(f"/evaluations/{evaluation}")
        if as_json:
            whole(found)
            return
        out.print(_headline(found), soft_wrap=True)
        whole(found["config"])


@app.command("follow")
def evaluations_follow(evaluation: int, every: Every = FOLLOW_S) -> None:
    """Shows the progress of an evaluation until it is over or paused. The exit code is 0 if it finished, otherwise 1."""
    with told(), Live(console=out, auto_refresh=False) as live:
        known, state = terminal.server(), ""
        while state not in (*OVER, "paused"):
            if state:
                known.sleep(every)
            found = known.get(f"/evaluations/{evaluation}")
            state = found["state"]
            live.update(_headline(found), refresh=True)
    raise typer.Exit(0 if state == "finished" else 1)


def _headline(found: dict[str, Any]) -> Text:
    facts = [found["name"], found["recipe"], found["state"], found["problem"], _progress(found["progress"])]
    if found["headline"]:
        facts.append(f"{found['headline']['label']} {json.dumps(found['headline']['cell'].get('value'))}")
    return Text(" · ".join(fact for fact in facts if fact), style="bold")


def _progress(told: dict[str, Any]) -> str:
    return f"{told['done']} of {told['total']}" if told.get("total") else ""


@app.command("results")
def evaluations_results(
    evaluation: int,
    csv: Annotated[bool, typer.Option("--csv", help="A line for each number")] = False,
) -> None:
    """Prints every number of an evaluation, with n, interval and what is missing."""
    with told():
        known, address = terminal.server(), f"/evaluations/{evaluation}/results"
        if csv:
            known.save(f"/api/v1{address}/csv", sys.stdout.buffer)
        else:
            whole(known.get(address))


@app.command("cases")
def evaluations_cases(
    evaluation: int,
    tag: Annotated[list[str] | None, typer.Option(help="Only cases with this tag; may be repeated")] = None,
    limit: Limit = 20,
) -> None:
    """Prints the cases behind the numbers, one JSON object a line."""
    with told():
        rows = terminal.server().all(f"/evaluations/{evaluation}/cases", tag=tag or None, limit=min(limit, PAGE))
        listed(rows, {}, as_json=True, limit=limit)


@app.command("pause")
def evaluations_pause(evaluation: int) -> None:
    """Pauses an evaluation. Nothing is lost."""
    _moved(evaluation, "pause")


@app.command("resume")
def evaluations_resume(evaluation: int) -> None:
    """Continues an evaluation that is paused or has failed."""
    _moved(evaluation, "resume")


@app.command("cancel")
def evaluations_cancel(evaluation: int) -> None:
    """Ends an evaluation for good."""
    _moved(evaluation, "cancel")


def _moved(evaluation: int, how: str) -> None:
    with told():
        out.print(_headline(terminal.server().post(f"/evaluations/{evaluation}/{how}")), soft_wrap=True)
