"""What one recipe does in a step. Everything around it (resume, cadence, stop, progress, summary) is the session's."""

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

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class StageJob:
    """All that a stage is made of. `models` holds directories by the role of the slot; the base model is `base`."""

    recipe: Recipe
    config: Any
    """The recipe's own schema, a `RecipeConfig`."""
    examples: Path
    models: Mapping[str, Path]
    run_dir: Path
    monitor: RunMonitor
    forked: bool = False
    """The first checkpoint is another run's, whose config may have been another."""
    access: Access = field(default_factory=Access)
    """Judges and services that the rewards name."""


class Tell(Protocol):
    """How a stage speaks during the step `step`, and hears that it shall stop."""

    step: int

    def metrics(self, values: dict[str, float], histograms: dict[str, Histogram] | None = None) -> None:
        """Values that are not finite are left out: undefined is missing, never zero."""
        ...

    def rollouts(self, records: Records) -> None:
        """Given as a function, they are made and written while the stage goes on; it reads what does not change any more."""
        ...

    def artifact(self, artifact: ArtifactData) -> None: ...

    def alarm(self, alarm: AlarmData) -> None: ...

    def log(self, message: str, level: Literal["info", "warning"] = "info") -> None: ...

    def watch(self, phase: str) -> Progress:
        """Progress of a phase that can be given up half way: it raises StopRequested or AttemptAbandoned."""
        ...

    def progress(self, phase: str) -> Progress:
        """Progress of a phase that must go through to its end."""
        ...

    def check(self) -> None:
        """Raises StopRequested or AttemptAbandoned where the server asked for it."""
        ...

    def paused(self, reason: str) -> None:
        """The run waits for somebody else; `check` is still called meanwhile."""
        ...

    def resumed(self) -> None:
        """It goes on."""
        ...


@dataclass(frozen=True)
class State:
    """What a checkpoint holds of a stage: `values` is plain JSON, `tensors` maps an owner to its named tensors. Those that
    other processes hold are `elsewhere`; what is restored lies in files, which any process reads."""

    values: dict[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    elsewhere: Sequence[Elsewhere] = ()


@dataclass(frozen=True)
class ModelOutput:
    """A trained model. `write` fills an empty folder with what stock transformers, or peft, loads."""

    role: OutputRole
    name: str
    """Within the run: `policy`. It becomes the folder's name."""
    write: Callable[[Path], None]
    head: Head = "lm"


class Stage(Protocol):
    """One recipe at work. `evaluates` is False where nothing is held out, so that no evaluation ever comes."""

    evaluates: bool

    def open(self, step: int) -> None:
        """Called once, after `restore`, before anything else; `step` is the last completed one."""
        ...

    def step(self, number: int, tell: Tell) -> None:
        """Step `number` as a whole. Where it raises StopRequested, the state is as it was before the step."""
        ...

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        """Held-out metrics after step `number`, told by the session. May raise StopRequested; changes no state, but for what a schedule of
        phases has seen when it comes to its end."""
        ...

    def state(self) -> State: ...

    def restore(self, step: int, state: State) -> None:
        """As it was after step `step`. Raises ValueError where the state is of another model, rank or optimiser."""
        ...

    def outputs(self) -> Iterator[ModelOutput]: ...

    def close(self) -> None:
        """Ends what it has started: samplers, workers. May be called at any time."""
        ...


Make = Callable[[StageJob], Stage]


def learning_rate(config: RecipeConfig, step: int) -> float:
    """At step 1..steps: linear warm-up to the peak, then constant, or falling (`linear`, `cosine`) towards 0 at the end."""
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
