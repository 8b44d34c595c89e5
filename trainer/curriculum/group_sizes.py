"""Decides the number of responses to each prompt of a step."""

from collections.abc import Sequence

from trainer.config.sections.budget import Budget

from .budget import LASTING, VALUES, allocate
from .pass_rates import PassCounts


class GroupSizes:
    """The same number of responses for every prompt, or, with a budget, more for prompts for which a response is worth more."""

    def __init__(self, size: int, budget: Budget | None, rates: PassCounts) -> None:
        self._size, self._budget, self._rates = size, budget, rates
        self.aimless = ""
        """The reason why the latest sizes follow from no pass rate, and what happens instead; empty if they follow from pass rates."""
        self._told = False

    def take_aimless(self) -> str:
        """The text of `aimless`, given once for all calls in a row in which it lasts."""
        found, self._told = "" if self._told else self.aimless, bool(self.aimless)
        return found

    def of(self, keys: Sequence[str], total: int | None = None) -> list[int]:
        """The sizes of the groups of these prompts, in order; they sum to `total`, by default `size` for each prompt.

        Raises ValueError if the bounds of the budget allow no such sizes.
        """
        budget, rates = self._budget, self._rates
        if budget is None:
            return [self._size] * len(keys)
        known = [rates.rate(key) for key in keys]
        assumed = [budget.unknown if rate is None else rate for rate in known]
        self.aimless = _aimless(budget, assumed)
        before = [rates.responses(key) if budget.value in LASTING else 0 for key in keys]
        return allocate(
            assumed,
            before,
            self._size * len(keys) if total is None else total,
            budget.low,
            budget.high,
            VALUES[budget.value],
        )


def _aimless(budget: Budget, rates: Sequence[float]) -> str:
    solved = sum(rate == 1 for rate in rates)
    if solved + sum(rate == 0 for rate in rates) < len(rates):
        return ""
    return (
        f"the budget cannot prefer any prompt: so far {solved} of the {len(rates)} prompts of a step were always solved and the others "
        f"never. Each gets {budget.low} responses, and the rest goes to those that come first. If prompts are solved, "
        "use harder data; if they are never solved, use easier data, a hint or a scaffold"
    )
