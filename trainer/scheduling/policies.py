"""Each policy of a schedule decides how many groups are sampled at once, and which groups make a batch."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Protocol

from .groups import Group
from .rules import Rules


class SchedulerView(Protocol):
    """The part of the scheduler that a policy sees."""

    step: int
    """Finished optimiser steps."""
    taken: int
    """The number of batches that have gone to the learner."""
    admitted: int
    by_domain: Counter[str]
    """The number of groups of each domain that are outstanding or at the learner."""

    @property
    def at_learner(self) -> Sequence[Group]:
        """The batch that the learner trains on now."""
        ...

    @property
    def groups(self) -> Mapping[int, Group]:
        """The outstanding groups: admitted, and neither trained on nor dropped."""
        ...

    @property
    def complete(self) -> Mapping[int, Group]:
        """The outstanding groups that could be trained on, in the order in which they were finished."""
        ...


class Policy(Protocol):
    barrier: bool
    """Whether sampling stops while the learner trains."""
    at_admission: bool
    """Whether, with `pinned`, a group's weights are those at its admission, so that they do not depend on which worker is free when."""

    def __init__(self, rules: Rules) -> None: ...

    def wanted(self, pool: SchedulerView) -> list[str | None]:
        """The domains of the groups to admit now; None stands for the next group of any domain."""
        ...

    def usable(self, number: int) -> bool:
        """Whether a step of the run can train on group `number`."""
        ...

    def batch(self, pool: SchedulerView) -> list[Group] | None:
        """The groups of the next step in order; None if they are not complete yet."""
        ...


class UnbiasedReplay:
    """ERNIE 5.0 (2026), U-RB: group n belongs to step n // P + 1, even if another group finishes first.

    Groups of steps beyond the last are admitted, which fixes their weights, but they are not sampled: if the run is extended, it
    samples them as a longer run would have.
    """

    barrier = False
    at_admission = True

    def __init__(self, rules: Rules) -> None:
        self._size, self._ahead = rules.groups_per_batch, rules.ahead
        self._end = rules.batches_left(0) * rules.groups_per_batch

    def wanted(self, pool: SchedulerView) -> list[str | None]:
        return [None] * ((pool.step + self._ahead) * self._size - pool.admitted)

    def usable(self, number: int) -> bool:
        return number < self._end

    def batch(self, pool: SchedulerView) -> list[Group] | None:
        mine = range(pool.step * self._size, (pool.step + 1) * self._size)
        if any(number in pool.groups and number not in pool.complete for number in mine):
            return None
        return [pool.complete[number] for number in mine if number in pool.complete]


class Sync(UnbiasedReplay):
    """A pool of one batch, sampled with the weights that the batch then trains."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self._ahead = 1


class April:
    """Active partial rollouts (2025): more groups than a batch; the first to finish are trained on."""

    barrier = True
    at_admission = False

    def __init__(self, rules: Rules) -> None:
        self._rules, self._size = rules, rules.groups_per_batch
        self._outstanding = math.ceil(rules.groups_per_batch * rules.oversample)

    def wanted(self, pool: SchedulerView) -> list[str | None]:
        if not self._rules.batches_left(pool.taken):
            return []
        return [None] * (self._outstanding - len(pool.groups))

    def usable(self, number: int) -> bool:
        return True

    def batch(self, pool: SchedulerView) -> list[Group] | None:
        if len(pool.complete) < self._size:
            return None
        return list(pool.complete.values())[: self._size]


class Dora:
    """LongCat-Flash-Thinking-2601 (2026): streaming, several versions at once, over-sampling by domain.

    At most `(tau + 1) * batch` groups are outstanding or at the learner, and the oldest weights are taken first. So a
    group that does not lag behind the others is trained on within tau steps. Quotas may ask for more of a domain. In the
    last steps, no more groups are outstanding than the remaining batches need.
    """

    barrier = False
    at_admission = False

    def __init__(self, rules: Rules) -> None:
        self._rules, self._size, lag = rules, rules.groups_per_batch, rules.max_staleness + 1
        self._shares = rules.shares
        self._most = {name: math.ceil(n * lag * rules.quotas[name].oversample) for name, n in self._shares.items()}
        self._least = {name: math.ceil(n * rules.balance) for name, n in self._shares.items()}
        self._outstanding = self._size * lag
        self._waits, self._tau = rules.late == "wait", rules.max_staleness

    def wanted(self, pool: SchedulerView) -> list[str | None]:
        left = self._rules.batches_left(pool.taken)
        if not self._shares:
            present = len(pool.groups)
            return [None] * min(self._outstanding - present - len(pool.at_learner), left * self._size - present)
        learning = Counter(group.domain for group in pool.at_learner)
        wanted: list[str | None] = []
        for name, most in self._most.items():
            useful = self._useful(name, left) + learning[name]
            wanted += [name] * (min(most, useful) - pool.by_domain[name])
        return wanted

    def _useful(self, name: str, left: int) -> int:
        """The number of groups of a domain that the remaining batches need, with the domain's oversampling for one of them."""
        return math.ceil(self._shares[name] * (left - 1 + self._rules.quotas[name].oversample)) if left else 0

    def usable(self, number: int) -> bool:
        return True

    def batch(self, pool: SchedulerView) -> list[Group] | None:
        if len(pool.complete) < self._size:
            return None
        finished = Counter(group.domain for group in pool.complete.values())
        if any(finished[name] < least for name, least in self._least.items()):
            return None
        chosen = self._chosen(sorted(pool.complete.values(), key=lambda group: (_begun(group), group.number)))
        return None if self._waits and self._too_soon(pool, chosen) else chosen

    def _too_soon(self, pool: SchedulerView, chosen: list[Group]) -> bool:
        """Whether older groups that are still sampled should go first: after this batch, some of the other groups could not
        all be trained on within tau steps, one batch a step.
        """
        taken, newest = {group.number for group in chosen}, max(_begun(group) for group in chosen)
        left = [group for group in pool.groups.values() if group.begun is not None and group.number not in taken]
        if not any(group.open and _begun(group) < newest for group in left):
            return False  # no older group to wait for
        slack = Counter(_begun(group) + self._tau - (pool.step + 1) for group in left)
        due = accumulate(slack[steps] for steps in range(min(slack), self._tau + 1))
        places = ((steps + 1) * self._size for steps in range(min(slack), self._tau + 1))
        return any(wanted > max(0, room) for wanted, room in zip(due, places, strict=True))

    def _chosen(self, groups: list[Group]) -> list[Group]:
        """The groups of a batch: each domain up to its share, then the oldest of the rest."""
        left = Counter(self._shares)
        within: list[Group] = []
        beyond: list[Group] = []
        for group in groups:
            (within if not self._shares or left[group.domain] > 0 else beyond).append(group)
            left[group.domain] -= 1
        return (within + beyond)[: self._size]


def _begun(group: Group) -> int:
    assert group.begun is not None  # noqa: S101 - asked only of groups that were started
    return group.begun


POLICIES: dict[str, type[Policy]] = {"sync": Sync, "april": April, "urb": UnbiasedReplay, "dora": Dora}
