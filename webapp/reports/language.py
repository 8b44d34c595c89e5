"""The text of a report in pieces: Markdown, and the blocks that stand in it between fences.

    ```chart
    metric: eval/rubric_score
    query: tag:ablation
    ```

A block begins at the start of a line. Its keys are in `KEYS`; what is wrong is told at its line. A fence of four characters holds
such a block as an example: within it nothing is drawn. Nothing is fetched here, so that a text reads the same for everybody.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import isfinite
from typing import Any
from urllib.parse import parse_qs, urlsplit

from webapp.core.requests.numbers import whole_number

FENCE = re.compile(r"(`{3,}|~{3,})\s*([\w-]*)")
MOST_METRICS = 6
MOST_ROWS = 100
MOST_COLUMNS = 12
MOST_RUNS = 1000


class BadValue(ValueError):
    """The problem of a value, in words."""


@dataclass(frozen=True)
class LineFault:
    line: int  # from 1, of the whole text
    message: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.message}"


@dataclass(frozen=True)
class ReportWords:
    """A piece of Markdown."""

    line: int
    text: str
    kind: str = "words"


@dataclass(frozen=True)
class ReportBlock:
    """`given`: the values by key, read; it lacks what was not written. `lines`: key -> where it stands."""

    line: int
    kind: str
    given: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[LineFault, ...] = ()

    @property
    def title(self) -> str:
        return str(self.given.get("title", ""))


@dataclass(frozen=True)
class BlockKey:
    """One line of a block. `read` raises BadValue."""

    read: Callable[[str], Any]
    help: str
    needed: bool = False


def _text(most: int) -> Callable[[str], str]:
    def read(value: str) -> str:
        if len(value) > most:
            raise BadValue(f"at most {most:,} characters")
        return value

    return read


def _names(most: int, what: str) -> Callable[[str], tuple[str, ...]]:
    def read(value: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        if not 1 <= len(found) <= most:
            raise BadValue(f"1 to {most} {what}, separated by commas")
        if long := next((name for name in found if len(name) > 200), None):
            raise BadValue(f"{long[:20]}… is too long: at most 200 characters")
        return found

    return read


def _ids(value: str) -> tuple[int, ...]:
    found = [whole_number(part.strip()) for part in value.split(",") if part.strip()]
    ids = [number for number in found if number is not None]
    if not 1 <= len(found) <= MOST_RUNS or len(ids) < len(found):
        raise BadValue(f"1 to {MOST_RUNS:,} numbers of runs, as in their addresses, separated by commas: 12, 15")
    return tuple(dict.fromkeys(ids))


def _one_of(*names: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in names:
            raise BadValue(f"must be {' or '.join(names)}")
        return value

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        number = whole_number(value)
        if number is None or not low <= number <= high:
            raise BadValue(f"must be a whole number from {low} to {high:,}")
        return number

    return read


def _share(value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 0.95:
        raise BadValue("must be a number from 0 to 0.95")
    return found


def _range(value: str) -> tuple[float | None, float | None]:
    ends = value.split("..")
    try:
        low, high = (float(end) if end.strip() else None for end in ends)
    except ValueError:
        low = high = None
    known = [end for end in (low, high) if end is not None]
    if not known or not all(map(isfinite, known)) or known != sorted(set(known)):
        raise BadValue("must be two numbers as in 0..1, or one of them: 0.. or ..1")
    return low, high


def _comparison(value: str) -> Mapping[str, Any]:
    """The parameters of the page Compare in an address: its runs, or its query."""
    asked = parse_qs(urlsplit(value).query)
    if not urlsplit(value).path.endswith("/runs/compare") or not (asked.get("q") or asked.get("ids")):
        raise BadValue("must be the address of the page Compare, such as /runs/compare?ids=12,15")
    if "q" in asked:
        return {"query": _text(1000)(asked["q"][0])}
    return {"runs": _ids(",".join(asked["ids"]))}


BIG = 2**31 - 1
SOURCES = ("runs", "query", "view", "comparison")
OF_RUNS: Mapping[str, BlockKey] = {
    "runs": BlockKey(_ids, "numbers of runs, as in their addresses, separated by commas"),
    "query": BlockKey(_text(1000), "a query as the table of runs takes it"),
    "view": BlockKey(_text(80), "the name of a saved view of that table"),
    "comparison": BlockKey(_comparison, "the address of the page Compare"),
    "seeds": BlockKey(
        _one_of("together", "apart"), "together (as it is without): runs that differ by their seed alone are one"
    ),
    "title": BlockKey(_text(120), "text above it"),
}
KEYS: Mapping[str, Mapping[str, BlockKey]] = {
    "chart": {
        "metric": BlockKey(_names(MOST_METRICS, "metrics"), "one or several, a chart for each", needed=True),
        **OF_RUNS,
        "across": BlockKey(_one_of("steps", "time"), "steps, or time"),
        "scale": BlockKey(_one_of("linear", "log"), "linear, or log"),
        "smoothing": BlockKey(_share, "from 0 to 0.95"),
        "band": BlockKey(
            _one_of("interval", "range"), "around a mean over seeds: its 95% interval, or the range of the seeds"
        ),
        "range": BlockKey(_range, "the ends of the vertical axis: 0..1, or one of them: 0.. or ..1"),
    },
    "runs": {
        **OF_RUNS,
        "columns": BlockKey(_names(MOST_COLUMNS, "columns"), "columns of the table of runs, separated by commas"),
        "sort": BlockKey(_text(210), "a column, with - in front for downward"),
        "most": BlockKey(_whole(1, MOST_ROWS), f"rows, up to {MOST_ROWS}"),
    },
    "rollout": {
        "run": BlockKey(_whole(1, 10**18 - 1), "the number of a run, as in its address", needed=True),
        "step": BlockKey(_whole(0, BIG), "a step of it", needed=True),
        "prompt": BlockKey(_whole(1, BIG), "the number of the prompt, as the page Rollouts counts them", needed=True),
        "response": BlockKey(_whole(1, BIG), "the number of the response to it; 1 as it is without"),
        "phase": BlockKey(_one_of("train", "eval"), "train (as it is without), or eval"),
        "title": BlockKey(_text(120), "text above it"),
    },
}


MEANT: Mapping[str, str] = {
    **dict.fromkeys(("charts", "plot", "graph", "curves"), "chart"),
    **dict.fromkeys(("table", "run"), "runs"),
    **dict.fromkeys(("rollouts", "response"), "rollout"),
}
"""Words that people write for a block -> the name of the block. Such a block is not drawn, but its author is told the right name."""
EXAMPLES: Mapping[str, str] = {
    "chart": "```chart\nmetric: eval/rubric_score\nquery: state:finished\n```",
    "runs": "```runs\nquery: state:finished\ncolumns: state, result, took\nsort: -result\n```",
    "rollout": "```rollout\nrun: 1\nstep: 1\nprompt: 1\nresponse: 1\n```",
}


def pieces(text: str) -> list[ReportWords | ReportBlock]:
    """The pieces in their order; each line is in one of them."""
    found: list[ReportWords | ReportBlock] = []
    words: list[str] = []
    start, inside = 1, ""
    every = text.split("\n")
    lines = iter(enumerate(every, 1))
    for number, line in lines:
        mark = FENCE.match(line)
        if mark and not inside and len(mark[1]) == 3 and (mark[2] in KEYS or _meant(mark[2], every[number:])):
            found += [ReportWords(start, "\n".join(words))] if any(map(str.strip, words)) else []
            body, end = _within(lines, mark[1])
            found.append(_block(number, mark[2], body, end))
            words, start = [], (end or number) + 1
            continue
        if mark and not inside:
            inside = mark[1]
        elif inside and line.strip().startswith(inside) and not line.strip().strip(inside[0]):
            inside = ""
        words.append(line)
    return [*found, ReportWords(start, "\n".join(words))] if any(map(str.strip, words)) else found


def problems(parts: Sequence[ReportWords | ReportBlock]) -> list[LineFault]:
    return [problem for part in parts if isinstance(part, ReportBlock) for problem in part.problems]


def _meant(name: str, after: Sequence[str]) -> bool:
    """Whether somebody calls a block by another name: the line after the fence is one of that block. Else it is code."""
    return bool(after) and name in MEANT and after[0].partition(":")[0].strip() in KEYS[MEANT[name]] and ":" in after[0]


def _within(lines: Iterator[tuple[int, str]], fence: str) -> tuple[list[tuple[int, str]], int | None]:
    """The lines up to the fence that closes, and where that stands; None if none does."""
    body: list[tuple[int, str]] = []
    for number, line in lines:
        if line.rstrip() == fence:
            return body, number
        body.append((number, line))
    return body, None


def _block(line: int, kind: str, body: list[tuple[int, str]], end: int | None) -> ReportBlock:
    given: dict[str, Any] = {}
    places: dict[str, int] = {}
    if kind in MEANT:
        told = f"There is no block “{kind}”. Write ```{MEANT[kind]} if you mean one."
        return ReportBlock(line, MEANT[kind], problems=(LineFault(line, told),))
    wrong = [] if end else [LineFault(line, "This block has no end. Write ``` on its own line after it.")]
    for number, text in body if end else ():
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        name, colon, value = (part.strip() for part in text.partition(":"))
        try:
            key = _known(kind, name, colon, places)
            given[name] = key.read(_written(name, value))
            places[name] = number
        except BadValue as problem:
            wrong.append(LineFault(number, _sentence(name, str(problem))))
    if not wrong:
        wrong = [LineFault(line, message) for message in _missing(kind, given)]
    given |= given.pop("comparison", {})
    return ReportBlock(line, kind, given, places, tuple(wrong))


def _known(kind: str, name: str, colon: str, places: Mapping[str, int]) -> BlockKey:
    if not colon:
        raise BadValue(
            f"“{name[:60]}” is not a line of a block “{kind}”. Write a key, a colon and a value: {_example(kind)}."
        )
    if name not in KEYS[kind]:
        near = get_close_matches(name, KEYS[kind], n=1)
        known = f"Did you mean {near[0]}?" if near else f"Its keys are {', '.join(KEYS[kind])}."
        raise BadValue(f"A block “{kind}” has no “{name[:60]}”. {known}")
    if name in places:
        raise BadValue(f"“{name}” is already in line {places[name]}.")
    return KEYS[kind][name]


def _written(name: str, value: str) -> str:
    if not value:
        raise BadValue(f"“{name}” has no value.")
    return value


def _sentence(name: str, problem: str) -> str:
    """The message of a reader of values with its key in front; whole sentences stay."""
    return problem if problem.endswith((".", "?")) else f"“{name}”: {problem}."


def _example(kind: str) -> str:
    return {"chart": "metric: eval/rubric_score", "runs": "query: state:finished"}.get(kind, "run: 12")


def _missing(kind: str, given: Mapping[str, Any]) -> list[str]:
    wrong = [
        f"This block needs “{name}”: {key.help}."
        for name, key in KEYS[kind].items()
        if key.needed and name not in given
    ]
    if "query" not in KEYS[kind]:
        return wrong
    named = [name for name in SOURCES if name in given]
    if not named:
        wrong.append(f"This block needs runs: write one of {', '.join(SOURCES)}.")
    if len(named) > 1:
        wrong.append(f"This block has {' and '.join(named)}. Keep only one of them.")
    return wrong
