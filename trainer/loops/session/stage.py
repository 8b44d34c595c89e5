"""A stage is the work of one recipe in a step. The session does everything around it (resume, cadence, stop, progress, summary)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from torch import Tensor

from trainer.checkpoints import Elsewhere
from trainer.config.recipe import Recipe, RecipeConfig
from trainer.contracts import AlarmData, ArtifactData, Histogram
from trainer.contracts.model_folder import Head, OutputRole
from trainer.monitors import Records, RunMonitor
from trainer.rewards.access import Access

from .generated_tokens import GeneratedTokens
from .spans import Work
from .timeline import Source

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class StageJob:
    """Everything that a stage is made of. `models` holds directories by the role of the slot; the base model is `base`."""

    recipe: Recipe
    config: Any
    """The recipe's own schema, a `RecipeConfig`."""
    examples: Path
    models: Mapping[str, Path]
    run_dir: Path
    monitor: RunMonitor
    forked: bool = False
    """Whether the first checkpoint is another run's, whose config may have been different."""
    access: Access = field(default_factory=Access)
    """The judges and services that the rewards name."""
    generated: GeneratedTokens = field(default_factory=GeneratedTokens)
    """The stage names the samplers whose tokens count."""


class Tell(Protocol):
    """The way in which a stage reports during the step `step`, and learns that it must stop."""

    step: int

    def metrics(self, values: dict[str, float], histograms: dict[str, Histogram] | None = None) -> None:
        """Values that are not finite are left out: undefined is missing, never zero."""
        ...

    def rollouts(self, records: Records) -> None:
        """Record responses. If `records` is a function, the records are made and written while the stage continues, so it must read only
        what no longer changes.
        """
        ...

    def artifact(self, artifact: ArtifactData) -> None: ...

    def alarm(self, alarm: AlarmData) -> None: ...

    def ran(self, work: Work, name: str, start: float, end: float) -> None:
        """Say that this ran beside the step's own work. The times are those of `time.monotonic`. May be called in any thread."""
        ...

    def beside(self, source: Source) -> None:
        """Ask `source` at the end of the step for what ran beside it in other threads and processes."""
        ...

    def log(self, message: str, level: Literal["info", "warning"] = "info") -> None: ...

    def watch(self, phase: str, work: Work) -> Progress:
        """Progress of a phase that can be given up half way: it raises StopRequested or AttemptAbandoned. `work` says what its time is
        spent on.
        """
        ...

    def progress(self, phase: str, work: Work) -> Progress:
        """Progress of a phase that must go through to its end."""
        ...

    def check(self) -> None:
        """Raises StopRequested or AttemptAbandoned if the server asked for it."""
        ...

    def paused(self, reason: str) -> None:
        """Say that the run waits for somebody else; `check` is still called meanwhile."""
        ...

    def resumed(self) -> None:
        """Say that the run continues."""
        ...


@dataclass(frozen=True)
class State:
    """A stage's part of a checkpoint: `values` is plain JSON, `tensors` maps an owner to its named tensors. Tensors that
    other processes hold are `elsewhere`. Restored tensors lie in files, which any process can read.
    """

    values: dict[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    elsewhere: Sequence[Elsewhere] = ()


@dataclass(frozen=True)
class ModelOutput:
    """A trained model. `write` fills an empty folder that stock transformers, or peft, can load."""

    role: OutputRole
    name: str
    """The name within the run, such as `policy`; the folder has this name."""
    write: Callable[[Path], None]
    head: Head = "lm"


class Stage(Protocol):
    """One recipe at work. `evaluates` is False if nothing is held out, so that there is never an evaluation."""

    evaluates: bool

    def open(self, step: int) -> None:
        """Called once, after `restore`, before anything else; `step` is the last completed step."""
        ...

    def step(self, number: int, tell: Tell) -> None:
        """Step `number` as a whole. If it raises StopRequested, the state is as it was before the step."""
        ...

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        """Held-out metrics after step `number`; the session reports them. May raise StopRequested. Changes no state, except what a
        schedule of phases has seen, and only if it runs to its end.
        """
        ...

    def state(self) -> State: ...

    def restore(self, step: int, state: State) -> None:
        """Restore the state after step `step`. Raises ValueError if the state is of another model, rank or optimiser."""
        ...

    def outputs(self) -> Iterator[ModelOutput]: ...

    def close(self) -> None:
        """End what the stage has started: samplers, workers. May be called at any time."""
        ...


Make = Callable[[StageJob], Stage]


def learning_rate(config: RecipeConfig, step: int) -> float:
    """The learning rate at step 1..steps: linear warm-up to the peak, then constant, or falling (`linear`, `cosine`) towards 0 at the end."""
    optim = config.optim
    if step <= optim.warmup_steps:
        return optim.lr * step / (optim.warmup_steps + 1)
    left = config.steps - optim.warmup_steps
    done = (step - 1 - optim.warmup_steps) / left
    match optim.schedule:
        case "linear":
            return optim.lr * (1.0 - done)
        case "cosine":
            return optim.lr * 0.5 * (1.0 + math.cos(math.pi * done))
        case _:
            return optim.lr
