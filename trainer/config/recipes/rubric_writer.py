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
from ..recipe import Output, Recipe, Slot
from ..rewards.base import PRECISION_AT, Matcher, MatcherPrecision, TaskJudges, precision_knob
from ..rewards.parts import Composition, RewardPart
from ..rewards.writer import RubricChoicePart, RubricFormPart, RubricPreferencePart, RubricQualityPart, RubricRecallPart

Trial = Literal["likert", "criterion", "checklist", "choice", "words"]
ASKS = ("likert", "criterion", "checklist", "choice")
JUDGE_AT, QUALITY_AT, MATCHED_AT = "reward.judge", "reward.quality_judge", "reward.matching_judge"
FORM = (
    "How a rubric is written down: `mams` weighted items, `rubric_arm` hard rules and principles, `openrubrics` a checklist "
    "of four levels, `touchstone` our own JSON. The question is the very one that judges of kind `rubric_generator` ask in "
    "this form, so that the trained model is such a generator as it stands"
)


class WriterData(PromptData):
    """The prompts for which rubrics are written, and their form."""

    max_prompt_tokens: int = knob(
        2048, "Pairs whose question is longer are left out and counted", unit="tokens", ge=8, le=131072
    )
    form: RubricForm = knob("mams", FORM)
    min_items: int = knob(7, "Fewest items that are asked for; asked, not rewarded", unit="items", ge=1, le=50)
    max_items: int = knob(20, "Most items that are asked for; asked, not rewarded", unit="items", ge=1, le=50)
    reference: bool = knob(
        False, "Show the example's reference answer, where there is one. Whoever uses the writer must have one, too"
    )
    scale: str = scale_knob()


class WriterReward(TaskJudges):
    """The reward of a written rubric."""

    by: Trial = knob(
        "words",
        "How a rubric is tried on a pair that people compared. `likert`, `criterion`, `checklist`: a judge of that kind scores "
        "both answers by it, each by itself, and the rubric earns 1 where the preferred one scores higher, else -1 (MaMs). "
        "`choice`: a judge compares the two by it, and it earns 1 where that judge chooses the preferred one, else 0 "
        "(Rubric-ARM). `words`: as the first, but an item counts by how many of its words stand in the answer; asks nobody",
    )
    judge: str = knob(
        "",
        "The frozen judge that uses the rubric, such as `Grader v2`: of the kind `by` names, or pairwise with rubric for "
        "`choice`",
        source="judge_names:likert,criterion,checklist,pairwise_rubric",
        when=("by", ASKS),
    )
    preference_weight: float = knob(
        1.0, "Factor of what the trial on the pair earns; 0: it is only measured", ge=0, le=100
    )
    quality_judge: str = knob(
        "",
        "A judge of kind rubric quality that gives the rubric itself 0 to 4; empty: nobody does",
        source="judge_names:rubric_quality",
    )
    quality_weight: float = knob(
        1.0, "Factor of the rubric's quality; 0: it is only measured", ge=0, le=100, when=("quality_judge", ())
    )
    format_weight: float = knob(
        1.0,
        "What a rubric loses that has not its form; 0: it is only measured, as in Rubric-ARM",
        ge=0,
        le=100,
    )
    matcher: Matcher = knob(
        "embeddings",
        "What finds the human criterion that a written one repeats, where people have written a rubric; measured, never "
        "rewarded: `embeddings` of the installed MiniLM, the `words` that both have, or a `judge` version of kind rubric matcher",
        advanced=True,
    )
    matcher_precision: MatcherPrecision = precision_knob()
    matching_judge: str = knob(
        "",
        "The judge that matches criteria, such as `Matcher v2`. Where it cannot be asked, training goes on without its numbers",
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
        if reward.quality_judge:
            quality = {**_paid(reward.quality_weight), **reward.asking, "judge": reward.quality_judge}
            parts.append(RubricQualityPart(form=form, **quality))
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
            yield FieldProblem("data.max_items", f"below data.min_items, which is {data.min_items}")
        if reward.by in ASKS and reward.quality_judge and reward.quality_judge == reward.judge:
            yield FieldProblem(QUALITY_AT, "no judge is of both kinds; name another one")
        if not any(not part.shadow for part in self.composition.parts):
            yield FieldProblem(
                "reward.preference_weight", "nothing is left to train on; give one of the weights a value"
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
    summary="A model learns to write rubrics: rewarded where its rubric ranks two answers as people did, for the rubric's own "
    "quality, and for its form.",
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
    example={
        "steps": 3,
        "data": {"form": "rubric_arm"},
        "reward": {"by": "words", "matcher": "words"},
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
