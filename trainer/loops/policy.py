"""Recipe `policy`: collect, score, update, report, evaluate, checkpoint; the same named steps every time."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer import checkpoints
from trainer.config import PolicyConfig
from trainer.contracts import ArtifactData
from trainer.inference.chat import encode_prompt, with_addition
from trainer.inference.checksum import Checksum
from trainer.rollouts import PromptPlan, RewardFunction, Trajectory, greedy_rewards, sample_plans, score_samples
from trainer.sampling import DataOrder, group_factor, scaffold_for, step_factor
from trainer.seeding import derive_seed

from .clock import Clock
from .data import Prompt
from .engine_check import check_engine
from .errors import AttemptAbandoned, RunFailed, StopRequested
from .evaluation import evaluate
from .offending import save_offending
from .parts import Parts
from .reports import packing_metrics, rollout_metrics, rollout_records, update_metrics, verifier_rates
from .update import NotFinite, Updater

SAVED = "weights-"
"""In a checkpoint, before the version whose weights sample although they are no longer the newest."""


@dataclass
class PolicyLoop:
    """One run. `step` is the last completed step; everything random follows from the seed and the step.

    Weights go to the sampler every `runner.push_every` steps. In between it lags: it samples with the weights of
    `_version`, whose trained parameters are then kept in `_lagging`, for evaluations borrow the sampler.
    """

    parts: Parts
    step: int = 0
    summary: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config, prompts = self.parts.config, self.parts.prompts
        self._config, self._monitor = config, self.parts.monitor
        self._order = DataOrder(len(prompts.train), config.seed, config.data.shuffle)
        self._updater = self.parts.updater or Updater(self.parts.learner, config, self.parts.teacher)
        self.reward = RewardFunction(config.rewards, config.rollout.max_new_tokens)
        self._rubrics = {p.example.key: p.rubric for p in [*prompts.train, *prompts.heldout]}
        self._clock = Clock(config, bool(prompts.heldout))
        self._engine_checked = False
        self._evaluated_step = -1
        self._lagging: dict[str, Tensor] | None = None
        self._pushed = False

    def resume(self) -> bool:
        """Continue from the newest checkpoint; False when there is none. Raises CheckpointInvalid or ValueError."""
        checkpoint = checkpoints.load_newest(self._checkpoint_dir)
        if checkpoint is None:
            return False
        self._restore(checkpoint)
        return True

    def _restore(self, checkpoint: checkpoints.Checkpoint) -> None:
        self.step = checkpoint.step
        self.summary = dict(checkpoint.state["summary"])
        self._evaluated_step = checkpoint.state["evaluated_step"]
        self._order.load_state_dict(checkpoint.state["order"])
        self.parts.learner.load_state_tensors(checkpoint.tensors)
        self._lagging = checkpoint.tensors.get(f"{SAVED}{self._version}")

    def run(self) -> dict[str, float]:
        """All remaining steps; the summary. Raises StopRequested after saving, AttemptAbandoned without."""
        self._push_weights()
        try:
            # Before the first step, or where a stop came in the middle of an evaluation.
            self._evaluate_if_due(self.step)
            while self.step < self._config.steps:
                self._one_step(self.step + 1)
        except StopRequested:
            self._save()
            raise
        return self.summary

    def _one_step(self, step: int) -> None:
        started = time.monotonic()
        order_before = self._order.state_dict()
        try:
            trajectories = self._gather(step)
            advantages_B = self._advantages(trajectories)
            self._check_engine(step, trajectories)
            self._check_commands()
        except StopRequested:
            # The step has not happened: its prompts are drawn again by the run that resumes.
            self._order.load_state_dict(order_before)
            raise
        self._update(step, trajectories, advantages_B)
        self.step = step
        self._push_weights()
        self._clock.step_took(time.monotonic() - started)
        self._monitor.metrics(step, {"perf/step_s": time.monotonic() - started})
        self._evaluate_if_due(step)
        if step % self._config.checkpoint.every == 0 or step == self._config.steps:
            self._save()

    def _gather(self, step: int) -> list[Trajectory]:
        """The scored responses of the step, group by group."""
        return self._collect(step, self._plan(step))

    def _plan(self, step: int) -> list[PromptPlan]:
        """P prompts, G responses each, with the scaffold each response is shown."""
        chosen = self._order.take(self._config.rollout.prompts_per_step)
        return [plan for group, index in enumerate(chosen) for plan in self._plan_group(step, group, index)]

    def _plan_group(self, step: int, group: int, index: int) -> list[PromptPlan]:
        """The responses to training prompt `index`, which is the `group`-th of the step."""
        prompt, size = self.parts.prompts.train[index], self._config.rollout.group_size
        return [self._plan_one(step, group, i, prompt) for i in range(size)]

    def _plan_one(self, step: int, group: int, index: int, prompt: Prompt) -> PromptPlan:
        config, text, shown = self._config, "", 0
        sampled = prompt.tokens
        if config.scaffold:
            # An asynchronous run plans a few steps beyond its last.
            share = step_factor(config.scaffold, min(step, config.steps), config.steps)
            share *= group_factor(config.scaffold, index + 1, config.rollout.group_size)
            scaffold = scaffold_for(prompt.rubric, share, config.seed, step, group, index)
            text, shown = scaffold.text, scaffold.shown
        if text:
            sampled = encode_prompt(self.parts.tokenizer, with_addition(prompt.example.prompt, text))
        seed = derive_seed(config.seed, "rollout", step, group, index)
        return PromptPlan(prompt.example.key, group, index, prompt.text, prompt.tokens, sampled, seed, text, shown)

    def _collect(self, step: int, plans: list[PromptPlan]) -> list[Trajectory]:
        """Sample and score; the metrics of this half leave at once, not after the update."""
        started = time.monotonic()
        progress = self._watch(step, "sampling")
        results = sample_plans(self.parts.sampler, plans, self._config.rollout, progress)
        elapsed = time.monotonic() - started
        trajectories = score_samples(plans, results, self._rubrics, self.reward)
        self._note_rollouts(step, trajectories, elapsed)
        return trajectories

    def _note_rollouts(self, step: int, trajectories: list[Trajectory], elapsed_s: float) -> None:
        values = rollout_metrics(trajectories) | verifier_rates(trajectories, self._rubrics)
        if self._config.scaffold and trajectories:
            criteria = sum(len(self._rubrics[t.plan.example_key].criteria) for t in trajectories)
            values["scaffold/ratio"] = sum(t.plan.scaffold_shown for t in trajectories) / criteria
        values["perf/rollout_tokens_per_s"] = sum(len(t.tokens) for t in trajectories) / elapsed_s
        self._monitor.metrics(step, values)

    def _advantages(self, trajectories: Sequence[Trajectory]) -> Tensor:
        rewards = [t.reward.total if t.reward.total is not None else float("nan") for t in trajectories]
        groups_B = torch.tensor([t.plan.group for t in trajectories])
        return self._updater.advantages(torch.tensor(rewards), groups_B, self._greedy(trajectories))

    def _greedy(self, trajectories: Sequence[Trajectory]) -> Tensor | None:
        """The baseline of the estimator `remax`, by response."""
        if getattr(self._config.objective, "advantage", "") != "remax":
            return None
        plans = [t.plan for t in trajectories]
        return torch.tensor(greedy_rewards(self.parts.sampler, plans, self._config.rollout, self._rubrics, self.reward))

    def _check_engine(self, step: int, trajectories: Sequence[Trajectory]) -> None:
        if self._engine_checked or self._version != self.step:
            return  # weights that lag behind would differ, and rightly so
        config = self._config
        worst = check_engine(self.parts.learner, trajectories, config.rollout, config.model.dtype)
        self._monitor.log(f"sampler and trainer agree: probabilities differ by at most {worst:.2g}", step)
        self._engine_checked = True

    def _update(self, step: int, trajectories: list[Trajectory], advantages_B: Tensor) -> None:
        started = time.monotonic()
        self.parts.learner.set_lr(learning_rate(self._config, step))
        try:
            report = self._updater.run(trajectories, advantages_B, self._note_progress(step, "updating"))
        except NotFinite as error:
            raise self._diverged(step, error, trajectories, advantages_B) from error
        values, histograms = update_metrics(report)
        values["optim/lr"] = learning_rate(self._config, step)
        if report.tokens:  # with every response excluded nothing was trained, which is not a speed of 0
            values["perf/train_tokens_per_s"] = report.tokens / (time.monotonic() - started)
        values |= packing_metrics(report, self._config.optim.micro_batch_tokens)
        self._monitor.metrics(step, values, histograms)
        records = rollout_records(trajectories, self.parts.tokenizer, "train", advantages_B, report)
        self._monitor.rollouts(step, records)

    def _evaluate_if_due(self, step: int) -> None:
        every = self._config.evaluation.every
        due = step in (0, self._config.steps) or (every > 0 and step % every == 0)
        if due and step > self._evaluated_step and self.parts.prompts.heldout:
            self._evaluate(step)
            self._evaluated_step = step

    def _evaluate(self, step: int) -> None:
        started = time.monotonic()
        with self.newest_weights():
            result = evaluate(self.parts, self.reward, step, self._watch(step, "evaluating"))
        self._clock.evaluation_took(time.monotonic() - started)
        self._monitor.metrics(step, result.values)
        self._monitor.rollouts(step, rollout_records(result.trajectories, self.parts.tokenizer, "eval"))
        score = result.values.get("eval/rubric_score")
        if score is not None:
            self.summary.setdefault("eval/rubric_score_start", score)
            self.summary["eval/rubric_score"] = score

    def _push_weights(self) -> None:
        """If it is the turn of these; a resumed run gives the sampler the older ones that it had."""
        learner = self.parts.learner
        if self._version == self.step:
            if self._config.runner.reset_optimizer:
                learner.forget_moments()
            self._lagging = self._policy() if self._config.runner.push_every > 1 else None
            self._load_sampler(self.step)
        elif not self._pushed:
            with learner.holding(self._lagging or learner.policy()):
                self._load_sampler(self._version)
        self._pushed = True

    def _load_sampler(self, version: int) -> None:
        """Raises RunFailed where the sampler does not hold afterwards what was given to it."""
        pushed = Checksum()
        held = self.parts.sampler.load_weights(pushed.watching(self._weights_to_push()), version)
        if held != pushed.hexdigest():
            raise RunFailed(
                f"the weights of step {version} did not reach the sampler: their checksum is {pushed.hexdigest()}, that of "
                f"what the sampler holds {held}"
            )

    def _weights_to_push(self) -> Iterator[tuple[str, Tensor]]:
        sampler, learner = self._config.sampler, self.parts.learner
        adapters = sampler.kind != "local" and sampler.push == "adapters"
        return learner.adapter_weights() if adapters else learner.merged_weights()

    @contextmanager
    def newest_weights(self) -> Iterator[None]:
        """Meanwhile the sampler has the weights that were trained last."""
        lagging = self._lagging if self._version != self.step else None
        if lagging is not None:
            self._load_sampler(self.step)
        try:
            yield
        finally:
            if lagging is not None:
                with self.parts.learner.holding(lagging):
                    self._load_sampler(self._version)

    @property
    def _version(self) -> int:
        """The step after which the newest weights that sample were pushed."""
        every = self._config.runner.push_every
        return self.step // every * every

    def _policy(self) -> dict[str, Tensor]:
        """A copy of the trained parameters."""
        return self.parts.learner.policy()

    def _save(self) -> None:
        checkpoint = checkpoints.Checkpoint(self.step, self._state(), self._tensors())
        saved = self._monitor.patiently(
            lambda: checkpoints.save(self._checkpoint_dir, checkpoint, self._config.checkpoint.keep), self.step
        )
        path = str(saved.path.relative_to(self.parts.run_dir))
        self._monitor.artifact(
            ArtifactData(role="checkpoint", path=path, bytes=saved.bytes, digest=saved.digest), self.step
        )

    def _state(self) -> dict[str, Any]:
        return {
            "order": self._order.state_dict(),
            "summary": self.summary,
            "evaluated_step": self._evaluated_step,
        }

    def _tensors(self) -> dict[str, dict[str, Tensor]]:
        older = self._lagging is not None and self._version != self.step
        return self.parts.learner.state_tensors() | ({f"{SAVED}{self._version}": self._lagging} if older else {})

    def _diverged(self, step: int, error: NotFinite, trajectories: list[Trajectory], advantages_B: Tensor) -> RunFailed:
        rows = [(trajectories[row], float(advantages_B[row])) for row in error.rows]
        artifact = save_offending(self.parts.run_dir, step, rows)
        self._monitor.artifact(artifact, step)
        return RunFailed(
            f"{error} at step {step}, so the weights were not touched; {self._last_good(step)}. The responses are in "
            f"{artifact.path}. Lower optim.lr (now {self._config.optim.lr:g}) or optim.grad_clip and run again."
        )

    def _last_good(self, step: int) -> str:
        """Which checkpoint to trust after `step` has failed: one whose weights have been through a step since."""
        kept = checkpoints.steps(self._checkpoint_dir)
        if not kept:
            return "there is no checkpoint yet"
        if kept[-1] < step - 1:
            return f"the checkpoint of step {kept[-1]} is good"
        older = f", that of step {kept[-2]} is good" if kept[1:] else ""
        return f"the checkpoint of step {kept[-1]} holds these very weights{older}"

    def _watch(self, step: int, phase: str) -> Callable[[int, int], None]:
        """Progress of a phase that can be given up half way."""
        note = self._note_progress(step, phase)

        def progress(done: int, total: int) -> None:
            self._check_commands()
            note(done, total)

        return progress

    def _note_progress(self, step: int, phase: str) -> Callable[[int, int], None]:
        def progress(done: int, total: int) -> None:
            self._monitor.progress(step, phase, done, total, self._clock.eta_s(self.step))

        return progress

    def _check_commands(self) -> None:
        if self._monitor.command == "abandon":
            raise AttemptAbandoned("the server has given this run to another attempt")
        if self._monitor.command == "stop":
            raise StopRequested

    @property
    def _checkpoint_dir(self) -> Path:
        return self.parts.run_dir / "checkpoints"


def learning_rate(config: PolicyConfig, step: int) -> float:
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
            return optim.lr * 0.5 * (1.0 + float(torch.cos(torch.tensor(torch.pi * done, dtype=torch.float64))))
        case _:
            return optim.lr
