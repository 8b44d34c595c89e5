"""Rounds of stored responses: the policy answers many prompts, and then trains only on these until the next round.

OAPL's offline form (LLMs Can Learn to Reason Via Off-Policy RL, 2026): L is one pass over a data set that the policy at the round's
beginning has sampled, prompts without a correct response are dropped, and the paper makes two rounds.
"""

import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from trainer.contracts.plurals import with_noun
from trainer.rollouts import PromptPlan, RewardScorer, Trajectory

from ..prompts.planner import Planner
from ..session.errors import RunFailed
from ..session.stage import Progress, State, Tell
from .collecting import Collected, responses_of
from .parts import Parts
from .reports import rollout_records
from .sampler_weights import SamplerWeights
from .scoring_watch import ScoringWatch
from .stored_rounds import RoundFile, StoredRounds


@dataclass(frozen=True)
class FrozenRound:
    """A frozen round. `kept` are the groups that are trained on, ascending; `speed` is None if nothing was sampled now."""

    number: int
    groups: list[list[Trajectory]]
    kept: list[int]
    speed: float | None

    @property
    def left_out(self) -> list[list[Trajectory]]:
        kept = set(self.kept)
        return [group for place, group in enumerate(self.groups) if place not in kept]


class OfflineCollector:
    """Takes the responses of a step from the round's store, which the round's first step fills.

    Seed and step decide which weights sample, which prompts, with which seeds, and what each step trains on. So a round
    that was interrupted continues as if it had not been: from its file or, if that is lost, by sampling again.
    """

    def __init__(self, parts: Parts, planner: Planner, scorer: RewardScorer) -> None:
        self._parts, self._planner, self._scorer = parts, planner, scorer
        self._rounds = StoredRounds.of(parts.config)
        self._weights = SamplerWeights(parts, self._rounds.version_at)
        self._stored: FrozenRound | None = None

    def open(self, step: int) -> None:
        self.updated(step)

    def collect(self, step: int, tell: Tell) -> Collected:
        rounds, number = self._rounds, self._rounds.number(step)
        if self._stored is None or self._stored.number != number:
            self._stored = self._store(number, tell)
        stored = self._stored
        metrics = {"offline/round": float(number)}
        if rounds.begins(step):
            metrics |= round_metrics(stored)
            left_out = [trajectory for group in stored.left_out for trajectory in group]
            tell.rollouts(partial(rollout_records, left_out, self._parts.token_texts, "train"))
            tell.log(self._words(stored))
        groups = [stored.groups[place] for place in rounds.dealt(step, stored.kept)]
        return Collected([trajectory for group in groups for trajectory in group], None, None, metrics)

    def phase(self, step: int, name: str) -> str:
        return f"round {self._rounds.number(step)} of {self._rounds.count}: {name}"

    def comparable(self, step: int, trajectories: Sequence[Trajectory]) -> Sequence[Trajectory]:
        return trajectories if self._weights.version == step - 1 else []

    def updated(self, step: int) -> None:
        self._weights.updated(step)

    def newest_weights(self) -> AbstractContextManager[None]:
        return self._weights.newest()

    def state(self) -> State:
        return self._weights.state()

    def restore(self, step: int, state: State) -> None:
        self._weights.restore(step, state)

    def close(self) -> None:
        """Nothing to end: the sampler is the parts'."""

    def _store(self, number: int, tell: Tell) -> FrozenRound:
        """The frozen round: from its file as far as that goes, the rest sampled now. Raises RunFailed if none of its prompts
        can be trained on.
        """
        config, started = self._parts.config, time.monotonic()
        lots = self._lots(number)
        about = {"round": number, "weights": self._weights.digest, "seed": config.seed}
        file = RoundFile(self._parts.run_dir / "rounds" / f"round-{number:03d}.jsonl", about)
        found = list(file.lots(lots))
        before = len(found)
        responses = _RoundProgress(tell, sum(map(len, lots)), self, self._rounds.first_step(number))
        for lot in lots[before:]:
            responses.done = sum(map(len, found))
            where = f"round/{number}/{len(found)}"
            scoring = ScoringWatch(tell, len(lot), responses.phase("scoring"))
            found.append(responses_of(self._parts, self._scorer, lot, where, responses, scoring).trajectories)
            file.add(found[-1])
        tokens = sum(t.length for lot in found[before:] for t in lot)
        groups = _by_group([trajectory for lot in found for trajectory in lot])
        kept = [place for place, group in enumerate(groups) if _solved(group, config.runner.solved_above)]
        if not kept:
            raise RunFailed(self._nothing_left(number, groups))
        return FrozenRound(number, groups, kept, tokens / (time.monotonic() - started) if tokens else None)

    def _lots(self, number: int) -> list[list[PromptPlan]]:
        """The plans that are sampled and stored together: the prompts of one step at a time, also in a resumed run."""
        rounds, first = self._rounds, self._rounds.first_step(number)
        begin = rounds.prompts_before(number)
        plans = [self._planner.plan_at(first, group, begin + group) for group in range(rounds.prompts(number))]
        size = rounds.prompts_per_step
        return [sum(plans[start : start + size], []) for start in range(0, len(plans), size)]

    def _words(self, stored: FrozenRound) -> str:
        rounds, responses = self._rounds, sum(map(len, stored.groups))
        left_out = len(stored.left_out)
        above = self._parts.config.runner.solved_above
        text = (
            f"round {stored.number} of {rounds.count}: {with_noun(responses, 'responses')} to {with_noun(len(stored.groups), 'prompts')}, sampled by "
            f"the weights of step {self._weights.version}, are trained on for {with_noun(rounds.length, 'steps')}"
        )
        why = "without any reward" if above is None else f"without a reward above {above:g}"
        return f"{text}; {with_noun(left_out, 'prompts')} {why} left out" if left_out else text

    def _nothing_left(self, number: int, groups: list[list[Trajectory]]) -> str:
        rewards = [t.reward.total for group in groups for t in group if t.reward.total is not None]
        if not rewards:
            return f"round {number}: none of the {with_noun(sum(map(len, groups)), 'responses')} has a reward; the rollouts say why"
        above = self._parts.config.runner.solved_above
        return (
            f"round {number}: none of its {with_noun(len(groups), 'prompts')} has a response with a reward above {above:g}; the best is "
            f"worth {max(rewards):g}. Lower runner.solved_above, or leave it empty"
        )


