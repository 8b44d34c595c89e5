"""The query language of the table: text in, terms with their places out. It uses no database; `conditions` knows what names mean.

    state:finished,stopped tag:ablation config.optim.lr<1e-5 max(eval/score)>0.4 -group:"old ones" demo

Terms are joined by *and*. `-` in front of a term negates it. Values separated by commas are alternatives. A word without an operator is
looked for in names. Names and values with spaces or signs are quoted; in them two quotes stand for one, as in CSV.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS = ("!=", "<=", ">=", ":", "=", "<", ">", "~")
STOPS = frozenset(":=<>!~")
QUOTED = re.compile(r'"((?:[^"]|"")*)"(?!")')
MAX_QUERY = 1000
MAX_TERMS = 30


class QueryProblem(ValueError):
    """The query cannot be read: the problem, and where it starts and ends in the query."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message, self.start, self.end = message, start, end


@dataclass(frozen=True)
class Piece:
    """A part of the query without its quotes, and its place in the query with them."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Term:
    """`field` is None for a word that is looked for in names; then it has one value and the operator `~`."""

    field: Piece | None
    operator: str
    values: tuple[Piece, ...]
    turned: bool
    start: int
    end: int


def parse(text: str) -> list[Term]:
    """Raises QueryProblem."""
    if len(text) > MAX_QUERY:
        raise QueryProblem(f"A query has at most {MAX_QUERY:,} characters.", MAX_QUERY, len(text))
    terms = list(_terms(text))
    if len(terms) > MAX_TERMS:
        raise QueryProblem(f"A query has at most {MAX_TERMS} terms.", terms[MAX_TERMS].start, len(text))
    return terms


def quote_text(text: str) -> str:
    """The text as it must be written in a query to be one piece."""
    plain = text and not any(each.isspace() or each in STOPS or each in ',"' for each in text) and text[0] != "-"
    return text if plain else '"' + text.replace('"', '""') + '"'


def _terms(text: str) -> Iterator[Term]:
    at = _skip(text, 0)
    while at < len(text):
        term = _term(text, at)
        yield term
        at = _skip(text, term.end)


def _term(text: str, start: int) -> Term:
    turned = text[start] == "-"
    first = start + turned
    if first >= len(text) or text[first].isspace():
        raise QueryProblem("Write a condition after -, for runs to leave out.", start, start + 1)
    name = _piece(text, first, STOPS)
    operator = next((each for each in OPERATORS if text.startswith(each, name.end)), "")
    if not operator:
        if name.end < len(text) and text[name.end] == "!":
            raise QueryProblem("Write != for “is not”.", name.end, name.end + 1)
        return Term(None, "~", (name,), turned, start, name.end)
    if not name.text:
        raise QueryProblem(
            f"Write a name before {operator}, such as state or eval/score.", name.end, name.end + len(operator)
        )
    values = _values(text, name.end + len(operator), name.text)
    return Term(name, operator, values, turned, start, values[-1].end)


def _values(text: str, at: int, name: str) -> tuple[Piece, ...]:
    """The alternatives, which commas separate."""
    found = []
    while True:
        value = _piece(text, at, frozenset(","))
        if value.start == value.end:
            raise QueryProblem(f"Write a value for {name} after the sign.", max(at - 1, 0), at)
        found.append(value)
        if not text.startswith(",", value.end):
            return tuple(found)
        at = value.end + 1


def _piece(text: str, start: int, stops: frozenset[str]) -> Piece:
    """The text up to a space or one of the stops, or everything between two quotes."""
    if text.startswith('"', start):
        found = QUOTED.match(text, start)
        if not found:
            raise QueryProblem("This quote has no end.", start, len(text))
        return Piece(found[1].replace('""', '"'), start, found.end())
    end = start
    while end < len(text) and not text[end].isspace() and text[end] not in stops:
        end += 1
    return Piece(text[start:end], start, end)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
