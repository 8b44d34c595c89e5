"""Recipe `policy`, and every recipe with a task: collect, score, update, report, evaluate; the same named steps every time."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from trainer import checkpoints
from trainer.contracts import RolloutRecord
from trainer.contracts.plurals import with_noun
from trainer.inference.build import generation_config
from trainer.inference.local import stop_token_ids
from trainer.rollouts import Rewards, RewardSetup, Trajectory, episode_rows, greedy_rewards

from ..learner.engine_check import EngineCheck
from ..learner.export import write_model
from ..policy.closing import closing
from ..policy.collecting import Collected, MakeCollector, SyncCollector
from ..policy.evaluation import evaluate
from ..policy.failed_batch import save_offending
from ..policy.flat_steps import FlatSteps
from ..policy.hacking import HackingWatch
from ..policy.learning import LearningWatch, Vitals, measure_step
from ..policy.missing_rewards import MissingRewards
from ..policy.parts import Parts
from ..policy.phases import Phases
from ..policy.reports import (
    asking_parts,
    domain_shares,
    learned,
    outcomes,
    packing_metrics,
    reach_metrics,
    reward_metrics,
    rollout_metrics,
    rollout_records,
    token_by_token,
    update_metrics,
    verifier_rates,
)
from ..policy.scoring_watch import ScoringWatch
from ..policy.update import Learned, NotFinite, Updater, UpdateReport
from ..policy.verification import Verification
from ..prompts.planner import Planner
from ..prompts.task_questions import answered
from ..session.errors import RunFailed, StopRequested, Unrewarded
from ..session.stage import ModelOutput, State, Tell, learning_rate


class PolicyStage:
    """One step: the collector's responses, their advantages, the update. Seed and step decide every random choice."""

    def __init__(
        self,
        parts: Parts,
        collector: MakeCollector = SyncCollector,
        rewards: Rewards | None = None,
        missing: MissingRewards | None = None,
        hacking: HackingWatch | None = None,
        learning: LearningWatch | None = None,
    ) -> None:
        """`missing`, `hacking` and `learning` are the counts and the watches of an earlier stage, which continue here."""
        config = parts.config
        self._asking = asking_parts(config.composition.parts)
        self._domains = frozenset(prompt.example.domain for prompt in parts.prompts.train)
        self.parts = parts
        self.planner = Planner(config, parts.prompts.train, parts.tokenizer)
        self.scorer = (rewards or RewardSetup(config)).open(parts.run_dir / "rewards.jsonl")
        self.collector = collector(parts, self.planner, self.scorer)
        self.updater = parts.updater or Updater(parts.learner, config, parts.teacher)
        self.phases = Phases(parts, self.scorer, self.collector, self.planner.order)
        self._verification = Verification(parts)
        self.evaluates = bool(parts.prompts.heldout)
        self._missing = missing or MissingRewards(config.composition.parts, config.runner.kind == "async")
        self._hacking = hacking or HackingWatch(config)
        self._flat = FlatSteps(config, self._hacking.role)
        self._learning = learning or LearningWatch(config, self._hacking.role)
        self._engine_check = EngineCheck(config, stop_token_ids(generation_config(parts.base), parts.tokenizer))

    def open(self, step: int) -> None:
        self.collector.open(step)

    def step(self, number: int, tell: Tell) -> None:
        before = self.phases.state_dict()
        try:
            self.phases.enter(number, tell)
            collected = self.collector.collect(number, tell)
            self._note(collected, tell)
            self._look_at_rewards(number, collected, tell)
            trained = self._verification.added(number, self.phases.rewarded(number, collected, tell), tell)
            rewarded = trained.trajectories + trained.replayed
            advantages_B = self.advantages(rewarded, self._greedy(rewarded, number, tell))
            self._check_engine(number, collected.trajectories, tell)
            tell.check()
            self.parts.sampler.rest()
            shown = self._update(number, trained, advantages_B, tell)
        except (StopRequested, Unrewarded) as error:
            # The step has not happened: the run that resumes draws its prompts again.
            self.phases.load_state_dict(before)
            if isinstance(error, Unrewarded):
                self.scorer.forget_missing()
            raise
        self._hacking.look(number, collected.trajectories, self.parts.tasks, tell)
        self._flat.look(number, rewarded, tell)
        self._learning.look(number, shown, tell)
        self._learn_pass_rates(collected, tell)
        pushed = time.monotonic()
        self.collector.updated(number)
        tell.ran("learner", "weights to the sampler", pushed, time.monotonic())
        self.phases.passed(number, collected.trajectories, tell)

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        with self.collector.newest_weights():
            count = len(self.parts.prompts.heldout) * self.parts.config.evaluation.samples
            watch, progress = ScoringWatch(tell, count), tell.watch("evaluating", "evaluation")
            result = evaluate(self.parts, self.scorer, f"eval/{number}", progress, watch)
            last = self._closing(number, tell)
        tell.rollouts(partial(rollout_records, result.trajectories, self.parts.token_texts, "eval"))
        task = self.parts.task
        return result.values | last | (task.held_out(answered(result.trajectories, self.parts.tasks)) if task else {})

    def _closing(self, number: int, tell: Tell) -> dict[str, float]:
        config = self.parts.config
        if not config.closing or number < config.steps:
            return {}
        return closing(self.parts, self.scorer, config.closing, tell)

    def state(self) -> State:
        collector = self.collector.state()
        tensors = {**self.parts.learner.state_tensors(), **collector.tensors}
        own = {
            "order": self.planner.order.state_dict(),
            "rewards": self.scorer.state_dict(),
            "missing": self._missing.state_dict(),
            "hacking": self._hacking.state_dict(),
            "flat": self._flat.state_dict(),
            "learning": self._learning.state_dict(),
            "phases": self.parts.schedule.state_dict(),
            "pass_rates": self.planner.pass_rates.state_dict(),
        }
        return State(own | collector.values, tensors, self.parts.learner.elsewhere())

    def restore(self, step: int, state: State) -> None:
        self.planner.order.load_state_dict(state.values["order"])
        self.scorer.load_state_dict(state.values.get("rewards", {}))
        self._missing.load_state_dict(state.values.get("missing", {}))
        self._hacking.load_state_dict(state.values.get("hacking", {}))
        self._flat.load_state_dict(state.values.get("flat", {}))
        self._learning.load_state_dict(state.values.get("learning", {}))
        self.parts.schedule.load_state_dict(state.values.get("phases", {}))
        self.planner.pass_rates.load_state_dict(state.values.get("pass_rates", {}))
        self.parts.learner.load_state_tensors(state.tensors)
        self.collector.restore(step, state)

    def outputs(self) -> Iterator[ModelOutput]:
        parts = self.parts
        write = partial(write_model, config=parts.config, base=parts.base, trained=parts.learner)
        role = parts.task.role if parts.task else "policy"
        yield ModelOutput(role, role, write)

    def close(self) -> None:
        self.collector.close()
        self.scorer.close()
        self.parts.sampler.close()
        self.parts.learner.close()

    def advantages(self, trajectories: Sequence[Trajectory], greedy_B: Tensor | None = None) -> Tensor:
        """Advantages [B], NaN if a trajectory has no reward. `greedy_B` is the baseline of the estimator `remax`."""
        if not trajectories:
            return torch.empty(0)
        rewards = [t.reward.total if t.reward.total is not None else float("nan") for t in trajectories]
        rewards_B, groups_B = torch.tensor(rewards), torch.tensor([t.plan.group for t in trajectories])
        # An episode counts once in its group, also with several trajectories; all of them get its advantage.
        row_of, rows = episode_rows(trajectories)
        rewards_E, truncated = rewards_B[rows], self.parts.config.rollout.truncated
        cut = [place for place, t in enumerate(trajectories) if truncated != "train" and t.stop == "length"]
        if truncated == "drop":
            rewards_E[[row_of[place] for place in cut]] = torch.nan
        advantages_E = self.updater.advantages(rewards_E, groups_B[rows], None if greedy_B is None else greedy_B[rows])
        advantages_B = advantages_E[row_of]
        advantages_B[cut] = torch.nan
        return advantages_B

    def _greedy(self, trajectories: Sequence[Trajectory], step: int, tell: Tell) -> Tensor | None:
        """The baseline of the estimator `remax`, for each response."""
        parts = self.parts
        if not trajectories or getattr(parts.config.objective, "advantage", "") != "remax":
            return None
        plans, watch = [t.plan for t in trajectories], ScoringWatch(tell, len(trajectories))
        rewards = greedy_rewards(
            parts.sampler, plans, parts.config.rollout, parts.tasks, self.scorer, f"greedy/{step}", watch
        )
        return torch.tensor(rewards)

    def _note(self, collected: Collected, tell: Tell) -> None:
        """Report the metrics that are known before the update at once."""
        trajectories, tasks = collected.trajectories, self.parts.tasks
        values = (
            rollout_metrics(trajectories, self.parts.config.rollout.truncated)
            | reward_metrics(trajectories, self._asking)
            | verifier_rates(trajectories, tasks)
        )
        values |= domain_shares(trajectories, lambda key: tasks[key].example.domain, self._domains)
        if self.parts.config.shown_scaffold and trajectories:
            rubrics = [tasks[t.plan.example_key].rubric for t in trajectories]
            criteria = sum(len(rubric.criteria) for rubric in rubrics if rubric)
            values["scaffold/ratio"] = sum(t.plan.scaffold_shown for t in trajectories) / criteria
        if self.parts.config.shown_hint and trajectories:
            values["hint/share"] = sum(t.plan.hint for t in trajectories) / len(trajectories)
        if collected.elapsed_s is not None:
            values["perf/rollout_tokens_per_s"] = sum(t.length for t in trajectories) / collected.elapsed_s
        if self.parts.task:
            values |= self.parts.task.measured(answered(trajectories, tasks))
        tell.metrics(values | collected.metrics)

    def _learn_pass_rates(self, collected: Collected, tell: Tell) -> None:
        """Count passes at the end of a step, so that a step that is given up counts nothing. Stored responses are not counted: they
        say nothing about the present policy.
        """
        if collected.elapsed_s is None:
            return
        rates = self.planner.pass_rates
        rates.learned(outcomes(collected.trajectories, self.parts.config.pass_rates.threshold))
        tell.metrics(reach_metrics(rates))

    def _learned(self, trajectories: Sequence[Trajectory]) -> list[Learned] | None:
        config = self.parts.config
        if config.well_learned is None:
            return None
        return learned(trajectories, self.planner.pass_rates, config.pass_rates.threshold)

    def _look_at_rewards(self, step: int, collected: Collected, tell: Tell) -> None:
        """Raises Unrewarded. The responses are reported before, because they show what happened."""
        try:
            self._missing.look(step, [t.reward for t in collected.trajectories])
        except Unrewarded:
            tell.rollouts(self._records(step, collected.trajectories))
            raise

    def _check_engine(self, step: int, trajectories: Sequence[Trajectory], tell: Tell) -> None:
        if self._engine_check.done or not (fresh := self.collector.comparable(step, trajectories)):
            return
        said, warning = self._engine_check.look(step, self.parts.learner, fresh, self.parts.rollout)
        tell.log(said, "warning" if warning else "info")

    def _update(self, step: int, collected: Collected, advantages_B: Tensor, tell: Tell) -> Vitals:
        """Update on the rows that the collector chose: without replaced groups. Valid responses are repeated if others
        of their group were excluded (GLM-5, noisy samples). Returns what the step shows of how the run learns.
        """
        trajectories, rows = collected.trajectories + collected.replayed, collected.rows
        if not trajectories:
            tell.log("every group of this step was dropped, so it changes no weights", "warning")
            return Vitals()
        if rows is not None:
            rest = [t for place, t in enumerate(trajectories) if place not in set(rows)]
            tell.rollouts(self._records(step, rest))
            trajectories, advantages_B = [trajectories[row] for row in rows], advantages_B[rows]
        started = time.monotonic()
        config = self.parts.config
        lr = learning_rate(config, step) * self.parts.schedule.lr_times
        self.parts.learner.set_lr(lr)
        self.updater.temperature = self.parts.rollout.temperature
        try:
            progress = tell.progress(self.collector.phase(step, "updating"), "learner")
            report = self.updater.run(trajectories, advantages_B, progress, tell.check, self._learned(trajectories))
        except NotFinite as error:
            raise self._diverged(step, error, trajectories, advantages_B, tell) from error
        values, histograms = update_metrics(report)
        values["optim/lr"] = lr
        if report.tokens:  # if every response was excluded, nothing was trained, and there is no speed
            values["perf/train_tokens_per_s"] = report.tokens / (time.monotonic() - started)
        values |= packing_metrics(report, config.optim.micro_batch_tokens) | self._own_metrics(report, trajectories)
        self.parts.schedule.measured(values)
        tell.metrics(values, histograms)
        tell.rollouts(self._records(step, trajectories, advantages_B, report))
        fresh = {id(t) for t in self.collector.comparable(step, collected.trajectories)}
        rows_fresh = {b for b, t in enumerate(trajectories) if id(t) in fresh}
        return measure_step(report, advantages_B, config, rows_fresh)

    def _own_metrics(self, report: UpdateReport, trajectories: list[Trajectory]) -> dict[str, float]:
        """The metrics of an update that only this kind of stage has."""
        return {}

    def _records(
        self,
        step: int,
        trajectories: list[Trajectory],
        advantages_B: Tensor | None = None,
        report: UpdateReport | None = None,
    ) -> Callable[[], list[RolloutRecord]]:
        rollout = self.parts.config.rollout
        shown = partial(token_by_token, share=rollout.token_records, first=step * rollout.prompts_per_step)
        return partial(rollout_records, trajectories, self.parts.token_texts, "train", advantages_B, report, shown)

    def _diverged(
        self, step: int, error: NotFinite, trajectories: list[Trajectory], advantages_B: Tensor, tell: Tell
    ) -> RunFailed:
        rows = [(trajectories[row], float(advantages_B[row])) for row in error.rows]
        artifact = save_offending(self.parts.run_dir, step, rows)
        tell.artifact(artifact)
        config = self.parts.config
        return RunFailed(
            f"{error} at step {step}, {_touched(error)}; {self._last_good(step, error.updates)}. The responses are in "
            f"{artifact.path}. Lower {config.field('optim.lr')} (now {config.optim.lr:g}) or {config.field('optim.grad_clip')} and run again."
        )

    def _last_good(self, step: int, updates: int) -> str:
        """The checkpoint to trust after `step` has failed: one whose weights have gone through an update since."""
        kept = checkpoints.steps(self.parts.run_dir / "checkpoints")
        if not kept:
            return "there is no checkpoint yet"
        if kept[-1] < step - 1 or updates:
            return f"the checkpoint of step {kept[-1]} is good"
        older = f", that of step {kept[-2]} is good" if kept[1:] else ""
        return f"the checkpoint of step {kept[-1]} holds these very weights{older}"


def _touched(error: NotFinite) -> str:
    if not error.updates:
        return "before it touched the weights"
    return f"after {with_noun(error.updates, 'updates')} of it had changed the weights"
