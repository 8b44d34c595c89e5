"""Recipe `policy` with workers that sample and score while the learner trains."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from trainer import checkpoints
from trainer.config import PolicyConfig
from trainer.loops.errors import RunFailed
from trainer.loops.parts import Parts
from trainer.loops.policy import SAVED, PolicyLoop
from trainer.loops.run import Learners
from trainer.rollouts import PromptPlan, Trajectory

from .conductor import Batch, Conductor
from .fleet import Fleet
from .responses import Responses


class AsyncPolicyLoop(PolicyLoop):
    """The same steps as the synchronous loop, but the responses of a step come from the conductor.

    With `urb` and pinned weights the responses of every step follow from the seed alone: which weights sample a prompt is
    fixed when it is admitted, and a group is always sampled as one batch. So neither speed nor crashes of workers nor a
    kill of the whole run can be seen in its metrics.
    """

    def __init__(self, parts: Parts, fleet: Fleet) -> None:
        super().__init__(parts)
        config, tokenizer = parts.config, parts.tokenizer

        def decode(tokens: Sequence[int]) -> str:
            return str(tokenizer.decode(list(tokens), skip_special_tokens=True))

        responses = Responses(config.rollout, config.runner.segment_tokens, self._plans_of, decode)
        self._check_quotas()
        self._conductor = Conductor(config, fleet, responses, self._rubrics, self._log, self._domain_of)
        self._history: dict[int, dict[str, Tensor]] = {}
        """Trained parameters of the versions that a response may still have to be sampled with."""
        self._told = -1
        self._rows: list[int] = []
        self._asked_at = 0.0

    def run(self) -> dict[str, float]:
        version = self._version
        if version == self.step:
            self._history[version] = self._policy()
        learner = self.parts.learner
        weights = {}
        for known, policy in self._history.items():
            with learner.holding(policy):
                weights[known] = self._copied_weights()
        self._told, self._asked_at = self.step, time.monotonic()
        self._conductor.start(weights)
        runner = self._config.runner
        self._log(f"{runner.workers} workers sample and {runner.reward_workers} score, by schedule {runner.policy!r}")
        try:
            return super().run()
        finally:
            self._conductor.close()

    def _check_quotas(self) -> None:
        """Raises RunFailed for a domain that does not come; says how many prompts have no quota."""
        wanted = {quota.domain for quota in self._config.runner.quotas}
        found = Counter(prompt.example.domain for prompt in self.parts.prompts.train)
        if absent := sorted(wanted - found.keys()):
            known = ", ".join(map(repr, sorted(found)))
            raise RunFailed(f"runner.quotas: no training prompt is of domain {absent[0]!r}; there are {known}")
        left = sum(count for domain, count in found.items() if wanted and domain not in wanted)
        if left:
            self._log(f"{left} training prompts are of domains without a quota and are not used", "warning")

    def _domain_of(self, number: int) -> str:
        """Of the `number`-th group of the data."""
        return self.parts.prompts.train[self._order.at(number)].example.domain

    def _plans_of(self, number: int) -> list[PromptPlan]:
        """The responses of the `number`-th group of the data, planned for the step that is its own in the data's order."""
        step, group = divmod(number, self._config.rollout.prompts_per_step)
        return self._plan_group(step + 1, group, self._order.at(number))

    def _gather(self, step: int) -> list[Trajectory]:
        note = self._watch(step, "sampling")
        asked = time.monotonic()
        batch = self._conductor.batch(lambda: note(0, self._config.batch_size))
        now = time.monotonic()
        self._rows = batch.rows
        self._note_rollouts(step, batch.trajectories, now - self._asked_at)
        self._asked_at = now
        self._monitor.metrics(step, async_metrics(batch) | {"perf/wait_s": now - asked})
        return batch.trajectories

    def _advantages(self, trajectories: Sequence[Trajectory]) -> Tensor:
        return super()._advantages(trajectories) if trajectories else torch.empty(0)

    def _check_engine(self, step: int, trajectories: Sequence[Trajectory]) -> None:
        """Only responses of the very weights that are trained can show that sampler and trainer agree."""
        fresh = [t for t in trajectories if t.versions == ((step - 1, 0, len(t.tokens)),)]
        if fresh:
            super()._check_engine(step, fresh)

    def _update(self, step: int, trajectories: list[Trajectory], advantages_B: Tensor) -> None:
        """With the valid responses repeated where others of their group were excluded (GLM-5, noisy samples)."""
        if not trajectories:
            self._log("every group of this step was dropped, so it changes no weights", "warning")
            return
        super()._update(step, [trajectories[row] for row in self._rows], advantages_B[self._rows])

    def _push_weights(self) -> None:
        self._load_sampler(self.step)  # the evaluation's, in this process
        if self._told == self.step:
            return
        self._told = self.step
        weights = None
        if self._version == self.step:
            if self._config.runner.reset_optimizer:
                self.parts.learner.forget_moments()
            self._history[self.step], weights = self._policy(), self._copied_weights()
        needed = self._conductor.updated(self.step, self._version, weights)
        self._history = {version: policy for version, policy in self._history.items() if version >= needed}

    def _restore(self, checkpoint: checkpoints.Checkpoint) -> None:
        super()._restore(checkpoint)
        state = checkpoint.state.get("runner")
        if state is None:
            raise ValueError("the checkpoint is that of a run with runner.kind 'sync'; resume it as it was")
        self._conductor.load_state_dict(state)
        owners = {name: tensors for name, tensors in checkpoint.tensors.items() if name.startswith(SAVED)}
        self._history = {int(name.removeprefix(SAVED)): tensors for name, tensors in owners.items()}
        self._lagging = None  # workers sample, with the weights of this history

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"runner": self._conductor.state_dict()}

    def _tensors(self) -> dict[str, dict[str, Tensor]]:
        older = {f"{SAVED}{version}": policy for version, policy in self._history.items() if version != self.step}
        return super()._tensors() | older

    def _copied_weights(self) -> dict[str, Tensor]:
        """Copies: the learner goes on changing its own while workers fetch these."""
        return {name: tensor.clone() for name, tensor in self._weights_to_push()}

    def _log(self, message: str, level: Literal["info", "warning"] = "info") -> None:
        self._monitor.log(message, self.step, level)


def async_metrics(batch: Batch) -> dict[str, float]:
    """How old what is trained on is, in steps, and what the schedule costs; undefined values are left out."""
    values = {"async/dropped": float(batch.dropped), "async/dropped_groups": float(batch.dropped_groups)}
    if batch.staleness:
        values["async/staleness"] = sum(batch.staleness) / len(batch.staleness)
        values["async/staleness_max"] = float(max(batch.staleness))
    if batch.utilisation is not None:
        values["async/utilisation"] = batch.utilisation
    return values


def loop_for(config: PolicyConfig, model_dir: Path) -> Callable[[Parts], PolicyLoop]:
    """What makes the loop of a run out of its parts."""
    if config.runner.kind == "sync":
        return PolicyLoop
    from .ray_fleet import RayFleet

    return lambda parts: AsyncPolicyLoop(parts, RayFleet(config, model_dir))


def learners_for(config: PolicyConfig, model_dir: Path) -> Learners | None:
    """What makes a learner of several processes; None where this process trains."""
    if config.optim.processes == 1:
        return None
    from .ray_learner import ShardedLearner, ShardedUpdater

    def make(teacher_dir: Path | None) -> tuple[ShardedLearner, ShardedUpdater]:
        learner = ShardedLearner(config, model_dir, teacher_dir)
        return learner, ShardedUpdater(learner, config)

    return make
