"""Expressions over metric keys, such as `reward/mean - 0.1 * policy/kl`: text in, steps for a stack machine out.

    sum       products joined by + and -
    product   factors joined by * and /
    factor    -factor | number | key | "key" | (sum) | function(sum, ...)

`total(x)` is the sum of x over all steps so far.

A slash or a dot between letters belongs to the key: `a/b` is the key a/b, and `a / b` divides. A key with other signs stands in quotes. The
browser computes the same steps for the points that come while somebody looks (`chartformula.js`), so it needs no parser.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LONGEST = 500
DEEPEST = 24
MOST_KEYS = 8
FUNCTIONS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("abs", "log", "log10", "exp", "sqrt", "total"), (1, 1)),
    **dict.fromkeys(("min", "max"), (2, 8)),
    "clip": (3, 3),
}
"""For each name the fewest and the most arguments."""
_TOKEN = re.compile(
    r'(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w))|"(?P<quoted>[^"]*)"'
    r"|(?P<name>[^\W\d]\w*(?:[./:@]+\w+)*)|(?P<mark>[-+*/(),])"
)

Step = tuple[str, str | float | int | None]
"""A step of the stack machine and its argument: ("key", "reward/mean"), ("number", 0.1), ("+", None), ("min", 3)."""
Column = NDArray[np.float64]


class FormulaProblem(ValueError):
    """The problem, and the characters of the text between which it is."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message, self.start, self.end = message, start, end


@dataclass(frozen=True)
class ChartFormula:
    text: str
    steps: tuple[Step, ...]

    @property
    def keys(self) -> list[str]:
        return list(dict.fromkeys(str(value) for name, value in self.steps if name == "key"))


def parse(text: str) -> ChartFormula:
    """Raises FormulaProblem at the first place that is wrong."""
    if len(text) > LONGEST:
        raise FormulaProblem(f"An expression has at most {LONGEST} characters.", LONGEST, len(text))
    if not text.strip():
        raise FormulaProblem("Write an expression.", 0, len(text))
    found = ChartFormula(text.strip(), tuple(_FormulaParser(text).whole()))
    if not found.keys:
        raise FormulaProblem("Name at least one metric.", 0, len(text))
    if len(found.keys) > MOST_KEYS:
        raise FormulaProblem(f"An expression has at most {MOST_KEYS} metrics.", 0, len(text))
    return found


