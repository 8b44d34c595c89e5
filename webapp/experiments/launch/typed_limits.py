"""The limits of runs as a person types them in a form: hours, tokens, money."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from webapp.core.numbers import whole
from webapp.core.problems import Invalid

from ..lifecycle import token_limit
from ..lifecycle.limits import RunLimits
from ..models import Run
from ..rewards import forms

LABELS = {
    "hours": "Time limit",
    "tokens": "Generated tokens",
    "budget_tokens": "Tokens of all judges",
    "budget_money": "Money for all judges",
}
MOST_TYPED = 30


@dataclass
class TypedLimits:
    """`problems` by the name of the field, filled by `read`."""

    recipe: str
    hours: str = ""
    tokens: str = ""
    budget_tokens: str = ""
    budget_money: str = ""
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def posted(cls, recipe: str, post: Mapping[str, str]) -> "TypedLimits":
        hours, generated, tokens, money = (post.get(name, "")[:MOST_TYPED].replace("\0", "") for name in LABELS)
        return cls(recipe, hours, generated, tokens, money)

    @classmethod
    def of_run(cls, run: Run) -> "TypedLimits":
        """As the run has them."""
        return cls.of(run.recipe, RunLimits.of_run(run))

    @classmethod
    def of(cls, recipe: str, limits: RunLimits) -> "TypedLimits":
        given = limits.json()
        hours = f"{given['seconds'] / 3600:.4f}".rstrip("0").rstrip(".") if "seconds" in given else ""
        generated, tokens, money = (str(given.get(name, "")) for name in ("tokens", "budget_tokens", "budget_money"))
        return cls(recipe, hours, generated, tokens, money)

    @property
    def brief(self) -> str:
        """The limits in a few words, for the line that opens them."""
        limits = self.read()
        return "none" if not limits and not self.problems else limits.words

    def read(self) -> RunLimits:
        """The limits, without those that have a problem."""
        self.problems = {}
        tokens, money = None, None
        try:
            tokens, money = forms.budget({"budget_tokens": self.budget_tokens, "budget_money": self.budget_money})
        except Invalid as error:
            self.problems |= error.fields
        mine = {"seconds": self._seconds(), "tokens": self._tokens()}
        limits = RunLimits.of({**mine, "budget_tokens": tokens, "budget_money": money})
        names = {"seconds": "hours"}
        self.problems |= {names.get(name, name): why for name, why in limits.problems(self.recipe)}
        return RunLimits() if self.problems else limits

    @property
    def samples(self) -> bool:
        """Whether the run samples responses, so that a limit on their tokens applies; True if one is typed."""
        return bool(self.tokens) or token_limit.samples(self.recipe)

    def _tokens(self) -> int | None:
        text = self.tokens.strip().replace(",", "")
        found = whole(text, 15) if text else None
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
