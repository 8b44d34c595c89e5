"""Supervised stages share this module: batches of stored items, one update each, and passes over held-out items."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from trainer.config.recipe import RecipeConfig
from trainer.config.sections.phases import Phase
from trainer.contracts import ArtifactData
from trainer.curriculum import KnownPrompt, PromptOrder, Schedule
from trainer.inference.prefix import Pack, pack_units

from ..learner.trained import Trained
from ..session.errors import RunFailed, StopRequested
from ..session.phases import PhaseWatch
from ..session.stage import State, Tell, learning_rate


class Keyed(Protocol):
    @property
    def key(self) -> str: ...


Item = TypeVar("Item", bound=Keyed)


@dataclass(frozen=True)
class Loss:
    """The loss of a micro-batch: its part of the batch's loss, and what is reported of each of its items."""

    loss: Tensor
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass
class Fitted:
    """The result of an update: its learning rate, the loss of the batch, the norm of its gradient, what is reported of the items."""

    lr: float
    loss: float = 0.0
    grad_norm: float = 0.0
    values: dict[str, list[float]] = field(default_factory=dict)
    tokens: int = 0
    """Tokens of the batch's texts, shared prefixes counted for every text; `nodes` counts them once."""
    nodes: int = 0
    passes: int = 0
    seconds: float = 0.0

    def metrics(self, budget: int) -> dict[str, float]:
        waste = max(0.0, 1.0 - self.nodes / (self.passes * budget))
        return {
            "train/loss": self.loss,
            "train/grad_norm": self.grad_norm,
            "optim/lr": self.lr,
            "perf/train_tokens_per_s": self.tokens / self.seconds,
            "perf/pack_waste": waste,
            "perf/shared_share": 1.0 - self.nodes / self.tokens,
        }


class _ItemWatch(PhaseWatch):
    drawn = "examples"
    pool_key = "train/pool"