class _FormulaToken(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def _tokens(text: str) -> list[_FormulaToken]:
    found, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            told = "This quote has no end." if text[at] == '"' else f"“{text[at]}” cannot be here in an expression."
            raise FormulaProblem(told, at, len(text) if text[at] == '"' else at + 1)
        kind = str(match.lastgroup)
        found.append(_FormulaToken(kind, match[kind], at, match.end()))
        at = match.end()
    return [*found, _FormulaToken("end", "", len(text), len(text))]


class _FormulaParser:
    """Parses by recursive descent, with one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    @property
    def _next(self) -> _FormulaToken:
        return self._tokens[self._at]

    def whole(self) -> list[Step]:
        found = self._sum()
        if self._next.kind != "end":
            raise self._unexpected("an operator")
        return found

    def _unexpected(self, wanted: str) -> FormulaProblem:
        token = self._next
        there = f"instead of “{token.text}”" if token.kind != "end" else "at the end"
        return FormulaProblem(f"Write {wanted} {there}.", token.start, max(token.end, token.start + 1))

    def _takes(self, *marks: str) -> str | None:
        """The mark, if it is one of these."""
        token = self._next
        if token.kind != "mark" or token.text not in marks:
            return None
        self._at += 1
        return token.text

    def _chain(self, marks: Sequence[str], operand: Callable[[], list[Step]]) -> list[Step]:
        found = operand()
        while mark := self._takes(*marks):
            found += [*operand(), (mark, None)]
        return found

    def _sum(self) -> list[Step]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise FormulaProblem(f"At most {DEEPEST} levels inside each other.", self._next.start, self._next.end)
        found = self._chain(("+", "-"), self._product)
        self._depth -= 1
        return found

    def _product(self) -> list[Step]:
        return self._chain(("*", "/"), self._factor)

    def _factor(self) -> list[Step]:
        signs = 0
        while self._takes("-"):
            signs += 1
        found = self._bare()
        return [*found, ("negative", None)] if signs % 2 else found

    def _bare(self) -> list[Step]:
        token = self._next
        if self._takes("("):
            found = self._sum()
            if not self._takes(")"):
                raise self._unexpected("an operator or “)”")
            return found
        if token.kind not in ("number", "name", "quoted"):
            raise self._unexpected("a number, a metric or “(”")
        self._at += 1
        if token.kind == "number":
            return [("number", _finite(token))]
        if token.kind == "name" and self._takes("("):
            return self._call(token)
        if not token.text:
            raise FormulaProblem("Write a metric between the quotes.", token.start, token.end)
        return [("key", token.text)]

    def _call(self, name: _FormulaToken) -> list[Step]:
        if name.text not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            raise FormulaProblem(f"There is no function {name.text}; there are {known}.", name.start, name.end)
        fewest, most = FUNCTIONS[name.text]
        found, count = self._sum(), 1
        while count < most and self._takes(","):
            found += self._sum()
            count += 1
        if count < fewest:
            raise self._unexpected(f"“,”, for {name.text} has {fewest} arguments or more,")
        if not self._takes(")"):
            raise self._unexpected("an operator or “)”")
        return [*found, (name.text, count)]


def _finite(token: _FormulaToken) -> float:
    number = float(token.text)
    if not np.isfinite(number):
        raise FormulaProblem("This number is too large.", token.start, token.end)
    return number


_TWO: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_ONE: Mapping[str, Callable[[Any], Any]] = {
    "negative": np.negative,
    **{"abs": np.abs, "log": np.log, "log10": np.log10, "exp": np.exp, "sqrt": np.sqrt},
}


def computed(formula: ChartFormula, columns: Mapping[str, Column], totals: dict[int, float] | None = None) -> Column:
    """The values place by place; not finite where there is none, such as after a division by 0.

    `totals` gets what each `total` has come to in the end, by its place among the steps.
    """
    stack: list[Any] = []
    size = len(columns[formula.keys[0]])
    with np.errstate(all="ignore"):
        for place, (name, value) in enumerate(formula.steps):
            if name == "key":
                stack.append(columns[str(value)])
            elif name == "number":
                stack.append(float(value or 0))
            elif name == "total":
                added = np.broadcast_to(stack.pop(), size)
                sums = np.cumsum(np.where(np.isfinite(added), added, 0.0))
                if totals is not None and size:
                    totals[place] = float(sums[-1])
                stack.append(np.where(np.isfinite(added), sums, np.nan))
            elif name in _ONE:
                stack.append(_held(_ONE[name](stack.pop())))
            elif name in _TWO:
                right, left = stack.pop(), stack.pop()
                stack.append(_held(_TWO[name](left, right)))
            else:
                count = int(value or 0)
                taken, stack = stack[-count:], stack[:-count]
                stack.append(_several(name, taken))
    found: Column = np.asarray(stack[0], np.float64)
    return found


def _held(value: Any) -> Any:
    """Once a value is not finite, no later step makes a number of it: `1 / (a / 0)` is no 0."""
    return np.where(np.isfinite(value), value, np.nan)


def _several(name: str, values: Sequence[Any]) -> Any:
    if name == "clip":
        value, low, high = values
        return np.where(np.less_equal(low, high), np.minimum(np.maximum(value, low), high), np.nan)
    found = values[0]
    for each in values[1:]:
        found = np.minimum(found, each) if name == "min" else np.maximum(found, each)
    return found
