"""Shows a model what people wrote, by recipe `sft`, before any run: a small model answers in no form that it was never shown."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainer.contracts import Example
from trainer.outputs import FOLDER

from .runs import ArmJob, perform, prepare, write_examples

SETTINGS: dict[str, Any] = {
    "steps": 20,
    "model": {"export": "merged"},
    "data": {"source": "references"},
    "batch_size": 8,
    "optim": {"lr": 5e-4},
    "evaluation": {"every": 0, "max_examples": 0},
    "checkpoint": {"every": 20, "keep": 1},
}


def warm_started(
    divide: Callable[[], tuple[Sequence[Example], Sequence[Example]]],
    model: Path,
    out: Path,
    tell: Callable[[str], None],
    what: str,
) -> tuple[Path, Path]:
    """Make in `out`, once, the examples of the runs and the model that was shown demonstrations. `divide` gives demonstrations and
    examples, in this order. Raises ValueError if `divide` does, or if the model could not be shown them.
    """
    data, shown = out / "examples.jsonl", out / "shown.jsonl"
    if not data.exists():
        to_show, for_runs = divide()
        write_examples(shown, to_show)
        write_examples(data, for_runs)
    job = ArmJob("shown", 0, SETTINGS, out / "shown", shown, model, "sft", ("train/loss:last",))
    prepare([job])
    if not job.result.exists():
        tell(f"showing the model {what}")
        if problems := perform([job], 1, tell):
            raise ValueError("; ".join(problems))
    return data, job.folder / FOLDER / "policy"
