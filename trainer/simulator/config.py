"""The config of a simulation: a run's names and bounds, and what the machines are like."""

import math
import statistics
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from trainer.config.errors import FieldProblem
from trainer.config.fields import Section, knob
from trainer.config.sections.budget import Budget
from trainer.scheduling import DomainShare, Rules
from trainer.scheduling.rules import PolicyName


class Batch(Section):
    prompts: int = knob(128, "Prompts of a batch (P)", unit="prompts", ge=1)
    group_size: int = knob(16, "Responses per prompt (G); with a budget, on average", unit="responses", ge=1)
    budget: Budget | None = knob(None, "A run's `rollout.budget`: prompts get as many responses as they are worth")
    pass_rates: list[Annotated[float, Field(ge=0, le=1)]] = knob(
        [],
        "With a budget: what the prompts' pass rates are drawn from, such as a probe's; empty: any from 0 to 1 alike",
    )
    sizes: list[Annotated[int, Field(ge=1)]] = knob(
        [],
        "Responses of each group in the order of the data, over and over, such as those of a run; empty: `group_size`",
    )

    @property
    def mean(self) -> int:
        """Responses of a group, rounded up if sizes differ."""
        return math.ceil(statistics.fmean(self.sizes)) if self.sizes else self.group_size

    @property
    def largest(self) -> int:
        """Responses of the largest group that may come."""
        if self.sizes:
            return max(self.sizes)
        return self.budget.high if self.budget else self.group_size

    def problems(self) -> Iterator[FieldProblem]:
        """The paths begin at the config's root."""
        if self.sizes and self.budget:
            yield FieldProblem("batch.budget", "the sizes of all groups are given (batch.sizes); leave one of them out")
        elif self.budget:
            for problem in self.budget.problems(self.prompts, self.group_size):
                yield FieldProblem(problem.path.replace("rollout", "batch", 1), problem.message)


class SimulatedSchedule(Section):
    policies: list[PolicyName] = knob(["sync", "april", "urb", "dora"], "Policies that are compared", min_length=1)
    ahead: int = knob(3, "`urb`: batches that are sampled at once", unit="batches", ge=1)
    oversample: float = knob(1.5, "`april`: groups sampled over groups trained on", ge=1)
    max_staleness: int = knob(4, "tau", unit="steps", ge=0)
    push_every: int = knob(1, "Steps between weight pushes", unit="steps", ge=1)
    pinned: bool = knob(True, "`urb`, `dora`: a response keeps the weights it began with")
    whole_groups: bool = knob(True, "Start all responses of a group on one engine, as runs do")
    late: Literal["drop", "wait"] = knob(
        "wait", "`dora`: whether a response that would become too old is excluded, or the learner waits for it first"
    )
    balance: float = knob(0.5, "`dora`: part of each domain's share that must be in a batch", ge=0, le=1)


class Cluster(Section):
    """The devices. `sync` and `april` sample and train in turn on all of them; `urb` and `dora` keep some for the learner."""

    devices: int = knob(64, "Accelerators", ge=1)
    learner_devices: int = knob(24, "Of these, the learner's, if it trains while others sample", ge=1)
    apart: bool = knob(False, "`sync` and `april` keep devices for the learner as well")


class Engine(Section):
    """The speed of an engine: decoding n responses of v versions of the weights takes `v * step_s + n * response_s`, and gives each
    response one token.
    """

    devices: int = knob(1, "Accelerators of one engine", ge=1)
    slots: int = knob(64, "Responses that an engine decodes at the same time (a run's `sampler.max_batch`)", ge=1)
    versions: int | None = knob(
        1,
        "Versions of the weights that responses side by side may have; others wait. vLLM holds one. Empty: any number, each in "
        "a pass of its own, as the local sampler does",
        ge=1,
    )
    step_s: float = knob(
        0.02, "Time of a decoding step for one version of the weights, without its responses", unit="s", gt=0
    )
    response_s: float = knob(0.0003, "Time that each response adds to a decoding step", unit="s", ge=0)
    start_s: float = knob(
        0.0125, "Time to read a prompt, or a carried response again; the others wait meanwhile", unit="s", ge=0
    )
    load_s: float = knob(1.0, "Time to load a version of the weights; all responses wait meanwhile", unit="s", ge=0)
    transit_s: float = knob(
        0.0, "Time of a response on its way to the engine and back; other responses do not wait for it", unit="s", ge=0
    )
    lives_s: float | None = knob(None, "Mean time until an engine crashes; empty: never", unit="s", gt=0)
    restart_s: float = knob(120.0, "Time until another takes its place", unit="s", ge=0)


