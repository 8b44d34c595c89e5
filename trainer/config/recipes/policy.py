"""Recipe `policy`: reinforcement learning from rubrics and verifiers."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ..errors import FieldProblem
from ..fields import Section, knob
from ..metrics import policy as policy_metrics
from ..objectives import policy as policy_objective
from ..on_policy import REWARD_SLOTS, RUBRIC_NEEDS, OnPolicyConfig, PolicyEvaluation, PromptData
from ..presets import Preset, few, quick, small
from ..recipe import DataNeed, Output, Recipe, Slot
from ..rewards import parts as rewards
from ..rewards.parts import AnyPart, Composition, expression_knob, parts_knob
from ..sections.closing import Closing
from ..sections.hint import Hint
from ..sections.scaffold import Scaffold


class Data(PromptData):
    unjudged: Literal["refuse", "drop_criteria", "drop_prompts"] = knob(
        "refuse",
        "If criteria need a judge and the reward has none: refuse the run, leave out those criteria, or leave out those prompts",
    )


class ClosingEvaluation(PolicyEvaluation):
    closing: Closing | None = knob(
        None,
        "After the last step, answer each held-out prompt several times, to measure pass@k, best of n, novelty and diversity",
    )


class People(Section):
    """Whether people grade some of the responses that a judge grades, to see how far they agree."""

    share: float = knob(
        0.0,
        "Share of the responses with criteria for a judge that people grade as well, in a project of this workspace. They do not see the judge's "
        "verdicts. 0: none",
        ge=0,
        le=1,
    )
    project: str = knob(
        "",
        "The project that asks people. It must grade criteria, be open or paused, and show no suggestions. Empty: the project `Judge against people`, "
        "which is made if it does not exist",
        source="grading_projects",
        when=("share", ()),
        max_length=120,
    )


class PolicyConfig(OnPolicyConfig):
    """Sample, score with the rubric, update the policy; evaluate without the scaffold."""

    data: Data = Data()
    scaffold: Scaffold | None = knob(Scaffold(), "Show part of the rubric while sampling (RuscaRL)")
    hint: Hint | None = knob(None, "Show the beginning of the reference reasoning while sampling (AHRL)")
    rewards: list[AnyPart] = parts_knob()
    reward_expression: str = expression_knob()
    people: People = People()
    evaluation: ClosingEvaluation = ClosingEvaluation()

    @property
    def composition(self) -> Composition:
        return Composition(tuple(self.rewards), self.reward_expression)

    @property
    def shown_scaffold(self) -> Scaffold | None:
        return self.scaffold

    @property
    def shown_hint(self) -> Hint | None:
        return self.hint

    @property
    def closing(self) -> Closing | None:
        return getattr(self.evaluation, "closing", None)  # a stage of a chain has the evaluation of the chain

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if self.closing and self.optim.processes > 1:
            yield FieldProblem(
                "evaluation.closing",
                "the processes that train together (optim.processes) keep no untrained model to compare with; switch this off",
            )
        longest = self.rollout.max_new_tokens
        estimator = getattr(self.objective, "advantage", "")
        asynchronous = self.runner.kind == "async"
        yield from rewards.problems(self.rewards, self.reward_expression, longest, estimator, asynchronous)
        if self.people.share and not any(part.judges_criteria for part in self.rewards):
            yield FieldProblem("people.share", "in no part of the reward does a judge decide criteria; set this to 0")
        yield from self._scaffold_problems()
        yield from self._addition_problems()

    def _scaffold_problems(self) -> Iterator[FieldProblem]:
        scaffold = self.scaffold
        smallest = self.rollout.budget.low if self.rollout.budget else self.rollout.group_size
        if scaffold and scaffold.group == "binary" and scaffold.binary_n > smallest:
            yield FieldProblem("scaffold.binary_n", f"must not be larger than the group, which is {smallest}")
        if self.runner.kind == "async" and self.runner.quotas and scaffold and scaffold.step != "constant":
            yield FieldProblem(
                "runner.quotas",
                "the scaffold falls with a prompt's place in the data, and quotas do not keep that order; set scaffold.step to 'constant' or use no "
                "scaffold",
            )

    def _addition_problems(self) -> Iterator[FieldProblem]:
        """Problems of an addition to prompts while sampling: a scaffold or a hint."""
        if self.scaffold and self.hint:
            yield FieldProblem("hint", "the prompt has a scaffold already (scaffold); switch one of them off")
        where = "scaffold" if self.scaffold else "hint"
        if not (self.scaffold or self.hint):
            return
        if self.ratio_mode == "corrected" and self.rollout.top_p < 1:
            yield FieldProblem(
                f"{where}.ratio_mode",
                "'corrected' divides by what the sampler recorded, which with rollout.top_p below 1 is not the whole "
                "distribution; set rollout.top_p to 1",
            )
        if why := policy_objective.scaffold_problem(self.objective, self.ratio_mode, where):
            yield FieldProblem(f"{where}.ratio_mode", why)
        if self.runner.kind == "async" and self.runner.quotas and self.hint and self.hint.gamma:
            yield FieldProblem(
                "runner.quotas",
                "the hint fades with a prompt's place in the data, and quotas do not keep that order; set hint.gamma to 0 or use no hint",
            )

    def needs(self, declared: tuple[DataNeed, ...]) -> tuple[DataNeed, ...]:
        """If the reward needs no rubric, any prompt can be used. The needs of a scaffold are checked on their own."""
        return declared if rewards.needs_rubric(self.rewards, False) else (DataNeed("examples", "prompts"),)

    def agreeing(self) -> dict[str, Any]:
        """A scaffold shows a part of the rubric. A reward that needs no rubric is for data without rubrics."""
        idle = self.scaffold is not None and not rewards.needs_rubric(self.rewards, False)
        return {"scaffold": None} if idle else {}

    def unmeasured(self, counts: Mapping[str, Mapping[str, int]]) -> frozenset[str]:
        """Rubric scores, if no held-out prompt has a rubric that a part of the reward or verifiers alone can score."""
        held_out = counts.get("heldout", {})
        scored = "rubrics" if any(part.needs_rubric for part in self.rewards) else "verified"
        keys = (metric.key for metric in policy_metrics.RUBRIC_SCORE)
        return frozenset() if held_out.get(scored) else frozenset(keys)

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from super().data_problems(counts)
        yield from rewards.data_problems(self.rewards, self.scaffold is not None, self.data.unjudged, counts)
        if self.hint:
            yield from self.hint.data_problems(counts.get("train", {}))
        if (
            self.scaffold
            and not counts.get("train", {}).get("rubrics")
            and not rewards.needs_rubric(self.rewards, False)
        ):
            yield FieldProblem(
                "scaffold", "shows a part of the rubric while sampling, and no training prompt has one; switch it off"
            )

    def data_notes(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
        yield from super().data_notes(counts)
        if self.hint:
            yield from self.hint.data_notes(counts.get("train", {}))


RECIPE = Recipe(
    name="policy",
    title="Policy from rubrics",
    summary="Reinforcement learning with rubric scores as reward, optionally with a rubric scaffold in the prompt.",
    schema=PolicyConfig,
    needs=RUBRIC_NEEDS,
    slots=(
        Slot("base", "model.name"),
        Slot("teacher", "objective.teacher", when=("name", ("distill",))),
        *REWARD_SLOTS,
    ),
    brief=("{objective.name}",),
    measured_by=("evaluation.*", "rollout.max_new_tokens", "rewards.*.judge"),
    headline="eval/rubric_score",
    otherwise=("eval/reward",),
    stats=("reward/mean", "scaffold/ratio", "rollout/length", "perf/rollout_tokens_per_s"),
    metrics=policy_metrics.METRICS,
    histograms=policy_metrics.HISTOGRAMS,
    samples="rollout",
    opened=("model", "rewards", "rollout"),
    outputs=(Output("policy", "Policy"),),
    icon="trending-up",
    paper="Zhou et al., 2025, Breaking the Exploration Bottleneck: Rubric-Scaffolded Reinforcement Learning",
    presets=(
        quick(rollout=few()),
        Preset(
            "ruscarl",
            "As in the paper: RuscaRL",
            "Zhou et al., 2025: while sampling, the prompt shows a part of the rubric, less in each response of a group, and hardly anything after a fifth of "
            "the run. Log-probabilities are computed without it.",
            {
                "scaffold": {
                    "group": "linear",
                    "step": "sigmoid",
                    "alpha": 125.0,
                    "t0": 0.2,
                    "ratio_mode": "unscaffolded",
                },
                "hint": None,
                "objective": {"name": "grpo"},
            },
        ),
        Preset(
            "rubrics",
            "Rubrics without a scaffold",
            "The baseline of RuscaRL: GRPO with the rubric's score as reward, and the plain prompt.",
            {"scaffold": None, "hint": None, "objective": {"name": "grpo"}},
        ),
        Preset(
            "icepop",
            "As in the paper: GLM-5",
            "IcePop: a token counts only if trainer and sampler give it nearly the same probability (up to a factor of 2). 32 prompts with 32 responses each, so "
            "a step takes long on a small machine.",
            {
                "scaffold": None,
                "hint": None,
                "objective": {"name": "icepop", "pop_high": 2.0, "eps_low": 0.2, "eps_high": 0.28},
                "rollout": {"prompts_per_step": 32, "group_size": 32, "top_p": 1.0},
            },
        ),
        small(rollout=few(prompts=4, group=4, tokens=64)),
    ),
    example={
        "steps": 3,
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
