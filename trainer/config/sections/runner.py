"""The processes that sample and train, and what they do at the same time."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from trainer.contracts.plurals import with_noun

from ..errors import FieldProblem
from ..fields import Section, knob
from ..objectives.policy import sampler_is_old

ASYNC, SYNC, OFFLINE = (("kind", (name,)) for name in ("async", "sync", "offline"))
URB, APRIL, DORA = (("policy", (name,)) for name in ("urb", "april", "dora"))


class DomainQuota(Section):
    """The share of every step for a domain of the dataset, independent of how much data it has."""

    domain: str = knob("", "The domain, as in the examples' field `domain`", max_length=200)
    share: float = knob(1.0, "Share of a step's prompts, relative to the sum of all shares", gt=0, le=1000)
    oversample: float = knob(
        1.0,
        "Prompts of the domain that are sampled at once, divided by the number that its share needs; use more for slow domains",
        ge=1,
        le=16,
    )


def by_largest_remainder(wanted: Mapping[str, float], places: int) -> dict[str, int]:
    """Divides `places` in proportion, by largest remainder: the parts sum to `places`, and some may be 0. Without shares it is empty."""
    total = sum(wanted.values())
    exact = {name: places * share / total for name, share in wanted.items()}
    found = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (found[name] - exact[name], name))
    for name in by_remainder[: places - sum(found.values())]:
        found[name] += 1
    return found


class Runner(Section):
    """`sync`: sample, then train, in one process. `async`: Ray workers sample and score while the learner trains.
    `offline`: rounds, each of which stores many responses and then trains on nothing else."""

    kind: Literal["sync", "async", "offline"] = knob(
        "sync",
        "`sync`: sample, then train. `async`: sample on Ray workers while the learner trains. `offline`: rounds of "
        "push_every steps; the policy answers the prompts of the whole round, the responses are stored, and the round "
        "trains on them (OAPL)",
    )
    policy: Literal["urb", "april", "dora"] = knob(
        "urb",
        "With `async`. `urb`: every step trains on its own prompts, in the order of the data, and a run can be repeated "
        "exactly. `april`: sample more prompts than needed, train on those that finish first, and continue the rest later. "
        "`dora`: streaming, oldest first",
        when=ASYNC,
    )
    workers: int = knob(
        2, "Number of processes that sample, each with a copy of the model", unit="workers", ge=1, le=4096, when=ASYNC
    )
    reward_workers: int = knob(
        1, "Processes that score responses", unit="workers", ge=1, le=4096, advanced=True, when=ASYNC
    )
    cpus_per_worker: int = knob(
        0, "CPUs that Ray reserves for each worker; 0: none are reserved", unit="CPUs", ge=0, advanced=True, when=ASYNC
    )
    gpus_per_worker: int = knob(
        1,
        "GPUs that Ray reserves for each worker if the cluster has any; 0: workers sample on processors",
        unit="GPUs",
        ge=0,
        le=1,
        advanced=True,
        when=ASYNC,
    )
    ahead: int = knob(
        2,
        "With `urb`: the number of steps whose prompts are sampled at once, including the present step",
        ge=1,
        le=64,
        when=URB,
    )
    oversample: float = knob(
        1.5, "With `april`: prompts sampled, divided by prompts trained on", ge=1, le=16, when=APRIL
    )
    segment_tokens: int = knob(
        0,
        "With `april`: tokens after which a response can be postponed; 0: only at its end",
        unit="tokens",
        ge=0,
        when=APRIL,
    )
    max_staleness: int = knob(
        2,
        "Exclude responses that older weights sampled, if they are more than this many steps old",
        unit="steps",
        ge=0,
        le=1000,
        when=ASYNC,
    )
    push_every: int = knob(
        1,
        "Steps between two pushes of weights to the sampler, which lags behind in between",
        unit="steps",
        ge=1,
        le=10_000,
    )
    reset_optimizer: bool = knob(False, "Reset the optimiser's moments at each push, as GLM-5 does", advanced=True)
    clear_on_push: bool = knob(
        False,
        "At a push, sample the outstanding responses again with the new weights, as OAPL asks",
        advanced=True,
        when=ASYNC,
    )
    late: Literal["wait", "drop"] = knob(
        "wait",
        "With `dora`: wait for responses that would become too old, or continue without them",
        advanced=True,
        when=DORA,
    )
    quotas: list[DomainQuota] = knob(
        [],
        "With `dora`: the share of each domain in every step; none: prompts come in the order of the data",
        advanced=True,
        when=DORA,
    )
    heartbeat_s: float = knob(
        300.0, "Replace a worker that has made no progress for this long", unit="s", gt=0, advanced=True, when=ASYNC
    )
    retries: int = knob(
        3, "A response may lose its worker this often before it is excluded", ge=0, le=100, advanced=True, when=ASYNC
    )
    one_step_off: bool = knob(
        False,
        "With `sync`: train on responses that were sampled before the last update, as if sampling ran beside training",
        advanced=True,
        when=SYNC,
    )
    replay: int = knob(
        0,
        "With `sync`: how many prompts each step trains on again, drawn from those that the sampler's present weights have "
        "answered; each push clears them",
        unit="prompts",
        ge=0,
        le=4096,
        advanced=True,
        when=SYNC,
    )
    spread: int = knob(
        1,
        "With `sync`: over how many steps the responses to a prompt are sampled, including the step that trains on them. "
        "Each step still trains on whole groups, whose responses come from several versions of the weights",
        unit="steps",
        ge=1,
        le=64,
        advanced=True,
        when=SYNC,
    )
    round_epochs: int = knob(
        1, "With `offline`: passes over the stored responses of a round", unit="passes", ge=1, le=100, when=OFFLINE
    )
    later_round_epochs: int | None = knob(
        None,
        "With `offline`: passes in every round after the first; empty: as many as in the first. The steps of a round stay "
        "the same, so more passes mean fewer prompts",
        unit="passes",
        ge=1,
        le=100,
        advanced=True,
        when=OFFLINE,
    )
    solved_above: float | None = knob(
        0.0,
        "With `offline`: leave out and count the prompts without a response whose reward is above this; empty: only "
        "prompts without any reward are left out",
        when=OFFLINE,
    )

    @property
    def batches_at_once(self) -> float:
        """Steps whose groups workers sample at once, as `trainer.scheduling.Rules` counts them; without what quotas ask for on top."""
        return {"april": self.oversample, "urb": self.ahead, "dora": self.max_staleness + 1}[self.policy]

    @property
    def reserved_cpus(self) -> int:
        """CPUs that Ray reserves for all workers."""
        return self.cpus_per_worker * (self.workers + self.reward_workers) if self.kind == "async" else 0

    def problems(self, prompts: int, max_new_tokens: int, stop: list[str], objective: Any) -> Iterator[FieldProblem]:
        """Combinations of values that cannot work. Fields that the `kind` does not use are not checked."""
        if self.kind != "async":
            return
        if self.policy == "urb" and self.ahead + self.push_every - 2 > self.max_staleness:
            yield FieldProblem(
                "runner.max_staleness",
                f"with ahead {self.ahead} and push_every {self.push_every} responses are up to "
                f"{self.ahead + self.push_every - 2} steps old, and all of them would be excluded",
            )
        if self.policy == "dora" and self.push_every - 1 > self.max_staleness:
            yield FieldProblem(
                "runner.push_every", f"the weights would be older than max_staleness {self.max_staleness} allows"
            )
        if self.policy == "april" and self.push_every > self.max_staleness + 1:
            yield FieldProblem(
                "runner.push_every", f"the weights would be older than max_staleness {self.max_staleness} allows"
            )
        if self.segment_tokens >= max_new_tokens:
            yield FieldProblem(
                "runner.segment_tokens", f"must be below rollout.max_new_tokens, which is {max_new_tokens}"
            )
        if self.segment_tokens and self.policy != "april":
            yield FieldProblem("runner.segment_tokens", f"{self.policy!r} samples a response in one piece; set it to 0")
        if self.segment_tokens and stop:
            yield FieldProblem(
                "runner.segment_tokens",
                "a text of rollout.stop that lies across two segments would not be found; set this to 0",
            )
        yield from self._quota_problems(prompts)
        if getattr(objective, "advantage", "") == "remax":
            yield FieldProblem(
                "objective.advantage",
                "'remax' compares with a greedy response of the weights that sampled, and these are gone by then; choose "
                "another estimator or runner.kind 'sync'",
            )

    def _quota_problems(self, prompts: int) -> Iterator[FieldProblem]:
        if self.quotas and self.policy != "dora":
            yield FieldProblem("runner.quotas", f"{self.policy!r} trains prompts in its own order; quotas need 'dora'")
        names = [quota.domain for quota in self.quotas]
        for i, name in enumerate(names):
            if name in names[:i]:
                yield FieldProblem(f"runner.quotas.{i}.domain", f"two quotas are for {name!r}")
        dealt = by_largest_remainder({quota.domain: quota.share for quota in self.quotas}, prompts)
        for i, name in enumerate(names):
            if not dealt[name]:
                yield FieldProblem(
                    f"runner.quotas.{i}.share",
                    f"less than one of the {with_noun(prompts, 'prompts')} of a step; raise it or rollout.prompts_per_step",
                )

    def reuse_problems(self, steps: int, prompts: int, objective: Any) -> Iterator[FieldProblem]:
        """The reason why one process cannot train on responses later than it has sampled them."""
        if self.kind == "offline":
            yield from self._round_problems(steps, prompts)
        if self.one_step_off and self.push_every > 1:
            yield FieldProblem(
                "runner.one_step_off", f"the sampler already lags by up to {self.push_every} steps; set push_every to 1"
            )
        for name in ("one_step_off", "replay"):
            if getattr(self, name) and self.kind != "sync":
                yield FieldProblem(
                    f"runner.{name}", f"is only for runner.kind 'sync', and runner.kind is {self.kind!r}"
                )
        if self.replay and self.kind == "sync":
            yield from self._replay_problems(objective)
        if self.spread > 1:
            yield from self._spread_problems(objective)

    def _spread_problems(self, objective: Any) -> Iterator[FieldProblem]:
        if self.kind != "sync":
            yield FieldProblem(
                "runner.spread", f"is only for runner.kind 'sync', and runner.kind is {self.kind!r}; set this to 1"
            )
        if self.replay:
            yield FieldProblem(
                "runner.spread",
                "responses that are trained on again (runner.replay) come from one version of the weights; switch one of them off",
            )
        if not (sampler_is_old(objective) or getattr(objective, "decoupled", False)):
            yield FieldProblem(
                "runner.spread",
                f"{objective.name!r} would treat responses of older weights as its own; choose an objective that compares "
                "with the sampler's record (oapl, kimi, double_sided), or set objective.decoupled",
            )

    def _round_problems(self, steps: int, prompts: int) -> Iterator[FieldProblem]:
        if self.push_every == 1:
            yield FieldProblem(
                "runner.push_every", "a round of one step is the same as 'sync'; set this to the steps of a round"
            )
        elif steps % self.push_every:
            yield FieldProblem(
                "runner.push_every",
                f"a run of {with_noun(steps, 'steps')} does not divide into rounds of {self.push_every}",
            )
        for name in ("round_epochs", "later_round_epochs"):
            passes = getattr(self, name)
            if passes and self.push_every * prompts % passes:
                yield FieldProblem(
                    f"runner.{name}",
                    f"a round of {with_noun(self.push_every, 'steps')} of {with_noun(prompts, 'prompts')} does not divide into {with_noun(passes, 'passes')}",
                )
        if self.later_round_epochs and self.push_every >= steps:
            yield FieldProblem("runner.later_round_epochs", "the run has only one round; leave this empty")

    def _replay_problems(self, objective: Any) -> Iterator[FieldProblem]:
        if self.push_every == 1:
            yield FieldProblem(
                "runner.replay",
                "each push clears the responses that can be replayed, and with push_every 1 every step pushes; raise push_every",
            )
        if not (sampler_is_old(objective) or getattr(objective, "decoupled", False)):
            yield FieldProblem(
                "runner.replay",
                f"{objective.name!r} would treat replayed responses as its own; choose an objective that compares with the "
                "sampler's record (oapl, kimi, double_sided), or set objective.decoupled",
            )
