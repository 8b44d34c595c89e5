"""Recipe `policy`: reinforcement learning from rubrics and verifiers (METHODS 6 and 7)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from . import policy_metrics, policy_objective, rewards
from .errors import FieldProblem
from .fields import Section, knob
from .holdings import Holdings, Sampling
from .policy_objective import Grpo, Objective
from .recipe import Amount, Need, Output, Recipe, RecipeConfig, Slot, whole_number
from .rewards import MOST_PARTS, AnyPart, RubricPart
from .runner import Runner
from .sampler import Sampler
from .sections import Evaluation, Optim


class Data(Section):
    max_prompt_tokens: int = knob(512, "Longer prompts are left out and counted", unit="tokens", ge=8, le=131072)
    shuffle: bool = knob(True, "Visit the training prompts in a new order each epoch")
    unjudged: Literal["refuse", "drop_criteria", "drop_prompts"] = knob(
        "refuse",
        "Where criteria need a judge and the reward has none: refuse the run, leave out those criteria, or leave out those "
        "prompts",
    )


class Rollout(Section):
    prompts_per_step: int = knob(4, "Prompts drawn per step (P)", unit="prompts", ge=1, le=4096)
    group_size: int = knob(8, "Responses sampled per prompt (G)", unit="responses", ge=1, le=256)
    max_new_tokens: int = knob(64, "Where a response is cut", unit="tokens", ge=1, le=65536)
    temperature: float = knob(1.0, "Sampling temperature", gt=0, le=5)
    top_p: float = knob(1.0, "Nucleus: smallest set of tokens with this probability", gt=0, le=1)
    stop: list[str] = knob([], "Texts that end a response", advanced=True)
    truncated: Literal["train", "mask", "drop"] = knob(
        "train",
        "Responses that were cut: `train` on them as on finished ones; `mask` them, so that their reward counts in the "
        "group but they change no weights; or `drop` them, so that their reward does not count either",
        advanced=True,
    )
    replace_flat: int = knob(
        0,
        "Rounds in which groups whose rewards are all equal are replaced by groups of the prompts that come next (dynamic "
        "sampling); 0: they stay",
        unit="rounds",
        ge=0,
        le=100,
        advanced=True,
    )
    token_records: float = knob(
        1.0,
        "Prompts whose responses are shown token by token (log-probability, ratio, mask); of the others text, reward and "
        "verdicts are kept",
        unit="of the prompts",
        ge=0,
        le=1,
        advanced=True,
    )


class Scaffold(Section):
    """RuscaRL: show part of the rubric in the rollout prompt, less within a group and less over time."""

    group: Literal["linear", "binary", "none"] = knob("linear", "How the share differs within a group")
    binary_n: int = knob(
        1,
        "Responses of a group that see the scaffold, with `binary`",
        unit="responses",
        ge=0,
        when=("group", ("binary",)),
    )
    step: Literal["sigmoid", "constant", "linear", "power"] = knob("sigmoid", "How the share falls over the run")
    alpha: float = knob(125.0, "Steepness of the sigmoid", gt=0, advanced=True, when=("step", ("sigmoid",)))
    t0: float = knob(
        0.2, "Where in the run the sigmoid is one half", unit="of the run", ge=0, le=1, when=("step", ("sigmoid",))
    )
    power: float = knob(2.0, "Exponent n of (1 - t)^n, with `power`", gt=0, when=("step", ("power",)))
    ratio_mode: Literal["unscaffolded", "corrected", "scaffolded"] = knob(
        "unscaffolded", "Whether the scaffold stands in the prompt when log-probabilities are computed", advanced=True
    )


class People(Section):
    """Whether people grade some of what a judge grades, to see how far they agree."""

    share: float = knob(
        0.0,
        "Of the responses whose criteria a judge decides, how many people grade as well, without seeing its verdicts, in a "
        "project of this workspace; 0: none",
        ge=0,
        le=1,
    )
    project: str = knob(
        "",
        "The project that asks them: open or paused, grades criteria and shows no suggestions; empty: the project "
        "`Judge against people`, which is made for it",
        source="grading_projects",
        when=("share", ()),
        max_length=120,
    )


class PolicyOptim(Optim):
    minibatch_size: int | None = knob(
        None, "Responses per optimiser update; empty: the whole step in one update", unit="responses", ge=1
    )
    epochs_per_step: int = knob(1, "Passes over each step's responses", ge=1, le=16, advanced=True)
    processes: int = knob(
        1,
        "Processes that train one model together, each with a share of its weights; as many as there are GPUs",
        unit="processes",
        ge=1,
        le=1024,
        advanced=True,
    )


class PolicyEvaluation(Evaluation):
    samples: int = knob(1, "Responses per held-out prompt; more than one needs a temperature above 0", ge=1, le=1000)
    temperature: float = knob(0.0, "0 decodes greedily", ge=0, le=5)


class PolicyConfig(RecipeConfig):
    """Sample, score with the rubric, update the policy; evaluate without the scaffold."""

    data: Data = Data()
    rollout: Rollout = Rollout()
    sampler: Sampler = Sampler()
    scaffold: Scaffold | None = knob(Scaffold(), "Show part of the rubric while sampling (RuscaRL)")
    rewards: list[AnyPart] = knob(
        [RubricPart()],
        "Parts of the reward: added up, or put together by the expression",
        min_length=1,
        max_length=MOST_PARTS,
    )
    reward_expression: str = knob(
        "",
        "How the parts make the reward, such as `gate(format, rubric) + 0.1 * brevity`; empty: their sum, each times its weight",
        max_length=1000,
        beside="rewards",
    )
    objective: Objective = Grpo()
    optim: PolicyOptim = PolicyOptim()
    runner: Runner = Runner()
    people: People = People()
    evaluation: PolicyEvaluation = PolicyEvaluation()

    @property
    def batch_size(self) -> int:
        """Responses per step: P x G."""
        return self.rollout.prompts_per_step * self.rollout.group_size

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        yield from self._batch_problems()
        yield from self._group_problems()
        longest = self.rollout.max_new_tokens
        estimator = getattr(self.objective, "advantage", "")
        asynchronous = self.runner.kind == "async"
        yield from rewards.problems(self.rewards, self.reward_expression, longest, estimator, asynchronous)
        if self.evaluation.samples > 1 and self.evaluation.temperature == 0:
            yield FieldProblem("evaluation.samples", "greedy decoding gives the same response each time; set it to 1")
        if self.people.share and not any(part.judges_criteria for part in self.rewards):
            yield FieldProblem("people.share", "no part of the reward has a judge decide criteria; set it to 0")
        yield from self.sampler.problems(self.model.lora is not None, self.runner.kind)
        prompts = self.rollout.prompts_per_step
        yield from self.runner.problems(prompts, longest, self.rollout.stop, self.objective)
        yield from self.runner.reuse_problems(self.steps, prompts, self.objective)
        if self.runner.kind == "async" and self.runner.quotas and self.scaffold and self.scaffold.step != "constant":
            yield FieldProblem(
                "runner.quotas",
                "the scaffold falls with a prompt's place in the data, which quotas leave; set scaffold.step to 'constant' "
                "or use no scaffold",
            )

    def _needs_flat_groups(self) -> str:
        """Why groups with equal rewards may not be replaced; empty where they may."""
        if self.runner.kind == "async":
            return "the schedule of an asynchronous run fixes the prompts of each step before they are sampled"
        if self.runner.kind == "offline":
            return (
                "the prompts of an offline round are all sampled at its start, and runner.solved_above says which stay"
            )
        if self.objective.name == "distill":
            return "distillation learns from every response, whatever its reward"
        if getattr(self.objective, "advantage", "") == "remax":
            return "the estimator 'remax' compares with the greedy response, so that equal rewards still teach"
        return ""

    def needs(self, declared: tuple[Need, ...]) -> tuple[Need, ...]:
        """Any prompt will do where the reward asks for no rubric; what the scaffold asks for is a problem of its own."""
        return declared if rewards.needs_rubric(self.rewards, False) else (Need("examples", "prompts"),)

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from rewards.data_problems(self.rewards, self.scaffold is not None, self.data.unjudged, counts)
        if (
            self.scaffold
            and not counts.get("train", {}).get("rubrics")
            and not rewards.needs_rubric(self.rewards, False)
        ):
            yield FieldProblem(
                "scaffold", "shows a part of the rubric while sampling, and no training prompt has one; switch it off"
            )

    def holdings(self) -> Holdings:
        prompt, new = self.data.max_prompt_tokens, self.rollout.max_new_tokens
        held_out = self.evaluation.max_examples * self.evaluation.samples
        return Holdings(
            longest=prompt + new,
            frozen=self.model.lora is None and getattr(self.objective, "kl_beta", 0.0) > 0,
            teacher=self.objective.name == "distill",
            processes=self.optim.processes,
            sampling=replace(self._sampling(prompt, new, held_out), sleeps=self.runner.kind != "async"),
        )

    @property
    def one_memory(self) -> bool:
        """Whether sampler and learner may be one model in memory: all weights are trained here, and sampled with by nobody but
        this process, between updates, with the newest ones."""
        runner = self.runner
        newest = runner.kind == "sync" and runner.push_every == 1 and not runner.one_step_off
        return newest and self.sampler.kind == "local" and self.model.lora is None and self.optim.processes == 1

    def _sampling(self, prompt: int, new: int, held_out: int) -> Sampling:
        runner = self.runner
        workers = runner.workers if runner.kind == "async" else 0
        found = self.sampler.sampling(prompt, new, max(self.batch_size, held_out), workers, runner.gpus_per_worker)
        return replace(found, by="learner") if self.one_memory else found

    def memory_knobs(self) -> str:
        return f"for the update, {', '.join(self._update_knobs())}; for sampling, {self._sampling_knobs()}"

    def _sampling_knobs(self) -> str:
        rollout, sampler = self.rollout, self.sampler
        knobs = [
            f"sampler.max_batch (now {sampler.max_batch})",
            f"rollout.max_new_tokens (now {rollout.max_new_tokens})",
        ]
        if sampler.kind != "local":
            knobs.append(f"sampler.kv_cache_gb (now {sampler.kv_cache_gb:g})")
        if self.runner.kind == "async":
            knobs.append(f"runner.workers (now {self.runner.workers}), each of which holds a copy of the model")
        return f"lower {' or '.join(knobs)}"

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        p, g = whole_number(raw, "rollout", "prompts_per_step"), whole_number(raw, "rollout", "group_size")
        steps, longest = whole_number(raw, "steps"), whole_number(raw, "rollout", "max_new_tokens")
        mini, epochs = whole_number(raw, "optim", "minibatch_size"), whole_number(raw, "optim", "epochs_per_step")
        batch = p * g if p and g else None
        updates = -(-batch // mini) * epochs if batch and mini and epochs else epochs
        total = batch * steps if batch and steps else None
        tokens = total * longest if total and longest else None
        return [
            *_round_amounts(raw, p),
            Amount("Responses per step", batch, f"{p or '–'} prompts × {g or '–'} responses"),
            Amount("Updates per step", updates, "mini-batches × epochs"),
            Amount("Responses in all", total, f"over {steps or '–'} steps"),
            Amount("Tokens at most", tokens, f"{longest or '–'} per response"),
        ]

    def _batch_problems(self) -> Iterator[FieldProblem]:
        size = self.optim.minibatch_size
        if size is not None and self.batch_size % size:
            p, g = self.rollout.prompts_per_step, self.rollout.group_size
            yield FieldProblem(
                "optim.minibatch_size",
                f"{p} prompts x {g} responses = {self.batch_size} do not divide into mini-batches of {size}",
            )

    def _group_problems(self) -> Iterator[FieldProblem]:
        rollout = self.rollout
        yield from policy_objective.problems(self.objective, rollout.max_new_tokens, rollout.group_size, rollout.top_p)
        if rollout.replace_flat and (why := self._needs_flat_groups()):
            yield FieldProblem("rollout.replace_flat", f"{why}; set it to 0")
        if rollout.replace_flat and self.runner.replay:
            yield FieldProblem(
                "runner.replay", "a step of dynamic sampling fills itself with fresh prompts; set one to 0"
            )
        scaffold = self.scaffold
        if scaffold and scaffold.group == "binary" and scaffold.binary_n > self.rollout.group_size:
            yield FieldProblem("scaffold.binary_n", f"larger than the group of {self.rollout.group_size}")
        if scaffold and scaffold.ratio_mode == "corrected" and self.rollout.top_p < 1:
            yield FieldProblem(
                "scaffold.ratio_mode",
                "'corrected' divides by what the sampler recorded, which with rollout.top_p below 1 is not the whole "
                "distribution; set rollout.top_p to 1",
            )
        if scaffold and (why := policy_objective.scaffold_problem(self.objective, scaffold.ratio_mode)):
            yield FieldProblem("scaffold.ratio_mode", why)


def _round_amounts(raw: Mapping[str, Any], prompts: int | None) -> list[Amount]:
    """Of a run in offline rounds."""
    runner = raw.get("runner")
    if not isinstance(runner, Mapping) or runner.get("kind") != "offline":
        return []
    steps, length = whole_number(raw, "steps"), whole_number(raw, "runner", "push_every")
    rounds = steps // length if steps and length else None
    passes = whole_number(raw, "runner", "round_epochs")
    found = [
        Amount("Rounds", rounds, f"of {length or '–'} steps"),
        _round_prompts("Prompts per round", length, prompts, passes),
    ]
    later = whole_number(raw, "runner", "later_round_epochs")
    return [*found, _round_prompts("Prompts per later round", length, prompts, later)] if later else found


def _round_prompts(label: str, length: int | None, prompts: int | None, passes: int | None) -> Amount:
    asked = length * prompts // passes if length and prompts and passes else None
    return Amount(label, asked, f"{passes or '–'} passes over their stored responses")


RECIPE = Recipe(
    name="policy",
    title="Policy from rubrics",
    summary="Reinforcement learning with rubric scores as reward, optionally with a rubric scaffold in the prompt.",
    schema=PolicyConfig,
    needs=(
        Need("verified", "prompts whose every criterion has a verifier", either="rubric"),
        Need("unjudged", "prompts with a criterion for a judge", either="rubric"),
    ),
    slots=(
        Slot("base", "model.name"),
        Slot("teacher", "objective.teacher", when=("name", ("distill",))),
        Slot("judge", "rewards.*.judge", "judge"),
        Slot("reward_model", "rewards.*.model", when=("kind", ("reward_model",)), heads=("scalar",)),
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
    example={
        "steps": 3,
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
