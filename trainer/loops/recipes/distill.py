"""Recipe `distill`: the stage of a sampled policy without rewards; teachers give each token its value."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from trainer.config.recipes.distill import DistillConfig
from trainer.contracts import Example, RolloutRecord, Rubric
from trainer.contracts.plurals import with_noun
from trainer.inference.chat import encode_prompt
from trainer.inference.prefix import pack
from trainer.rewards import Unscored
from trainer.rewards.kinds.rubrics import verified_rubric
from trainer.rollouts import Trajectory

from ..learner.learner import Marked
from ..learner.teachers import Teachers
from ..policy.collecting import Collected
from ..policy.evaluation import evaluate
from ..policy.reports import rollout_metrics, rollout_records
from ..policy.scoring_watch import ScoringWatch
from ..policy.update import UpdateReport
from ..prompts.data import Prompt, PromptSets
from ..session.errors import RunFailed
from ..session.stage import Tell
from .policy import PolicyStage

_STAGES = 20
"""If there are more stages, their curves are left out: so many could not be read."""
_SHOWN = 60
"""The number of characters of a stage's name that are in the key of its metric."""
_OF_AN_EVALUATION = ("eval/length", "eval/excluded", "eval/rubric_score", "eval/rubric_score_se")
_OF_A_STEP = ("rollout/length", "rollout/truncated_share", "rollout/responses", "rollout/tokens")


def distilled_prompts(examples: Sequence[Example], tokenizer: Any, config: DistillConfig) -> PromptSets:
    """The prompts that have a teacher. Raises RunFailed if none is left to train on, and names the stages of the data."""
    sets: dict[str, list[Prompt]] = {"train": [], "heldout": []}
    reasons: dict[str, int] = defaultdict(int)
    for example in examples:
        found = _usable(example, tokenizer, config)
        if isinstance(found, str):
            reasons[found] += 1
        else:
            sets[example.split or "train"].append(found)
    left_out = [f"{with_noun(count, 'examples')} left out: {reason}" for reason, count in reasons.items()]
    if not sets["train"]:
        raise RunFailed(
            f"no example to train on, of {len(examples):,}: " + ("; ".join(left_out) or "none is in the training split")
        )
    spoken = {config.stage_of(prompt.example)[1] for prompt in sets["train"]}
    for place, teacher in enumerate(config.teachers):
        if place not in spoken:
            left_out.append(f"teacher {teacher.model!r} has no training prompt of stage {teacher.stage!r}")
    return PromptSets(sets["train"], sets["heldout"][: config.evaluation.max_examples], left_out)


def places_of(prompts: PromptSets, config: DistillConfig) -> dict[str, int]:
    """The number of the teacher that speaks for each prompt, by the prompt's key."""
    found = {}
    for prompt in [*prompts.train, *prompts.heldout]:
        place = config.stage_of(prompt.example)[1]
        assert place is not None  # noqa: S101 - for the types: `distilled_prompts` has left the others out
        found[prompt.example.key] = place
    return found


