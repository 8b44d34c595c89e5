"""Sweeps: start, follow, stop, sweep again."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .. import terminal
from ..api.sweeps import SweepStandingOut, SweepTrialOut
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
    parse_settings,
    print_json,
    print_rows,
    refusals_printed,
    say,
)

app = group("Sweeps: start, list, follow, stop, sweep again.")
OVER = ("finished", "failed", "stopped")
COLUMNS = {
    "id": "id",
    "sweep": "name",
    "recipe": "recipe",
    "state": "state",
    "over": "over",
    "trials": "trials",
    "metric": "metric",
}
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="KEY=VALUE of the search, such as trials=8 or config.steps=60; may be repeated"),
]


@app.command("list")
def sweeps_list(limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists the newest sweeps."""
    with refusals_printed():
        print_rows(terminal.server().sweeps.all(page_size=min(limit, PAGE)), COLUMNS, as_json, limit)


@app.command("start")
def sweeps_start(
    file: Annotated[Path, typer.Argument(help="YAML file with recipe, dataset, config and axes, or with run and axes")],
    follow: Annotated[bool, typer.Option(help="Show the trials until the sweep is over")] = False,
    key: Key = "",
) -> None:
    """Launches a sweep, and prints its number."""
    with refusals_printed():
        sweep = _launched(terminal.body_of(file, "axes, and recipe and dataset, or a run"), key)
    if follow:
        sweeps_follow(sweep)


@app.command("again")
def sweeps_again(sweep: int, changes: Changes = None, key: Key = "") -> None:
    """Launches the search of a sweep once more, with some changes, as a new sweep. Prints its number."""
    with refusals_printed():
        _launched({"sweep": sweep} | parse_settings(changes), key)


def _launched(body: dict[str, Any], key: str) -> int:
    number: int = terminal.server().post("/sweeps", body, key=key or uuid4().hex)["id"]
    print(number)
    return number


@app.command("show")
def sweeps_show(sweep: int, as_json: AsJson = False) -> None:
    """Shows the state of a sweep, its best trial, and every trial."""
    with refusals_printed():
        known = terminal.server()
        if as_json:
            print_json(known.sweeps.get(sweep))
        else:
            out.print(_standing(known, sweep)[1])


@app.command("follow")
def sweeps_follow(sweep: int, every: Every = FOLLOW_S) -> None:
    """Shows the trials of a sweep until it is over. The exit code is 0 if it finished, 1 if it failed or was stopped."""
    with refusals_printed(), Live(console=out, auto_refresh=False) as live:
        known, state = terminal.server(), ""
        while state not in OVER:
            if state:
                known.sleep(every)
            state, picture = _standing(known, sweep)
            live.update(picture, refresh=True)
    raise typer.Exit(0 if state == "finished" else 1)


def _standing(known: Server, sweep: int) -> tuple[str, Group]:
    """The state of a sweep, and its picture."""
    found, trials = known.sweeps.get(sweep), known.sweeps.trials(sweep, page_size=PAGE)
    reason = f" · {found['state_reason']}" if found["state_reason"] else ""
    over = f"{found['over']} of {found['trials']} trials over"
    best = f"best: trial {found['best']['number']}" if found["best"] else "no trial has a value yet"
    head = Text(f"{found['experiment']} / {found['name']} · {found['state']} · {over} · {best}{reason}", style="bold")
    return found["state"], Group(head, _trials(trials, found["metric"]))


def _trials(trials: Iterable[SweepTrialOut], metric: str) -> Table:
    table = Table("trial", "state", "values", metric, "interval", "runs", box=None)
    for trial in trials:
        estimate, said = trial["estimate"], ", ".join(f"{name}={value}" for name, value in trial["values"].items())
        mean = "–" if estimate["value"] is None else f"{estimate['value']:.6g}"
        wide = "–" if estimate["low"] is None else f"{estimate['low']:.4g} to {estimate['high']:.4g}"
        runs = ", ".join(str(each["run"]) for each in trial["runs"])
        table.add_row(*map(Text, (str(trial["number"]), trial["state"], said, mean, wide, runs)))
    return table


@app.command("add")
def sweeps_add(sweep: int, trials: Annotated[int, typer.Argument(help="Trials to add")]) -> None:
    """Adds trials to a sweep, also to one that is over."""
    _moved(lambda server: server.sweeps.add_trials(sweep, {"trials": trials}))


@app.command("stop")
def sweeps_stop(sweep: int) -> None:
    """Stops a sweep and its runs. Each run saves."""
    _moved(lambda server: server.sweeps.stop(sweep))


@app.command("resume")
def sweeps_resume(sweep: int) -> None:
    """Continues a stopped sweep: launches the trials that are left."""
    _moved(lambda server: server.sweeps.resume(sweep))


@app.command("resume-failed")
def sweeps_resume_failed(sweep: int, as_json: AsJson = False) -> None:
    """Resumes the failed runs of a sweep. A run that cannot be resumed is printed with the reason."""
    with refusals_printed():
        found = terminal.server().sweeps.resume_failed(sweep)
        if as_json:
            print_json(found)
            return
        for each in found["refused"]:
            say(f"run {each['run']}: {each['reason']}")
        say(f"{len(found['runs'])} resumed, {len(found['refused'])} not", "bold")


def _moved(move: Callable[[Server], SweepStandingOut]) -> None:
    with refusals_printed():
        found = move(terminal.server())
        say(f"{found['name']} · {found['state']} · {found['over']} of {found['trials']} trials over", "bold")
