"""Responses that are trained on again while the weights that sampled them still sample (OAPL's buffer)."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainer.config import OnPolicyConfig
from trainer.rollouts import Trajectory
from trainer.rollouts.stored import read_with_plan, with_plan
from trainer.seeding import derive_seed


class ReplayBuffer:
    """The groups of one version of the sampler. Seed and step decide which of them a step draws."""

    def __init__(self, config: OnPolicyConfig) -> None:
        self._seed, self._wanted = config.seed, config.runner.replay
        self._version = -1
        self._groups: list[list[Trajectory]] = []
        self._new: list[list[Trajectory]] = []
        """The groups of the step that is being trained. If the step is given up, they are dropped."""

    def draw(self, step: int, first: int) -> list[Trajectory]:
        """Up to `runner.replay` groups without repetition, numbered from `first` on."""
        chooser = random.Random(derive_seed(self._seed, "replay", step))  # noqa: S311 - a draw, not a secret
        chosen = chooser.sample(range(len(self._groups)), min(self._wanted, len(self._groups)))
        return [
            replace(t, plan=replace(t.plan, group=first + place))
            for place, index in enumerate(chosen)
            for t in self._groups[index]
        ]

    def sampled(self, trajectories: Sequence[Trajectory]) -> None:
        """Take the step's own responses, which later steps may draw."""
        if self._wanted:
            groups = dict.fromkeys(t.plan.group for t in trajectories)
            self._new = [[t for t in trajectories if t.plan.group == group] for group in groups]

    def updated(self, version: int) -> None:
        """Note that the step is done and that weights `version` sample from now on. Responses of other weights are dropped."""
        if version == self._version:
            self._groups += self._new
        else:
            self._groups = []
        self._version, self._new = version, []

    def state_dict(self) -> dict[str, Any]:
        """The state; empty without replay."""
        return {"replay": [[with_plan(t) for t in group] for group in self._groups]} if self._wanted else {}

    def load_state_dict(self, state: Mapping[str, Any], version: int) -> None:
        self._version = version
        self._groups = [[read_with_plan(row) for row in group] for group in state.get("replay", [])]
