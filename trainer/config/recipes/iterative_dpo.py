"""Recipe `iterative_dpo`: rounds of sampling, labelling and DPO on the pairs whose labels hold."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from ..errors import FieldProblem
from ..fields import Section, knob
from ..memory_inventory import Holdings
from ..metrics.common import GENERATED
from ..metrics.phases import ROUND_PHASES
from ..metrics.policy import JUDGE
from ..metrics.supervised import FITTING
from ..on_policy import REWARD_SLOTS, RUBRIC_NEEDS, Rollout
from ..presets import Preset, quick, small
from ..recipe import Amount, DataNeed, Metric, Output, Recipe, RecipeConfig, Slot, StepSize, whole_number
from ..rewards import parts as rewards
from ..rewards.parts import AnyPart, JudgePart, RewardPart, expression_knob, parts_knob
from ..sections import phases
from ..sections.common import Evaluation
from ..sections.phase_kinds import UNCERTAIN_ROUNDS, RoundPhase, first_of_round
from ..sections.sampler import Sampler
from .dpo import REWARDS, DpoOptim, PairTerms
from .policy import Data, PolicyConfig


class RoundRollout(Section):
    """The samples of each round."""

    prompts_per_round: int = knob(32, "Prompts drawn at the beginning of a round", unit="prompts", ge=1, le=1_000_000)
    samples: int = knob(2, "Responses sampled per prompt", unit="responses", ge=2, le=64)
    max_new_tokens: int = knob(64, "Longest response; a longer one is cut", unit="tokens", ge=1, le=65536)
    temperature: float = knob(1.0, "Sampling temperature", gt=0, le=5)
    top_p: float = knob(1.0, "Nucleus: sample from the smallest set of tokens that has this probability", gt=0, le=1)
    stop: list[str] = knob([], "Texts that end a response", advanced=True)


class SampledPairs(Section):
    """The two samples of a prompt that become a pair, and the condition under which its label is believed."""

    choose: Literal["neighbours", "all", "extremes"] = knob(
        "neighbours",
        "Which samples make a pair. `neighbours`: the first with the second, the third with the fourth. `all`: every two samples. `extremes`: the sample "
        "with the highest reward and the sample with the lowest",
    )
    labels: Literal["both_orders", "one_order"] = knob(
        "both_orders",
        "For a judge that compares: keep only pairs with the same verdict in both orders, or take the verdict of the first order. The judge is asked "
        "in both orders in either case, so that its order bias is known",
    )
    margin: float = knob(
        0.0, "With a reward: the least lead of the better answer; a smaller lead is a tie", ge=0, le=1000
    )


class IterativeDpoConfig(RecipeConfig):
    """Sample pairs from the policy itself, find out which answer is better, raise it, and begin again."""

    phase_kind: ClassVar[type[phases.Phase] | None] = RoundPhase
    round_steps: int = knob(10, "Updates in a round; the next round samples from the new weights", unit="steps", ge=1)
    data: Data = Data()
    rollout: RoundRollout = RoundRollout()
    sampler: Sampler = Sampler()
    rewards: list[AnyPart] = parts_knob(
        "The source of the labels of pairs: a reward for each answer, or a judge that compares two (kind `judge`, protocol `pairwise`, against `sample`)"
    )
    reward_expression: str = expression_knob()
    pairs: SampledPairs = SampledPairs()
    batch_size: int = knob(16, "Pairs per step", unit="pairs", ge=1, le=65536)
    loss: PairTerms = PairTerms()
    reference: Literal["start", "round"] = knob(
        "start",
        "The reference of the loss: the model that the run began with, or the policy as it was when the round began",
    )
    optim: DpoOptim = DpoOptim()
    phases: list[RoundPhase] = phases.phases_knob()
    evaluation: Evaluation = Evaluation()

    def step_size(self) -> StepSize:
        """The responses of a round belong to all of its steps."""
        drawn = self.rollout.prompts_per_round * self.rollout.samples
        return StepSize(drawn / self.round_steps, self.rollout.max_new_tokens)

    @property
    def comparing(self) -> JudgePart | None:
        """The part that compares two samples; None if rewards decide."""
        return next((part for part in self.rewards if compares(part)), None)  # type: ignore[return-value]

    def sampling(self, parts: Sequence[RewardPart]) -> PolicyConfig:
        """The half of a run that samples answers and rewards them: a config of a policy run with these parts of the reward."""
        rollout = Rollout(
            prompts_per_step=self.rollout.prompts_per_round,
            group_size=self.rollout.samples,
            **self.rollout.model_dump(include={"max_new_tokens", "temperature", "top_p", "stop"}),
        )
        expression = self.reward_expression if any(not part.shadow for part in parts) else ""
        made = PolicyConfig(
            seed=self.seed,
            model=self.model,
            data=self.data,
            rollout=rollout,
            sampler=self.sampler,
            scaffold=None,
            reward_expression=expression,
        )
        changes = {"rewards": list(parts), "evaluation": made.evaluation.model_copy(update=dict(self.evaluation))}
        return made.model_copy(update=changes)

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        longest = self.rollout.max_new_tokens
        yield from rewards.problems(self.rewards, self.reward_expression, longest, "", False, sampled_pairs=True)
        yield from self.sampler.problems(self.model.lora is not None, "sync")
        yield from self._comparing_problems() if self.comparing else self._valuing_problems()
        yield from self._phase_problems()
        if self.data.order:
            for problem in self.data.order.problems():
                yield FieldProblem(f"data.order.{problem.path}", problem.message)
            if self.data.order.uncertain:
                yield FieldProblem("data.order.uncertain", f"{UNCERTAIN_ROUNDS} (set this to 0)")

    def _phase_problems(self) -> Iterator[FieldProblem]:
        yield from phases.problems(self.phases, self.steps, self.evaluation, self.round_steps)
        for place, phase in enumerate(self.phases):
            if phase.begins == "step" and (first := first_of_round(phase.step, self.round_steps)) != phase.step:
                yield FieldProblem(
                    f"phases.{place}.step",
                    f"a phase begins with a round, and step {phase.step} is in the middle of one; choose "
                    f"{first - self.round_steps} or {first}",
                )
            if phase.begins == "plateau" and not phase.by_evaluation and self.comparing:
                yield FieldProblem(
                    f"phases.{place}.metric",
                    "a judge that compares gives no reward that could reach a plateau; choose 'eval/score'",
                )
        if self.data.replicas > 1 and (mixed := next(phases.mixing(self.phases), "")):
            yield FieldProblem(
                "data.replicas", f"an order that is mixed ({mixed}) has each prompt once a round; set it to 1"
            )

    def _comparing_problems(self) -> Iterator[FieldProblem]:
        for i, part in enumerate(self.rewards):
            if compares(part) and part is not self.comparing:
                yield FieldProblem(f"rewards.{i}.against", "one part compares the samples already")
            elif compares(part) and part.shadow:
                yield FieldProblem(f"rewards.{i}.shadow", "this part labels the pairs, so it cannot be a shadow")
            elif not compares(part) and not part.shadow:
                yield FieldProblem(
                    f"rewards.{i}.shadow", "a judge that compares labels the pairs by itself; make this a shadow part"
                )
        if self.reward_expression.strip():
            yield FieldProblem("reward_expression", "a judge that compares labels the pairs by itself; leave it empty")
        if self.pairs.choose == "extremes":
            yield FieldProblem("pairs.choose", "'extremes' needs a reward of each answer; choose another")
        if self.pairs.margin:
            yield FieldProblem("pairs.margin", "a judge that compares gives no reward to lead by; set it to 0")

    def _valuing_problems(self) -> Iterator[FieldProblem]:
        if self.pairs.labels == "one_order":
            yield FieldProblem("pairs.labels", "no part of the reward compares two samples, so there are no orders")
        for i, part in enumerate(self.rewards):
            if getattr(part, "against", "") == "greedy":
                yield FieldProblem(
                    f"rewards.{i}.against", "rounds have no greedy answer; choose 'sample' or 'reference'"
                )

    def needs(self, declared: tuple[DataNeed, ...]) -> tuple[DataNeed, ...]:
        """If the reward needs no rubric, any prompt can be used."""
        return declared if rewards.needs_rubric(self.rewards, False) else (DataNeed("examples", "prompts"),)

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from rewards.data_problems(self.rewards, False, self.data.unjudged, counts)
        yield from phases.data_problems(self.phases, counts)
        if self.data.order:
            yield from self.data.order.data_problems(counts.get("train", {}))

    def holdings(self) -> Holdings:
        prompt, new = self.data.max_prompt_tokens, self.rollout.max_new_tokens
        responses = max(self.rollout.prompts_per_round * self.rollout.samples, self.evaluation.max_examples)
        return Holdings(2 * (prompt + new), sampling=self.sampler.sampling(prompt, new, responses))

    def memory_knobs(self) -> str:
        return (
            f"for the update, {', '.join(self._update_knobs())}; for sampling, lower sampler.max_batch (now "
            f"{self.sampler.max_batch}) or rollout.max_new_tokens (now {self.rollout.max_new_tokens})"
        )

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        steps, each = whole_number(raw, "steps"), whole_number(raw, "round_steps")
        prompts, samples = whole_number(raw, "rollout", "prompts_per_round"), whole_number(raw, "rollout", "samples")
        batch = whole_number(raw, "batch_size")
        rounds = -(-steps // each) if steps and each else None
        drawn = prompts * samples if prompts and samples else None
        return [
            Amount("Rounds", rounds, f"{steps or '–'} steps, {each or '–'} in each"),
            Amount("Responses per round", drawn, f"{prompts or '–'} prompts × {samples or '–'} responses"),
            Amount("Responses in all", drawn * rounds if drawn and rounds else None, f"over {rounds or '–'} rounds"),
            Amount(
                "Pairs trained on per round", each * batch if each and batch else None, "steps × pairs, repeats counted"
            ),
        ]


def compares(part: RewardPart) -> bool:
    """Whether the part is a judge that compares two samples of one prompt."""
    return isinstance(part, JudgePart) and part.against == "sample"


OUTCOME = (
    Metric(
        "eval/score",
        "Held-out score",
        "Score of greedy answers to prompts that are never trained on; the band is its 95% interval over prompts. With rewards: their mean. With a judge "
        "that compares: the share of comparisons won against the answers of the untrained model, each in both orders; a tie is half a win. It begins at "
        "0.5.",
        "outcome",
        better="higher",
        band="eval/score_se",
        band_times=1.96,
    ),
    Metric("eval/score_se", "Standard error of the held-out score", "Over prompts.", "outcome", optional=True),
    Metric(
        "eval/rubric_score",
        "Held-out rubric score",
        "Score of the same answers by the criteria with a verifier: met points over positive points. If the score by the labels rises and this falls, "
        "the policy games the labels.",
        "outcome",
        better="higher",
        optional=True,
    ),
    Metric(
        "eval/part/*",
        "Held-out parts",
        "Each part of the reward on the same answers, shadow parts too.",
        "outcome",
        chart="Held-out parts of the reward",
        optional=True,
    ),
    Metric(
        "train/loss",
        "Training loss",
        "Over the step's pairs, before its update. Each round begins with new pairs, so the value jumps there.",
        "outcome",
        unit="nats/pair",
        better="lower",
    ),
)
LABELS = (
    Metric(
        "label/round",
        "Round",
        "Which round the step belongs to; each round samples from the weights at its beginning.",
        "data",
    ),
    Metric(
        "label/kept",
        "Pairs kept",
        "Share of the round's pairs that are trained on. If it falls towards 0, answers have become alike, or the judge cannot distinguish them.",
        "data",
        better="higher",
        share=True,
    ),
    Metric(
        "label/pairs",
        "drawn",
        "Pairs of the round, and why some are not trained on.",
        "data",
        chart="Pairs",
        unit="pairs",
    ),
    Metric("label/ties", "ties", "", "data", chart="Pairs", unit="pairs"),
    Metric("label/equal", "of equal answers", "", "data", chart="Pairs", unit="pairs"),
    Metric("label/missing", "without a label", "", "data", chart="Pairs", unit="pairs"),
    Metric("label/inconsistent", "orders disagree", "", "data", chart="Pairs", unit="pairs", optional=True),
    Metric(
        "label/first_share",
        "Order bias",
        "Share of the judge's decided verdicts, in both orders, that choose the answer shown first. 0.5 means no bias.",
        "judge",
        share=True,
        optional=True,
    ),
    Metric(
        "label/margin",
        "Lead of the better answer",
        "Mean over the kept pairs: lead in reward, or the judge's strength of preference (1 better, 2 much better).",
        "data",
        optional=True,
    ),
    Metric(
        "label/agreement/*",
        "Labels and parts",
        "Share of the kept pairs that a part of the reward orders as the label does, among the pairs to which it gives different values. Shadow parts "
        "are included. With a part that you trust as a shadow, this is the precision of the labels.",
        "data",
        chart="Labels that agree with a part",
        better="higher",
        share=True,
        optional=True,
    ),
    Metric(
        "label/agreement_pairs/*",
        "Pairs that a part tells apart",
        "The data behind the share above.",
        "data",
        chart="Pairs that a part tells apart",
        unit="pairs",
        optional=True,
    ),
)
REWARD = (
    Metric("reward/mean", "Reward", "Mean over the round's answers.", "reward", better="higher", optional=True),
    Metric(
        "reward/*_excluded",
        "Lacking a part of the reward",
        "For each part of the reward, how many of the round's answers, or pairs, lack it.",
        "reward",
        chart="Lacking a part",
        unit="answers",
        optional=True,
    ),
    Metric(
        "reward/*",
        "Part of the reward",
        "Each part over the round's answers, shadow parts too.",
        "reward",
        chart="Parts of the reward",
        optional=True,
    ),
)
TRAINING = (
    Metric(
        "train/accuracy",
        "Training accuracy",
        "Share of the step's pairs whose preferred answer has the higher reward under the loss, before its update.",
        "train",
        better="higher",
        share=True,
        optional=True,
    ),
    Metric(
        "train/margin",
        "Training margin",
        "By how much the preferred answer's reward under the loss leads, on average, before the step's update.",
        "train",
        better="higher",
        optional=True,
    ),
    Metric(
        "train/epoch",
        "Passes over the round's pairs",
        "If there are many passes, draw more prompts per round, or take fewer steps in it.",
        "data",
        unit="epochs",
    ),
)
ANSWERS = (
    Metric(
        "rollout/length",
        "training",
        "Growth up to the limit usually means that the labels prefer longer answers.",
        "rollout",
        chart="Response length",
        unit="tokens",
    ),
    Metric("eval/length", "held-out", "", "rollout", chart="Response length", unit="tokens"),
    Metric(
        "rollout/truncated_share",
        "Truncated share",
        "Share of the round's answers cut at the limit.",
        "rollout",
        better="lower",
        share=True,
    ),
    Metric("eval/excluded", "Held-out answers without a score", "Missing is never 0.", "rollout", unit="responses"),
    Metric(
        "perf/rollout_tokens_per_s",
        "Tokens sampled per second",
        "Of the round's answers.",
        "speed",
        unit="tokens/s",
        better="higher",
    ),
    GENERATED,
)
_OWN = {metric.key for metric in TRAINING}

RECIPE = Recipe(
    name="iterative_dpo",
    title="Iterative preference optimisation",
    summary="The policy answers, a judge or a reward decides which of two answers is better, and the policy learns from that, round after round, on its "
    "own answers.",
    schema=IterativeDpoConfig,
    needs=RUBRIC_NEEDS,
    slots=(Slot("base", "model.name"), *REWARD_SLOTS),
    brief=("beta {loss.beta}", "{round_steps} steps a round"),
    measured_by=("evaluation.*", "rollout.max_new_tokens", "rewards.*.judge"),
    headline="eval/score",
    stats=("eval/score", "train/loss", "label/kept"),
    metrics=(
        *OUTCOME,
        *TRAINING,
        *(metric for metric in REWARDS if not metric.held_out),
        *REWARD,
        *JUDGE,
        *LABELS,
        *ANSWERS,
        *ROUND_PHASES,
        *(metric for metric in FITTING if metric.key not in _OWN),
    ),
    opened=("model", "rewards", "rollout", "pairs"),
    samples="pair",
    outputs=(Output("policy", "Policy"),),
    icon="refresh-cw",
    paper="Rafailov et al., 2023, Direct Preference Optimization; rounds with swap-consistent labels: Rubric-ARM, 2026",
    presets=(
        quick(
            steps=4, round_steps=2, batch_size=4, rollout={"prompts_per_round": 4, "samples": 2, "max_new_tokens": 32}
        ),
        Preset(
            "rubric_arm",
            "As in the paper: Rubric-ARM",
            "Two samples of each prompt, and a pair only if the judge prefers the same one in both orders. Batches of 64 pairs; all weights are trained. Choose "
            "the judge yourself.",
            {
                "model": {"lora": None},
                "rollout": {"samples": 2},
                "pairs": {"choose": "neighbours", "labels": "both_orders"},
                "batch_size": 64,
                "loss": {"beta": 0.1, "nll_weight": 0.2},
                "optim": {"lr": 8e-7},
            },
        ),
        small(batch_size=4, rollout={"prompts_per_round": 8, "samples": 2, "max_new_tokens": 64}),
    ),
    example={
        "steps": 3,
        "round_steps": 2,
        "rollout": {"prompts_per_round": 4, "samples": 4, "max_new_tokens": 8},
        "rewards": [{"kind": "format", "name": "letters", "form": "pattern", "pattern": "[^a-m]*"}],
        "batch_size": 2,
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
