"""A reward is an expression over the names of its parts, in a small language: `outcome * rc + 0.1 * format`.

    expression  sum, or two sums compared by < <= > >= == != (1 if it holds, else 0)
    sum         products joined by + and -, from left to right
    product     factors joined by * and /, from left to right
    factor      -factor | number | part | (expression) | function(expression, ...)
    functions   min(x, y, ...)  max(x, y, ...)  clip(x, low, high)
                gate(condition, x): x if the condition holds (is not 0), else 0

If a part has no value, the response is left out of training, for the part's own reason, unless a gate in front of the part is closed.
A division by a part that is 0 does the same. The module needs no torch: the code that computes a reward also checks the config.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

LONGEST, MOST = 20_000, 400
"""The most characters, and the most tokens (numbers, names, marks), of an expression."""
DEEPEST = 32
"""The deepest nesting of parentheses, calls and signs."""
FUNCTIONS: Mapping[str, tuple[int, int | None]] = {
    "min": (2, None),
    "max": (2, None),
    "clip": (3, 3),
    "gate": (2, 2),
}
"""For each name the fewest and the most arguments."""
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<mark>[<>=!]=|[-+*/()<>,])"
)
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


class ExpressionInvalid(ValueError):
    """`column` counts from 1 and may lie one behind the text; `message` says what was expected there."""

    def __init__(self, column: int, message: str) -> None:
        self.column, self.message = column, message
        super().__init__(f"column {column}: {message}")


class Evaluated(NamedTuple):
    """`value` is None if, and only if, `why` says why the response is left out."""

    value: float | None
    why: str = ""


@dataclass
class _Measured:
    """The values with which the nodes compute, and the reasons for those that are missing."""

    values: Mapping[str, float | None]
    reasons: Mapping[str, str]
    missing: list[str] = field(default_factory=list)

    def lacks(self, reason: str) -> None:
        if reason not in self.missing:
            self.missing.append(reason)

    def all(self, nodes: Iterable["Node"]) -> list[float] | None:
        """The values of all nodes; None if one is missing. All are computed first, so that every reason is reported."""
        found = [node.value(self) for node in nodes]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else None

    def finite(self, value: float, node: "Node") -> float | None:
        if math.isfinite(value):
            return value
        self.lacks(f"{_short(node)} is not a finite number")
        return None


@dataclass(frozen=True)
class Number:
    number: float

    def __str__(self) -> str:
        return repr(self.number).removesuffix(".0")

    def inner(self) -> tuple["Node", ...]:
        return ()

    def value(self, measured: _Measured) -> float | None:
        return self.number


@dataclass(frozen=True)
class PartName:
    name: str

    def __str__(self) -> str:
        return self.name

    def inner(self) -> tuple["Node", ...]:
        return ()

    def value(self, measured: _Measured) -> float | None:
        value = measured.values.get(self.name)
        if value is None:
            measured.lacks(f"{self.name}: {measured.reasons.get(self.name) or 'it has no value'}")
            return None
        return measured.finite(float(value), self)


@dataclass(frozen=True)
class Negative:
    operand: "Node"

    def __str__(self) -> str:
        return f"-{_wrapped(self.operand, Chain, ComparisonNode)}"

    def inner(self) -> tuple["Node", ...]:
        return (self.operand,)

    def value(self, measured: _Measured) -> float | None:
        value = self.operand.value(measured)
        return None if value is None else -value


@dataclass(frozen=True)
class Chain:
    """Operands with operators of one kind between them (+ and -, or * and /), computed from left to right."""

    first: "Node"
    rest: tuple[tuple[str, "Node"], ...]

    def __str__(self) -> str:
        # a product inside a sum needs no parentheses; any other chain inside a chain does
        loose = self.rest[0][0] in "+-"
        operands = [
            f"({node})" if isinstance(node, ComparisonNode | Chain) and not (loose and _is_product(node)) else str(node)
            for node in self.inner()
        ]
        return operands[0] + "".join(f" {op} {text}" for (op, _), text in zip(self.rest, operands[1:], strict=True))

    def inner(self) -> tuple["Node", ...]:
        return (self.first, *(node for _, node in self.rest))

    def value(self, measured: _Measured) -> float | None:
        operands = measured.all(self.inner())
        if operands is None:
            return None
        total = operands[0]
        for (op, node), operand in zip(self.rest, operands[1:], strict=True):
            if op == "/" and operand == 0:
                measured.lacks(f"division by zero: {_short(node)} is 0")
                return None
            total = _joined(total, op, operand)
        return measured.finite(total, self)


@dataclass(frozen=True)
class ComparisonNode:
    left: "Node"
    op: str
    right: "Node"

    def __str__(self) -> str:
        return f"{_wrapped(self.left, ComparisonNode)} {self.op} {_wrapped(self.right, ComparisonNode)}"

    def inner(self) -> tuple["Node", ...]:
        return (self.left, self.right)

    def value(self, measured: _Measured) -> float | None:
        operands = measured.all(self.inner())
        return None if operands is None else float(_COMPARE[self.op](*operands))


@dataclass(frozen=True)
class FunctionCall:
    function: str
    arguments: tuple["Node", ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"

    def inner(self) -> tuple["Node", ...]:
        return self.arguments

    def value(self, measured: _Measured) -> float | None:
        if self.function == "gate":
            condition = self.arguments[0].value(measured)
            return self.arguments[1].value(measured) if condition else condition  # closed: 0; unknown: None
        values = measured.all(self.arguments)
        if values is None:
            return None
        if self.function != "clip":
            return min(values) if self.function == "min" else max(values)
        value, low, high = values
        if low > high:
            measured.lacks(f"{_short(self)} has no range: its low {low:g} is above its high {high:g}")
            return None
        return min(max(value, low), high)


Node = Number | PartName | Negative | Chain | ComparisonNode | FunctionCall


@dataclass(frozen=True)
class Expression:
    """`str` gives a text that parses to an equal expression."""

    root: Node

    def __str__(self) -> str:
        return str(self.root)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts in the expression, each once, in the order in which they appear."""
        return tuple(dict.fromkeys(node.name for node in _walk(self.root) if isinstance(node, PartName)))

    def evaluate(self, values: Mapping[str, float | None], reasons: Mapping[str, str] | None = None) -> Evaluated:
        """The reward from the values of the parts. `reasons` say why a part has no value. A part that is not given has none."""
        measured = _Measured(values, reasons or {})
        value = self.root.value(measured)
        return Evaluated(None, "; ".join(measured.missing)) if value is None else Evaluated(value + 0.0)


