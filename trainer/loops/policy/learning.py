"""Signs that a run learns badly: its entropy collapses, its gradients die, or sampler and trainer disagree."""

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from trainer.config import OnPolicyConfig
from trainer.config.alarms import DEAD, ENTROPY, FEW_TOKENS, MISMATCH, NO_NORM, alarm_text
from trainer.config.objectives.knobs import DistillParameters, OaplParameters
from trainer.contracts import AlarmData

from ..learner.engine_check import BOUNDS, precision
from ..session.stage import Tell
from .update import UpdateReport

FIRST_STEPS = 5
"""The steps whose median says what is usual: the median, so that one odd step among them changes little."""
FACTOR = 2.0
"""The factor between sampler and trainer up to which a token counts in IcePop (its bound b; both bounds are inclusive)."""
_ROOM = 2.0
"""A value is healthy again when it is better than the limit by this factor. Only then can the same alarm be raised again."""


@dataclass(frozen=True)
class Vitals:
    """Signs of how the run learns, measured in one step. A sign is None if the step does not show it.

    `entropy`: of the policy, the mean over the tokens that were trained on (nats). `norm`: of the gradient before clipping, the largest
    of the step's updates. `taught`: the share of these tokens that had a policy gradient. `apart`: the share of the tokens that sampler
    and trainer measured with the same weights and prompt, and to which they gave probabilities that differ by more than FACTOR.
    """

    entropy: float | None = None
    norm: float | None = None
    taught: float | None = None
    apart: float | None = None


def measure_step(report: UpdateReport, advantages_B: Tensor, config: OnPolicyConfig, fresh: Collection[int]) -> Vitals:
    """Measure a step from the report of its updates. `fresh` are the responses that were sampled with the weights before the step.

    A step in which no response has an advantage has neither `norm` nor `taught`: it is one of those of the alarm `flat`. An objective that
    needs no advantage (a teacher, a regression) has both in each step.
    """
    tokens = sum(len(weight) for weight in report.weight.values())
    if not tokens:
        return Vitals()
    always = isinstance(config.objective, DistillParameters | OaplParameters)
    moving = [b for b in report.weight if always or float(advantages_B[b]) != 0.0]
    entropy = sum(float(part.sum()) for part in report.entropy.values()) / tokens
    compared = [report.apart[b] for b in fresh if b in report.apart]
    measured = sum(len(part) for part in compared)
    apart = sum(int((part.abs() > math.log(FACTOR)).sum()) for part in compared)
    return Vitals(
        entropy,
        max(report.grad_norms) if moving else None,
        sum(int((report.weight[b] != 0).sum()) for b in moving) / tokens if moving else None,
        apart / measured if measured else None,
    )


class LearningWatch:
    """Raises an alarm if one of these holds in `alarms.in_a_row` steps in a row, with the limits of the config:

    - `entropy`: entropy_t <= entropy_below * median(entropy_1..5)
    - `dead`: norm_t <= gradient_below * median(norm_1..5), or taught_t <= tokens_below
    - `mismatch`: apart_t > max(mismatch_above, exp(-log 2 / m)), with m the mean |log pi_train - log pi_roll| that the check of the
      engine allows to a sampler of this precision: the share of tokens beyond a factor of 2, if the differences are exponential

    A step that does not show a value counts in no row. A row is reported once; the next can be reported after a step with a value on the
    healthy side of twice the limit (for `mismatch`, half of it). The state goes with the checkpoint.
    """

    def __init__(self, config: OnPolicyConfig, role: str = "") -> None:
        self._role, self._bounds = role, config.alarms
        self._first: dict[str, list[float]] = {"entropy": [], "norm": [], "taught": []}
        names = ((ENTROPY, ""), (DEAD, NO_NORM), (DEAD, FEW_TOKENS), (MISMATCH, ""))
        self._rows = {name: _Row() for name in names}
        allowed = math.exp(-math.log(FACTOR) / BOUNDS[precision(config)].mean)
        self._apart = max(config.alarms.mismatch_above, allowed)

    def look(self, step: int, found: Vitals, tell: Tell) -> None:
        """Look at a step that has happened."""
        for reading in self._readings(found):
            since = self._rows[reading.signal, reading.subject].look(step, reading, self._bounds.in_a_row)
            if since is None:
                continue
            alarm = AlarmData(
                signal=reading.signal,
                subject=reading.subject,
                since=since,
                share=min(1.0, reading.share),
                before=min(1.0, reading.before),
                places=(),
                role=self._role,
                value=reading.value,
                usual=reading.usual,
            )
            tell.log(alarm_text(alarm, step), "warning")
            tell.alarm(alarm)

    def _readings(self, found: Vitals) -> Iterator["VitalReading"]:
        """Everything that the step shows and that is watched."""
        usual = {name: self._usual(name, getattr(found, name)) for name in self._first}
        bounds = self._bounds
        for signal, subject, name, part in (
            (ENTROPY, "", "entropy", bounds.entropy_below),
            (DEAD, NO_NORM, "norm", bounds.gradient_below),
        ):
            value, first = getattr(found, name), usual[name]
            if value is not None and first is not None and part:
                yield VitalReading(
                    signal,
                    subject,
                    value,
                    first,
                    share=value / first if first else 0.0,
                    before=1.0,
                    shown=value <= part * first,
                    healthy=value > _ROOM * part * first,
                )
        if (taught := found.taught) is not None and (limit := bounds.tokens_below):
            healthy, first = taught >= min(1.0, _ROOM * limit), usual["taught"]
            before = taught if first is None else first
            yield VitalReading(DEAD, FEW_TOKENS, taught, first, taught, before, taught <= limit, healthy)
        if (apart := found.apart) is not None and (limit := self._apart) < 1:
            yield VitalReading(MISMATCH, "", apart, limit, apart, limit, apart > limit, apart <= limit / _ROOM)

    def _usual(self, name: str, value: float | None) -> float | None:
        """The median of the first steps; None until there are enough of them, and at the last of them."""
        first = self._first[name]
        if len(first) == FIRST_STEPS:
            return statistics.median(first)
        if value is not None:
            first.append(value)
        return None

    def state_dict(self) -> dict[str, Any]:
        return {"first": self._first, "rows": [row.state() for row in self._rows.values()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state; checkpoints of earlier releases have none."""
        self._first |= {name: list(values) for name, values in state.get("first", {}).items()}
        for row, kept in zip(self._rows.values(), state.get("rows", []), strict=False):
            row.load(kept)


@dataclass(frozen=True)
class VitalReading:
    """A value of a step: what its alarm would say, whether the step shows the sign, and whether it is healthy again."""

    signal: str
    subject: str
    value: float
    usual: float | None
    share: float
    before: float
    shown: bool
    healthy: bool


class _Row:
    """Steps in a row that show a sign, until a healthy step."""

    def __init__(self) -> None:
        self._length, self._since, self._told = 0, 0, False

    def look(self, step: int, reading: VitalReading, enough: int) -> int | None:
        """The first step of the row if the alarm is due with this step."""
        if reading.healthy:
            self._told = False
        if not reading.shown:
            self._length = 0
            return None
        self._length += 1
        if self._length == 1:
            self._since = step
        if self._told or self._length < enough:
            return None
        self._told = True
        return self._since

    def state(self) -> list[int]:
        return [self._length, self._since, int(self._told)]

    def load(self, state: Sequence[int]) -> None:
        self._length, self._since, self._told = state[0], state[1], bool(state[2])
