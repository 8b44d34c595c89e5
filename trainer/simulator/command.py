"""`python -m trainer simulate CONFIG.json` prints a table and, as the last line, one JSON object."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trainer.runners.timings import TIMINGS

from .config import Simulation
from .draws import Draws
from .measured import MeasuredRun, NotSimulated, measured
from .report import summary
from .simulate import Standstill, simulate

_COLUMNS = (
    ("policy", "policy", "{}"),
    ("steps/h", "steps_per_hour", "{:,.2f}"),
    ("tokens/s", "tokens_per_s", "{:,.0f}"),
    ("speed-up", "speed_up", "{:.2f}"),
    ("load", "load", "{:.0%}"),
    ("engines", "engines_busy", "{:.0%}"),
    ("learner", "learner_busy", "{:.0%}"),
    ("age", "staleness_mean", "{:.2f}"),
    ("oldest", "staleness_max", "{}"),
    ("too old", "dropped_stale", "{:,}"),
    ("crashed", "dropped_crashed", "{:,}"),
    ("length", "length_ratio", "{:.3f}"),
    ("first 5", "length_ratio_first_5", "{:.3f}"),
    ("in order", "in_order", "{:.0%}"),
    ("long wait", "delay_longest_tenth", "{:+.2f}"),
)


def main(arguments: list[str]) -> int:
    """Compare the schedules that the config names. Exit status 0: done; 1: a schedule came to a standstill; 2: a bad config."""
    parser = argparse.ArgumentParser(prog="python -m trainer simulate", description=main.__doc__)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument(
        "config",
        type=Path,
        nargs="?",
        help="JSON file with the config; what it leaves out takes its default, {} is a whole config",
    )
    given.add_argument(
        "--from-run", type=Path, metavar="RUN", help="the folder of an asynchronous run: its schedule and what it cost"
    )
    parser.add_argument("--set", action="append", default=[], metavar="PATH=JSON", help="cluster.devices=32, and so on")
    options = parser.parse_args(arguments)
    run = _run(options.from_run) if options.from_run else None
    config = _config(options.from_run or options.config, options.set, run.simulation if run else None)
    draws, rows = Draws(config), []
    for policy in config.schedule.policies:
        try:
            rows.append(summary(config, policy, simulate(config, policy, draws), draws))
        except (Standstill, ValueError) as error:
            print(error, file=sys.stderr)
            return 1
        base = next((row for row in rows if row["policy"] == "sync"), None)
        rows[-1]["speed_up"] = rows[-1]["tokens_per_s"] / base["tokens_per_s"] if base else None
    print(table(rows))
    found: dict[str, Any] = {"config": config.model_dump(mode="json"), "results": rows}
    if run:
        found |= _beside(run, rows)
    print(json.dumps(found))
    return 0


def _run(folder: Path) -> MeasuredRun:
    """Raises SystemExit with status 2 if nothing was measured."""
    try:
        return measured(folder)
    except OSError as error:
        problem = f"{os.strerror(error.errno or 0)}: {TIMINGS}, which asynchronous runs write"
    except NotSimulated as error:
        problem = str(error)
    print(f"{folder}: {problem}", file=sys.stderr)
    raise SystemExit(2)


def _beside(run: MeasuredRun, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The run itself beside the simulated rows; also a remark if the config is the run's own."""
    real, policy = run.steps_per_hour, run.simulation["schedule"]["policies"][0]
    foretold = next((row["steps_per_hour"] for row in rows if row["policy"] == policy), None)
    print(f"the run itself ({policy}): {real:,.2f} steps/h over {run.steps} steps", end="")
    print(f"; the simulator is off by {foretold / real - 1:+.1%}" if foretold else "")
    return {"run": {"steps_per_hour": real, "steps": run.steps}}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """One line per policy; a dash where a value is undefined."""
    cells = [[title for title, _, _ in _COLUMNS]]
    for row in rows:
        values = [(row[key], form) for _, key, form in _COLUMNS]
        cells.append(["–" if value is None else form.format(value) for value, form in values])
    widths = [max(len(line[i]) for line in cells) for i in range(len(_COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _config(path: Path, changes: Sequence[str], raw: dict[str, Any] | None = None) -> Simulation:
    """The simulation in the file at `path`, or in `raw`. Exits with status 2 and names every problem with its field."""
    try:
        config = Simulation.model_validate(_changed(json.loads(path.read_text()) if raw is None else raw, changes))
    except OSError as error:
        problems = [os.strerror(error.errno or 0)]
    except json.JSONDecodeError as error:
        problems = [f"line {error.lineno}: {error.msg}"]
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, item['loc'])) or 'config'}: {item['msg']}" for item in error.errors()]
    else:
        problems = [f"{problem.path}: {problem.message}" for problem in config.problems()]
        if not problems:
            return config
    print("\n".join(f"{path}: {problem}" for problem in problems), file=sys.stderr)
    raise SystemExit(2)


def _changed(raw: Any, changes: Sequence[str]) -> Any:
    """`raw` with each PATH=JSON put in. A value that is not JSON is a text."""
    for change in changes:
        path, _, text = change.partition("=")
        *parents, name = path.split(".")
        section = raw
        for parent in parents:
            section = section.setdefault(parent, {})
        try:
            section[name] = json.loads(text)
        except json.JSONDecodeError:
            section[name] = text
    return raw
