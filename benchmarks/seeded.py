"""Runs of the product's recipes, one per arm and seed, and their measures: means over seeds with t-intervals."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.config import RECIPES, resolve
from trainer.metrics.claims import mean_over_seeds
from trainer.rewards.access import Access

Rows = dict[int, dict[str, float]]
NOBODY = Access()


def finished(
    recipe: str, config: Mapping[str, Any], data: Path, model: Path, folder: Path, access: Access = NOBODY, **more: Any
) -> Path:
    """The events of a finished run, made now if it does not exist. `more` is what else distinguishes it from other runs.

    The folder's name ends in a digest of the settings, so that a run with other settings is never taken for it. Raises SystemExit if
    the run fails.
    """
    from trainer.claims.runs import no_bars
    from trainer.loops.run import run_recipe
    from trainer.loops.session.stage import StageJob
    from trainer.monitors import RunMonitor, Spool

    no_bars()
    settings = json.dumps([config, data.read_text(), more], sort_keys=True)
    folder = folder.with_name(f"{folder.name}-{hashlib.sha256(settings.encode()).hexdigest()[:8]}")
    events = folder / "events.jsonl"
    if not (folder / "done").exists():
        monitor = RunMonitor(Spool(events))
        job = StageJob(
            RECIPES[recipe], resolve(recipe, dict(config)), data, {"base": model}, folder, monitor, access=access
        )
        if not run_recipe(job, resume=True):
            raise SystemExit(f"{folder}: the run failed; its events say why")
        monitor.close()
        (folder / "done").touch()
    return events


def metrics(events: Path) -> Rows:
    """The metrics by step, ascending; if a resumed run repeated a step, it counts once."""
    rows: Rows = {}
    for line in filter(None, events.read_text().split("\n")):
        event = json.loads(line)
        if event["data"]["kind"] == "metrics":
            rows.setdefault(event["step"], {}).update(event["data"]["values"])
    return dict(sorted(rows.items()))


def interval(values: Sequence[float | None]) -> str:
    """The mean over seeds with its 95% t-interval."""
    found = mean_over_seeds(values)
    if found.value is None or found.low is None or found.high is None:
        return number(found.value)
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
