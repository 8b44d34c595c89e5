"""Records that the kinds of task share: settings, reasons, the data of a browser. They are the contract between pages, API and exports.

There are two frames. The *subject's* frame names responses by their ids in the example. The *shown* frame names them by letters, "A", "B",
... in the order in which this person sees them (`Assignment.order`), so that a browser never learns ids or origins. Drafts stay in the
shown frame; answers are stored in the subject's.
"""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from trainer import contracts
from trainer.contracts import Criterion
from trainer.contracts.base import Record

MAX_TEXT = 20_000  # characters of what a person writes
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Name = Annotated[str, Field(min_length=1, max_length=80)]
Side = Annotated[str, Field(min_length=1, max_length=64)]  # a response's id, or its letter in the shown frame
Strength = Annotated[int, Field(ge=-3, le=3)]
MAX_REASONS, MAX_CRITERIA, MAX_RESPONSES = 50, 100, 26
MAX_REASON = 2000  # characters


class Scale(Record):
    """A named scale from `low` to `high` with words for some of its values."""

    name: Name
    low: int = Field(default=1, ge=-100, le=100)
    high: int = Field(default=5, ge=-100, le=100)
    labels: dict[int, Annotated[str, Field(max_length=80)]] = Field(default_factory=dict)
    help: str = Field(default="", max_length=1000)

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if self.low >= self.high or self.high - self.low > 20:
            raise ValueError("a scale needs low < high and at most 21 values")
        if outside := [value for value in self.labels if not self.low <= value <= self.high]:
            raise ValueError(f"labels outside the scale: {outside}")
        return self


class Settings(Record):
    """Settings of a project. A setting that does not concern its kind is ignored."""

    reasons: Literal["required", "optional", "none"] = "optional"  # pairwise
    dimensions: tuple[Name, ...] = Field(default=(), max_length=8)  # pairwise: rated each on the same seven steps
    scales: tuple[Scale, ...] = Field(default=(), max_length=8)  # rating
    ranking: Literal["order", "best"] = "order"  # ranking: a whole order (ties allowed), or the best one
    stress_test: bool = True  # rubric: after submission, the rubric meets held-out responses
    # rubric: the judge version that decides criteria without a verifier in the stress test
    stress_judge: int | None = Field(default=None, ge=1, lt=2**63)
    lease_minutes: int = Field(default=30, ge=1, le=24 * 60)
    gold_every: int = Field(default=0, ge=0, le=1000)  # one task in this many is a gold task; 0: none
    gold_feedback: bool = False  # show the expected answer at once
    # rubric, rationale: the share of the known criteria or reasons that a right answer has, in any words
    gold_recall: float = Field(default=0.5, gt=0, le=1)
    fast_seconds: float = Field(default=2.0, ge=0, le=600)  # answers faster than this warn the manager
    suggestions: Literal["never", "before", "after"] = "never"  # a model's view: with the task, or after the answer
    publish: Literal["resolutions", "answers"] = "resolutions"  # what is published if a request does not say
    reopen: int = Field(default=10, ge=0, le=1000)  # how many of one's last submissions may be opened again
    keys: dict[str, Annotated[str, Field(max_length=20)]] = Field(default_factory=dict)  # {action: key}


class Reason(contracts.Reason):
    """One atomic reason; a span counts characters (code points) of the response's text."""

    text: str = Field(min_length=1, max_length=MAX_REASON)
    response: Side | None = None


class Answered(Record):
    """Fields common to all answers."""

    note: Text = ""


class Shown(Record):
    """A response as an annotator sees it: a letter and a text, nothing else."""

    letter: str
    text: str


class TaskView(Record):
    """All that a browser gets of a task. For rubric authoring `responses` is empty until the rubric is submitted."""

    kind: str
    prompt: tuple[dict[str, str], ...]  # {"role", "content"}
    responses: tuple[Shown, ...] = ()
    criteria: tuple[Criterion, ...] = ()  # grading; pairwise in a study
    rationale: str | None = None  # rationale: the text to split into reasons, if the example has one
    reference: str | None = None
    material: dict[str, Any] = Field(
        default_factory=dict
    )  # data for the kind's own widget only, such as a trace's steps
    suggestion: dict[str, Any] | None = None  # shown frame, same record as the answer


def subject_sides(subject: Mapping[str, Any]) -> list[str]:
    """The ids of the responses of a task, in the subject's own order."""
    if "a" in subject:
        return [str(subject["a"]), str(subject["b"])]
    if "response" in subject:
        return [str(subject["response"])]
    return [str(side) for side in subject.get("responses", [])]


def letters(subject: Mapping[str, Any], order: Sequence[int]) -> dict[str, str]:
    """{letter shown: response id} for an assignment whose sides were arranged by `order`."""
    sides = subject_sides(subject)
    return {ascii_uppercase[place]: sides[index] for place, index in enumerate(order)}
