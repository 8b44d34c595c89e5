"""Recipe `judge`: a generative reward model learns to judge pairs, for the right reasons."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from ..errors import FieldProblem
from ..fields import knob
from ..metrics import judge as judge_metrics
from ..metrics import policy as policy_metrics
from ..on_policy import OnPolicyConfig, PromptData, Rollout
from ..preferences import NEEDS, scale_knob
from ..presets import Preset, few, quick, small
from ..recipe import DataNeed, Output, Recipe, Slot
from ..rewards.base import PRECISION_AT, Matcher, MatcherPrecision, TaskJudges, precision_knob
from ..rewards.parts import Composition, RewardPart
from ..rewards.tasks import FlawsPart, JudgementForm, OutcomePart, RationalePart, WellFormedPart

Arm = Literal["outcome", "rationale", "hybrid"]
MATCHED_AT, FLAWS_AT = "reward.matching_judge", "reward.flaws_judge"


class PairData(PromptData):
    """The pairs that are judged, and the form of the question."""

    max_prompt_tokens: int = knob(
        2048, "Pairs whose question is longer are left out and counted", unit="tokens", ge=8, le=131072
    )
    scale: str = scale_knob()
    reasons_at_least: int = knob(
        0,
        "Pairs with fewer human reasons are left out and counted. An arm that rewards reasons always leaves out pairs without any",
        unit="reasons",
        ge=0,
        le=100,
    )
    reasons_at_most: int | None = knob(
        None, "Pairs with more human reasons are left out and counted; empty: no limit", unit="reasons", ge=1, le=1000
    )
    form: JudgementForm = knob(
        "json",
        "`json`: the question that judges of kind `pairwise` with five verdicts ask, so that the trained model can be used as such a judge directly. "
        "`lines`: a short question, answered in lines, for models that are too small for JSON",
    )


class JudgementReward(TaskJudges):
    """The reward of a judgement."""

    arm: Arm = knob(
        "hybrid",
        "`outcome`: 1 if the verdict agrees with people. `rationale`: the average precision of its reasons, compared with those of people. `hybrid`: the "
        "product of both, so that a verdict earns something only with the right reasons",
    )
    form: float = knob(
        0.0, "Additional reward of a judgement in the requested form; 0: the form is only measured", ge=0, le=10
    )
    matcher: Matcher = knob(
        "embeddings",
        "How to find the human reason that a reason repeats: by `embeddings` of the installed MiniLM, by the `words` that both have, or by a `judge` "
        "version of kind reason matcher",
    )
    matcher_precision: MatcherPrecision = precision_knob()
    matching_judge: str = knob(
        "",
        "The judge that matches reasons, such as `Matcher v2`. It is asked about every judgement of a pair with human reasons",
        source="judge_names:reason_matcher",
        when=("matcher", ("judge",)),
    )
    threshold: float = knob(
        0.5,
        "Above this score, from 0 to 1, a reason counts as the human one; 0.5 is the matcher's own threshold",
        ge=0,
        lt=1,
    )
    flaws_judge: str = knob(
        "",
        "A judge of kind reason classes and flaws. It tags every reason by what it rests on and by its flaws, F1 to F7. The tags are measured and never "
        "rewarded. Empty: reasons are not tagged",
        source="judge_names:flaws",
    )


class JudgeConfig(OnPolicyConfig):
    """Sample judgements of pairs, reward verdict and reasons, update the judge; evaluate in both orders."""

    asks_of_pairs: ClassVar[bool] = True
    data: PairData = PairData()
    rollout: Rollout = Rollout(max_new_tokens=256)
    reward: JudgementReward = JudgementReward()

    @property
    def composition(self) -> Composition:
        """Every part is measured. A part that the arm does not reward is a shadow."""
        reward, form = self.reward, self.data.form
        matching: dict[str, Any] = {
            "matcher": reward.matcher,
            "matcher_precision": reward.matcher_precision,
            "judge": reward.matching_judge,
            "threshold": reward.threshold,
        }
        paid = {"outcome": ["outcome"], "rationale": ["rationale"], "hybrid": ["outcome", "rationale"]}[reward.arm]
        parts: list[RewardPart] = [
            OutcomePart(form=form, shadow="outcome" not in paid),
            RationalePart(form=form, shadow="rationale" not in paid, **matching, **reward.asking),
            WellFormedPart(form=form, shadow=not reward.form),
        ]
        if reward.flaws_judge:
            # training needs no tags, so it does not wait for them
            asking = {**reward.asking, "on_missing": "exclude"}
            parts.append(FlawsPart(form=form, shadow=True, judge=reward.flaws_judge, **asking))
        more = [f"{reward.form!r} * form"] if reward.form else []
        return Composition(tuple(parts), " + ".join([" * ".join(paid), *more]))

    def asking(self, path: str) -> RewardPart | None:
        asked = {MATCHED_AT: "rationale", FLAWS_AT: "flaws"}.get(path)
        return next((part for part in self.composition.parts if part.name == asked), None)

    @property
    def needs_reasons(self) -> bool:
        """Whether a pair without human reasons has no reward."""
        return self.reward.arm != "outcome"

    def asked_as(self, role: str) -> dict[str, Any] | None:
        sampling = {"max_tokens": self.rollout.max_new_tokens}
        return {"kind": "pairwise", "scale": "five", "form": self.data.form, "sampling": sampling}

    def needs(self, declared: tuple[DataNeed, ...]) -> tuple[DataNeed, ...]:
        return tuple(map(_with_reasons, declared)) if self.needs_reasons else declared

    @classmethod
    def suited(cls, counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        return {} if counts["train"].get("reasoned_pairs") else {"reward": {"arm": "outcome"}}

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        reward, most = self.reward, self.data.reasons_at_most
        if reward.matcher == "judge" and not reward.matching_judge:
            yield FieldProblem(MATCHED_AT, "name the judge that matches reasons, or choose another matcher")
        if most is not None and most < max(self.data.reasons_at_least, 1):
            yield FieldProblem(
                "data.reasons_at_most",
                f"must not be below data.reasons_at_least, which is {self.data.reasons_at_least}",
            )


def _with_reasons(need: DataNeed) -> DataNeed:
    """The pairs from which an arm with reasons can learn."""
    return replace(need, count="reasoned_pairs", words="pairs with human reasons")


RECIPE = Recipe(
    name="judge",
    title="Judge of pairs",
    summary="A model learns to say which of two answers is better, and why. It is rewarded for the verdicts of people, for their reasons, or for both "
    "together.",
    schema=JudgeConfig,
    needs=NEEDS,
    slots=(
        Slot("base", "model.name"),
        Slot("teacher", "objective.teacher", when=("name", ("distill",))),
        Slot("matcher", MATCHED_AT, "judge", when=("matcher", ("judge",))),
        Slot("flaws_judge", FLAWS_AT, "judge"),
    ),
    brief=("{reward.arm}", "{objective.name}"),
    measured_by=(
        "evaluation.*",
        "rollout.max_new_tokens",
        "data.form",
        "reward.matcher",
        PRECISION_AT,
        MATCHED_AT,
        "reward.threshold",
    ),
    headline="eval/accuracy",
    stats=("eval/rc", "eval/consistent", "reward/mean", "judging/accuracy"),
    metrics=(*judge_metrics.METRICS, *policy_metrics.ON_POLICY),
    histograms=policy_metrics.HISTOGRAMS,
    traces=judge_metrics.TRACES,
    samples="judgement",
    opened=("model", "data", "reward", "rollout"),
    outputs=(Output("judge", "Judge"),),
    icon="scale",
    paper="Rationale Consistency / MetaJudge, 2025: generative reward models rewarded by AP x outcome",
    presets=(
        quick(rollout=few(tokens=64)),
        Preset(
            "rationale",
            "As in the paper: Rationale Consistency",
            "A verdict earns something only with the reasons of people (hybrid). Pairs with 3 to 7 reasons, 32 pairs with 8 judgements each, two updates a step "
            "with GSPO, and all weights are trained. The paper's judgements have up to 12,000 tokens: set the longest that your model can write.",
            {
                "data": {"reasons_at_least": 3, "reasons_at_most": 7},
                "reward": {"arm": "hybrid"},
                "model": {"lora": None},
                "rollout": {"prompts_per_step": 32, "group_size": 8, "max_new_tokens": 256},
                "objective": {"name": "gspo", "eps_low": 2e-4, "eps_high": 2e-4},
                "optim": {"lr": 2e-6, "minibatch_size": 128},
            },
        ),
        Preset(
            "outcome",
            "Verdicts alone",
            "The baseline of the paper: only the verdict earns something, and reasons earn nothing.",
            {"reward": {"arm": "outcome"}},
        ),
        small(rollout=few(prompts=4, group=4, tokens=128)),
    ),
    example={
        "steps": 3,
        "data": {"form": "lines"},
        "reward": {"arm": "outcome", "form": 0.5, "matcher": "words"},
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