def parse(text: str, names: Sequence[str]) -> Expression:
    """The expression in `text` over the parts in `names`.

    Raises ExpressionInvalid at the first place that is wrong: it breaks the grammar, names an unknown part, always divides by 0, has a
    clip without a range, has numbers that are too large to compute with, or more than `MOST` tokens or `DEEPEST` levels.
    """
    if len(text) > LONGEST:
        raise ExpressionInvalid(LONGEST + 1, f"expected at most {LONGEST:,} characters, found {len(text):,}")
    return Expression(_Parser(text, names).whole())


Kind = Literal["number", "name", "mark", "end"]


class _Token(NamedTuple):
    kind: Kind
    text: str
    column: int

    def __str__(self) -> str:
        return f"“{_short(self.text)}”" if self.text else "the end"


class _Parser:
    """Parses by recursive descent, with one method for each rule of the grammar."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self._tokens = list(islice(_tokens(text), MOST + 1))
        if self._tokens[-1].kind != "end":
            raise ExpressionInvalid(
                self._tokens[-1].column, f"expected the end: at most {MOST} numbers, names and marks"
            )
        self._names = names
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        root = self._expression()
        if self._next.kind != "end":
            raise self._unexpected("an operator or the end")
        return root

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, mark: str, expected: str) -> None:
        if self._next.text != mark:
            raise self._unexpected(expected)
        self._at += 1

    def _unexpected(self, expected: str) -> ExpressionInvalid:
        return ExpressionInvalid(self._next.column, f"expected {expected}, found {self._next}")

    def _expression(self) -> Node:
        left = self._chain("+-", self._product)
        if self._next.text not in _COMPARE:
            return left
        found = ComparisonNode(left, self._take().text, self._chain("+-", self._product))
        if self._next.text in _COMPARE:
            raise self._unexpected("the end of the comparison (two comparisons need parentheses)")
        return found

    def _product(self) -> Node:
        return self._chain("*/", self._factor)

    def _chain(self, operators: str, operand: Callable[[], Node]) -> Node:
        begin = self._next.column
        first, rest = operand(), list[tuple[str, Node]]()
        while self._next.kind == "mark" and self._next.text in operators:
            op = self._take().text
            column = self._next.column
            node = operand()
            if op == "/" and _constant(node) == 0:
                raise ExpressionInvalid(column, f"expected something to divide by, found {_short(node)}, which is 0")
            rest.append((op, node))
        return _computable(Chain(first, tuple(rest)), begin) if rest else first

    def _factor(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionInvalid(self._next.column, f"expected at most {DEEPEST} levels inside each other")
        found = self._bare()
        self._depth -= 1
        return found

    def _bare(self) -> Node:
        token = self._next
        if token.kind == "number":
            return self._number()
        if token.kind == "name":
            self._at += 1
            return self._call(token) if self._next.text == "(" else self._part(token)
        if token.text == "-":
            self._at += 1
            return Negative(self._factor())
        if token.text != "(":
            raise self._unexpected("a number, a part, a function or “(”")
        self._at += 1
        inner = self._expression()
        self._expect(")", "an operator or “)”")
        return inner

    def _number(self) -> Node:
        token = self._take()
        number = float(token.text)
        if not math.isfinite(number):
            raise ExpressionInvalid(token.column, f"expected a finite number, found {token}")
        return Number(number)

    def _part(self, token: _Token) -> Node:
        if token.text in FUNCTIONS:
            raise self._unexpected(f"“(” behind the function {token.text}")
        if token.text not in self._names:
            raise ExpressionInvalid(token.column, f"unknown part {token}; known: {', '.join(self._names) or 'none'}")
        return PartName(token.text)

    def _call(self, token: _Token) -> Node:
        if token.text not in FUNCTIONS:
            raise ExpressionInvalid(token.column, f"unknown function {token}; known: {', '.join(FUNCTIONS)}")
        fewest, most = FUNCTIONS[token.text]
        self._at += 1
        arguments = [self._expression()]
        while self._next.text == "," and len(arguments) != most:
            self._at += 1
            arguments.append(self._expression())
        if len(arguments) < fewest:
            raise self._unexpected(f"an operator or “,”: {token.text} takes {_several(fewest, most)}")
        more = "" if len(arguments) == most else " or “,”"
        ending = f": {token.text} takes {_several(fewest, most)}" if self._next.text == "," else ""
        self._expect(")", f"an operator or “)”{more}{ending}")
        return _computable(FunctionCall(token.text, tuple(arguments)), token.column)


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _TOKEN.match(text, at)
        if found is None:
            hint = " (equality is ==)" if text[at] == "=" else ""
            raise ExpressionInvalid(at + 1, f"expected a number, a part or an operator, found “{text[at]}”{hint}")
        kinds: tuple[Kind, ...] = ("number", "name", "mark")
        yield _Token(next(kind for kind in kinds if found[kind]), found[0], at + 1)
        at = found.end()
    yield _Token("end", "", len(text) + 1)


def _computable(node: Node, column: int) -> Node:
    """The node. A node that has no value for any values of the parts is refused."""
    measured = _Measured({}, {})
    if _fixed(node) and node.value(measured) is None:
        raise ExpressionInvalid(column, f"expected something to compute, but {measured.missing[0]}")
    if isinstance(node, FunctionCall) and node.function == "clip":
        low, high = map(_constant, node.arguments[1:])
        if low is not None and high is not None and low > high:
            raise ExpressionInvalid(column, f"expected a low that is not above the high, found {_short(node)}")
    return node


def _constant(node: Node) -> float | None:
    """The value of a node that no part changes; else None."""
    return node.value(_Measured({}, {})) if _fixed(node) else None


def _fixed(node: Node) -> bool:
    return not any(isinstance(each, PartName) for each in _walk(node))


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for each in node.inner():
        yield from _walk(each)


def _joined(total: float, op: str, operand: float) -> float:
    if op == "+":
        return total + operand
    if op == "-":
        return total - operand
    return total * operand if op == "*" else total / operand


def _is_product(node: Chain | ComparisonNode) -> bool:
    return isinstance(node, Chain) and node.rest[0][0] in "*/"


def _wrapped(node: Node, *kinds: type) -> str:
    return f"({node})" if isinstance(node, kinds) else str(node)


def _short(shown: object) -> str:
    text = str(shown)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _several(fewest: int, most: int | None) -> str:
    return f"{fewest} arguments" if fewest == most else f"{fewest} or more"
