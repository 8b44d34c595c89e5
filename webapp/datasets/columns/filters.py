"""The filters of a version's examples, in the form that the address of a page, a lineage and a saved view share.

A range is `from..to`, and either end may be absent. For whole numbers both ends belong to it; for other numbers the upper end does not, so
that the bars of a histogram never count an example twice.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number

MAX_TEXT = 500
YES_NO = {"yes": True, "no": False, "true": True, "false": False, True: True, False: False}
Range = tuple[float | None, float | None]

LABELS = {"first": "first is better", "second": "second is better", "tie": "tie", "none": "not compared"}
KINDS = {"hard": "hard", "principle": "principle", "pitfall": "pitfall", "verifiable": "with a verifier"}
SLICES = {
    "rejected:longer": "the worse answer is 1.5 times as long",
    "rejected:formatted": "the worse answer has more formatting",
    "rejected:confident": "the worse answer sounds surer",
    "chosen:longer": "the better answer is 1.5 times as long",
    "chosen:formatted": "the better answer has more formatting",
    "chosen:confident": "the better answer sounds surer",
}
SPLITS = {"train": "train", "heldout": "held out", "none": "no split"}
# our name -> (column, words for people, whole numbers)
RANGES = {
    "prompt_length": ("prompt_length", "prompt length", True),
    "length": ("response_length", "response length", True),
    "ratio": ("length_ratio", "length ratio", False),
    "criteria": ("criteria_count", "criteria", True),
    "strength": ("strength", "strength", False),
    "agreement": ("agreement", "agreement", False),
    "pass_rate": ("pass_rate", "pass rate", False),
    "constraints": ("constraints", "constraints", True),
}
HARD_CONSTRAINTS = 3  # a prompt with this many explicit constraints counts as complex
HARD_SURFACE = ("rejected:longer", "rejected:formatted", "rejected:confident")
HARD = {
    "any": f"{HARD_CONSTRAINTS} or more constraints, or a worse answer with the richer surface",
    "all": f"{HARD_CONSTRAINTS} or more constraints, and a worse answer with the richer surface",
}
REACH = {
    "solved": "every answer passes",
    "learnable": "some answers pass",
    "out": "no answer passes",
    "unknown": "no pass rate",
}
CHOICES = {"split": SPLITS, "label": LABELS, "kind": KINDS, "slice": SLICES, "hard": HARD, "reach": REACH}
NAMES = {
    "rubric": "rubric",
    "preferences": "preferences",
    "slice": "surface",
    "kind": "criterion kind",
    "hard": "hard pairs",
}


@dataclass(frozen=True)
class Filters:
    """An empty field filters nothing."""

    text: str = ""
    split: str = ""  # train, heldout or none
    domain: str = ""
    source: str = ""
    verifier: str = ""
    rubric: bool | None = None
    preferences: bool | None = None
    label: str = ""  # the better one of the judged pair, in the order of the example's responses
    kind: str = ""
    slice: str = ""
    hard: str = ""  # any or all of RubricBench's curation rules that a program can check
    prompt_length: Range | None = None
    length: Range | None = None
    ratio: Range | None = None
    criteria: Range | None = None
    strength: Range | None = None
    agreement: Range | None = None
    pass_rate: Range | None = None
    reach: str = ""  # how many of the answers pass
    probe: int | None = None  # the probe of these pass rates; None: the rates that the file gives
    constraints: Range | None = None

    @property
    def narrow(self) -> bool:
        """Whether a filter is set; a probe by itself leaves out nothing."""
        return replace(self, probe=None) != Filters()


def parse(given: Mapping[str, Any]) -> Filters:
    """The filters that an address or a JSON object names; `q` is the text. Unknown names are ignored.

    Raises Invalid at the fields that are wrong.
    """
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for field in fields(Filters):
        value = given.get("q" if field.name == "text" else field.name)
        if value is None or value == "":
            continue
        try:
            found[field.name] = _value(field.name, value)
        except ValueError as error:
            wrong["q" if field.name == "text" else field.name] = str(error)
    if wrong:
        raise Invalid("The filters cannot be read.", wrong)
    return Filters(**found)


def _value(name: str, value: Any) -> Any:
    if name in RANGES:
        return range_of(str(value))
    if name in ("rubric", "preferences"):
        if value not in YES_NO:
            raise ValueError("must be yes or no")
        return YES_NO[value]
    if name == "probe":
        if (number := whole_number(str(value))) is None:
            raise ValueError("must be the number of a probe")
        return number
    if name in CHOICES and value not in CHOICES[name]:
        raise ValueError(f"must be one of {', '.join(CHOICES[name])}")
    return str(value)[:MAX_TEXT].replace("\0", "")


def range_of(text: str) -> Range:
    """`2..5`, `2..`, `..5` or `2`. Raises ValueError."""
    low, dots, high = text.partition("..")
    ends = (_number(low), _number(high) if dots else _number(low))
    if ends == (None, None):
        raise ValueError("must be a range such as 2..5, 2.. or ..5")
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise ValueError("must begin with the smaller number")
    return ends


def _number(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError as error:
        raise ValueError("must be a range such as 2..5, 2.. or ..5") from error
    if not math.isfinite(value):
        raise ValueError("must be finite")
    return value


def written(value: Range) -> str:
    low, high = ("" if end is None else f"{end:.10g}" for end in value)
    return f"{low}..{high}"


def query(filters: Filters) -> dict[str, str]:
    """The inverse of `parse`: only the filters that are set, as text."""
    found: dict[str, str] = {}
    for field in fields(Filters):
        value = getattr(filters, field.name)
        if value is None or value == "":
            continue
        name = "q" if field.name == "text" else field.name
        if isinstance(value, bool):
            found[name] = "yes" if value else "no"
        else:
            found[name] = written(value) if isinstance(value, tuple) else str(value)
    return found


def words(filters: Filters) -> list[tuple[str, str]]:
    """(name of the filter in an address, words for people), one for each filter that narrows."""
    return [(name, _words(name, value)) for name, value in query(filters).items()]


def _words(name: str, value: str) -> str:
    if name == "q":
        return f"“{value}”"
    if name in ("rubric", "preferences"):
        return f"{'with' if value == 'yes' else 'without'} {NAMES[name]}"
    if name == "probe":
        return f"pass rates of probe {value}"
    if name in RANGES:
        low, _, high = value.partition("..")
        label = RANGES[name][1]
        return f"{label} {low} to {high}" if low and high else f"{label} from {low}" if low else f"{label} up to {high}"
    return f"{NAMES.get(name, name)}: {CHOICES[name][value] if name in CHOICES else value}"
