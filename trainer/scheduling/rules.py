"""The rules of a schedule, checked once, at the start."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from trainer.config.sections.runner import by_largest_remainder

_ENDLESS = 10**12
PolicyName = Literal["sync", "april", "urb", "dora"]


def too_old(oldest: int, current: int, tau: int) -> bool:
    """Whether a response is dropped: the learner is more than `tau` versions past its oldest token (GLM-5, 2026)."""
    return current - oldest > tau


@dataclass(frozen=True)
class DomainShare:
    """A domain's `share` of every batch, and how many times that share may be outstanding (LongCat-2601: more for domains that
    are slow or seldom succeed).
    """

    share: float
    oversample: float = 1.0


@dataclass(frozen=True)
class Rules:
    """The rules of a schedule. `policy` is one of:

    `sync`: the batch of a step is sampled after the step before it; everybody waits for its longest response.
    `april` (partial rollouts, 2025): `oversample` times the batch is sampled; once a batch is finished, the rest is stopped and
    continues in the next step.
    `urb` (unbiased replay buffer, ERNIE 5.0): `ahead` batches are sampled at once; step t trains on exactly the groups that were
    assigned to t.
    `dora` (LongCat-Flash-Thinking-2601): no barrier; finished groups are taken oldest first, domains by quota.
    """

    policy: PolicyName
    groups_per_batch: int
    group_size: int
    """Responses of a group; the mean if groups differ in size."""
    ahead: int = 2
    oversample: float = 1.5
    max_staleness: int = 4
    """tau: a response is excluded when the learner is more than tau steps past the oldest weights in it."""
    pinned: bool = True
    """Whether one version samples a response from its first token to its last, also if the response is sampled again."""
    whole_groups: bool = False
    """Start all responses of a group on one worker, which then computes their prompt once."""
    clear_on_push: bool = False
    """After a push of weights, sample the outstanding responses again with the new weights (OAPL)."""
    retries: int = 3
    """The number of times that a response may lose its worker before it is excluded: the response itself may be what ends the worker."""
    heartbeat_s: float = math.inf
    quotas: Mapping[str, DomainShare] = field(default_factory=dict)
    late: Literal["drop", "wait"] = "drop"
    """`dora`: whether a response that would become too old is excluded, or the learner waits for it first."""
    balance: float = 0.5
    """`dora`: the part of each domain's share that must be in a batch; the rest is filled with what is finished."""
    largest_group: int | None = None
    """The largest size if groups differ in size. None: all have `group_size`."""
    steps: int | None = None
    """The run's last step: a response that no step can train on is not sampled. None: there is no last step."""

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ValueError(problem)

    @property
    def shares(self) -> dict[str, int]:
        """Groups of each domain in a batch, by largest remainder; they sum to the batch. Empty without quotas."""
        return by_largest_remainder({name: quota.share for name, quota in self.quotas.items()}, self.groups_per_batch)

    @property
    def largest(self) -> int:
        """Responses of the largest group that may come."""
        return self.group_size if self.largest_group is None else self.largest_group

    @property
    def outstanding(self) -> int:
        """The number of groups that may be sampled at once, without those that quotas ask for in addition."""
        batches = {"sync": 1, "april": self.oversample, "urb": self.ahead, "dora": self.max_staleness + 1}
        return math.ceil(self.groups_per_batch * batches[self.policy])

    def places(self, side_by_side: int, workers: int) -> int:
        """The number of responses that each of `workers` is given at a time; it samples up to `side_by_side` of them at once.

        No worker gets much more than its part, or the first to come would have all. One group more fills places that become free
        before the scheduler hears of them.
        """
        part = self.group_size * -(-self.outstanding // workers)
        return min(side_by_side, part) + self.largest

    def batches_left(self, taken: int) -> int:
        """Batches still to come when `taken` have gone to the learner."""
        return (_ENDLESS if self.steps is None else self.steps) - taken

    def _problems(self) -> list[str]:
        problems = []
        if self.groups_per_batch < 1 or self.group_size < 1:
            problems.append("a batch has at least one group and a group at least one response")
        if self.largest < self.group_size:
            problems.append(f"groups of {self.group_size} on average cannot all have at most {self.largest} responses")
        if self.oversample < 1 or any(quota.oversample < 1 for quota in self.quotas.values()):
            problems.append("oversample below 1 would never fill a batch")
        if any(quota.share <= 0 for quota in self.quotas.values()):
            problems.append("a domain without a share cannot be asked for; leave it out")
        if self.policy == "urb" and self.ahead < 1:
            problems.append("urb needs at least one batch in its pool")
        if self.policy == "urb" and self.ahead - 1 > self.max_staleness:
            problems.append(
                f"with {self.ahead} batches in the pool responses are {self.ahead - 1} steps old when they are trained "
                f"on, and max_staleness {self.max_staleness} would exclude them all"
            )
        if self.quotas and self.policy != "dora":
            problems.append(f"policy {self.policy!r} trains groups in an order of its own; quotas need 'dora'")
        return problems
