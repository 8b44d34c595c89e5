"""Recipe `alternating`: a judge and a rubric writer learn in turns, each from the other (Rubric-ARM)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from trainer.contracts.model_folder import OutputRole
from trainer.contracts.plurals import with_noun
from trainer.contracts.rubric import RubricForm

from ..errors import FieldProblem
from ..fields import Section, knob
from ..memory_inventory import Holdings
from ..metrics import arm as arm_metrics
from ..metrics import policy as policy_metrics
from ..objectives.policy import Grpo, Objective
from ..on_policy import OnPolicyConfig, PolicyOptim, Rollout
from ..preferences import NEEDS
from ..presets import Preset, few, quick, small
from ..recipe import Amount, Output, Recipe, RecipeConfig, Slot, whole_number
from ..rewards.arm import JUSTIFIED, ByRubricForm, FrozenChoicePart, RubricJudgementFormPart, RubricVerdictPart
from ..rewards.parts import Composition, RewardPart
from ..rewards.writer import RubricChoicePart, RubricFormPart, RubricRecallPart
from ..sections.common import Evaluation
from ..sections.phases import Line
from ..sections.sampler import Sampler
from ..sections.warmup import Warmup
from .rubric_writer import FORM, WriterData

Role = Literal["judge", "writer"]
ROLES: tuple[Role, Role] = ("judge", "writer")
PANEL_AT = "panel.judge"
OUTPUTS: Mapping[Role, OutputRole] = {"judge": "judge", "writer": "rubric_writer"}


class ArmData(WriterData):
    """The pairs from which both roles learn, and the forms of rubrics and judgements."""

    form: RubricForm = knob("rubric_arm", FORM)
    min_items: int = knob(
        2, "The prompt asks for at least this many items; the reward does not depend on it", unit="items", ge=1, le=50
    )
    max_items: int = knob(
        10, "The prompt asks for at most this many items; the reward does not depend on it", unit="items", ge=1, le=50
    )
    judgement: ByRubricForm = knob(
        "touchstone",
        "The form of a judgement. `touchstone`: the JSON that judges of kind `pairwise_rubric` answer with, and a justification. `rubric_arm`: the "
        "paper's form, in lines",
    )


class RoleOptim(Section):
    """The settings of the optimiser that each role has for itself. The rest of `optim` is for both roles, or for a pass over tokens."""

    lr: float | None = knob(None, "Peak learning rate of this role; empty: `optim.lr`", gt=0, le=1)
    grad_clip: float | None = knob(
        None, "Largest norm of this role's gradient; empty: `optim.grad_clip`", gt=0, advanced=True
    )
    minibatch_size: int | None = knob(
        None,
        "Responses of this role per optimiser update; empty: `optim.minibatch_size`",
        unit="responses",
        ge=1,
        advanced=True,
    )
    epochs_per_step: int | None = knob(
        None,
        "Passes over the responses of each step of this role; empty: `optim.epochs_per_step`",
        ge=1,
        le=16,
        advanced=True,
    )

    @property
    def own(self) -> dict[str, Any]:
        """The settings that are given, by their names in `optim`."""
        return self.model_dump(exclude_none=True)


class Turns(Section):
    """The fields of a turn that both roles have."""

    prompts_per_step: int = knob(4, "Pairs drawn per step", unit="pairs", ge=1, le=4096)
    temperature: float = knob(1.0, "Sampling temperature", gt=0, le=5)
    top_p: float = knob(1.0, "Nucleus: sample from the smallest set of tokens that has this probability", gt=0, le=1)
    optim: RoleOptim = RoleOptim()


class JudgeTurns(Turns):
    """A step of the judge: it judges pairs, each by a rubric that the writer wrote before and that does not change."""

    group_size: int = knob(7, "Judgements sampled per pair", unit="judgements", ge=1, le=256)
    max_new_tokens: int = knob(1024, "Longest judgement; a longer one is cut", unit="tokens", ge=1, le=65536)
    format_reward: bool = knob(
        True,
        "A judgement earns 1 if it makes the choice of people. With this, it earns 1 more if it explains every criterion, justifies the whole and "
        "decides once; off: the form is only measured",
    )


class WriterTurns(Turns):
    """A step of the writer: it writes rubrics, and the frozen judge tries each of them, with greedy decoding."""

    group_size: int = knob(6, "Rubrics sampled per pair", unit="rubrics", ge=1, le=256)
    max_new_tokens: int = knob(512, "Longest rubric; a longer one is cut", unit="tokens", ge=1, le=65536)


class Variances(Section):
    """The measurements before the first step of each round that explain the order of turns (Rubric-ARM, 17 to 19)."""

    pairs: int = knob(4, "Pairs of the round that are measured; 0: none", unit="pairs", ge=0, le=1024)
    rubrics: int = knob(
        4, "Rubrics sampled for each pair; their gradients are in memory at the same time", unit="rubrics", ge=2, le=64
    )
    judgements: int = knob(
        4, "Judgements sampled with each rubric; the share of right ones is p(r)", unit="judgements", ge=2, le=256
    )


class Panel(Section):
    """Pairs on which no role is trained. They show whether the rewards of both roles still mean the same (docs/hacking.md)."""

    pairs: int = knob(
        16,
        "Held-out pairs on which a role is tried after each of its turns, as in training. If training rises far above them, the run raises an alarm. "
        "Fewer than about thirty say little. 0: none",
        unit="pairs",
        ge=0,
        le=4096,
    )
    judge: str = knob(
        "",
        "Another judge of kind pairwise with rubric, such as `Grader v2`. It judges with each rubric of a writer's step whether it too chooses the "
        "answer of people. Its answers are measured and never trained on. If it cannot be asked, training continues without it. Empty: no other judge is "
        "asked",
        source="judge_names:pairwise_rubric",
    )
    budget_tokens: int | None = knob(
        None,
        "The most tokens that its calls may use in this run",
        unit="tokens",
        ge=1,
        advanced=True,
        when=("judge", ()),
    )
    budget_money: float | None = knob(
        None,
        "The most that its calls may cost in this run, in the unit of the endpoint's prices",
        gt=0,
        advanced=True,
        when=("judge", ()),
    )


class TurnConfig(OnPolicyConfig):
    """One role's half of a run, as a config for the stage of a sampled policy."""

    asks_of_pairs: ClassVar[bool] = True
    parts: Any = ()
    fields: Any = {}
    """Fields whose path in the run's config differs from the path here."""

    def field(self, path: str) -> str:
        found: str = self.fields.get(path, path)
        return found

    @property
    def one_memory(self) -> bool:
        """Never: the sampler writes for the other role too, whose weights the learner does not have."""
        return False

    @property
    def composition(self) -> Composition:
        return Composition(self.parts)


