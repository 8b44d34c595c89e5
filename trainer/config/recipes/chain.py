"""Recipe `chain`: one run with several stages: reinforce, imitate the best of the policy's own answers, distil earlier stages."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import ValidationError

from trainer.contracts.rollout_examples import WantedResponses

from ..errors import FieldProblem
from ..fields import Section, knob
from ..memory_inventory import Holdings
from ..metrics import policy
from ..metrics.supervised import FITTING
from ..objectives.policy import Distillation, Grpo, Objective
from ..on_policy import REWARD_SLOTS, RUBRIC_NEEDS, PolicyEvaluation, PolicyOptim, Rollout
from ..presets import Preset, few, quick, small
from ..recipe import Amount, DataNeed, Metric, Output, Recipe, RecipeConfig, Slot, whole_number
from ..rewards import parts
from ..rewards.parts import AnyPart, RewardPart, expression_knob, parts_knob
from ..sections.phases import Line, never_entered
from ..sections.sampler import Sampler
from .distill import OUTCOME as GAPS
from .distill import DistillConfig, TeacherOf
from .policy import Data, PolicyConfig

Does = Literal["reinforce", "imitate", "distil"]


class PlannedStage(Section):
    """A stage: what the run does for some steps."""

    do: Does = knob(
        "reinforce",
        "`reinforce`: learn from rewards. `imitate`: answer, keep the answers that pass the filters, and imitate them (rejection sampling, then "
        "supervised). `distil`: learn from the policies of earlier stages; each prompt has its own teacher",
    )
    steps: int = knob(
        20, "Steps of this stage; the last stage lasts until the end of the run", unit="steps", ge=1, le=10_000_000
    )
    domain: str = knob(
        "",
        "Only prompts of this domain; empty: all prompts",
        max_length=200,
    )
    begin: Literal["before", "start"] = knob(
        "before", "Which weights the stage begins with: those of the stage before, or those that the run began with"
    )

    @property
    def what(self) -> str:
        where = f" on {self.domain}" if self.domain else ""
        anew = ", from the start's weights" if self.begin == "start" else ""
        return f"{self.do}{where}{anew}"


class Imitation(Section):
    """The samples that a stage of imitation takes at its beginning, and the filters that decide which stay, in this order."""

    prompts: int = knob(64, "Prompts that are answered", unit="prompts", ge=1, le=1_000_000)
    responses: int = knob(4, "Responses to each prompt", unit="responses", ge=1, le=256)
    shortest: int = knob(
        0, "Leave out shorter responses; repeated ones are always left out", unit="characters", ge=0, le=1_000_000
    )
    whole: bool = knob(True, "Leave out responses that were cut")
    form: Literal["", "tags", "json", "pattern"] = knob("", "Leave out responses without this form", advanced=True)
    form_of: str = knob(
        "",
        "Names of the tags, or of the keys of the object, separated by blanks; or an expression that matches the whole",
        max_length=500,
        when=("form", ("tags", "json", "pattern")),
        advanced=True,
    )
    correct: float | None = knob(
        None, "The share of the criteria with a verifier that must be right; empty: any share", ge=0, le=1
    )
    least: float | None = knob(None, "Leave out responses with a lower reward; empty: any reward is enough")
    best: int = knob(
        1,
        "Keep this many responses for each prompt, those with the highest reward; 0: keep all that pass",
        unit="responses",
        ge=0,
        le=256,
    )
    batch_size: int = knob(16, "Kept responses from which one step learns", unit="responses", ge=1, le=65536)

    @property
    def wanted(self) -> WantedResponses:
        names = ("shortest", "whole", "form", "form_of", "correct", "least", "best")
        return WantedResponses(**{name: getattr(self, name) for name in names})


class DistilSteps(Section):
    """The samples of a step in a stage that distils: one response to each prompt."""

    prompts_per_step: int = knob(32, "Prompts drawn per step", unit="prompts", ge=1, le=4096)
    eps_low: float = knob(0.2, "Clip below: the ratio's smallest value is 1 - eps_low", gt=0, lt=1, advanced=True)
    eps_high: float = knob(0.28, "Clip above: the ratio's largest value is 1 + eps_high", gt=0, le=100, advanced=True)


class StageAt(NamedTuple):
    """The stage of a step: its place from 0, and its first step."""

    number: int
    first: int


class ChainConfig(RecipeConfig):
    """Stages one after the other. Each begins with the weights of the stage before, or with those of the start."""

    instead_of_phases: ClassVar[str] = "its stages set what changes and when"
    stages: list[PlannedStage] = knob(
        [PlannedStage(steps=15), PlannedStage(do="imitate", steps=10), PlannedStage(steps=15)],
        "The stages of the run, in this order. Each stage must begin before the run ends",
        min_length=1,
        max_length=50,
    )
    data: Data = Data()
    rollout: Rollout = Rollout()
    sampler: Sampler = Sampler()
    rewards: list[AnyPart] = parts_knob()
    reward_expression: str = expression_knob()
    objective: Objective = Grpo()
    imitation: Imitation = Imitation()
    distillation: DistilSteps = DistilSteps()
    optim: PolicyOptim = PolicyOptim()
    evaluation: PolicyEvaluation = PolicyEvaluation()
    leaves: Literal["each", "last"] = knob(
        "each", "The policies that the run saves: one for `each` stage, or only the `last` one"
    )

    def turn(self, step: int) -> StageAt:
        """The stage of the step 1, 2, ..."""
        begins = self.begins
        number = max(place for place, first in enumerate(begins) if first <= step)
        return StageAt(number, begins[number])

    @property
    def begins(self) -> list[int]:
        """The first step of each stage, even if the run ends before it."""
        return list(accumulate((stage.steps for stage in self.stages[:-1]), initial=1))

    def teachers(self, number: int) -> dict[str, int]:
        """The teachers of a stage that distils: for each domain ("" for all others) the last stage before it that trained there."""
        return {stage.domain: place for place, stage in enumerate(self.stages[:number]) if stage.do != "distil"}

    @property
    def reinforcing(self) -> PolicyConfig:
        """The config of a policy run for a stage that learns from rewards. Held-out prompts are answered and scored with it too."""
        shared = ("steps", "seed", "model", "data", "rollout", "sampler", "objective", "optim", "reward_expression")
        made = PolicyConfig(scaffold=None)
        changes = {name: getattr(self, name) for name in shared} | {
            "rewards": self.rewards,
            "evaluation": self.evaluation,
        }
        return made.model_copy(update=changes)

    def distilling(self, number: int) -> DistillConfig:
        """The config of the recipe `distill` for the stage `number`."""
        own = self.distillation
        rollout = self.rollout.model_copy(
            update={"prompts_per_step": own.prompts_per_step, "group_size": 1, "replace_flat": 0, "budget": None}
        )
        teachers = [
            TeacherOf(model=f"stage {place + 1}", stage=domain) for domain, place in self.teachers(number).items()
        ]
        made = DistillConfig(teachers=teachers or [TeacherOf()])
        shared = ("steps", "seed", "model", "sampler", "evaluation")
        changes = {name: getattr(self, name) for name in shared} | {
            "data": made.data.model_copy(update=self.data.model_dump(include={"max_prompt_tokens", "shuffle"})),
            "rollout": rollout,
            "objective": Distillation(eps_low=own.eps_low, eps_high=own.eps_high),
            "optim": self.optim.model_copy(update={"minibatch_size": None}),
        }
        return made.model_copy(update=changes)

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        for number, stage in enumerate(self.stages):
            if stage.do == "distil" and not self.teachers(number):
                yield FieldProblem(f"stages.{number}.do", "no earlier stage trains a policy that could teach")
        if self.imitation.form in ("tags", "pattern") and not self.imitation.form_of.strip():
            asked = "name the tags" if self.imitation.form == "tags" else "write the expression"
            yield FieldProblem("imitation.form_of", asked)
        if self.objective.name == "distill":
            yield FieldProblem("objective.name", "a stage that distils has its own; choose an objective with rewards")
        if self.optim.processes > 1:
            yield FieldProblem("optim.processes", "earlier stages teach with the weights of one process; set it to 1")
        shared = {(each.path, each.message) for each in super().problems()}
        yield from (each for each in self.reinforcing.problems() if (each.path, each.message) not in shared)

    def launch_problems(self) -> Iterator[FieldProblem]:
        yield from super().launch_problems()
        for number, first in enumerate(self.begins):
            if first > self.steps:
                yield FieldProblem(
                    f"stages.{number}",
                    f"this stage never begins: the run ends with step {self.steps}, and the stage would begin with step {first}. "
                    "Raise steps, give the stages before it fewer steps, or remove it",
                )

    def needs(self, declared: tuple[DataNeed, ...]) -> tuple[DataNeed, ...]:
        """If the reward needs no rubric, any prompt can be used."""
        return declared if parts.needs_rubric(self.rewards, False) else (DataNeed("examples", "prompts"),)

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from parts.data_problems(self.rewards, False, self.data.unjudged, counts)

    def asking(self, path: str) -> RewardPart | None:
        return self.reinforcing.asking(path)

    def holdings(self) -> Holdings:
        """The weights of the stages before are in the machine's memory, as adapters or as whole models."""
        prompt, new, sampled = self.data.max_prompt_tokens, self.rollout.max_new_tokens, self.imitation
        at_once = max(
            self.reinforcing.batch_size,
            self.distillation.prompts_per_step,
            sampled.prompts * sampled.responses,
            self.evaluation.max_examples * self.evaluation.samples,
        )
        frozen = self.model.lora is None and getattr(self.objective, "kl_beta", 0.0) > 0
        return Holdings(prompt + new, frozen=frozen, sampling=self.sampler.sampling(prompt, new, at_once))

    def memory_knobs(self) -> str:
        return self.reinforcing.memory_knobs()

    @classmethod
    def outline(cls, raw: Mapping[str, Any]) -> list[Line]:
        found, first = [], 1
        stages = raw.get("stages")
        for each in stages if isinstance(stages, list) else ():
            try:
                stage = PlannedStage.model_validate(each)
            except ValidationError:
                continue
            found.append(Line(f"step {first}", stage.what, never_entered(first, raw.get("steps"))))
            first += stage.steps
        return found

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        stages = raw.get("stages")
        each = [whole_number(stage, "steps") for stage in stages] if isinstance(stages, list) else []
        p, g = whole_number(raw, "rollout", "prompts_per_step"), whole_number(raw, "rollout", "group_size")
        many, times = whole_number(raw, "imitation", "prompts"), whole_number(raw, "imitation", "responses")
        return [
            _last(whole_number(raw, "steps"), each[:-1]),
            Amount(
                "Responses per step",
                p * g if p and g else None,
                f"{p or '–'} prompts × {g or '–'}, where it reinforces",
            ),
            Amount("Responses to choose from", many * times if many and times else None, "where it imitates"),
        ]


