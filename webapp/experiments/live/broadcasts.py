"""Messages to open pages about runs. Each is sent after commit; a page that misses one reloads its state."""

from collections.abc import Iterable, Sequence

from webapp.core import broadcast

from .. import serializers
from ..bulk import StepMetrics, StoredLine
from ..models import LogLine, Run


def run_group(run_id: int) -> str:
    return f"run.{run_id}"


def workspace_group(workspace_id: int) -> str:
    return f"workspace.{workspace_id}"


def run_changed(run: Run) -> None:
    """State, progress or summary changed: for the run's page and the lists."""
    message = {"type": "run", **serializers.run(run, config=False)}
    with broadcast.together():
        broadcast.send(run_group(run.id), message)
        broadcast.send(workspace_group(run.experiment.workspace_id), message)


def metrics(run_id: int, steps: Iterable[StepMetrics]) -> None:
    """One message for a whole batch; the consumer hands on one per step."""
    items = [
        {"type": "metrics", "step": s.step, "values": s.values, "histograms": s.histograms}
        for s in sorted(steps, key=lambda s: s.step)
    ]
    if items:
        broadcast.send(run_group(run_id), {"type": "batch", "items": items})


def rollouts(run_id: int, counts: dict[tuple[int, str], int]) -> None:
    """Announces new rollouts without their content, which is far too large for the channel layer."""
    if counts:
        items = [
            {"type": "rollouts", "step": step, "phase": phase, "count": count}
            for (step, phase), count in sorted(counts.items())
        ]
        broadcast.send(run_group(run_id), {"type": "batch", "items": items})


def notes(run_id: int, step: int, phase: str) -> None:
    """Announces that notes on responses of this step were written, changed or deleted: the page then asks for them."""
    broadcast.send(run_group(run_id), {"type": "notes", "step": step, "phase": phase})


def judges(run_id: int) -> None:
    """Announces that judges of the run were used: the page then asks for the words."""
    broadcast.send(run_group(run_id), {"type": "judges"})


def log(run_id: int, lines: Sequence[LogLine | StoredLine]) -> None:
    if lines:
        broadcast.send(run_group(run_id), {"type": "log", "lines": [serializers.log_line(line) for line in lines]})
