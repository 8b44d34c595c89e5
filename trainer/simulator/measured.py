"""The run that was made, as the simulator sees it: its schedule, and the measured costs of its parts (`timings.jsonl`)."""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainer.runners.time_accounting import WorkerTimes
from trainer.runners.timings import TIMINGS

WARMUP = 3
_FEWEST = 5
_PARTS = ("wait_s", "update_s", "rest_s")


class NotSimulated(ValueError):
    """The run cannot be simulated; the message says why."""


@dataclass(frozen=True)
class MeasuredRun:
    """A measured run. `simulation` is a config of the simulator. `steps` is the number of steps used, without the first and the last ones."""

    simulation: dict[str, Any]
    steps: int
    steps_per_hour: float


def measured(run: Path) -> MeasuredRun:
    """The measurement in a run's folder. Raises NotSimulated, or OSError if there is no such file.

    The first steps are left out, in which workers start, and so are the last ones, after which nothing is sampled.
    """
    asked, rows = _read(run / TIMINGS)
    runner = asked["runner"]
    if runner["quotas"] or runner["segment_tokens"] or runner["clear_on_push"]:
        raise NotSimulated("the simulator does not know quotas, segments or a cleared pool of a run")
    ahead = runner["ahead"] - 1 if runner["policy"] == "urb" else runner["max_staleness"]
    looked = rows[WARMUP : len(rows) - ahead]
    if len(looked) < _FEWEST:
        raise NotSimulated(
            f"{len(rows)} steps are too few: the first {WARMUP} and the last {ahead} say little, and {_FEWEST} must be left"
        )
    cycle = statistics.fmean(sum(row[part] for part in _PARTS) for row in looked)
    return MeasuredRun(_simulation(asked, looked), len(looked), 3600 / cycle)


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The rules of the run, and the steps that were measured whole. If a resumed run made a step again, the last one counts.

    A line that a kill or a full disk cut off is left out together with its step.
    """
    asked: dict[str, Any] = {}
    steps: dict[int, dict[str, Any]] = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if "asked" in row:
            asked = row["asked"]
        elif all(part in row for part in _PARTS):
            steps[row["step"]] = row
    if not asked:
        raise NotSimulated(f"{path} does not say what the run was asked for")
    return asked, [steps[step] for step in sorted(steps)]


def _simulation(asked: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    runner, spent = asked["runner"], WorkerTimes()
    for row in rows:
        spent.add(WorkerTimes.read(row))
    scoring = [math.log(max(seconds, 1e-6)) for row in rows for seconds in row["scoring_s"]]
    transit = [seconds for row in rows for seconds in row.get("transit_s", ())]  # earlier releases do not write it
    known = {name: runner[name] for name in ("ahead", "oversample", "max_staleness", "push_every", "late")}
    return {
        "steps": WARMUP + 200,
        "warmup_steps": WARMUP,
        "batch": {"prompts": asked["prompts"], "group_size": asked["group_size"], "sizes": _sizes(asked, rows)},
        "schedule": {"policies": [runner["policy"]], **known},
        "cluster": {"devices": runner["workers"] + 1, "learner_devices": 1, "apart": True},
        "engine": {
            "slots": asked["slots"],
            "versions": None if asked["sampler"] == "local" else 1,
            "load_s": spent.loads[1] / spent.loads[0] if spent.loads[0] else 0.0,
            "transit_s": max(0.0, statistics.fmean(transit)) if transit else 0.0,
            **decoding_costs(spent),
        },
        "lengths": {"measured": [length for row in rows for length in row["lengths"]]},
        "latency": {
            "median_s": math.exp(statistics.fmean(scoring)) if scoring else 0.0,
            "sigma": statistics.pstdev(scoring) if scoring else 0.0,
        },
        "learner": {
            "step_s": statistics.fmean(row["update_s"] for row in rows),
            "rest_s": statistics.fmean(row["rest_s"] for row in rows),
            "token_s": 0.0,
            "push_s": 0.0,  # part of `update_s`
        },
    }


def _sizes(asked: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[int]:
    """The sizes of the groups, step by step, if a budget gave them; runs of earlier releases do not write any."""
    found = [size for row in rows for size in row.get("sizes", ())]
    return [] if set(found) <= {asked["group_size"]} else found


def decoding_costs(spent: WorkerTimes) -> dict[str, float]:
    """Seconds of a turn by its versions, its responses and the responses that joined: weighted least squares, none below 0.

    By these costs all turns together take as long as they took: least squares alone would leave out part of what no cost
    explains.
    """
    names, turns = ["step_s", "response_s", "start_s"], list(spent.turns.items())
    if not turns:
        raise NotSimulated("no worker has reported how long it sampled")
    weights = np.sqrt([count for _, (count, _) in turns])
    kinds = np.array([kind for kind, _ in turns], float) * weights[:, None]
    seconds = np.array([took / count for _, (count, took) in turns]) * weights
    kept = [0, 1, 2]
    while True:
        found = np.linalg.lstsq(kinds[:, kept], seconds, rcond=None)[0]
        if found.min() >= 0:
            whole = (seconds @ weights) / (weights @ kinds[:, kept] @ found)
            costs = dict.fromkeys(names, 0.0) | {
                names[i]: float(cost * whole) for i, cost in zip(kept, found, strict=True)
            }
            return costs | {"step_s": max(costs["step_s"], 1e-9)}
        del kept[int(found.argmin())]