def _last(steps: int | None, before: list[int | None]) -> Amount:
    """The number of steps that the last stage has."""
    how = f"{steps or '–'} steps of the run less {sum(each or 0 for each in before)} of the stages before it"
    if steps is None or None in before:
        return Amount("Steps of the last stage", None, how)
    return Amount("Steps of the last stage", max(0, steps - sum(each or 0 for each in before)), how)


SIFTED = (
    Metric(
        "sift/sampled",
        "sampled",
        "For a stage that imitates: how many responses it sampled at its beginning, and how many each filter left out, in order.",
        "data",
        chart="Rejection sampling",
        unit="responses",
        optional=True,
    ),
    Metric("sift/kept", "kept", "", "data", chart="Rejection sampling", unit="responses", optional=True),
    *(
        Metric(f"sift/{key}", title, "", "data", chart="Rejection sampling", unit="responses", optional=True)
        for key, title in (
            ("no_reward", "without a reward"),
            ("repeated", "duplicates"),
            ("short", "too short"),
            ("cut", "truncated"),
            ("format", "format"),
            ("incorrect", "not correct"),
            ("low", "worth too little"),
            ("not_best", "not the best"),
        )
    ),
    Metric(
        "train/loss",
        "Loss of imitation",
        "Mean negative log-probability of the kept responses of the step, before its update.",
        "train",
        unit="nats/token",
        better="lower",
        optional=True,
    ),
)
_OWN = {each.key for each in policy.METRICS}


