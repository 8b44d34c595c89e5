"""One signal through a run: the first steps show what is usual, then each step is tested for more responses that show the signal."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .detector import Payment, Rise
from .signals import RewardedResponse

SLACK = 0.05
"""A share of responses: a rise above the baseline's upper limit that is smaller raises no alarm."""
PAID = 2.0
QUANTILE = 0.9


@dataclass(frozen=True)
class Alarm:
    """The alarm that `signal` of `subject` has risen at `step`. The subject is a part of the reward or a phrase; empty if there is only
    one.

    `since` is the step from which on it was above the usual. `share` of this step's responses show it, `before` is the share of the
    baseline. `paid` is z of the reward's payment for it; None if the alarm needs no payment. `places` has (group, index) of the
    responses of this step that show it, the highest reward first. `part` and `criterion` name the part of the reward and the criterion
    on which they earn most clearly more, see `credit`.
    """

    signal: str
    subject: str
    step: int
    since: int
    share: float
    before: float
    paid: float | None
    places: tuple[tuple[int, int], ...]
    part: str = ""
    criterion: str = ""


class SignalMonitor:
    """Follows one signal. A `numeric` signal is present above the baseline's 90th percentile and a margin; another signal, if it is 1.

    With `paid` an alarm needs a reward that pays for the signal. A follower raises at most one alarm.
    """

    def __init__(self, signal: str, subject: str = "", numeric: bool = False, paid: bool = True) -> None:
        self.signal, self.subject, self._numeric, self._paid = signal, subject, numeric, paid
        self._baseline: list[tuple[int, int, float]] = []
        self._cut = 0.5
        self._rise: Rise | None = None
        self._payment = Payment()
        self._told = False

    def learn(self, step: int, rows: Sequence[tuple[RewardedResponse, float]]) -> None:
        """Take responses of the baseline, with their values."""
        self._baseline += [(step, scored.group, value) for scored, value in rows]

    def settle(self, level: float, margin: float) -> None:
        """End the baseline. If it has no value, there is nothing to compare with, and the follower never raises an alarm."""
        if not self._baseline:
            return
        numbers = sorted(value for _, _, value in self._baseline)
        if self._numeric:
            self._cut = numbers[math.ceil(QUANTILE * len(numbers)) - 1] + margin
        groups: dict[tuple[int, int], list[float]] = defaultdict(list)
        for step, group, value in self._baseline:
            groups[step, group].append(float(value > self._cut))
        self._rise = Rise.of([sum(each) / len(each) for each in groups.values()], level, SLACK)
        self._baseline = []

    def see(self, step: int, rows: Sequence[tuple[RewardedResponse, float]]) -> Alarm | None:
        """Take the responses of a later step, with their values. Returns the alarm, or None."""
        if self._rise is None or self._told or not rows:
            return None
        groups: dict[int, list[tuple[RewardedResponse, float]]] = defaultdict(list)
        for scored, value in rows:
            groups[scored.group].append((scored, value))
        self._payment.see([([v for _, v in each], [s.reward for s, _ in each]) for each in groups.values()])
        shares = [sum(value > self._cut for _, value in each) / len(each) for each in groups.values()]
        risen, z = self._rise.see(step, shares), self._payment.z
        if not risen or (self._paid and (z is None or z < PAID)):
            return None
        self._told = True
        showing = [scored for scored, value in rows if value > self._cut]
        return alarm(self.signal, self.subject, step, self._rise, z if self._paid else None, showing)

    def explains(self, value: float | None) -> bool:
        """Whether an alarm has already reported what a response with this value shows."""
        return self._told and value is not None and value > self._cut

    def state_dict(self) -> dict[str, Any]:
        return {
            "baseline": self._baseline,
            "cut": self._cut,
            "rise": self._rise and self._rise.state_dict(),
            "payment": self._payment.state_dict(),
            "told": self._told,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._baseline = [(step, group, value) for step, group, value in state["baseline"]]
        self._cut, self._told = state["cut"], state["told"]
        self._rise = state["rise"] and Rise.from_state(state["rise"])
        self._payment = Payment(*state["payment"])


def alarm(
    signal: str, subject: str, step: int, rise: Rise, paid: float | None, showing: Sequence[RewardedResponse]
) -> Alarm:
    """The alarm with the responses of this step that show the signal, the highest reward first."""
    best = sorted(showing, key=lambda each: (-each.reward, each.group, each.index))
    since = step if rise.since is None else rise.since
    places = tuple((each.group, each.index) for each in best)
    return Alarm(signal, subject, step, since, rise.share, rise.before, paid, places)