class AlternatingConfig(RecipeConfig):
    """Judge and writer train in turns of `turn_steps`, two turns a round; each round has its own pairs. A warm-up comes first; its steps
    are steps of the run like all others: checkpoints, evaluations and charts count every update of the weights."""

    instead_of_phases: ClassVar[str] = "its warm-up and its turns set who is trained and when"
    asks_of_pairs: ClassVar[bool] = True
    turn_steps: int = knob(10, "Steps of a turn; a round is a turn of each", unit="steps", ge=1, le=1_000_000)
    first: Role = knob("judge", "The role that begins a round; in the paper the judge begins")
    data: ArmData = ArmData()
    warmup: Warmup | None = knob(
        None,
        "Begin with supervised steps on rubrics and judgements by people, as the paper does. Off: both roles begin their turns with the model as it is",
    )
    judge: JudgeTurns = JudgeTurns()
    writer: WriterTurns = WriterTurns()
    sampler: Sampler = Sampler()
    variances: Variances = Variances()
    panel: Panel = Panel()
    objective: Objective = Grpo(eps_high=0.28, kl_beta=0.001)
    optim: PolicyOptim = PolicyOptim()
    evaluation: Evaluation = Evaluation()
    votes: int = knob(
        0,
        "Voting@k: how many rubrics are sampled for each held-out pair, each with a judgement in both orders. The choice of most of them is measured "
        "beside the greedy choice. 0: no voting; an odd number has no ties",
        unit="votes",
        ge=0,
        le=99,
    )
    matcher: Literal["embeddings", "words"] = knob(
        "embeddings",
        "How to find the human criterion that a written criterion repeats, if people have written a rubric: by `embeddings` of the installed MiniLM, or "
        "by the `words` that both have. It is measured and never rewarded",
        advanced=True,
    )

    @property
    def order(self) -> tuple[Role, Role]:
        """The roles of the turns of a round, in order."""
        return ("judge", "writer") if self.first == "judge" else ("writer", "judge")

    @property
    def rounds(self) -> int:
        """The number of rounds that the run has; the last may be cut short."""
        return -(-(self.steps - self.warm_steps) // (2 * self.turn_steps))

    @property
    def warm_steps(self) -> int:
        """The number of steps that come before the first turn."""
        return self.warmup.steps if self.warmup else 0

    def warming_at(self, step: int) -> Role | None:
        """The role whose warm-up has the step 1, 2, ...; None from the first turn on."""
        if self.warmup is None or step > self.warmup.steps:
            return None
        return "judge" if step <= self.warmup.judge_steps else "writer"

    def turn_at(self, step: int) -> tuple[int, Role]:
        """The turn of a step after the warm-up: its number from 0, and its role."""
        number = (step - 1 - self.warm_steps) // self.turn_steps
        return number, self.order[number % 2]

    def ends_turn(self, step: int) -> bool:
        return (step - self.warm_steps) % self.turn_steps == 0

    def warming(self, role: Role) -> TurnConfig:
        """The half of `role` with the learning rate of the warm-up."""
        half = self.turn(role)
        if self.warmup is None or self.warmup.lr is None:
            return half
        changes = {
            "optim": half.optim.model_copy(update={"lr": self.warmup.lr}),
            "fields": half.fields | {"optim.lr": "warmup.lr"},
        }
        return half.model_copy(update=changes)

    def turn(self, role: Role) -> TurnConfig:
        """The half of `role`."""
        own = self.judge if role == "judge" else self.writer
        names = {"prompts_per_step", "group_size", "max_new_tokens", "temperature", "top_p"}
        made = TurnConfig(
            steps=self.steps,
            seed=self.seed,
            model=self.model,
            data=self.data,
            rollout=Rollout(**own.model_dump(include=names)),
            sampler=self.sampler,
            objective=self.objective,
            optim=self.optim.model_copy(update=own.optim.own),
        )
        changes = {
            "parts": self._judgement_parts() if role == "judge" else self._rubric_parts(),
            "fields": {f"optim.{name}": f"{role}.optim.{name}" for name in own.optim.own},
            "evaluation": made.evaluation.model_copy(update=dict(self.evaluation)),
        }
        return made.model_copy(update=changes)

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if self.data.min_items > self.data.max_items:
            yield FieldProblem("data.max_items", f"must not be below data.min_items, which is {self.data.min_items}")
        if self.objective.name == "distill":
            yield FieldProblem("objective.name", "a teacher can teach one role only; choose an objective with rewards")
        if self.optim.processes > 1:
            yield FieldProblem("optim.processes", "the two roles take turns in one model of one process; set it to 1")
        if self.warmup:
            for problem in self.warmup.problems(self.steps):
                yield replace(problem, path=f"warmup.{problem.path}")
        shared = set(super().problems())
        for role in ROLES:
            turn = self.turn(role)
            for problem in turn.problems():
                told = replace(problem, path=turn.field(problem.path).replace("rollout.", f"{role}."))
                if told not in shared:
                    shared.add(told)
                    yield told

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from super().data_problems(counts)
        for problem in self.warmup.data_problems(counts) if self.warmup else ():
            yield replace(problem, path=f"warmup.{problem.path}")

    def holdings(self) -> Holdings:
        """The holdings of the role with the longer texts. The trained weights of the other role are in the machine's memory meanwhile.
        After a warm-up, so are the weights of both roles at its end, if the objective may hold a role to them."""
        held = max((self.turn(role).holdings() for role in ROLES), key=lambda held: held.longest)
        refers = held.frozen or self.model.lora is not None
        return replace(held, waiting=1, begun=len(ROLES) if self.warmup and self.warmup.steps and refers else 0)

    def asked_as(self, role: str) -> dict[str, Any] | None:
        data = self.data
        if role == "rubric_writer":
            items = {"min_items": data.min_items, "max_items": data.max_items}
            sampling = {"max_tokens": self.writer.max_new_tokens}
            return {"kind": "rubric_generator", "form": data.form, **items, "sampling": sampling}
        if data.judgement == "rubric_arm":
            return None
        sampling = {"max_tokens": self.judge.max_new_tokens}
        return {"kind": "pairwise_rubric", "scale": "forced", "prompt": JUSTIFIED, "sampling": sampling}

    def asking(self, path: str) -> RewardPart | None:
        return self._panel_part() if path == PANEL_AT and self.panel.judge else None

    @classmethod
    def outline(cls, raw: Mapping[str, Any]) -> list[Line]:
        judge, writer = _warm_steps(raw)
        if not judge + writer:
            return []
        found = [Line("step 1", f"warm-up of the judge, {with_noun(judge, 'steps')}")] if judge else []
        if writer:
            found.append(Line(f"step {judge + 1}", f"warm-up of the writer, {with_noun(writer, 'steps')}"))
        return [*found, Line(f"step {judge + writer + 1}", "turns of both")]

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        steps, each, warm = whole_number(raw, "steps"), whole_number(raw, "turn_steps"), sum(_warm_steps(raw))
        left = steps - warm if steps and steps > warm else None
        found = [
            Amount("Rounds", -(-left // (2 * each)) if left and each else None, f"two turns of {each or '–'} steps")
        ]
        for role, what in (("judge", "Judgements"), ("writer", "Rubrics")):
            p, g = whole_number(raw, role, "prompts_per_step"), whole_number(raw, role, "group_size")
            found.append(Amount(f"{what} per step", p * g if p and g else None, f"{p or '–'} pairs × {g or '–'}"))
        return found

    def _judgement_parts(self) -> tuple[Any, ...]:
        form = self.data.judgement
        return (
            RubricVerdictPart(form=form),
            RubricJudgementFormPart(form=form, shadow=not self.judge.format_reward),
        )

    def _rubric_parts(self) -> tuple[Any, ...]:
        form = self.data.form
        return (
            FrozenChoicePart(form=form),
            RubricFormPart(form=form, shadow=True),
            RubricRecallPart(form=form, matcher=self.matcher, shadow=True),
            *([self._panel_part()] if self.panel.judge else []),
        )

    def _panel_part(self) -> RubricChoicePart:
        panel = self.panel
        return RubricChoicePart(
            name="panel",
            form=self.data.form,
            judge=panel.judge,
            shadow=True,
            on_missing="exclude",
            budget_tokens=panel.budget_tokens,
            budget_money=panel.budget_money,
        )


def _warm_steps(raw: Mapping[str, Any]) -> tuple[int, int]:
    """The warm-up steps of the judge and of the writer, in an unchecked config; 0 if there are none, or if they are not a number."""
    if not isinstance(raw.get("warmup"), Mapping):
        return 0, 0
    return whole_number(raw, "warmup", "judge_steps") or 0, whole_number(raw, "warmup", "writer_steps") or 0


RECIPE = Recipe(
    name="alternating",
    title="Judge and rubric writer in turns",
    summary="A rubric writer and a judge that uses its rubrics learn from the same comparisons. While one learns, the other stays as it is.",
    schema=AlternatingConfig,
    needs=NEEDS,
    slots=(Slot("base", "model.name"), Slot("panel_judge", PANEL_AT, "judge")),
    brief=("{first} first", "{data.form}"),
    measured_by=(
        "evaluation.*",
        "votes",
        "judge.max_new_tokens",
        "writer.max_new_tokens",
        "data.form",
        "data.judgement",
        "data.min_items",
        "data.max_items",
        "matcher",
    ),
    headline="eval/accuracy",
    otherwise=("eval/reward",),
    stats=("eval/consistent", "writer/reward/mean", "judge/reward/mean"),
    metrics=arm_metrics.METRICS,
    histograms=arm_metrics.by_role(policy_metrics.HISTOGRAMS),
    samples="rollout",
    opened=("model", "data", "judge", "writer"),
    outputs=(Output("judge", "Judge"), Output("rubric_writer", "Rubric writer")),
    icon="git-compare",
    paper="Rubric-ARM, 2026: alternating reinforcement learning of a rubric generator and a judge from preferences",
    presets=(
        quick(
            steps=8,
            turn_steps=2,
            judge=few(tokens=64),
            writer=few(tokens=64),
            variances={"pairs": 0},
            panel={"pairs": 0},
        ),
        Preset(
            "rubric_arm",
            "As in the paper: Rubric-ARM",
            "The judge begins each round: 32 pairs with 7 judgements each, then 48 pairs with 6 rubrics each, GRPO with a small KL penalty, and all weights are "
            "trained. The paper has 3 rounds.",
            {
                "first": "judge",
                "model": {"lora": None},
                "judge": {"prompts_per_step": 32, "group_size": 7, "max_new_tokens": 1024, "format_reward": True},
                "writer": {"prompts_per_step": 48, "group_size": 6, "max_new_tokens": 512},
                "objective": {"name": "grpo", "eps_low": 0.2, "eps_high": 0.28, "kl_beta": 0.001},
                "optim": {"lr": 1e-6},
            },
        ),
        small(judge=few(prompts=2, group=4, tokens=256), writer=few(prompts=2, group=4, tokens=256)),
    ),
    example={
        "steps": 3,
        "turn_steps": 1,
        "judge": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "writer": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "matcher": "words",
        "votes": 3,
        "variances": {"pairs": 1, "rubrics": 2, "judgements": 2},
        "panel": {"pairs": 2},
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
