"""The fields of recipes that sample a policy, reward its responses and update it: recipe `policy`, and the tasks of `trainer.tasks`."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from .errors import FieldProblem
from .fields import Section, knob
from .memory_inventory import Holdings, Sampling
from .objectives import policy as policy_objective
from .objectives.policy import Grpo, Objective
from .recipe import Amount, DataNeed, RecipeConfig, Slot, StepSize, whole_number
from .rewards.bounds import ROUNDING
from .rewards.parts import Composition
from .sections import phases
from .sections.alarms import LearningAlarms
from .sections.budget import Budget, PassRates
from .sections.closing import Closing
from .sections.common import Evaluation, Optim
from .sections.hint import Hint
from .sections.order import Order, same_rates
from .sections.phase_kinds import RewardedPhase
from .sections.phases import Phase, phases_knob
from .sections.runner import Runner
from .sections.sampler import Sampler
from .sections.scaffold import RatioMode, Scaffold
from .sections.well_learned import WellLearned


class PromptData(Section):
    max_prompt_tokens: int = knob(512, "Longer prompts are left out and counted", unit="tokens", ge=8, le=131072)
    shuffle: bool = knob(True, "Shuffle the training prompts again for each epoch")
    replicas: int = knob(
        1,
        "Groups of a prompt that is never solved, in one pass over the data. A prompt that is always solved has 1; others lie between, in "
        "proportion to their pass rate (`meta.pass_rate`). Each group has its own advantages",
        unit="groups",
        ge=1,
        le=64,
        advanced=True,
    )
    order: Order | None = knob(
        None,
        "Mix the order of the data with an order from easy to hard, and with the prompts whose pass rate is least certain",
    )


Truncated = Literal["train", "mask", "drop"]


class Rollout(Section):
    prompts_per_step: int = knob(4, "Prompts drawn per step (P)", unit="prompts", ge=1, le=4096)
    group_size: int = knob(8, "Responses sampled per prompt (G)", unit="responses", ge=1, le=256)
    max_new_tokens: int = knob(64, "Longest response; a longer one is cut", unit="tokens", ge=1, le=65536)
    temperature: float = knob(1.0, "Sampling temperature", gt=0, le=5)
    top_p: float = knob(1.0, "Nucleus: sample from the smallest set of tokens that has this probability", gt=0, le=1)
    stop: list[str] = knob([], "Texts that end a response", advanced=True)
    truncated: Truncated = knob(
        "train",
        "Responses that were cut at the limit. `train`: train on them as on finished ones. `mask`: their reward counts in the group, but they change no "
        "weights. `drop`: their reward does not count either",
        advanced=True,
    )
    replace_flat: int = knob(
        0,
        "A step replaces groups whose rewards are all equal by groups of the next prompts, at most this many times (dynamic sampling); "
        "0: they stay",
        unit="rounds",
        ge=0,
        le=100,
        advanced=True,
    )
    budget: Budget | None = knob(
        None,
        "Give more responses to the prompts that teach most by their pass rate in this run, and fewer to others (dynamic budget); a step still has P x G "
        "responses in all",
    )
    token_records: float = knob(
        1.0,
        "Number of prompts whose responses are shown token by token (log-probability, ratio, mask); for the others, text, reward and verdicts are kept",
        unit="of the prompts",
        ge=0,
        le=1,
        advanced=True,
    )


class PolicyOptim(Optim):
    minibatch_size: int | None = knob(
        None, "Responses per optimiser update; empty: the whole step in one update", unit="responses", ge=1
    )
    epochs_per_step: int = knob(1, "Passes over each step's responses", ge=1, le=16, advanced=True)
    processes: int = knob(
        1,
        "Processes that train one model together, each with a share of its weights; use as many as there are GPUs",
        unit="processes",
        ge=1,
        le=1024,
        advanced=True,
    )


class PolicyEvaluation(Evaluation):
    samples: int = knob(1, "Responses per held-out prompt; more than one needs a temperature above 0", ge=1, le=1000)
    temperature: float = knob(0.0, "0 decodes greedily", ge=0, le=5)


RUBRIC_NEEDS = (
    DataNeed("verified", "prompts whose every criterion has a verifier", either="rubric"),
    DataNeed("unjudged", "prompts with a criterion for a judge", either="rubric"),
)
REWARD_SLOTS = (
    Slot("judge", "rewards.*.judge", "judge"),
    Slot("reward_model", "rewards.*.model", when=("kind", ("reward_model",)), heads=("scalar",)),
)
"""The needs of a recipe, and the judges and models that it names, if its field `rewards` is `parts_knob()`."""


class OnPolicyConfig(RecipeConfig):
    """Sample, reward, update, evaluate. A recipe says for which prompts it samples and, by `composition`, what the reward is."""

    phase_kind: ClassVar[type[Phase] | None] = RewardedPhase
    asks_of_pairs: ClassVar[bool] = False
    """Whether the prompts are questions about pairs. A held-out example then gives several prompts; only the data shows how many."""
    data: PromptData = PromptData()
    rollout: Rollout = Rollout()
    sampler: Sampler = Sampler()
    objective: Objective = Grpo()
    optim: PolicyOptim = PolicyOptim()
    runner: Runner = Runner()
    phases: list[RewardedPhase] = phases_knob()
    pass_rates: PassRates = PassRates()
    well_learned: WellLearned | None = knob(
        None, "Learn less from a response that the policy is sure of, if it mostly solves the prompt (WPSM)"
    )
    evaluation: PolicyEvaluation = PolicyEvaluation()
    alarms: LearningAlarms = LearningAlarms()

    @property
    def composition(self) -> Composition:
        """The reward of a response."""
        raise NotImplementedError

    @property
    def shown_scaffold(self) -> Scaffold | None:
        """The part of the rubric that is in the prompt while sampling."""
        return None

    @property
    def shown_hint(self) -> Hint | None:
        """The part of the reference reasoning that is in the prompt while sampling."""
        return None

    @property
    def closing(self) -> Closing | None:
        """The measurement of held-out responses after the last step."""
        return None

    @property
    def ratio_mode(self) -> RatioMode:
        """Whether an addition to the prompt while sampling is also there when log-probabilities are computed."""
        shown = self.shown_scaffold or self.shown_hint
        return shown.ratio_mode if shown else "unscaffolded"

    @property
    def teachers_held(self) -> int:
        """The number of other models in memory that give log-probabilities for the responses of the trained one."""
        return int(self.objective.name == "distill")

    @property
    def batch_size(self) -> int:
        """Responses per step: P x G."""
        return self.rollout.prompts_per_step * self.rollout.group_size

    def step_size(self) -> StepSize:
        return StepSize(self.batch_size, self.rollout.max_new_tokens)

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        yield from self._batch_problems()
        yield from self._group_problems()
        yield from self._phase_problems()
        yield from self._threshold_problems()
        if self.data.order:
            yield from self._order_problems(self.data.order)
        mixed = "data.order" if self.data.order else next(phases.mixing(self.phases), "")
        if self.data.replicas > 1 and mixed:
            yield FieldProblem("data.replicas", f"a mixed order ({mixed}) has each prompt once in a step; set it to 1")
        if self.pass_rates.pass_over and self.runner.kind != "sync":
            yield FieldProblem(
                "pass_rates.pass_over",
                "needs runner.kind 'sync': other runners fix the prompts of a step before it is known which are trivial",
            )
        if self.well_learned and (why := self._knows_no_rates()):
            yield FieldProblem("well_learned", f"{why}; switch it off")
        longest, prompts = self.rollout.max_new_tokens, self.rollout.prompts_per_step
        if self.evaluation.samples > 1 and self.evaluation.temperature == 0:
            yield FieldProblem("evaluation.samples", "greedy decoding gives the same response each time; set this to 1")
        yield from self.sampler.problems(self.model.lora is not None, self.runner.kind)
        yield from self.runner.problems(prompts, longest, self.rollout.stop, self.objective)
        yield from self.runner.reuse_problems(self.steps, prompts, self.objective)

    def _phase_problems(self) -> Iterator[FieldProblem]:
        if self.phases and self.runner.spread > 1:
            yield FieldProblem(
                "phases",
                "responses that earlier steps sampled (runner.spread) belong to the phase before; remove the phases",
            )
        if self.phases and (why := phases.refusal(self.runner.kind, self.runner.replay, self.optim.processes)):
            yield FieldProblem("phases", f"{why}; remove the phases")
        yield from phases.problems(self.phases, self.steps, self.evaluation)
        for place, phase in enumerate(self.phases):
            for problem in self._reward_problems(phase) if isinstance(phase, RewardedPhase) else ():
                yield replace(problem, path=f"phases.{place}.{problem.path}")

    def _reward_problems(self, phase: RewardedPhase) -> Iterator[FieldProblem]:
        """Demands of a phase on rewards that cannot be met. The paths begin at the phase."""
        toggles = phase.lengths == "toggle"
        if toggles and self.rollout.replace_flat:
            yield FieldProblem(
                "lengths",
                "a length budget teaches from groups that are solved, and rollout.replace_flat replaces those; set that to 0",
            )
        if phase.verification == "on" and (why := self._cannot_verify()):
            yield FieldProblem("verification", f"{why}; set it to 'same'")
        most = self.composition.ceiling
        if most is None:
            return
        worth = f"no response is worth more than {most:.6g} by the parts of the reward"
        if (phase.begins == "pass_rate" or toggles) and phase.correct > most + ROUNDING:
            yield FieldProblem("correct", f"{worth}, so none is correct from {phase.correct:g} on; lower it")
        if toggles and phase.solved > most + ROUNDING:
            yield FieldProblem(
                "solved",
                f"{worth}, so no group has a mean of {phase.solved:g}, and no budget would ever be enforced; lower it",
            )

    def _threshold_problems(self) -> Iterator[FieldProblem]:
        """A prompt with a rubric is solved by its score, which is 1 at most; any other by its reward."""
        most, threshold = self.composition.ceiling, self.pass_rates.threshold
        if most is not None and threshold > max(most, 1.0) + ROUNDING:
            yield FieldProblem(
                "pass_rates.threshold",
                f"no score is above 1, and no reward above {most:.6g}, so no response could solve its prompt; lower it",
            )

    def _cannot_verify(self) -> str:
        """The reason why the policy cannot judge its own responses too; empty if it can."""
        if self.objective.name == "distill":
            return "distillation learns from a teacher, not from what a judgement is worth"
        if getattr(self.objective, "advantage", "") == "remax":
            return "the estimator 'remax' would compare a judgement with the score of a response"
        return ""

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from super().data_problems(counts)
        yield from phases.data_problems(self.phases, counts)
        if self.data.order:
            yield from self.data.order.data_problems(counts.get("train", {}))
        if self.data.replicas > 1 and (why := same_rates(counts.get("train", {}))):
            yield FieldProblem("data.replicas", f"{why}, so no prompt would have more groups than another; set it to 1")

    def _order_problems(self, order: Order) -> Iterator[FieldProblem]:
        for problem in order.problems():
            yield FieldProblem(f"data.order.{problem.path}", problem.message)
        if self.runner.kind != "sync":
            yield FieldProblem(
                "data.order",
                "needs runner.kind 'sync': other runners fix the prompts of a step before the steps that decide their order",
            )

    def _knows_no_rates(self) -> str:
        """The reason why responses to well-learned prompts cannot be found or weighted; empty if they can."""
        if self.objective.name in ("oapl", "distill"):
            return f"{self.objective.name!r} has no advantage whose weight could be lowered"
        if self.runner.kind == "offline":
            return "stored responses do not show what the policy solves now"
        if self.optim.processes > 1:
            return "the processes that train together (optim.processes) do not share the entropies of their responses"
        return ""

    def _needs_flat_groups(self) -> str:
        """The reason why groups with equal rewards may not be replaced; empty if they may."""
        if self.runner.kind == "async":
            return "the schedule of an asynchronous run fixes the prompts of each step before they are sampled"
        if self.runner.kind == "offline":
            return (
                "the prompts of an offline round are all sampled at its start, and runner.solved_above says which stay"
            )
        if self.objective.name == "distill":
            return "distillation learns from every response, with any reward"
        if getattr(self.objective, "advantage", "") == "remax":
            return "the estimator 'remax' compares with the greedy response, so equal rewards still teach"
        return ""

    def holdings(self) -> Holdings:
        prompt, new = self.data.max_prompt_tokens, self.rollout.max_new_tokens
        return Holdings(
            longest=prompt + new,
            frozen=self.model.lora is None and getattr(self.objective, "kl_beta", 0.0) > 0,
            teachers=self.teachers_held,
            processes=self.optim.processes,
            sampling=replace(self._sampling(prompt, new, self._held_out()), sleeps=self.runner.kind != "async"),
        )

    def reserved_cpus(self) -> float:
        return super().reserved_cpus() + self.runner.reserved_cpus

    def _held_out(self) -> int:
        """The most responses to held-out prompts at once; for pairs, as many as the sampler takes."""
        evaluation = self.evaluation
        if self.asks_of_pairs and evaluation.max_examples:
            return self.sampler.max_batch
        samples = max(evaluation.samples, self.closing.samples if self.closing else 0)
        return evaluation.max_examples * samples

    @property
    def one_memory(self) -> bool:
        """Whether sampler and learner may be one model in memory: this process trains all weights, and it alone samples with them, between
        updates and always with the newest weights."""
        runner = self.runner
        newest = runner.kind == "sync" and runner.push_every == 1 and not runner.one_step_off
        alike = self.sampler.kind == "local" and self.sampler.precision == "model"
        return newest and alike and self.model.lora is None and self.optim.processes == 1

    def _sampling(self, prompt: int, new: int, held_out: int) -> Sampling:
        runner = self.runner
        workers = runner.workers if runner.kind == "async" else 0
        at_once = max(self._asked_at_once(), held_out)
        found = self.sampler.sampling(prompt, new, at_once, workers, runner.gpus_per_worker)
        return replace(found, by="learner") if self.one_memory else found

    def _asked_at_once(self) -> int:
        """The most responses to training prompts that a sampler is asked for at once. If they are spread over steps, the first step samples
        its own groups, half of each of the next step's, a third of those after it and so on. A worker of an asynchronous run is given its part
        of what is outstanding, and a group more (`trainer.scheduling.rules`)."""
        rollout, runner = self.rollout, self.runner
        if runner.kind != "async":
            steps = min(runner.spread, self.steps)
            return rollout.prompts_per_step * sum(-(-rollout.group_size // parts) for parts in range(1, steps + 1))
        groups = math.ceil(rollout.prompts_per_step * runner.batches_at_once)
        largest = rollout.budget.high if rollout.budget else rollout.group_size
        return rollout.group_size * -(-groups // runner.workers) + largest

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
            knobs.append(f"runner.workers (now {self.runner.workers}), because each worker holds a copy of the model")
        return f"lower {' or '.join(knobs)}"

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        p, g = whole_number(raw, "rollout", "prompts_per_step"), whole_number(raw, "rollout", "group_size")
        steps, longest = whole_number(raw, "steps"), whole_number(raw, "rollout", "max_new_tokens")
        mini, epochs = whole_number(raw, "optim", "minibatch_size"), whole_number(raw, "optim", "epochs_per_step")
        batch = p * g if p and g else None
        budget = raw["rollout"].get("budget") if isinstance(raw.get("rollout"), Mapping) else None
        each = f"{g or '–'} responses{' on average' if budget else ''}"
        updates = -(-batch // mini) * epochs if batch and mini and epochs else epochs
        total = batch * steps if batch and steps else None
        tokens = total * longest if total and longest else None
        return [
            *_round_amounts(raw, p),
            Amount("Responses per step", batch, f"{p or '–'} prompts × {each}"),
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
        if rollout.budget:
            yield from self._budget_problems(rollout.budget)
        if rollout.replace_flat and (why := self._needs_flat_groups()):
            yield FieldProblem("rollout.replace_flat", f"{why}; set it to 0")
        smallest = rollout.budget.low if rollout.budget else rollout.group_size
        if self.runner.spread > smallest:
            yield FieldProblem(
                "runner.spread",
                f"a group of {smallest} has at most {smallest} steps to be sampled in; set it to that or less",
            )
        if self.runner.spread > 1 and rollout.replace_flat:
            yield FieldProblem(
                "runner.spread",
                "dynamic sampling (rollout.replace_flat) fills a step with groups of that step; switch one of them off",
            )
        if rollout.replace_flat and self.runner.replay:
            yield FieldProblem(
                "runner.replay", "a step of dynamic sampling fills itself with fresh prompts; set one to 0"
            )

    def _budget_problems(self, budget: Budget) -> Iterator[FieldProblem]:
        yield from budget.problems(self.rollout.prompts_per_step, self.rollout.group_size)
        if why := self._needs_equal_groups():
            yield FieldProblem("rollout.budget", f"{why}; switch it off")
        if budget.low == 1 and getattr(self.objective, "advantage", "") != "remax":
            yield FieldProblem(
                "rollout.budget.low",
                "a group of 1 gives its response the advantage 0; use at least 2, so that it teaches",
            )

    def _needs_equal_groups(self) -> str:
        """The reason why all groups of a step must have the same size; empty if they need not."""
        if self.runner.kind == "async" and self.runner.policy != "urb":
            return (
                f"schedule {self.runner.policy!r} takes the groups that finish first, so a step cannot divide its responses among "
                "groups of its own; choose runner.policy 'urb', or more groups of hard prompts "
                "(data.replicas)"
            )
        if self.runner.kind == "offline":
            return "the prompts of an offline round are all sampled at its start, before anything is known of them"
        if self.objective.name == "distill":
            return "distillation learns equally from every response, at any pass rate"
        return ""


def _round_amounts(raw: Mapping[str, Any], prompts: int | None) -> list[Amount]:
    """The numbers of a run in offline rounds."""
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
