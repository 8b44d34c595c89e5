"""Rounds sample from the policy and get values for the samples: rewards of single answers, verdicts on pairs."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.config.recipes.iterative_dpo import IterativeDpoConfig, compares
from trainer.contracts import PartResult, RolloutRecord
from trainer.rewards import Item
from trainer.rollouts import Groups, Reward, RewardScorer, RewardSetup, Trajectory, reward_folders, sample_and_score

from ..learner.weight_push import WeightPusher
from ..policy.evaluation import evaluate
from ..policy.missing_rewards import MissingRewards
from ..policy.parts import Parts
from ..policy.reports import asking_parts, part_metrics, rollout_records
from ..policy.scoring_watch import ScoringWatch
from ..prompts.planner import Planner
from ..session.errors import Unrewarded
from ..session.stage import StageJob, Tell
from .labelling import Label, Two, by_judge, by_reward, draw, equal, label_metrics

_WON = {"first": 1.0, "tie": 0.5, "second": 0.0}
_SHOWN = 40
"""The number of held-out answers that an evaluation shows."""


@dataclass(frozen=True)
class Labelled:
    """The pairs of a round with their labels, and the round's metrics."""

    labels: list[Label]
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def kept(self) -> list[Label]:
        return [label for label in self.labels if label.outcome == "kept"]