class DistillStage(PolicyStage):
    """A policy stage whose gap to the teachers is measured instead of a reward."""

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        """Measures of held-out answers: their gap to the teachers, and their score if verifiers can decide it."""
        parts = self.parts
        with self.collector.newest_weights():
            watch = ScoringWatch(tell, len(parts.prompts.heldout) * parts.config.evaluation.samples)
            found = evaluate(parts, self.scorer, f"eval/{number}", tell.watch("evaluating", "evaluation"), watch)
        parts.sampler.rest()
        gaps = self.gaps(found.trajectories, tell)
        tell.rollouts(partial(self._held_out_records, found.trajectories, gaps))
        values = {key: value for key, value in found.values.items() if key in _OF_AN_EVALUATION}
        scores = self._by_stage("eval/stage", _scores(found.trajectories))
        values |= self.gap_metrics(found.trajectories, gaps) | scores
        parts.schedule.measured(values)
        return values

    def _note(self, collected: Collected, tell: Tell) -> None:
        found = collected.trajectories
        values = {key: value for key, value in rollout_metrics(found).items() if key in _OF_A_STEP}
        if collected.elapsed_s is not None:
            values["perf/rollout_tokens_per_s"] = sum(t.length for t in found) / collected.elapsed_s
        tell.metrics(values | collected.metrics)

    def _learn_pass_rates(self, collected: Collected, tell: Tell) -> None:
        """Without a reward it is not known which prompts are solved."""

    def _own_metrics(self, report: UpdateReport, trajectories: list[Trajectory]) -> dict[str, float]:
        return self._by_stage(
            "gap",
            [(trajectories[b], -advantage, trajectories[b].length) for b, advantage in report.advantages.items()],
        )

    def _records(
        self,
        step: int,
        trajectories: list[Trajectory],
        advantages_B: Tensor | None = None,
        report: UpdateReport | None = None,
    ) -> Any:
        made = super()._records(step, trajectories, advantages_B, report)
        return lambda: [
            _shown(record, None if record.advantage is None or report is None else -record.advantage)
            for record in made()
        ]

    def _held_out_records(self, trajectories: Sequence[Trajectory], gaps: Mapping[int, float]) -> list[RolloutRecord]:
        records = rollout_records(trajectories, self.parts.token_texts, "eval")
        return [_shown(record, gaps.get(id(t))) for record, t in zip(records, trajectories, strict=True)]

    def gaps(self, answers: Sequence[Trajectory], tell: Tell) -> dict[int, float]:
        """The mean gap over the tokens of each answer that has tokens, by the answer's identity. The temperature is the config's, so
        that held-out gaps stay comparable if phases change it.
        """
        parts, progress = self.parts, tell.watch("measuring the gap", "evaluation")
        assert isinstance(parts.teacher, Teachers)  # noqa: S101 - for the types: `make` has loaded them
        trajectories = [t for t in answers if t.length]
        rows = [Marked.of(t) for t in trajectories]
        found: dict[int, float] = {}
        for pack_ in pack([row.read for row in rows], parts.config.optim.micro_batch_tokens):
            progress(len(found), len(rows))
            keys = [trajectories[place].plan.example_key for place in pack_.places]
            gaps = parts.teacher.gaps(
                parts.learner, [rows[place] for place in pack_.places], parts.config.rollout.temperature, keys
            )
            found |= {
                id(trajectories[place]): float(gap_T.mean()) for place, gap_T in zip(pack_.places, gaps, strict=True)
            }
        return found

    def gap_metrics(self, trajectories: Sequence[Trajectory], gaps: Mapping[int, float]) -> dict[str, float]:
        """The mean gap over all answers, with the standard error over prompts; also by stage."""
        known = [(t, gaps[id(t)], 1) for t in trajectories if id(t) in gaps]
        values = {"eval/measured": float(len(known))}
        if not known:
            return values
        values["eval/gap"] = statistics.fmean(gap for _, gap, _ in known)
        prompts: dict[int, list[float]] = defaultdict(list)
        for t, gap, _ in known:
            prompts[t.plan.group].append(gap)
        means = [statistics.fmean(each) for each in prompts.values()]
        if len(means) > 1:
            values["eval/gap_se"] = math.sqrt(statistics.variance(means) / len(means))
        return values | self._by_stage("eval/gap", known)

    def _by_stage(self, key: str, weighed: Sequence[tuple[Trajectory, float, int]]) -> dict[str, float]:
        """Weighted means of the values of each stage; {} if there is only one stage, or too many to draw."""
        config: Any = self.parts.config
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for t, value, weight in weighed:
            name = config.stage_of(self.parts.tasks[t.plan.example_key].example)[0][:_SHOWN]
            sums[name][0] += weight * value
            sums[name][1] += weight
        if not 1 < len(sums) <= _STAGES:
            return {}
        return {f"{key}/{name}": total / weight for name, (total, weight) in sorted(sums.items()) if weight}


def _usable(example: Example, tokenizer: Any, config: DistillConfig) -> Prompt | str:
    name, place = config.stage_of(example)
    if place is None:
        return f"no teacher speaks for their stage, {name!r}"
    if not any(message.role == "user" for message in example.prompt):
        return "their prompt has no user message"
    tokens, longest = encode_prompt(tokenizer, example.prompt), config.data.max_prompt_tokens
    if len(tokens) > longest:
        return f"their prompt is longer than data.max_prompt_tokens = {longest}"
    return Prompt(example, _scored(example.rubric), tokens)


def _scored(rubric: Rubric | None) -> Rubric | None:
    """The criteria that verifiers decide; None if there are none, or none that earns points."""
    try:
        return verified_rubric(rubric)
    except Unscored:
        return None


def _scores(trajectories: Sequence[Trajectory]) -> list[tuple[Trajectory, float, int]]:
    return [(t, t.reward.score, 1) for t in trajectories if t.reward.score is not None]


def _shown(record: RolloutRecord, gap: float | None) -> RolloutRecord:
    """The record without a reward, because the run has none."""
    components = {} if gap is None else {"gap": gap}
    return record.model_copy(update={"reward": None, "components": components})