class Lengths(Section):
    """Tokens of a response: lognormal about its prompt's own median, or drawn from `measured`."""

    median: float = knob(4000.0, "Median over all prompts", unit="tokens", gt=0)
    prompt_sigma: float = knob(0.6, "Spread of the prompts' medians, in logs", ge=0)
    sigma: float = knob(0.5, "Spread within a prompt, in logs", ge=0)
    max_tokens: int = knob(32768, "Longest response; a longer one is cut", unit="tokens", ge=1)
    measured: list[int] = knob(
        [], "Lengths of one of your runs, from which lengths are drawn; empty: the distribution above"
    )


class Latency(Section):
    """The seconds from the last token of a group's last response to its rewards."""

    median_s: float = knob(1.0, "Median", unit="s", ge=0)
    sigma: float = knob(0.5, "Spread, in logs", ge=0)


class SimulatedLearner(Section):
    step_s: float = knob(5.0, "Time of a step that does not depend on its tokens", unit="s", ge=0)
    token_s: float = knob(0.0006, "Device seconds per token; divided by the learner's devices", unit="s", ge=0)
    push_s: float = knob(2.0, "Time to publish the weights; engines load them when they need them", unit="s", ge=0)
    rest_s: float = knob(0.0, "Time before it asks for the next batch: records, evaluation, checkpoint", unit="s", ge=0)


class Domain(Section):
    share: float = knob(1.0, "Part of the data, and of a batch", gt=0)
    length_factor: float = knob(1.0, "On the lengths of its responses", gt=0)
    oversample: float = knob(1.0, "`dora`: outstanding groups over its part of (tau + 1) batches", ge=1)


class Simulation(Section):
    seed: int = knob(0, "Fixes all lengths, latencies and crashes", ge=0)
    steps: int = knob(40, "Steps that are simulated", unit="steps", ge=1)
    warmup_steps: int = knob(10, "Steps before speeds are taken", unit="steps", ge=0)
    batch: Batch = Batch()
    schedule: SimulatedSchedule = SimulatedSchedule()
    cluster: Cluster = Cluster()
    engine: Engine = Engine()
    lengths: Lengths = Lengths()
    latency: Latency = Latency()
    learner: SimulatedLearner = SimulatedLearner()
    domains: dict[str, Domain] = knob({}, "Domains of the data; empty: one")

    def engines(self, policy: PolicyName) -> int:
        free = self.cluster.devices if self.shared(policy) else self.cluster.devices - self.cluster.learner_devices
        return free // self.engine.devices

    def learner_devices(self, policy: PolicyName) -> int:
        return self.cluster.devices if self.shared(policy) else self.cluster.learner_devices

    def shared(self, policy: PolicyName) -> bool:
        """Whether sampling and training take turns on the same devices."""
        return policy in ("sync", "april") and not self.cluster.apart

    def rules(self, policy: PolicyName) -> Rules:
        """The rules of the schedule. Raises ValueError for rules that cannot work."""
        schedule, domains = self.schedule, self.domains
        quotas = {name: DomainShare(domain.share, domain.oversample) for name, domain in domains.items()}
        return Rules(
            policy,
            self.batch.prompts,
            self.batch.mean,
            largest_group=self.batch.largest,
            ahead=schedule.ahead,
            oversample=schedule.oversample,
            max_staleness=schedule.max_staleness,
            pinned=schedule.pinned and policy != "april",
            whole_groups=schedule.whole_groups,
            quotas=quotas if policy == "dora" else {},
            late=schedule.late,
            balance=schedule.balance,
        )

    def problems(self) -> Iterator[FieldProblem]:
        """Combinations of values that are valid alone but cannot work together."""
        yield from self.batch.problems()
        if self.warmup_steps >= self.steps:
            yield FieldProblem("warmup_steps", f"not below steps, which is {self.steps}: no step would be measured")
        for i, policy in enumerate(self.schedule.policies):
            where = f"schedule.policies.{i}"
            if policy in self.schedule.policies[:i]:
                yield FieldProblem(where, f"{policy!r} is there twice")
            if self.engines(policy) < 1:
                yield FieldProblem(
                    "cluster.learner_devices", f"leaves no engine of {self.engine.devices} devices for {policy!r}"
                )
            try:
                self.rules(policy)
            except ValueError as error:
                yield FieldProblem(where, str(error))
