"""The limits of runs as a person types them in a form: hours, tokens, money, and when a run stops early."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number

from ..lifecycle import early_stop, token_limit, typed_early_stop
from ..lifecycle.limits import RunLimits
from ..models import Run
from ..rewards import forms

AMOUNTS = {
    "hours": "Time limit",
    "tokens": "Generated tokens",
    "budget_tokens": "Tokens of all judges",
    "budget_money": "Money for all judges",
}
LABELS = AMOUNTS | typed_early_stop.LABELS
MOST_TYPED, MOST_KEY = 30, 80
# the name of each input whose limit has another one
NAMES = {"seconds": "hours"} | {f"stop_early.{name}": typed for name, typed in typed_early_stop.FIELDS.items()}


@dataclass
class TypedLimits:
    """`problems` by the name of the field, filled by `read`."""

    recipe: str
    hours: str = ""
    tokens: str = ""
    budget_tokens: str = ""
    budget_money: str = ""
    early: dict[str, str] = field(default_factory=dict)  # by the names of `typed_early_stop.LABELS`
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def posted(cls, recipe: str, post: Mapping[str, str]) -> "TypedLimits":
        hours, generated, tokens, money = (post.get(name, "")[:MOST_TYPED].replace("\0", "") for name in AMOUNTS)
        early = {name: post.get(name, "")[:MOST_KEY].replace("\0", "") for name in typed_early_stop.LABELS}
        return cls(recipe, hours, generated, tokens, money, early)

    @classmethod
    def of_run(cls, run: Run) -> "TypedLimits":
        """As the run has them."""
        return cls.of(run.recipe, RunLimits.of_run(run))

    @classmethod
    def of(cls, recipe: str, limits: RunLimits) -> "TypedLimits":
        given = limits.json()
        hours = f"{given['seconds'] / 3600:.4f}".rstrip("0").rstrip(".") if "seconds" in given else ""
        generated, tokens, money = (str(given.get(name, "")) for name in ("tokens", "budget_tokens", "budget_money"))
        return cls(recipe, hours, generated, tokens, money, typed_early_stop.write(limits.stop_early))

    @property
    def metrics(self) -> list[tuple[str, str]]:
        """The metrics by which a run can stop early, and the one that is typed: (key, words)."""
        found, typed = early_stop.choices(self.recipe), self.early.get("early_metric", "")
        return found if not typed or typed in dict(found) else [*found, (typed, typed)]

    @property
    def brief(self) -> str:
        """The limits in a few words, for the line that opens them."""
        limits = self.read()
        return "none" if not limits and not self.problems else limits.words(self.recipe)

    def read(self) -> RunLimits:
        """The limits, without those that have a problem."""
        self.problems = {}
        tokens, money = None, None
        try:
            tokens, money = forms.budget({"budget_tokens": self.budget_tokens, "budget_money": self.budget_money})
        except Invalid as error:
            self.problems |= error.fields
        mine = {"seconds": self._seconds(), "tokens": self._tokens(), "stop_early": self._early()}
        limits = RunLimits.of({**mine, "budget_tokens": tokens, "budget_money": money})
        self.problems |= {NAMES.get(name, name): why for name, why in limits.problems(self.recipe)}
        return RunLimits() if self.problems else limits

    @property
    def samples(self) -> bool:
        """Whether the run samples responses, so that a limit on their tokens applies; True if one is typed."""
        return bool(self.tokens) or token_limit.samples(self.recipe)

    def _early(self) -> dict[str, Any] | None:
        try:
            rule = typed_early_stop.read(self.early)
        except Invalid as error:
            self.problems |= {NAMES[f"stop_early.{name}"]: why for name, why in error.fields.items()}
            return None
        return rule.json() if rule else None

    def _tokens(self) -> int | None:
        text = self.tokens.strip().replace(",", "")
        found = whole_number(text, 15) if text else None
        if text and not found:
            self.problems["tokens"] = "must be a whole number above 0; empty: no limit"
        return found

    def _seconds(self) -> int | None:
        text = self.hours.strip().replace(",", ".")
        try:
            return round(float(text) * 3600) if text else None
        except (ValueError, OverflowError):
            self.problems["hours"] = "must be a number of hours, such as 1.5; empty: no limit"
            return None