def _of_imitation(metric: Metric) -> Metric:
    """Beside the one of the same name that a stage with rewards draws."""
    title = "Gradient norm of imitation" if metric.key == "train/grad_norm" else metric.title
    return replace(metric, optional=True, title=title)


_GAPS = tuple(replace(each, optional=True) for each in GAPS if each.key not in _OWN or each.key == "policy/kl_teacher")
METRICS = (
    *policy.RUBRIC_SCORE,
    *policy.HELD_OUT_REWARD,
    *(each for each in policy.ON_POLICY if each.key != "policy/kl_teacher"),
    *policy.CRITERIA,
    *(each for each in _GAPS if each.key != "eval/stage/*"),
    *SIFTED,
    *(_of_imitation(each) for each in FITTING if each.key not in _OWN),
)
RECIPE = Recipe(
    name="chain",
    title="Stages in a row",
    summary="One run of several stages: reinforce, imitate the best of the policy's own answers, reinforce again; or learn one "
    "domain after the other and distil both policies into one.",
    schema=ChainConfig,
    needs=RUBRIC_NEEDS,
    slots=(Slot("base", "model.name"), *REWARD_SLOTS),
    brief=("{objective.name}",),
    measured_by=("evaluation.*", "rollout.max_new_tokens", "rewards.*.judge"),
    headline="eval/rubric_score",
    otherwise=("eval/reward",),
    stats=("reward/mean", "eval/gap", "rollout/length"),
    metrics=METRICS,
    histograms=policy.HISTOGRAMS,
    samples="rollout",
    opened=("model", "stages", "rewards"),
    outputs=(Output("policy", "Policy"),),
    icon="layers",
    paper="GLM-4.5, 2025: iterative self-distillation; GLM-5, 2026: cross-stage distillation",
    presets=(
        quick(
            steps=6,
            stages=[{"steps": 2}, {"do": "imitate", "steps": 2}, {"steps": 2}],
            rollout=few(),
            imitation={"prompts": 4, "responses": 2, "batch_size": 2},
        ),
        Preset(
            "self_distillation",
            "As in the paper: GLM-4.5",
            "Self-distillation: reinforce, teach the best responses to the model that the run began with, and reinforce that one."
            " The numbers of steps are ours.",
            {"steps": 60, "stages": [{"steps": 25}, {"do": "imitate", "steps": 10, "begin": "start"}, {"steps": 25}]},
        ),
        small(rollout=few(prompts=4, group=4, tokens=64)),
    ),
    example={
        "steps": 3,
        "stages": [{"steps": 1}, {"do": "imitate", "steps": 1}, {"do": "distil", "steps": 1}],
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "imitation": {"prompts": 4, "responses": 2, "whole": False, "batch_size": 2},
        "distillation": {"prompts_per_step": 4},
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