class Fitter(Generic[Item]):
    """Draws batches in an order that follows from the seed, and updates the model once with each.

    Micro-batches are prefix trees within the token budget, so what texts share is computed once. `texts` gives the texts of an
    item that go through the model: an item is never divided. A batch's loss is the sum over its micro-batches. `seed` is that of the
    order, if it is not the run's.
    """

    def __init__(
        self,
        trained: Trained,
        config: RecipeConfig,
        run_dir: Path,
        items: Sequence[Item],
        texts: Callable[[Item], Sequence[Sequence[int]]],
        shuffle: bool,
        seed: int | None = None,
        phases: Sequence[Phase] = (),
        known: Callable[[Item], KnownPrompt | None] = lambda _: None,
        lr_times: float = 1.0,
    ) -> None:
        """`known` is what phases choose an item by. `lr_times` is a factor of the config's learning rate, besides that of the phases.
        Raises RunFailed if one of the phases would have no item.
        """
        self._trained, self._config, self._run_dir = trained, config, run_dir
        self._items, self._texts, self._lr_times = items, texts, lr_times
        found = [(known(item) if phases else None) or KnownPrompt(item.key, None, frozenset()) for item in items]
        self._order = PromptOrder(found, config.seed if seed is None else seed, shuffle)
        self._schedule = Schedule(phases)
        self._watch = _ItemWatch(phases, self._schedule, self._order, config.steps)

    def draw(self, count: int) -> list[Item]:
        """The next items; within one pass over the data each comes once."""
        return [self._items[index] for index in self._order.take(count)]

    def step(
        self,
        number: int,
        count: int,
        loss_of: Callable[[Sequence[Item], Sequence[Item]], Loss],
        tell: Tell,
        phase: str = "updating",
    ) -> Fitted:
        """Make step `number`, with `count` items. `loss_of(micro-batch, batch)` divides by the totals of the batch.

        Raises StopRequested with nothing changed, and RunFailed before a number that is not finite reaches the weights.
        """
        before = self._watch.state_dict()
        try:
            self._watch.enter(number, tell)
            fitted = self._update(number, self.draw(count), loss_of, tell, phase)
        except StopRequested:
            self._watch.load_state_dict(before)
            raise
        self._schedule.measured({"train/loss": fitted.loss})
        self._watch.over(number, tell)
        return fitted

    def evaluated(self, values: dict[str, float]) -> dict[str, float]:
        """Returns `values` of an evaluation unchanged, and notes them: a phase may wait for one of them to reach a plateau."""
        self._schedule.measured(values)
        return values

    def state(self) -> dict[str, Any]:
        phases = self._schedule.state_dict()
        return self._order.state_dict() | ({"phases": phases} if phases else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises ValueError if the state belongs to a data set of another size."""
        self._order.load_state_dict(dict(state))
        self._schedule.load_state_dict(state.get("phases", {}))

    @property
    def epoch(self) -> float:
        """Passes over the data so far; once a phase has narrowed the data, passes over what is left."""
        return self._order.passes

    def packs(self, items: Sequence[Item]) -> list[Pack]:
        return pack_units([self._texts(item) for item in items], self._config.optim.micro_batch_tokens)

    def measured(self, items: Sequence[Item], tell: Tell, phase: str = "evaluating") -> Iterator[list[int]]:
        """Places of the items to measure, pack by pack. Raises StopRequested in between."""
        progress, done = tell.watch(phase, "evaluation"), 0
        for found in self.packs(items):
            yield found.places
            done += len(found.places)
            progress(done, len(items))

    def _update(
        self,
        number: int,
        batch: list[Item],
        loss_of: Callable[[Sequence[Item], Sequence[Item]], Loss],
        tell: Tell,
        phase: str,
    ) -> Fitted:
        started, progress = time.monotonic(), tell.watch(phase, "learner")
        fitted = Fitted(learning_rate(self._config, number) * self._schedule.lr_times * self._lr_times)
        packs = self.packs(batch)
        self._trained.set_lr(fitted.lr)
        self._trained.begin_update()
        for done, found in enumerate(packs):
            progress(done, len(packs))
            micro = [batch[place] for place in found.places]
            result = loss_of(micro, batch)
            if not torch.isfinite(result.loss):
                raise self._diverged(number, "the loss", micro, tell)
            result.loss.backward()
            self._note(fitted, found, micro, result)
        fitted.grad_norm = self._trained.clip(self._config.optim.grad_clip)
        if not math.isfinite(fitted.grad_norm):
            raise self._diverged(number, "the norm of the gradient", batch, tell)
        self._trained.end_update()
        fitted.seconds = time.monotonic() - started
        return fitted

    def _note(self, fitted: Fitted, found: Pack, micro: Sequence[Item], result: Loss) -> None:
        fitted.loss += float(result.loss.detach())
        fitted.tokens += sum(len(text) for item in micro for text in self._texts(item))
        fitted.nodes += found.nodes
        fitted.passes += 1
        for name, values in result.values.items():
            fitted.values.setdefault(name, []).extend(values)

    def _diverged(self, number: int, what: str, items: Sequence[Item], tell: Tell) -> RunFailed:
        path = self._run_dir / f"offending-step-{number:06d}.jsonl"
        lines = [json.dumps({"key": item.key, "texts": [list(text) for text in self._texts(item)]}) for item in items]
        content = "".join(line + "\n" for line in lines).encode()
        path.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        tell.artifact(ArtifactData(role="offending_batch", path=path.name, bytes=len(content), digest=digest))
        lr, clip = (self._config.field(f"optim.{name}") for name in ("lr", "grad_clip"))
        return RunFailed(
            f"{what} is not a finite number at step {number}, so the weights were not touched. The examples are in "
            f"{path.name}. Lower {lr} (now {self._config.optim.lr:g}) or {clip} and run again."
        )


class FittedStage:
    """A stage whose whole state is the order of its items and what its model has learned."""

    _fitter: Fitter[Any]
    _learner: Any

    def state(self) -> State:
        return State({"order": self._fitter.state()}, self._learner.state_tensors())

    def restore(self, step: int, state: State) -> None:
        self._fitter.restore(state.values["order"])
        self._learner.load_state_tensors(state.tensors)

    def close(self) -> None:
        self._learner.close()
