"""Recipe `rubric_writer`: a model learns to write rubrics that rank answers as people do."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from trainer.contracts.rubric import RubricForm

from ..errors import FieldProblem
from ..fields import knob
from ..metrics import policy as policy_metrics
from ..metrics import writer as writer_metrics
from ..on_policy import OnPolicyConfig, PromptData, Rollout
from ..preferences import NEEDS, scale_knob
from ..presets import Preset, few, quick, small
from ..recipe import Output, Recipe, Slot
from ..rewards.base import PRECISION_AT, Matcher, MatcherPrecision, TaskJudges, precision_knob
from ..rewards.parts import Composition, RewardPart
from ..rewards.writer import RubricChoicePart, RubricFormPart, RubricPreferencePart, RubricQualityPart, RubricRecallPart

Trial = Literal["likert", "criterion", "checklist", "choice", "words"]
ASKS = ("likert", "criterion", "checklist", "choice")
JUDGE_AT, QUALITY_AT, MATCHED_AT = "reward.judge", "reward.quality_judge", "reward.matching_judge"
FORM = (
    "The form of a rubric: `mams` weighted items, `rubric_arm` hard rules and principles, `openrubrics` a checklist of four levels, `touchstone` our own "
    "JSON. Judges of kind `rubric_generator` ask the same question in this form, so the trained model can be used as such a generator directly"
)


class WriterData(PromptData):
    """The prompts for which rubrics are written, and their form."""

    max_prompt_tokens: int = knob(
        2048, "Pairs whose question is longer are left out and counted", unit="tokens", ge=8, le=131072
    )
    form: RubricForm = knob("mams", FORM)
    min_items: int = knob(
        7, "The prompt asks for at least this many items; the reward does not depend on it", unit="items", ge=1, le=50
    )
    max_items: int = knob(
        20, "The prompt asks for at most this many items; the reward does not depend on it", unit="items", ge=1, le=50
    )
    reference: bool = knob(
        False,
        "Show the example's reference answer, if there is one. A writer trained with this also needs a reference answer when you use it",
    )
    scale: str = scale_knob()


class WriterReward(TaskJudges):
    """The reward of a written rubric."""

    by: Trial = knob(
        "words",
        "How a rubric is tried on a pair that people compared. `likert`, `criterion`, `checklist`: a judge of that kind scores each answer alone by the "
        "rubric. The rubric earns 1 if the preferred answer scores higher, else -1 (MaMs). `choice`: a judge compares the two answers by the rubric. The "
        "rubric earns 1 if the judge chooses the preferred answer, else 0 (Rubric-ARM). `words`: as the first, but an item counts by how many of its "
        "words occur in the answer; no judge is asked",
    )
    judge: str = knob(
        "",
        "The frozen judge that uses the rubric, such as `Grader v2`. It must be of the kind that `by` names; for `choice`, of kind pairwise with rubric",
        source="judge_names:likert,criterion,checklist,pairwise_rubric",
        when=("by", ASKS),
    )
    preference_weight: float = knob(
        1.0, "Factor for what the trial on the pair earns; 0: it is only measured", ge=0, le=100
    )
    quality_judge: str = knob(
        "",
        "A judge of kind rubric quality that gives the rubric itself 0 to 4; empty: rubrics get no such grade",
        source="judge_names:rubric_quality",
    )
    quality_words: list[str] = knob(
        [],
        "Instead of a judge of rubrics: words that are good criteria. A rubric has a point for each criterion that is one of them, at most 4. It is for tasks "
        "whose criteria are words, as in the constructed task of the claim `mams`",
        max_length=1000,
        advanced=True,
    )
    quality_weight: float = knob(1.0, "Factor for the rubric's quality; 0: it is only measured", ge=0, le=100)
    format_weight: float = knob(
        1.0,
        "Penalty of a rubric that does not have the requested form; 0: the form is only measured, as in Rubric-ARM",
        ge=0,
        le=100,
    )
    matcher: Matcher = knob(
        "embeddings",
        "How to find the human criterion that a written criterion repeats, if people have written a rubric: by `embeddings` of the installed MiniLM, by "
        "the `words` that both have, or by a `judge` version of kind rubric matcher. It is measured and never rewarded",
        advanced=True,
    )
    matcher_precision: MatcherPrecision = precision_knob()
    matching_judge: str = knob(
        "",
        "The judge that matches criteria, such as `Matcher v2`. If it cannot be asked, training continues without its numbers",
        source="judge_names:rubric_matcher",
        when=("matcher", ("judge",)),
        advanced=True,
    )


class RubricWriterConfig(OnPolicyConfig):
    """Sample rubrics, try them on pairs that people compared, update the writer; evaluate on held-out pairs."""

    asks_of_pairs: ClassVar[bool] = True
    data: WriterData = WriterData()
    rollout: Rollout = Rollout(max_new_tokens=512)
    reward: WriterReward = WriterReward()

    @property
    def composition(self) -> Composition:
        """`l_pref R_pref + l_llm R_llm + R_fmt`; a part with the weight 0 is only measured."""
        reward, form = self.reward, self.data.form
        parts: list[RewardPart] = [self._trial(), RubricFormPart(form=form, **_paid(reward.format_weight))]
        if reward.quality_judge or reward.quality_words:
            quality = {**_paid(reward.quality_weight), **reward.asking, "judge": reward.quality_judge}
            parts.append(RubricQualityPart(form=form, words=tuple(reward.quality_words), **quality))
        matching = {**reward.asking, "on_missing": "exclude", "matcher": reward.matcher, "judge": reward.matching_judge}
        matching["matcher_precision"] = reward.matcher_precision
        parts.append(RubricRecallPart(form=form, shadow=True, **matching))
        return Composition(tuple(parts))

    def asked_as(self, role: str) -> dict[str, Any] | None:
        items = {"min_items": self.data.min_items, "max_items": self.data.max_items}
        sampling = {"max_tokens": self.rollout.max_new_tokens}
        return {"kind": "rubric_generator", "form": self.data.form, **items, "sampling": sampling}

    def asking(self, path: str) -> RewardPart | None:
        asked = {JUDGE_AT: ("preference", "choice"), QUALITY_AT: ("quality",), MATCHED_AT: ("recall",)}.get(path, ())
        return next((part for part in self.composition.parts if part.name in asked), None)

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        reward, data = self.reward, self.data
        if reward.by in ASKS and not reward.judge:
            yield FieldProblem(JUDGE_AT, "name the judge that uses the rubrics, or choose 'words', which asks nobody")
        if reward.matcher == "judge" and not reward.matching_judge:
            yield FieldProblem(MATCHED_AT, "name the judge that matches criteria, or choose another matcher")
        if data.min_items > data.max_items:
            yield FieldProblem("data.max_items", f"must not be below data.min_items, which is {data.min_items}")
        if reward.quality_judge and reward.quality_words:
            yield FieldProblem(
                "reward.quality_words", "name the judge of rubrics or the words, and leave the other empty"
            )
        if reward.by in ASKS and reward.quality_judge and reward.quality_judge == reward.judge:
            yield FieldProblem(QUALITY_AT, "a judge is only one of the two kinds; name another one")
        if not any(not part.shadow for part in self.composition.parts):
            yield FieldProblem(
                "reward.preference_weight", "all weights are 0, so nothing is trained; give one of them a value"
            )

    def _trial(self) -> RewardPart:
        reward, form = self.reward, self.data.form
        told = {**_paid(reward.preference_weight), **reward.asking, "form": form}
        if reward.by == "choice":
            return RubricChoicePart(judge=reward.judge, **told)
        return RubricPreferencePart(by=reward.by, judge=reward.judge if reward.by in ASKS else "", **told)


def _paid(weight: float) -> dict[str, Any]:
    """A part as a factor in the sum. A part with the weight 0 is a shadow, so it needs no value."""
    return {"weight": weight or 1.0, "shadow": not weight}


RECIPE = Recipe(
    name="rubric_writer",
    title="Rubric writer",
    summary="A model learns to write rubrics. A rubric is rewarded if it ranks two answers as people did, for its own quality, and for its form.",
    schema=RubricWriterConfig,
    needs=NEEDS,
    slots=(
        Slot("base", "model.name"),
        Slot("teacher", "objective.teacher", when=("name", ("distill",))),
        Slot("judge", JUDGE_AT, "judge", when=("by", ASKS)),
        Slot("quality_judge", QUALITY_AT, "judge"),
        Slot("matcher", MATCHED_AT, "judge", when=("matcher", ("judge",))),
    ),
    brief=("{data.form}", "by {reward.by}"),
    measured_by=(
        "evaluation.*",
        "rollout.max_new_tokens",
        "data.form",
        "reward.by",
        "reward.judge",
        "reward.matcher",
        PRECISION_AT,
        MATCHED_AT,
    ),
    headline="eval/preference_accuracy",
    otherwise=("eval/reward",),
    stats=("eval/cohens_d", "eval/rubric_f1", "reward/mean", "writing/format_rate"),
    metrics=(*writer_metrics.METRICS, *policy_metrics.ON_POLICY),
    histograms=policy_metrics.HISTOGRAMS,
    samples="rollout",
    opened=("model", "data", "reward", "rollout"),
    outputs=(Output("rubric_writer", "Rubric writer"),),
    icon="list-checks",
    paper="MaMs, 2026, and Rubric-ARM, 2026: rubric generators trained with reinforcement learning from preferences",
    presets=(
        quick(rollout=few(tokens=64)),
        Preset(
            "mams",
            "As in the paper: MaMs",
            "Rubrics of 7 to 20 weighted items. A rubric earns 1 if the preferred answer scores higher by it, else -1; what a judge of rubrics gives is added, and "
            "a wrong form costs 1. Choose the judges yourself.",
            {
                "data": {"form": "mams", "min_items": 7, "max_items": 20},
                "reward": {"preference_weight": 1.0, "quality_weight": 1.0, "format_weight": 1.0},
            },
        ),
        Preset(
            "rubric_arm",
            "As in the paper: Rubric-ARM",
            "The writer's half: 48 pairs with 6 rubrics each, of at most 512 tokens, GRPO with a small KL penalty, and no reward for the form. All weights are "
            "trained. Let a judge of kind pairwise with rubric choose by the rubric.",
            {
                "data": {"form": "rubric_arm"},
                "reward": {"format_weight": 0.0},
                "model": {"lora": None},
                "rollout": {"prompts_per_step": 48, "group_size": 6, "max_new_tokens": 512},
                "objective": {"name": "grpo", "eps_low": 0.2, "eps_high": 0.28, "kl_beta": 0.001},
                "optim": {"lr": 1e-6},
            },
        ),
        small(rollout=few(prompts=4, group=4, tokens=256)),
    ),
    example={
        "steps": 3,
        "data": {"form": "rubric_arm"},
        "reward": {"by": "words", "matcher": "words"},
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