class _RoundProgress:
    """The progress of a round's sampling: responses of the lots before, and of this lot."""

    def __init__(self, tell: Tell, total: int, collector: OfflineCollector, step: int) -> None:
        self._tell, self._total, self._collector, self._step = tell, total, collector, step
        self._note: Progress = tell.watch(self.phase("sampling"), "rollout")
        self.done = 0

    def phase(self, name: str) -> str:
        return self._collector.phase(self._step, name)

    def __call__(self, done: int, total: int) -> None:
        self._note(self.done + done, self._total)


def round_metrics(stored: FrozenRound) -> dict[str, float]:
    """Metrics of a round when it is frozen; undefined values are left out."""
    rewards = [t.reward.total for group in stored.groups for t in group if t.reward.total is not None]
    values = {"offline/prompts": float(len(stored.kept)), "offline/left_out": float(len(stored.left_out))}
    if rewards:
        values["offline/reward"] = statistics.fmean(rewards)
    if stored.speed is not None:
        values["perf/rollout_tokens_per_s"] = stored.speed
    return values


def _by_group(trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
    groups: dict[int, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(trajectory.plan.group, []).append(trajectory)
    return list(groups.values())


def _solved(group: Sequence[Trajectory], above: float | None) -> bool:
    rewards = [t.reward.total for t in group if t.reward.total is not None]
    return bool(rewards) and (above is None or max(rewards) > above)
