"""The section of a config decides how many responses each prompt of a step gets, and when a prompt counts as solved."""

from collections.abc import Iterator
from typing import Literal

from ..errors import FieldProblem
from ..fields import Section, knob

ValueName = Literal["learning", "signal", "variance"]


class PassRates(Section):
    """The run keeps count of how often the policy solves each training prompt."""

    threshold: float = knob(
        1.0,
        "A response solves its prompt if its clipped rubric score, or without a rubric its reward, is at least this",
        gt=0,
        advanced=True,
    )
    keep: float = knob(
        0.5,
        "Weight of earlier responses when a prompt is met again; 0: only the responses of the last visit count",
        ge=0,
        lt=1,
        advanced=True,
    )

    pass_over: float = knob(
        0.0,
        "Probability that a trivial prompt is skipped when its turn comes; the next prompt takes its place. 1: always",
        ge=0,
        le=1,
    )
    trivial: float = knob(
        0.95,
        "A prompt is trivial if at least this share of the responses that the run remembers solves it",
        unit="of the responses",
        gt=0,
        le=1,
        advanced=True,
    )


class Budget(Section):
    """Dynamic budget: each response of a step goes to the prompt where it is worth most."""

    low: int = knob(2, "The fewest responses for a prompt", unit="responses", ge=1, le=256)
    high: int = knob(16, "The most responses for a prompt", unit="responses", ge=1, le=256)
    value: ValueName = knob(
        "learning",
        "The worth of one more response to a prompt with pass rate p and n responses. `learning`: p (1 - p) / ((n + 1) (n "
        "+ 2)), how much more certain a smoothed pass rate becomes. `signal`: p^n (1 - p) + (1 - p)^n p, how much more likely "
        "the rewards of the group are to differ. `variance`: p (1 - p), for any n",
    )
    unknown: float = knob(
        0.5, "Pass rate to assume for prompts that the run has not met yet", ge=0, le=1, advanced=True
    )

    def problems(self, prompts: int, size: int) -> Iterator[FieldProblem]:
        """`size`: responses per prompt on average. The paths begin at the config's root."""
        total = f"{prompts} prompts x {size} responses on average = {prompts * size} a step"
        if self.low > size:
            yield FieldProblem(
                "rollout.budget.low", f"{total}, which is less than {self.low} for each prompt; at most {size} works"
            )
        if self.high < size:
            yield FieldProblem(
                "rollout.budget.high", f"{total}, which is more than {self.high} for each prompt; at least {size} works"
            )
