"""Repeats: runs that the server launches again by the clock."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal
from uuid import uuid4

import typer

from .. import terminal
from ..api.shared import RepeatOut
from ..server import Server
from ..terminal import AsJson, Key, Limit, Lines, group, print_json, print_rows, refusals_printed, say

app = group("Repeated runs: list, add, pause, resume, end.")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
COLUMNS = {"id": "id", "run": "run", "rhythm": "rhythm", "state": "state", "next": "next_at", "last time": "last"}


@app.command("list")
def repeats_list(limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists the runs that are repeated: when next, and what became of the last time."""
    with refusals_printed():
        rows = terminal.server().repeats.all()["items"]
        print_rows(rows if as_json else map(_line, rows), COLUMNS, as_json, limit)


def _line(row: RepeatOut) -> Mapping[str, object]:
    return {**row, "last": _last(row)}


def _last(row: RepeatOut) -> str:
    if not row["times"]:
        return "none yet"
    newest = row["times"][0]
    launched = f": run {newest['run']}" if newest["run"] else ""
    reason = f" ({newest['reason']})" if newest["reason"] else ""
    return f"{newest['outcome'].replace('_', ' ')}{launched}{reason}"


@app.command("add")
def repeats_add(
    run: int,
    every_hours: Annotated[int | None, typer.Option(help="Hours from one launch to the next")] = None,
    at: Annotated[str | None, typer.Option(help="The time of the day, such as 02:00, instead of --every-hours")] = None,
    weekday: Annotated[Weekday | None, typer.Option(help="With --at: only on this day of the week")] = None,
    zone: Annotated[str, typer.Option(help="The time zone of --at, such as Europe/Vienna")] = "UTC",
    ends_at: Annotated[str | None, typer.Option(help="No launch after this time, such as 2027-01-31T00:00:00Z")] = None,
    newest_data: Annotated[
        bool, typer.Option("--newest-data", help="Use the newest dataset version each time")
    ] = False,
    key: Key = "",
    as_json: AsJson = False,
) -> None:
    """Launches a run again by the clock, every few hours or at a time of the day."""
    body: dict[str, Any] = {
        "every_hours": every_hours,
        "at": at,
        "weekday": DAYS.index(weekday) if weekday else None,
        "zone": zone,
        "ends_at": ends_at,
        "newest_data": newest_data,
    }
    with refusals_printed():
        _shown(terminal.server().post(f"/runs/{run}/repeats", body, key=key or uuid4().hex), as_json)


@app.command("pause")
def repeats_pause(number: int, as_json: AsJson = False) -> None:
    """Launches nothing until the repeat is resumed. Runs that were launched continue."""
    _moved(lambda server: server.repeats.pause(number), as_json)


@app.command("resume")
def repeats_resume(number: int, as_json: AsJson = False) -> None:
    """Ends the pause of a repeat. Times during the pause are left out."""
    _moved(lambda server: server.repeats.resume(number), as_json)


@app.command("end")
def repeats_end(number: int) -> None:
    """Deletes a repeat. The runs that it has launched stay."""
    with refusals_printed():
        terminal.server().repeats.remove(number)
        say(f"Repeat {number} has ended; its runs stay.")


def _moved(move: Callable[[Server], RepeatOut], as_json: bool) -> None:
    with refusals_printed():
        _shown(move(terminal.server()), as_json)


def _shown(row: RepeatOut, as_json: bool) -> None:
    if as_json:
        print_json(row)
        return
    following = f" · next {row['next_at']}" if row["next_at"] else ""
    say(f"repeat {row['id']} · run {row['run']} · {row['rhythm']} · {row['state']}{following}", "bold")