class Rounds:
    """Samples with the newest weights, and asks the rewards and judges that value the answers. Seed and round decide every random choice."""

    def __init__(self, job: StageJob, parts: Parts) -> None:
        self._config: IterativeDpoConfig = job.config
        self._parts = parts
        self.planner = Planner(parts.config, parts.prompts.train, parts.tokenizer)
        self._pusher = WeightPusher(parts.config, parts.learner, parts.sampler)
        self._pushed: int | None = None
        single = [part for part in self._config.rewards if not compares(part)]
        setup = RewardSetup(self._config.sampling(single), job.access, reward_folders(self._config.rewards, job.models))
        self._single = setup.open(job.run_dir / "rewards.jsonl")
        self._comparing: RewardScorer | None = None
        if part := self._config.comparing:
            self._comparing = RewardSetup(self._config.sampling([part]), job.access).open(job.run_dir / "labels.jsonl")
        self.untrained: dict[str, str] = {}
        """The answers of the untrained model to held-out prompts, by key, if a judge compares with them."""

    def name(self, number: int) -> str:
        return f"round {number + 1} of {-(-self._config.steps // self._config.round_steps)}"

    def labelled(self, number: int, step: int, tell: Tell) -> Labelled:
        """Sample and label round `number`, from 0, whose first step is `step`. Raises StopRequested, and Unrewarded if nothing has a value;
        the order of prompts is then as before.
        """
        before = self.planner.order.state_dict()
        try:
            trajectories, metrics = self._sampled(number, step, tell)
            labels, answers = self._labels(number, trajectories, tell)
            if all(label.outcome in ("missing", "equal") for label in labels):
                valued = answers if self._comparing else [t.reward for t in trajectories]
                MissingRewards(self._config.rewards).look(step, valued)
        except BaseException as error:
            self.planner.order.load_state_dict(before)
            if isinstance(error, Unrewarded):
                for scorer in filter(None, (self._single, self._comparing)):
                    scorer.forget_missing()
            raise
        parts = [part for trajectory in trajectories for part in trajectory.reward.parts]
        asked = [answer.parts[0] for answer in answers]
        metrics |= part_metrics([*parts, *asked], asking_parts(self._config.rewards)) | label_metrics(
            labels, self._config.pairs
        )
        if asked:  # the mean of how often first samples won says nothing
            del metrics[f"reward/{asked[0].name}"]
        rewards = [t.reward.total for t in trajectories if t.reward.total is not None]
        if rewards and self._comparing is None:
            metrics["reward/mean"] = statistics.fmean(rewards)
        return Labelled(labels, metrics)

    def evaluate(self, step: int, tell: Tell) -> dict[str, float]:
        """Greedy answers to held-out prompts after step `step`."""
        self._push(step)
        watch = ScoringWatch(tell, len(self._parts.prompts.heldout))
        found = evaluate(self._parts, self._single, f"eval/{step}", tell.watch("evaluating", "evaluation"), watch)
        values: dict[str, float] = {
            key: found.values[key] for key in ("eval/length", "eval/rubric_score") if key in found.values
        }
        parts: dict[str, list[float]] = defaultdict(list)
        for trajectory in found.trajectories:
            for name, value in trajectory.reward.components.items():
                parts[name].append(value)
        values |= {f"eval/part/{name}": statistics.fmean(each) for name, each in parts.items()}
        scores = [t.reward.total for t in found.trajectories]
        if self._comparing is not None:
            if step == 0:
                self.untrained = {t.plan.example_key: t.text for t in found.trajectories}
            scores = self._against_untrained(self._comparing, found.trajectories, step, watch)
        tell.rollouts(self._shown(found.trajectories[:_SHOWN], scores))
        return values | _score(scores)

    def state_dict(self) -> dict[str, Any]:
        """The amounts that judges with a budget have spent. A checkpoint saves them, and the journals continue from them."""
        pair = {"pair": self._comparing.state_dict()} if self._comparing else {}
        return {"single": self._single.state_dict()} | pair

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._single.load_state_dict(state.get("single", {}))
        if self._comparing:
            self._comparing.load_state_dict(state.get("pair", {}))

    def close(self) -> None:
        self._single.close()
        if self._comparing:
            self._comparing.close()
        self._parts.sampler.close()

    def _push(self, step: int) -> None:
        if self._pushed != step:
            self._pusher.push(step)
            self._pushed = step

    def _sampled(self, number: int, step: int, tell: Tell) -> tuple[list[Trajectory], dict[str, float]]:
        self._push(step - 1)
        parts, plans = self._parts, self.planner.plan(number + 1)
        progress = tell.watch(f"sampling, {self.name(number)}", "rollout")
        watch = ScoringWatch(tell, len(plans), f"scoring, {self.name(number)}")
        groups = Groups(plans, parts.tasks, self._single, f"train/{number + 1}")
        found = sample_and_score(parts.sampler, plans, parts.rollout, groups, self._single, progress, watch)
        lengths = [trajectory.length for trajectory in found.trajectories]
        cut = (trajectory.stop == "length" for trajectory in found.trajectories)
        metrics = {
            "rollout/length": statistics.fmean(lengths),
            "rollout/truncated_share": statistics.fmean(cut),
            "perf/rollout_tokens_per_s": sum(lengths) / found.sampling_s,
        }
        return found.trajectories, metrics

    def _labels(self, number: int, trajectories: Sequence[Trajectory], tell: Tell) -> tuple[list[Label], list[Reward]]:
        """The label of each pair, and the judge's answers about the pairs that it was asked about."""
        choice = self._config.pairs
        drawn = draw(trajectories, choice.choose)
        if self._comparing is None:
            return [by_reward(pair, choice.margin) for pair in drawn], []
        places = [place for place, pair in enumerate(drawn) if not equal(pair)]
        watch = ScoringWatch(tell, len(places), f"labelling, {self.name(number)}")
        asked = self._asked(self._comparing, [drawn[place] for place in places], f"label/{number + 1}", watch)
        said = {place: answer.parts[0] for place, answer in zip(places, asked, strict=True)}
        return [by_judge(pair, said.get(place), choice.labels) for place, pair in enumerate(drawn)], asked

    def _asked(self, scorer: RewardScorer, pairs: Sequence[Two], where: str, watch: ScoringWatch) -> list[Reward]:
        """The judge's answer about each pair, from the view of its first sample."""
        items = [
            self._item(f"{where}/{first.plan.group}/{first.plan.index}-{second.plan.index}", first, second.text)
            for first, second in pairs
        ]
        watch.check()  # the phase is reported even if the judge answers at once
        return scorer.score(items, watch)

    def _item(self, place: str, answer: Trajectory, other: str) -> Item:
        task, longest = self._parts.tasks[answer.plan.example_key], self._config.rollout.max_new_tokens
        return Item(
            place, task.example, task.rubric, answer.text, answer.length, longest, other, answer.stop == "length"
        )

    def _against_untrained(
        self, scorer: RewardScorer, trajectories: Sequence[Trajectory], step: int, watch: ScoringWatch
    ) -> list[float | None]:
        """The share of both orders that each answer wins against the untrained model's; a tie is half, and so is the same answer."""
        others = [self.untrained.get(t.plan.example_key) for t in trajectories]
        both = list(zip(trajectories, others, strict=True))
        items = [
            self._item(f"eval/{step}/{t.plan.group}/0", t, other) for t, other in both if other not in (None, t.text)
        ]
        said = iter(scorer.score(items, watch))
        return [None if other is None else 0.5 if other == t.text else won(next(said).parts[0]) for t, other in both]

    def _shown(self, trajectories: Sequence[Trajectory], scores: Sequence[float | None]) -> list[RolloutRecord]:
        records = rollout_records(trajectories, self._parts.token_texts, "eval")
        return [record.model_copy(update={"reward": score}) for record, score in zip(records, scores, strict=False)]


def won(part: PartResult) -> float | None:
    """The share of two orders in which the answer that `part` is about was preferred; a tie is half."""
    places: Any = part.shown.get("places") if isinstance(part.shown, dict) else None
    if not places or None in places:
        return None
    return (_WON[places[0]] + 1.0 - _WON[places[1]]) / 2


def _score(scores: Sequence[float | None]) -> dict[str, float]:
    """Mean over prompts with its standard error `sqrt(var(ddof=1) / n)`; answers without a score are counted."""
    known = [score for score in scores if score is not None]
    values = {"eval/excluded": float(len(scores) - len(known))}
    if known:
        values["eval/score"] = statistics.fmean(known)
    if len(known) > 1:
        values["eval/score_se"] = math.sqrt(statistics.variance(known) / len(known))
    return values
