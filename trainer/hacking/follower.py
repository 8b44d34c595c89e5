"""One signal through a run: what is usual from the first steps, then whether more responses show it than usual."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .detector import Payment, Rise
from .signals import RewardedResponse

SLACK = 0.05
"""Of the responses: a share that drifts by less above the baseline's upper limit is no news."""
PAID = 2.0
QUANTILE = 0.9


@dataclass(frozen=True)
class Alarm:
    """`signal` of `subject` (a part of the reward, a phrase; empty where there is only one) has risen at `step`.

    `since`: the step from which on it was above the usual. `share` of this step's responses show it, `before` of the
    baseline's. `paid`: z of the reward's payment for it, None where none is asked for. `places`: (group, index) of
    responses of this step that show it, those with the highest reward first. `part` of the reward and `criterion`: what
    they earn most clearly more on, see `credit`.
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


class Follower:
    """A `numeric` signal counts as present beyond the baseline's 90th percentile and a margin, another where it is 1.

    `paid`: an alarm needs a reward that pays for the signal. One alarm is all it raises.
    """

    def __init__(self, signal: str, subject: str = "", numeric: bool = False, paid: bool = True) -> None:
        self.signal, self.subject, self._numeric, self._paid = signal, subject, numeric, paid
        self._baseline: list[tuple[int, int, float]] = []
        self._cut = 0.5
        self._rise: Rise | None = None
        self._payment = Payment()
        self._told = False

    def learn(self, step: int, rows: Sequence[tuple[RewardedResponse, float]]) -> None:
        """Responses of the baseline, with their values."""
        self._baseline += [(step, scored.group, value) for scored, value in rows]

    def settle(self, level: float, margin: float) -> None:
        """The baseline is over. Without any value in it, there is nothing to compare with, and no alarm ever."""
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
        """Responses of a later step."""
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
        """Whether an alarm has told already what a response with this value shows."""
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
    """With the responses of this step that show it, those that earned most first."""
    best = sorted(showing, key=lambda each: (-each.reward, each.group, each.index))
    since = step if rise.since is None else rise.since
    places = tuple((each.group, each.index) for each in best)
    return Alarm(signal, subject, step, since, rise.share, rise.before, paid, places)
