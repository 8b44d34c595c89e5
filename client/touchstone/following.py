"""Draws a run in the terminal while it is followed."""

import time
from typing import Any, cast

from rich.console import Group
from rich.live import Live
from rich.text import Text

from .api.runs import RunOut
from .plot import curve
from .server import OVER, Server
from .terminal import out

DRAW_S = 0.2  # between two drawings of a run that is followed
Drawn = dict[str, list[tuple[int, float]]]


def follow(known: Server, run: int, keys: list[str] | None) -> str:
    """Draws a run's metrics as they come, and returns the state in which it ends. Raises ValueError if the run is deleted."""
    drawn, found, painted = Drawn(), known.runs.get(run), 0.0
    with Live(console=out, auto_refresh=False) as live:
        for message in known.follow(run):
            if message["type"] == "gone":
                raise ValueError(f"Run {run} is deleted.")
            if message["type"] in ("now", "run"):
                found = cast(RunOut, {**found, **message})
            if message["type"] == "metrics" and drawn:
                _add(message, drawn)
            elif message["type"] in ("now", "metrics", "resync") or found["state"] in OVER:
                for name in keys or _keys(known, run, found):
                    _more(known, run, name, drawn.setdefault(name, []))
            if found["state"] in OVER or time.monotonic() - painted >= DRAW_S:
                live.update(Group(headline(found), *charts(drawn)), refresh=True)
                painted = time.monotonic()
    return str(found["state"])


def _add(message: dict[str, Any], drawn: Drawn) -> None:
    """Adds the values of one step. A step that comes again, because the run continued from a checkpoint, replaces its earlier values."""
    for name, points in drawn.items():
        if (value := message["values"].get(name)) is not None:
            while points and points[-1][0] >= message["step"]:
                points.pop()
            points.append((message["step"], value))


def _keys(known: Server, run: int, found: RunOut) -> list[str]:
    """The metrics that the recipe shows on top, or the first four metrics of a run that was logged from outside."""
    if found["recipe"] == "logged":
        return list(known.runs.curves(run, max_points=2)["curves"])[:4]
    declared = known.recipes.metrics_of(found["recipe"])
    return list(dict.fromkeys(each for each in (declared["headline"], declared["pulse"]) if each))


def _more(known: Server, run: int, key: str, points: list[tuple[int, float]]) -> None:
    """Adds the points of a metric that came after the last known one."""
    last = points[-1][0] if points else None
    points.extend((each["step"], each["value"]) for each in known.points(run, key, last) if each["value"] is not None)


def headline(found: RunOut) -> Text:
    at = found["progress"]
    steps = f"{at['step']} of {at['steps_total']}" if at["steps_total"] else str(at["step"])
    reason = f" · {found['state_reason']}" if found["state_reason"] else ""
    return Text(
        f"{found['experiment']['name']} / {found['name']} · {found['state']} · step {steps}{reason}", style="bold"
    )


def charts(drawn: Drawn) -> list[Text]:
    lines: list[Text] = []
    for key, points in drawn.items():
        newest = f"{points[-1][1]:.6g} at step {points[-1][0]}" if points else "no value yet"
        lines += [Text(f"{key}  {newest}"), *map(Text, curve(points, max(20, min(out.width, 100) - 12)))]
    return lines
