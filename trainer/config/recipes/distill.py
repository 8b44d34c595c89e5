"""Recipe `distill`: the policy answers, and teachers give their log-probability for every token."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from trainer.contracts import Example

from ..errors import FieldProblem
from ..fields import Section, knob
from ..metrics import policy, ratios
from ..metrics.common import COMMON
from ..metrics.phases import PHASES
from ..objectives.policy import Distillation
from ..on_policy import OnPolicyConfig, PolicyEvaluation, PromptData, Rollout
from ..presets import Preset, few, quick, small
from ..recipe import Amount, DataNeed, Metric, Output, Recipe, Slot, whole_number
from ..rewards.parts import Composition
from ..sections.budget import PassRates
from ..sections.common import Model
from ..sections.order import Order
from ..sections.phase_kinds import DistillPhase
from ..sections.phases import Phase, phases_knob
from ..sections.well_learned import WellLearned

OTHERS = "others"
"""The default name of the stage for prompts that have no teacher of their own."""


class TeacherOf(Section):
    """A registered model and the prompts that it teaches."""

    model: str = knob(
        Model().name,
        "The model that teaches: the final model of a stage. It needs the tokenizer of the model that is trained",
        min_length=1,
        source="models",
    )
    stage: str = knob(
        "",
        "It teaches on the prompts of the stage with this name; empty: on all prompts that no other teacher has",
        max_length=200,
    )


class DistillData(PromptData):
    replicas: ClassVar[int] = 1  # type: ignore[misc]
    order: ClassVar[Order | None] = None  # type: ignore[misc]
    stage_by: Literal["domain", "source", "tag", "meta"] = knob(
        "domain",
        "The field in which a prompt names its stage, which decides its teacher: its `domain`, its `source`, one of its tags (`tag`), or `meta.stage` (`meta`)",
    )


class DistillEvaluation(PolicyEvaluation):
    temperature: float = knob(
        1.0,
        "Temperature at which held-out prompts are answered; 0 decodes greedily. The gap is defined for samples at temperature 1. Each evaluation uses "
        "the same random numbers",
        ge=0,
        le=5,
    )


class DistillConfig(OnPolicyConfig):
    """Sample, ask each prompt's own teacher, raise the tokens that the teacher finds more likely than the policy does."""

    phase_kind: ClassVar[type[Phase] | None] = DistillPhase
    pass_rates: ClassVar[PassRates] = PassRates()  # type: ignore[misc]
    well_learned: ClassVar[WellLearned | None] = None  # type: ignore[misc]
    data: DistillData = DistillData()
    teachers: list[TeacherOf] = knob(
        [TeacherOf()],
        "The teacher of a prompt is the first of these with the name of the prompt's stage",
        min_length=1,
        max_length=50,
    )
    rollout: Rollout = Rollout(prompts_per_step=32, group_size=1)
    objective: Distillation = Distillation()  # type: ignore[assignment]
    phases: list[DistillPhase] = phases_knob()  # type: ignore[assignment]
    evaluation: DistillEvaluation = DistillEvaluation()

    @property
    def composition(self) -> Composition:
        """No reward: verifiers score held-out answers, and this score is only measured."""
        return Composition(())

    @property
    def teachers_held(self) -> int:
        return len({teacher.model for teacher in self.teachers})

    def stage_of(self, example: Example) -> tuple[str, int | None]:
        """The name of an example's stage, and the place of its teacher; None if it has no teacher."""
        named = example.meta.get("stage")
        names = {
            "domain": (example.domain,),
            "source": (example.source,),
            "tag": example.tags,
            "meta": (named if isinstance(named, str) else "",),
        }[self.data.stage_by]
        for place, teacher in enumerate(self.teachers):
            if teacher.stage and teacher.stage in names:
                return teacher.stage, place
        rest = next((place for place, teacher in enumerate(self.teachers) if not teacher.stage), None)
        return (names[0] if names and self.data.stage_by != "tag" else "") or OTHERS, rest

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        seen: dict[str, int] = {}
        for place, teacher in enumerate(self.teachers):
            if teacher.stage in seen:
                other = f"teacher {seen[teacher.stage] + 1}"
                why = f"the stage {teacher.stage!r} has {other}" if teacher.stage else f"the other prompts have {other}"
                yield FieldProblem(f"teachers.{place}.stage", f"{why} already")
            seen.setdefault(teacher.stage, place)
        if self.runner.kind == "offline":
            yield FieldProblem(
                "runner.kind",
                "on-policy distillation learns from responses that the policy samples now; choose 'sync' or 'async'",
            )
        if self.optim.processes > 1:
            yield FieldProblem(
                "optim.processes",
                "the gap is measured where one process holds the whole model; set it to 1, or distil one teacher by recipe "
                "policy with objective 'distill'",
            )

    def memory_knobs(self) -> str:
        found = super().memory_knobs()
        return f"take fewer teachers at once; {found}" if self.teachers_held > 1 else found

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        teachers = raw.get("teachers")
        models = (
            {each.get("model") for each in teachers if isinstance(each, Mapping)} if isinstance(teachers, list) else ()
        )
        each = whole_number(raw, "rollout", "prompts_per_step")
        return [
            *super().amounts(raw),
            Amount("Teachers", len(models) or None, "models that are in memory beside the one that is trained"),
            Amount(
                "Passes of teachers per step",
                each and each * (whole_number(raw, "rollout", "group_size") or 1),
                "one for each response",
            ),
        ]


