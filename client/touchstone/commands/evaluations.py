"""Evaluations: start, follow, read the results, pause, start again."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.live import Live
from rich.text import Text

from .. import terminal
from ..api.evaluations import EvaluationFull
from ..server import Server
from ..terminal import (
    FOLLOW_S,
    PAGE,
    AsJson,
    Every,
    Key,
    Limit,
    Lines,
    group,
    out,
    print_json,
    print_rows,
    refusals_printed,
)

app = group("Evaluations: start, list, follow, results, pause, again.")
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
    with refusals_printed():
        rows = terminal.server().all("/evaluations", state=state or None, recipe=recipe or None, limit=min(limit, PAGE))
        print_rows(rows, COLUMNS, as_json, limit)


@app.command("recipes")
def evaluations_recipes(as_json: Lines = False) -> None:
    """Lists the recipes of evaluations."""
    with refusals_printed():
        rows = terminal.server().evaluations.recipes()["items"]
        print_rows(rows, {"recipe": "name", "title": "title"}, as_json)


@app.command("record")
def evaluations_record(
    file: Annotated[Path, typer.Argument(help="JSON Lines with verdicts or scores that were given elsewhere")],
) -> None:
    """Stores recorded verdicts or scores for evaluations, and prints the number of the recording."""
    with refusals_printed():
        print(terminal.server().evaluations.store_recording(file)["id"])


@app.command("start")
def evaluations_start(
    file: Annotated[
        Path, typer.Argument(help="YAML file with recipe and config; if needed also dataset, recording, name")
    ],
    follow: Annotated[bool, typer.Option(help="Show the progress until it is over")] = False,
    key: Key = "",
) -> None:
    """Starts an evaluation, and prints its number."""
    with refusals_printed():
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
    with refusals_printed():
        print(terminal.server().evaluations.rerun(evaluation, resample=resample or None, key=key or None)["id"])


@app.command("show")
def evaluations_show(evaluation: int, as_json: AsJson = False) -> None:
    """Shows the state of an evaluation, and its config."""
    with refusals_printed():
        found = terminal.server().evaluations.get(evaluation)
        if as_json:
            print_json(found)
            return
        out.print(_headline(found), soft_wrap=True)
        print_json(found["config"])


@app.command("follow")
def evaluations_follow(evaluation: int, every: Every = FOLLOW_S) -> None:
    """Shows the progress of an evaluation until it is over or paused. The exit code is 0 if it finished, otherwise 1."""
    with refusals_printed(), Live(console=out, auto_refresh=False) as live:
        known, state = terminal.server(), ""
        while state not in (*OVER, "paused"):
            if state:
                known.sleep(every)
            found = known.evaluations.get(evaluation)
            state = found["state"]
            live.update(_headline(found), refresh=True)
    raise typer.Exit(0 if state == "finished" else 1)


def _headline(found: EvaluationFull) -> Text:
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
    with refusals_printed():
        known = terminal.server()
        if csv:
            known.save(f"/api/v1/evaluations/{evaluation}/results/csv", sys.stdout.buffer)
        else:
            print_json(known.evaluations.show_results(evaluation))


@app.command("cases")
def evaluations_cases(
    evaluation: int,
    tag: Annotated[list[str] | None, typer.Option(help="Only cases with this tag; may be repeated")] = None,
    limit: Limit = 20,
) -> None:
    """Prints the cases behind the numbers, one JSON object on each line."""
    with refusals_printed():
        rows = terminal.server().evaluations.cases(evaluation, tag=tag or None, page_size=min(limit, PAGE))
        print_rows(rows, {}, as_json=True, limit=limit)


@app.command("pause")
def evaluations_pause(evaluation: int) -> None:
    """Pauses an evaluation. Nothing is lost."""
    _moved(lambda server: server.evaluations.pause(evaluation))


@app.command("resume")
def evaluations_resume(evaluation: int) -> None:
    """Continues an evaluation that is paused or has failed."""
    _moved(lambda server: server.evaluations.resume(evaluation))


@app.command("cancel")
def evaluations_cancel(evaluation: int) -> None:
    """Cancels an evaluation for good."""
    _moved(lambda server: server.evaluations.cancel(evaluation))


def _moved(move: Callable[[Server], EvaluationFull]) -> None:
    with refusals_printed():
        out.print(_headline(move(terminal.server())), soft_wrap=True)
