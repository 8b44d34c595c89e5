"""Runs: list, show, follow, stop, and what they have logged."""

from collections.abc import Callable
from typing import Annotated

import typer
import yaml
from rich.text import Text

from .. import terminal
from ..api.runs import CurveOut, RunOut
from ..following import charts, follow, headline
from ..server import Server
from ..terminal import PAGE, AsJson, Limit, Lines, err, group, out, print_json, print_rows, refusals_printed, say

app = group("Runs: list, show, follow, stop, change.")
COLUMNS = {
    "id": "id",
    "run": "name",
    "experiment": "experiment.name",
    "recipe": "recipe",
    "state": "state",
    "step": "progress.step",
}


@app.command("list")
def runs_list(
    state: Annotated[str, typer.Option(help="Such as running, finished, or active")] = "",
    limit: Limit = 20,
    as_json: Lines = False,
) -> None:
    """Lists the newest runs."""
    with refusals_printed():
        rows = terminal.server().all("/runs", state=state or None, limit=min(limit, PAGE))
        print_rows(rows, COLUMNS, as_json, limit)


@app.command("show")
def runs_show(run: int, as_json: AsJson = False) -> None:
    """Shows a run: its state, its newest numbers, and its config."""
    with refusals_printed():
        found = terminal.server().runs.get(run)
        if as_json:
            print_json(found)
            return
        out.print(headline(found), soft_wrap=True)
        for key, value in sorted(found["summary"].items()):
            say(f"  {key:40} {value:.6g}")
        say(yaml.safe_dump(found["config"], sort_keys=False, allow_unicode=True))


@app.command("follow")
def runs_follow(
    run: int,
    key: Annotated[list[str] | None, typer.Option(help="A metric to draw; may be repeated")] = None,
) -> None:
    """Draws a run's metrics as they come, until it is over. The exit code is 0 if it finished, 1 if it failed or was stopped."""
    with refusals_printed():
        ended = follow(terminal.server(), run, key)
    raise typer.Exit(0 if ended == "finished" else 1)


@app.command("stop")
def runs_stop(
    run: int,
    now: Annotated[bool, typer.Option("--now", help="Stop at once, without a checkpoint")] = False,
    as_json: AsJson = False,
) -> None:
    """Saves and ends a run. Its present step is given up."""
    _moved(lambda server: server.runs.stop(run, now=now or None), as_json)


@app.command("pause")
def runs_pause(run: int, as_json: AsJson = False) -> None:
    """Has a run save and give its place to others, until it is resumed. Its present step is given up."""
    _moved(lambda server: server.runs.pause(run), as_json)


@app.command("resume")
def runs_resume(run: int, as_json: AsJson = False) -> None:
    """Resumes a paused, stopped or failed run from its last checkpoint; without one, it begins again."""
    _moved(lambda server: server.runs.resume(run), as_json)


def _moved(move: Callable[[Server], RunOut], as_json: bool) -> None:
    with refusals_printed():
        print_run(move(terminal.server()), as_json)


def print_run(found: RunOut, as_json: bool) -> None:
    """Prints a run after a change."""
    if as_json:
        print_json(found)
    else:
        out.print(headline(found), soft_wrap=True)


@app.command("rename")
def runs_rename(run: int, name: str, as_json: AsJson = False) -> None:
    """Gives a run another name."""
    _moved(lambda server: server.runs.rename(run, {"name": name}), as_json)


@app.command("delete")
def runs_delete(run: int, yes: Annotated[bool, typer.Option("--yes", help="Do not ask")] = False) -> None:
    """Deletes a run that is over, with its files, or a draft, which can be restored for a day."""
    with refusals_printed():
        known = terminal.server()
        found = known.runs.get(run)
        if not yes and not typer.confirm(f"Delete {found['experiment']['name']} / {found['name']} with its files?"):
            raise ValueError("Nothing was deleted.")
        known.runs.delete(run)
        say(f"Run {run} is deleted.")


@app.command("restore")
def runs_restore(run: int, as_json: AsJson = False) -> None:
    """Restores a draft that was deleted within the last day. To restore it again changes nothing."""
    _moved(lambda server: server.runs.restore_draft(run), as_json)


@app.command("log")
def runs_log(
    run: int,
    after_seq: Annotated[int | None, typer.Option(help="Only the lines after the one with this number")] = None,
    as_json: Lines = False,
) -> None:
    """Prints the lines of a run's log: the newest, or all after one of them."""
    with refusals_printed():
        lines = terminal.server().log(run, after_seq)
        if as_json:
            print_rows(lines, {}, as_json=True)
            return
        for line in lines:
            say(f"{line['seq']:>6} {line['time'][:19]} {line['level']:7} step {line['step']}  {line['message']}")


@app.command("history")
def runs_history(run: int, as_json: Lines = False) -> None:
    """Lists every change of a run's state: when, by whom, why."""
    with refusals_printed():
        columns = {"at": "at", "action": "action", "state": "state", "who": "who", "why": "why"}
        print_rows(terminal.server().runs.history(run), columns, as_json)


@app.command("line")
def runs_line(as_json: AsJson = False) -> None:
    """Shows which runs and jobs are under way, and which wait, in their order."""
    with refusals_printed():
        found = terminal.server().runs.line()
        if as_json:
            print_json(found)
            return
        for title, rows in (("running", found["running"]), ("waiting", found["waiting"])):
            say(f"{title}: {len(rows) or 'nothing'}", "bold")
            for row in rows:
                say(f"  {row['kind']} {row['id'] or row['job'] or ''}  {row['name'] or 'of another workspace'}")


@app.command("metrics")
def runs_metrics(
    run: int,
    key: Annotated[str, typer.Option(help="The metric, such as reward/mean")],
    after_step: Annotated[int | None, typer.Option(help="Only the points after this step")] = None,
    as_json: Lines = False,
) -> None:
    """Prints every point of a metric."""
    with refusals_printed():
        known = terminal.server()
        if not print_rows(
            known.points(run, key, after_step), {"step": "step", key: "value", "time": "time"}, as_json, 2**31
        ):
            _unknown(known, run, [key])


@app.command("curves")
def runs_curves(
    run: int,
    key: Annotated[list[str], typer.Option(help="A metric to draw; may be repeated")],
    as_json: AsJson = False,
) -> None:
    """Draws metrics of a run, thinned so that every spike stays."""
    with refusals_printed():
        found = terminal.server().runs.curves(run, key=key)
        if as_json:
            print_json(found)
            return
        for line in charts({name: _drawable(curve) for name, curve in found["curves"].items()}):
            out.print(line, soft_wrap=True)
        _unknown(terminal.server(), run, [name for name in key if name not in found["curves"]])


def _unknown(known: Server, run: int, keys: list[str]) -> None:
    """Says which metrics have no value, and which have: a key may be misspelt, or its first value may still come."""
    if keys:
        there = ", ".join(known.runs.curves(run, max_points=2)["keys"][:40]) or "nothing yet"
        words = f"Run {run} has no value of {', '.join(keys)}. It has: {there}"
        err.print(Text(words, style="yellow"), soft_wrap=True)


def _drawable(curve: CurveOut) -> list[tuple[int, float]]:
    return [(int(step), value) for step, value in zip(curve["steps"], curve["values"], strict=True)]
