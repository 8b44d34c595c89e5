"""Chooses the weights that sample: the newest ones, or older ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from ..learner.weight_push import WeightPusher
from ..session.stage import State
from .parts import Parts

SAVED = "weights-"
"""The prefix, in a checkpoint, of the version whose weights still sample although they are not the newest."""


class SamplerWeights:
    """The sampler's weights in a run of one process. After step `step` the weights of step `version_at(step)` sample; this number never
    falls, and is never above `step`.

    Trained parameters of older versions are kept as long as they sample, because evaluations borrow the sampler.
    """

    def __init__(self, parts: Parts, version_at: Callable[[int], int]) -> None:
        self._config, self._learner = parts.config, parts.learner
        self._pusher = WeightPusher(parts.config, parts.learner, parts.sampler)
        self._version_at = version_at
        self._step = 0
        self._held: int | None = None
        self._older: dict[int, dict[str, Tensor]] = {}
        self.digest = ""
        """The checksum of what the sampler holds."""
        self._lent: Any = parts.sampler if hasattr(parts.sampler, "put_back") else None
        """A sampler that other runs use too: weights are pushed to it only when something is to be sampled."""
        self._newest = False
        if self._lent is not None:
            self._lent.put_back = self._put_back

    @property
    def version(self) -> int:
        return self._version_at(self._step)

    def updated(self, step: int) -> None:
        """Note that `step` has changed the weights, or that a run begins after it. Pushes the weights that are to sample, if the
        sampler does not have them.
        """
        self._step = step
        fresh = step == 0 or self.version != self._version_at(step - 1)
        if fresh and self._config.runner.reset_optimizer:
            self._learner.forget_moments()
        if self._version_at(step + 1) == step:
            self._older[step] = self._learner.policy()
        self._older = {version: policy for version, policy in self._older.items() if version >= self.version}
        if self._held != self.version:
            self._give(newest=False)
            self._held = self.version

    @contextmanager
    def newest(self) -> Iterator[None]:
        """While the block runs, the sampler has the weights that were trained last."""
        lags = self.version != self._step
        if lags:
            self._give(newest=True)
        try:
            yield
        finally:
            if lags:
                self._give(newest=False)

    def state(self) -> State:
        older = {version: policy for version, policy in self._older.items() if version != self._step}
        return State(tensors={f"{SAVED}{version}": policy for version, policy in older.items()})

    def restore(self, step: int, state: State) -> None:
        """Raises ValueError if the checkpoint lacks the weights that sample after `step`."""
        self._step = step
        found = {name: tensors for name, tensors in state.tensors.items() if name.startswith(SAVED)}
        self._older = {int(name.removeprefix(SAVED)): dict(tensors) for name, tensors in found.items()}
        if self.version != step and self.version not in self._older:
            raise ValueError(
                f"the checkpoint of step {step} lacks the weights of step {self.version}, which sample with "
                f"runner.push_every {self._config.runner.push_every}; continue from a checkpoint whose step is a multiple of it"
            )

    def _give(self, newest: bool) -> None:
        """Push the weights that were trained last, or those that are to sample."""
        self._newest = newest
        if self._lent is not None:
            self._lent.forget()
        else:
            self._put_back()

    def _put_back(self) -> None:
        if self._newest:
            self._pusher.push(self._step)
        elif self.version == self._step:
            self.digest = self._pusher.push(self.version)
        else:
            with self._learner.holding(self._older[self.version]):
                self.digest = self._pusher.push(self.version)