_GAP = (
    "KL of the policy to the prompt's own teacher over the whole vocabulary, as a mean over the tokens of an answer and then over answers. It is exact, "
    "never negative, and 0 if the two agree."
)
_NOT_DECLARED = (
    "rollout/excluded",
    "eval/excluded",
    "rollout/flat_groups",
    "rollout/replaced_groups",
    "rollout/largest_group",
    "rollout/smallest_group",
    "rollout/solved",
    "rollout/learnable",
    "rollout/out_of_reach",
)
OUTCOME = (
    Metric(
        "eval/gap",
        "Held-out gap",
        f"{_GAP} On answers to prompts that are never trained on; the band is its 95% interval over prompts. Healthy: falls "
        "fast, then reaches a plateau above 0 where the policy is smaller than its teachers or they disagree.",
        "outcome",
        unit="nats/token",
        better="lower",
        band="eval/gap_se",
        band_times=1.96,
        count="eval/measured",
    ),
    Metric("eval/gap_se", "Standard error of the held-out gap", "Over prompts.", "outcome", optional=True),
    Metric(
        "eval/gap/*",
        "Held-out gap by stage",
        "The same for the held-out prompts of each stage, if there are 2 to 20 stages. If a stage falls behind, give it more prompts, or look at what "
        "its teacher says.",
        "outcome",
        chart="Held-out gap by stage",
        unit="nats/token",
        better="lower",
        optional=True,
    ),
    Metric(
        "policy/kl_teacher",
        "Gap in training",
        "Mean over the step's tokens of the policy's log-probability less its teacher's: an estimate of the same gap from the sampled tokens alone. The "
        "step learns from it. It varies a lot from step to step, and can be below 0.",
        "outcome",
        unit="nats/token",
        better="lower",
    ),
    Metric(
        "gap/*",
        "Gap in training by stage",
        "The same for the step's prompts of each stage.",
        "outcome",
        chart="Gap in training by stage",
        unit="nats/token",
        better="lower",
        optional=True,
    ),
    *(replace(each, optional=True) for each in policy.RUBRIC_SCORE if "clipped" not in each.key),
    Metric(
        "eval/stage/*",
        "Held-out score by stage",
        "Mean rubric score of the held-out answers of each stage, by the criteria that verifiers decide. It shows how skills that a later stage has "
        "forgotten come back.",
        "outcome",
        chart="Held-out score by stage",
        better="higher",
        optional=True,
    ),
    Metric(
        "eval/measured",
        "Held-out answers measured",
        "Held-out answers behind the gap; an answer without a token has no gap.",
        "data",
        optional=True,
    ),
)
METRICS = (
    *OUTCOME,
    *policy.POLICY,
    *(each for each in ratios.RATIOS if each.key not in ("policy/kl_teacher", "policy/log_ratio", "policy/penalty")),
    *(each for each in policy.ROLLOUT if each.key not in _NOT_DECLARED),
    *(each for each in PHASES if each.key in ("rollout/temperature", "rollout/pool", "phase/number")),
    Metric("eval/excluded", "Held-out answers without a score", "Missing is never 0.", "rollout", unit="responses"),
    *policy.WORKERS,
    *policy.SPEED,
    *COMMON,
)
RECIPE = Recipe(
    name="distill",
    title="On-policy distillation",
    summary="The policy answers, and the prompt's own teacher gives its probability for every token. Needs no rewards; several stages become one model.",
    schema=DistillConfig,
    needs=(DataNeed("examples", "prompts"),),
    slots=(Slot("base", "model.name"), Slot("teacher", "teachers.*.model")),
    brief=("{data.stage_by}",),
    measured_by=("evaluation.*", "rollout.max_new_tokens", "rollout.temperature", "teachers.*.model"),
    headline="eval/gap",
    otherwise=("policy/kl_teacher",),
    stats=("policy/kl_teacher", "eval/rubric_score", "policy/entropy", "rollout/length"),
    metrics=METRICS,
    histograms=policy.HISTOGRAMS,
    samples="rollout",
    opened=("model", "teachers", "data", "rollout"),
    outputs=(Output("policy", "Policy"),),
    icon="flask-conical",
    paper="GLM-5, 2026: cross-stage distillation, on-policy, with each prompt's own stage as its teacher",
    presets=(
        quick(rollout=few(prompts=4, group=1)),
        Preset(
            "glm5",
            "As in the paper: GLM-5",
            "One response to each of 1,024 prompts in a step, and IcePop with the teacher's advantage. A step takes long on a small machine.",
            {
                "rollout": {"prompts_per_step": 1024, "group_size": 1},
                "objective": {"pop_high": 2.0, "eps_low": 0.2, "eps_high": 0.28},
            },
        ),
        small(rollout=few(prompts=8, group=1, tokens=64)),
    ),
    example={
        "steps": 3,
        "rollout": {"prompts_per_step": 4, "group_size": 1, "max_new_tokens": 8},
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
