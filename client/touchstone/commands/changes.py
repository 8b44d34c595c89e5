"""What changes a run or makes one from it: limits, place in the line, more steps, a fork, what runs afterwards."""

from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from .. import terminal
from ..following import headline
from ..terminal import AsJson, Key, listed, nested, out, say, told, whole
from .runs import app

Settings = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE in the config, such as optim.lr=1e-4; may be repeated")
]
NONE = "0 takes the limit away"


@app.command("fork")
def runs_fork(
    run: int,
    settings: Settings = None,
    start_step: Annotated[int, typer.Option(help="Begin at the checkpoint of this step; 0: at the beginning")] = 0,
    name: str = "",
    key: Key = "",
) -> None:
    """Launches a new run like this one with some changes, and prints its number."""
    with told():
        body = {"config": nested(settings), "start_step": start_step, "name": name}
        print(terminal.server().post(f"/runs/{run}/fork", body, key=key or uuid4().hex)["id"])


@app.command("extend")
def runs_extend(run: int, steps: Annotated[int, typer.Option(help="Steps in all")]) -> None:
    """Lets a finished or stopped run continue to more steps, from its last checkpoint."""
    _changed(run, {"extend": {"steps": steps}})


@app.command("priority")
def runs_priority(run: int, priority: Annotated[str, typer.Argument(help="low, normal or high")]) -> None:
    """Lets a run start before or after the others that wait."""
    _changed(run, {"priority": {"priority": priority}})


@app.command("schedule")
def runs_schedule(
    run: int,
    at: Annotated[str, typer.Argument(help="now, or a time with its zone, such as 2026-12-01T22:00:00Z")],
) -> None:
    """Sets the time before which a run takes no place in the line."""
    _changed(run, {"schedule": {"not_before": None if at == "now" else at}})


@app.command("limit")
def runs_limit(
    run: int,
    seconds: Annotated[int | None, typer.Option(help=f"Time of all its attempts; {NONE}")] = None,
    tokens: Annotated[int | None, typer.Option(help=f"Tokens that it generates; {NONE}")] = None,
    judge_tokens: Annotated[int | None, typer.Option(help=f"Tokens of its judges; {NONE}")] = None,
    judge_money: Annotated[float | None, typer.Option(help=f"Money for its judges; {NONE}")] = None,
) -> None:
    """Sets limits at which a run saves and stops. Without an option, shows how many tokens it has generated, and may generate."""
    asked: dict[str, dict[str, Any]] = {
        "limit": {"seconds": seconds},
        "tokens": {"tokens": tokens},
        "budget": {"budget_tokens": judge_tokens, "budget_money": judge_money},
    }
    given = {
        what: {name: value or None for name, value in body.items() if value is not None} for what, body in asked.items()
    }
    if any(given.values()):
        _changed(run, {what: body for what, body in given.items() if body})
        return
    with told():
        whole(terminal.server().runs.tokens(run))


def _changed(run: int, changes: dict[str, dict[str, Any]]) -> None:
    with told():
        for what, body in changes.items():
            found = terminal.server().post(f"/runs/{run}/{what}", body, again=what != "extend")
        out.print(headline(found), soft_wrap=True)


@app.command("draft")
def runs_draft(
    run: int,
    file: Annotated[Path | None, typer.Option(help="YAML file that replaces all that the draft holds")] = None,
) -> None:
    """Shows what a draft holds, and why it cannot be launched yet."""
    with told():
        known = terminal.server()
        if file is not None:
            body = terminal.body_of(file, "dataset and config")
            body.pop("recipe", None)  # that of a draft stays
            known.ask("PUT", f"/api/v1/runs/{run}/draft", json=body)
        whole(known.runs.draft(run))


@app.command("launch")
def runs_launch(run: int) -> None:
    """Launches a draft. Twice is harmless."""
    with told():
        out.print(headline(terminal.server().runs.launch_draft(run)), soft_wrap=True)


@app.command("then")
def runs_then(
    run: int,
    kind: Annotated[str, typer.Argument(help="run or evaluation")],
    file: Annotated[
        Path | None, typer.Option(help="YAML file with recipe, config and the other fields of the step")
    ] = None,
    key: Key = "",
) -> None:
    """Adds a step that is launched once the run has finished, and prints its number."""
    with told():
        body = {"kind": kind} | (terminal.body_of(file, "recipe and config") if file else {})
        print(terminal.server().post(f"/runs/{run}/chain", body, key=key or uuid4().hex)["id"])


@app.command("chain")
def runs_chain(run: int, as_json: AsJson = False) -> None:
    """Lists what came before a run, and what waits for it."""
    with told():
        found = terminal.server().runs.chain(run)
        if as_json:
            whole(found)
            return
        say(f"begins with run {found['first']}", "bold")
        columns = {"step": "id", "kind": "kind", "name": "name", "state": "state", "run": "run", "reason": "reason"}
        listed(found["items"], columns, as_json=False)
