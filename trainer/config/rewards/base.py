"""The fields that every part of a reward has. They need no torch."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..errors import FieldProblem
from ..fields import Section, knob
from .bounds import RewardBounds

_NAME = r"^[a-z][a-z0-9_]*$"
Matcher = Literal["embeddings", "words", "judge"]
"""The ways to match two lists of criteria or of reasons: by sentence embeddings, by common words, or by a judge version."""
MatcherPrecision = Literal["float32", "bfloat16"]
"""The precision in which texts are embedded."""
NARROW = "embeddings in bfloat16"
"""The name of the matcher by embeddings in that precision, beside its results."""
PRECISION_AT = "reward.matcher_precision"


class PartBase(Section):
    """The fields that every part of a reward has. Charts (`reward/<name>`) and the expression use its `name`."""

    values: ClassVar[RewardBounds] = RewardBounds()
    """Between which values every response lies, before `at_least` and `at_most`."""
    fewer_is_better: ClassVar[bool] = False
    """Whether a high value is bad for the response, as for a share of flaws."""

    name: str
    weight: float = knob(1.0, "Factor in the sum; an expression has factors of its own", ge=-100, le=100)
    at_least: float | None = knob(None, "Lower values count as this one", advanced=True)
    at_most: float | None = knob(None, "Higher values count as this one", advanced=True)
    shadow: bool = knob(False, "Measured and shown, but not trained on", advanced=True)

    def clipped(self, value: float) -> float:
        """The value between `at_least` and `at_most`."""
        if self.at_least is not None and value < self.at_least:
            return self.at_least
        return self.at_most if self.at_most is not None and value > self.at_most else value

    @property
    def bounds(self) -> RewardBounds:
        """Between which values every response lies as it counts, before the weight."""
        low, high = self._values
        return RewardBounds(self.clipped(low), self.clipped(high))

    @property
    def _values(self) -> RewardBounds:
        return self.values

    @property
    def needs_rubric(self) -> bool:
        """Whether a prompt without a rubric has no value."""
        return False

    @property
    def asks_judge(self) -> str:
        """The judge that this part asks, or ""."""
        return ""

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        """The kinds of judges that can answer the part's question."""
        return ()

    @property
    def judges_criteria(self) -> bool:
        """Whether a judge gives verdicts on criteria."""
        return False

    def problems(self) -> Iterator[FieldProblem]:
        """Problems within the part. The paths begin at the part."""
        if self.at_least is not None and self.at_most is not None and self.at_least >= self.at_most:
            yield FieldProblem("at_least", f"must be below at_most, which is {self.at_most:g}")


ASKED = ("judge", ())


class Judged(PartBase):
    """The fields of a part that asks a judge."""

    on_missing: Literal["pause", "exclude"] = knob(
        "pause",
        "The reaction when the judge cannot be asked, because its endpoint is down or its budget is spent: `pause` waits and "
        "asks again, `exclude` leaves out the responses. A response is always left out if the judge's answer cannot be read",
        advanced=True,
        when=ASKED,
    )
    budget_tokens: int | None = knob(
        None,
        "The most tokens that its calls may use in this run, prompts and replies",
        unit="tokens",
        ge=1,
        advanced=True,
        when=ASKED,
    )
    budget_money: float | None = knob(
        None,
        "The most that its calls may cost in this run, in the unit of the endpoint's prices",
        gt=0,
        advanced=True,
        when=ASKED,
    )


class AlwaysAsks(Judged):
    """A part that asks its `judge` about every response. The part declares the field itself, because the form shows the fields in the
    order of their declaration."""

    if TYPE_CHECKING:
        judge: str

    @property
    def asks_judge(self) -> str:
        return self.judge


class MatchedPart(Judged):
    """The fields of a part that looks for people's items in a list that a model wrote. If a judge looks, it is of the kind `matched_by`."""

    matched_by: ClassVar[str]
    matcher: Matcher = "embeddings"
    matcher_precision: MatcherPrecision = "float32"
    judge: str = ""

    @property
    def found_by(self) -> str:
        """The name of the matcher in this process; the one by embeddings has a name for each precision."""
        narrow = self.matcher == "embeddings" and self.matcher_precision == "bfloat16"
        return NARROW if narrow else self.matcher

    @property
    def asks_judge(self) -> str:
        return self.judge if self.matcher == "judge" else ""

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return (self.matched_by,)

    @property
    def by(self) -> str:
        """The name of the matcher, as people read it."""
        return self.asks_judge or self.found_by


class TaskJudges(Section):
    """The settings with which the judges of a task are asked. The section for the rewards of the task has these fields."""

    on_missing: Literal["pause", "exclude"] = knob(
        "pause",
        "The reaction when a judge cannot be asked, because its endpoint is down or its budget is spent: `pause` waits and "
        "asks again, `exclude` leaves out the cases that it should judge. A case is always left out if the judge's answer "
        "cannot be read",
        advanced=True,
    )
    budget_tokens: int | None = knob(
        None, "The most tokens that the calls of each judge may use in this run", unit="tokens", ge=1, advanced=True
    )
    budget_money: float | None = knob(
        None,
        "The most that the calls of each judge may cost in this run, in the unit of the endpoint's prices",
        gt=0,
        advanced=True,
    )

    @property
    def asking(self) -> dict[str, Any]:
        """The fields that a part takes over if it asks one of these judges."""
        return {
            "on_missing": self.on_missing,
            "budget_tokens": self.budget_tokens,
            "budget_money": self.budget_money,
        }


def precision_knob() -> Any:
    """The field of a task's reward for the precision of its matcher."""
    return knob(
        "float32",
        "Precision of the embeddings. `bfloat16` takes about half of the time on a processor that computes in it; a run on "
        "any other processor refuses it. A score close to the threshold can fall on the other side; how often the matcher "
        "is right did not change measurably",
        when=("matcher", ("embeddings",)),
        advanced=True,
    )


def part_name(default: str) -> Any:
    return knob(default, "Its name in charts and in the expression", pattern=_NAME, max_length=40)


def part_kind(name: str) -> Any:
    return knob(name, "What is measured")
