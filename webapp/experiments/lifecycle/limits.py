"""The limits with which a run is launched: for how long it may run, what it may generate, what its judges may use, and when it stops early.
Each can be changed while the run exists."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from webapp.core.problems import Invalid

from ..models import Run
from ..rewards.budgets import MOST_MONEY
from . import time_limit, token_limit
from .early_stop import EarlyStop
from .spending import MOST_TOKENS, money_words

PLACE = "limits"
CENT = Decimal("0.00000001")  # the smallest amount that a run keeps


@dataclass(frozen=True)
class RunLimits:
    """None is no limit. Money is in the unit of the prices of the judges' endpoints."""

    seconds: int | None = None
    tokens: int | None = None
    budget_tokens: int | None = None
    budget_money: Decimal | None = None
    stop_early: EarlyStop | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "RunLimits":
        """The limits in a request, or in a row that keeps them. What is missing is no limit."""
        money = given.get("budget_money")
        amount = None if money is None else Decimal(str(money)).quantize(CENT)
        early = EarlyStop.of(given.get("stop_early"))
        return cls(given.get("seconds"), given.get("tokens"), given.get("budget_tokens"), amount, early)

    @classmethod
    def of_run(cls, run: Run) -> "RunLimits":
        seconds = None if run.time_limit is None else round(run.time_limit.total_seconds())
        early = EarlyStop.of(run.stop_early)
        return cls(seconds, run.token_limit, run.judge_token_limit, run.judge_money_limit, early)

    def __bool__(self) -> bool:
        return any(value is not None for value in asdict(self).values())

    def json(self) -> dict[str, Any]:
        """The limits that are set."""
        found = {name: value for name, value in asdict(self).items() if value is not None}
        return {
            name: f"{value.normalize():f}" if isinstance(value, Decimal) else value for name, value in found.items()
        }

    def columns(self) -> dict[str, Any]:
        """The columns of a run that keep them."""
        return {
            "time_limit": None if self.seconds is None else timedelta(seconds=self.seconds),
            "token_limit": self.tokens,
            "judge_token_limit": self.budget_tokens,
            "judge_money_limit": self.budget_money,
            "stop_early": self.stop_early and self.stop_early.json(),
        }

    def problems(self, recipe: str) -> Iterator[tuple[str, str]]:
        """(name, what is wrong) with these limits of a run of the recipe."""
        least, most = (round(each.total_seconds()) for each in (time_limit.LEAST, time_limit.MOST))
        if self.seconds is not None and not least <= self.seconds <= most:
            yield "seconds", "must be between a minute and ten years"
        if self.tokens is not None and not token_limit.samples(recipe):
            yield "tokens", "a run of this recipe samples no responses"
        elif self.tokens is not None and not 0 < self.tokens < token_limit.MOST:
            yield "tokens", f"must be more than 0, and less than {token_limit.MOST:,}"
        if self.budget_tokens is not None and not 0 < self.budget_tokens < MOST_TOKENS:
            yield "budget_tokens", f"must be more than 0, and less than {MOST_TOKENS:,}"
        if self.budget_money is not None and not 0 < self.budget_money < MOST_MONEY:
            yield "budget_money", f"must be more than 0, and less than {MOST_MONEY:,}"
        if self.stop_early is not None:
            yield from ((f"stop_early.{name}", why) for name, why in self.stop_early.problems(recipe))

    def check(self, recipe: str) -> None:
        """Raises Invalid at each limit that no run can have."""
        if wrong := {f"{PLACE}.{name}": why for name, why in self.problems(recipe)}:
            raise Invalid("A run cannot have these limits.", wrong)

    def words(self, recipe: str) -> str:
        """2 h, 5,000 generated tokens, 100,000 tokens of judges, 2.5 for judges, early stop by Held-out score (eval/score); empty without
        a limit."""
        told = [] if self.seconds is None else [time_limit.limit_text(timedelta(seconds=self.seconds))]
        told += [] if self.tokens is None else [f"{self.tokens:,} generated tokens"]
        told += [] if self.budget_tokens is None else [f"{self.budget_tokens:,} tokens of judges"]
        told += [] if self.budget_money is None else [f"{money_words(self.budget_money)} for judges"]
        told += [] if self.stop_early is None else [f"early stop by {self.stop_early.named(recipe)}"]
        return ", ".join(told)


NONE = RunLimits()
