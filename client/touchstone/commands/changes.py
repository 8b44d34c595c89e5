"""The commands here change a run or make another one from it: limits, place in the line, more steps, a fork, steps that run afterwards."""

from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

import typer

from .. import terminal
from ..terminal import AsJson, Key, parse_settings, print_json, print_rows, refusals_printed, say
from .runs import app, print_run

Settings = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE in the config, such as optim.lr=1e-4; may be repeated")
]
NONE = "0 removes the limit"


@app.command("fork")
def runs_fork(
    run: int,
    settings: Settings = None,
    start_step: Annotated[int, typer.Option(help="Begin at the checkpoint of this step; 0: at the beginning")] = 0,
    name: str = "",
    key: Key = "",
) -> None:
    """Launches a new run like this one with some changes, and prints its number."""
    with refusals_printed():
        body = {"config": parse_settings(settings), "start_step": start_step, "name": name}
        print(terminal.server().post(f"/runs/{run}/fork", body, key=key or uuid4().hex)["id"])


@app.command("extend")
def runs_extend(run: int, steps: Annotated[int, typer.Option(help="Steps in all")], as_json: AsJson = False) -> None:
    """Lets a finished or stopped run continue to more steps, from its last checkpoint."""
    _changed(run, {"extend": {"steps": steps}}, as_json)


@app.command("priority")
def runs_priority(
    run: int, priority: Annotated[str, typer.Argument(help="low, normal or high")], as_json: AsJson = False
) -> None:
    """Lets a run start before or after the others that wait."""
    _changed(run, {"priority": {"priority": priority}}, as_json)


@app.command("schedule")
def runs_schedule(
    run: int,
    at: Annotated[str, typer.Argument(help="now, or a time with its zone, such as 2026-12-01T22:00:00Z")],
    as_json: AsJson = False,
) -> None:
    """Sets the time before which a run takes no place in the line."""
    _changed(run, {"schedule": {"not_before": None if at == "now" else at}}, as_json)


@app.command("limit")
def runs_limit(
    run: int,
    seconds: Annotated[int | None, typer.Option(help=f"Time of all its attempts; {NONE}")] = None,
    tokens: Annotated[int | None, typer.Option(help=f"Tokens that it generates; {NONE}")] = None,
    judge_tokens: Annotated[int | None, typer.Option(help=f"Tokens of its judges; {NONE}")] = None,
    judge_money: Annotated[float | None, typer.Option(help=f"Money for its judges; {NONE}")] = None,
    as_json: AsJson = False,
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
        _changed(run, {what: body for what, body in given.items() if body}, as_json)
        return
    with refusals_printed():
        print_json(terminal.server().runs.tokens(run))


@app.command("early")
def runs_early(
    run: int,
    metric: Annotated[
        str, typer.Option(help="Such as eval/rubric_score; without options, the present rule is shown")
    ] = "",
    patience: Annotated[
        int | None, typer.Option(help="Values without an improvement after which the run stops")
    ] = None,
    min_delta: Annotated[float, typer.Option(help="An improvement by no more than this counts as none")] = 0.0,
    better: Annotated[
        Literal["higher", "lower"] | None, typer.Option(help="Needed if the recipe does not say which side is better")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the rule")] = False,
    as_json: AsJson = False,
) -> None:
    """Stops a run with a checkpoint once a metric no longer improves."""
    if not (metric or off) and patience is None:
        with refusals_printed():
            print_json(terminal.server().runs.get(run)["stop_early"])
        return
    with refusals_printed():
        if off and (metric or patience is not None):
            raise ValueError("--off removes the rule: leave out --metric and --patience.")
        if not off and (not metric or patience is None):
            raise ValueError(
                "A rule needs both --metric and --patience, such as --metric eval/rubric_score --patience 5."
            )
    rule = {"metric": metric, "patience": patience, "min_delta": min_delta, "better": better}
    _changed(run, {"early": {"stop_early": None if off else rule}}, as_json)


def _changed(run: int, changes: dict[str, dict[str, Any]], as_json: bool) -> None:
    with refusals_printed():
        for what, body in changes.items():
            found = terminal.server().post(f"/runs/{run}/{what}", body, again=what != "extend")
        print_run(found, as_json)


@app.command("draft")
def runs_draft(
    run: int,
    file: Annotated[Path | None, typer.Option(help="YAML file that replaces all that the draft holds")] = None,
) -> None:
    """Shows what a draft holds, and why it cannot be launched yet."""
    with refusals_printed():
        known = terminal.server()
        if file is not None:
            body = terminal.body_of(file, "dataset and config")
            body.pop("recipe", None)  # that of a draft stays
            known.ask("PUT", f"/api/v1/runs/{run}/draft", json=body)
        print_json(known.runs.draft(run))


@app.command("launch")
def runs_launch(run: int, as_json: AsJson = False) -> None:
    """Launches a draft. A second launch changes nothing."""
    with refusals_printed():
        print_run(terminal.server().runs.launch_draft(run), as_json)


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
    with refusals_printed():
        body = {"kind": kind} | (terminal.body_of(file, "recipe and config") if file else {})
        print(terminal.server().post(f"/runs/{run}/chain", body, key=key or uuid4().hex)["id"])


@app.command("chain")
def runs_chain(run: int, as_json: AsJson = False) -> None:
    """Lists what came before a run, and what waits for it."""
    with refusals_printed():
        found = terminal.server().runs.chain(run)
        if as_json:
            print_json(found)
            return
        say(f"begins with run {found['first']}", "bold")
        columns = {"step": "id", "kind": "kind", "name": "name", "state": "state", "run": "run", "reason": "reason"}
        print_rows(found["items"], columns, as_json=False)
