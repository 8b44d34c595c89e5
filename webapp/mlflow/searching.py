"""MLflow's small language of filters and orders, as queries: `metrics.loss < 0.5 and params.lr = '1e-4'`."""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from django.db.models import F, Func, Model, Q, QuerySet, TextField, Value
from django.db.models.expressions import Combinable, OrderBy
from django.db.models.functions import Cast, Coalesce

from webapp.experiments.metrics import points
from webapp.experiments.models import Run

from .endpoint import MlflowError
from .schemas import Search, moment
from .serializers import RUN_NAME, STATES, STATUS

Row = TypeVar("Row", bound=Model)
Operand = Callable[[str, str], Combinable]
"""A function from the kind and the name of a value to the value, such as from `metrics` and `loss`."""
Order = tuple[str, Operand]
TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*") | (?P<quoted>`[^`]+`)
        | (?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?) | (?P<sign><=|>=|!=|=|<|>|\(|\)|,|\.)
        | (?P<word>[A-Za-z_][\w/:\-]*)
    )""",
    re.VERBOSE,
)
MOST = 20  # conditions of a filter
SIGNS = {"=": "exact", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
KINDS = {
    "metric": "metrics",
    "metrics": "metrics",
    "param": "params",
    "params": "params",
    "parameter": "params",
    "parameters": "params",
    "tag": "tags",
    "tags": "tags",
    "attribute": "attributes",
    "attributes": "attributes",
    "attr": "attributes",
    "run": "attributes",
}
TIMES = {"start_time": "run__started_at", "created": "run__started_at", "end_time": "run__ended_at"}
TEXTS = {"run_id": "key", "run_name": "run_name", "status": "run__state", "user_id": "user_id"}
EXPERIMENT_TIMES = ("creation_time", "last_update_time")
MODEL_TIMES = {"creation_timestamp": "created_at", "last_updated_timestamp": "updated_at"}
FAMILIES = {"name": "name", **MODEL_TIMES, "timestamp": "updated_at"}
VERSIONS = {
    "name": "family__name",
    "run_id": "row__key",
    "source_path": "source",
    "version_number": "number",
    **MODEL_TIMES,
}
MOST_ROWS = 1_000  # of one page; clients ask for the next


def wrong(why: str) -> NoReturn:
    """Raises Refused."""
    raise MlflowError(f"The filter or order cannot be read: {why}.")


@dataclass(frozen=True)
class Condition:
    kind: str
    name: str
    sign: str
    value: Any  # text, number, a tuple of texts, or None of IS NULL


class _TokenReader:
    """Reads tokens from the left."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            found = TOKEN.match(text, at)
            if found is None:
                wrong(f"{text[at : at + 20]!r} is not understood")
            self.tokens.append((str(found.lastgroup), str(found[str(found.lastgroup)])))
            at = found.end()
        self.at = 0

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    def take(self) -> tuple[str, str]:
        if self.done:
            wrong("it ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def word(self, *wanted: str) -> bool:
        """Takes the next words if they are these, and returns whether they were."""
        coming = [
            text.upper() for kind, text in self.tokens[self.at : self.at + len(wanted)] if kind in ("word", "sign")
        ]
        if coming != list(wanted):
            return False
        self.at += len(wanted)
        return True

    def name(self) -> str:
        """The next name, with its dots: what follows `metrics.` in `metrics.eval.loss` is `eval.loss`."""
        kind, text = self.take()
        if kind in ("quoted", "text"):
            return text[1:-1]
        parts = [text]
        while self.word("."):
            parts.append(self.take()[1])
        return ".".join(parts)

    def value(self) -> Any:
        kind, text = self.take()
        if kind == "text":
            return re.sub(r"\\(.)", r"\1", text[1:-1])
        if kind == "number":
            return float(text)
        wrong(f"{text!r} stands where a value should; put texts into quotes")

    def listed(self) -> tuple[Any, ...] | None:
        """The next list; None if no list comes. A list holds no other list."""
        if not self.word("("):
            return None
        found = [self.value()]
        while not self.word(")"):
            if not self.word(","):
                wrong("a list needs commas")
            found.append(self.value())
        return tuple(found)


def _condition(reader: _TokenReader) -> Condition:
    kind, name = _identifier(reader)
    if reader.word("IS", "NOT", "NULL"):
        return Condition(kind, name, "is not null", None)
    if reader.word("IS", "NULL"):
        return Condition(kind, name, "is null", None)
    words: tuple[str, ...]
    for words in (("NOT", "IN"), ("IN",), ("LIKE",), ("ILIKE",)):
        if reader.word(*words):
            value = reader.listed() if "IN" in words else reader.value()
            if value is None:
                wrong(f"{' '.join(words)} takes a list")
            return Condition(kind, name, " ".join(words).lower(), value)
    sign = reader.take()[1]
    if sign not in (*SIGNS, "!="):
        wrong(f"{sign!r} compares nothing")
    return Condition(kind, name, sign, reader.value())


def _identifier(reader: _TokenReader) -> tuple[str, str]:
    read_as, text = reader.take()
    if read_as == "word" and reader.word("."):
        if text.lower() not in KINDS:
            wrong(f"{text!r} is not one of metrics, params, tags, attributes")
        return KINDS[text.lower()], reader.name()
    return "attributes", text.strip('`"')


def conditions(text: str) -> list[Condition]:
    """The condition that a whole filter asks for. Raises Refused."""
    reader, found = _TokenReader(text), list[Condition]()
    while not reader.done:
        if found and not reader.word("AND"):
            wrong("conditions are joined by AND")
        found.append(_condition(reader))
        if len(found) > MOST:
            wrong(f"it has more than {MOST} conditions")
    return found


def text_at(name: str, column: str) -> Func:
    """The value of a key of a JSON object as text. Django's own transform would read a name of digits as a place in a list."""
    key = Cast(Value(name), TextField())
    return Func(F(column), key, template="(%(expressions)s)", arg_joiner=" ->> ", output_field=TextField())


def _operand(kind: str, name: str) -> Combinable:
    """The value that a condition or an order of runs is about."""
    if kind == "metrics":
        return points.LastValue("run_id", name)
    if kind == "params":
        return text_at(name, "run__config")
    if kind == "tags" and name != RUN_NAME:
        return text_at(name, "tags")
    if kind == "tags" or name in ("run_name", "Run name"):
        return Coalesce(text_at(RUN_NAME, "tags"), Cast(F("run__name"), TextField()), output_field=TextField())
    if name == "user_id":
        return Coalesce(text_at("mlflow.user", "tags"), Value(""), output_field=TextField())
    if name in TIMES:
        return F(TIMES[name])
    if name in TEXTS:
        return F(TEXTS[name])
    wrong(f"runs have no attribute {name!r}")


def _experiment_operand(kind: str, name: str) -> Combinable:
    if kind == "tags":
        return text_at(name, "logged__tags")
    if kind == "attributes" and name in EXPERIMENT_TIMES:
        return F("created_at")
    if kind == "attributes" and name in ("name", "experiment_id"):
        return Cast(F("id"), TextField()) if name == "experiment_id" else F("name")
    wrong(f"experiments have no {kind} {name!r}")


def _value(condition: Condition) -> Any:
    """The value as its column stores it. Raises Refused."""
    name, value = condition.name, condition.value
    if condition.kind == "metrics":
        return _of(condition, float)
    if condition.kind == "attributes" and name == "version_number":
        number = _of(condition, float)
        if abs(number) >= 2**31 or not number.is_integer():
            wrong("a version number is a whole number of at most nine digits")
        return int(number)
    if condition.kind == "attributes" and (name in TIMES or name in EXPERIMENT_TIMES or name in MODEL_TIMES):
        number = _of(condition, float)
        if not 0 <= number < 2.5e14:
            wrong("a time is in milliseconds since 1970")
        return moment(int(number))
    if condition.kind == "attributes" and name == "status":
        asked = value if isinstance(value, tuple) else (value,)
        if not set(asked) <= set(STATES):
            wrong(f"status is one of {', '.join(STATES)}")
        return tuple(state for state in Run.State if STATUS.get(state, "RUNNING") in asked)
    if isinstance(value, tuple):
        if not all(isinstance(each, str) for each in value):
            wrong("a list holds texts")
        return value
    return _of(condition, str)


def _of(condition: Condition, kind: type[Any]) -> Any:
    if not isinstance(condition.value, kind):
        wrong(f"{condition.name!r} compares with a {'number' if kind is float else 'text in quotes'}")
    return condition.value


def narrowed(rows: "QuerySet[Row]", place: int, condition: Condition, operand: Combinable) -> "QuerySet[Row]":
    """The rows whose operand fulfils the condition, which is at this place of a filter. Raises Refused."""
    name = f"asked_{place}"
    rows = rows.annotate(**{name: operand})
    if condition.value is None:
        return rows.filter(**{f"{name}__isnull": condition.sign == "is null"})
    value, sign = _value(condition), condition.sign
    if condition.kind == "attributes" and condition.name == "status":
        among = Q(**{f"{name}__in": value})
        return rows.filter(~among if sign in ("!=", "not in") else among)
    if sign in ("in", "not in"):
        among = Q(**{f"{name}__in": value})
        return rows.filter(~among if sign == "not in" else among)
    if sign in ("like", "ilike"):
        if not isinstance(value, str):
            wrong("LIKE is for texts")
        return rows.filter(**{f"{name}__{'iregex' if sign == 'ilike' else 'regex'}": _pattern(value)})
    if sign == "!=":
        return rows.filter(**{f"{name}__isnull": False}).exclude(**{name: value})
    return rows.filter(**{f"{name}__{SIGNS[sign]}": value})


def _pattern(like: str) -> str:
    return "^" + "".join(".*" if each == "%" else "." if each == "_" else re.escape(each) for each in like) + "$"


def runs(rows: "QuerySet[Row]", text: str, orders: list[str]) -> "QuerySet[Row]":
    """The logged runs that the filter finds, in the given order. Equal runs come newest first, as do all if no order is given."""
    for place, condition in enumerate(conditions(text)):
        rows = narrowed(rows, place, condition, _operand(condition.kind, condition.name))
    return ordered(rows, [(each, _operand) for each in orders], ("-run__started_at", "-pk"))


def experiments(rows: "QuerySet[Row]", text: str, orders: list[str]) -> "QuerySet[Row]":
    for place, condition in enumerate(conditions(text)):
        rows = narrowed(rows, place, condition, _experiment_operand(condition.kind, condition.name))
    return ordered(rows, [(each, _experiment_operand) for each in orders], ("-created_at", "-pk"))


def models(rows: "QuerySet[Row]", text: str, orders: list[str], columns: Mapping[str, str]) -> "QuerySet[Row]":
    """Families or versions that the filter finds, the newest first unless an order is given. `columns`: attribute -> field."""

    def operand(kind: str, name: str) -> Combinable:
        if kind == "attributes" and name in columns:
            return F(columns[name])
        if kind == "tags":
            return text_at(name, kind)
        wrong(f"models have no {kind} {name!r}; known are tags and {', '.join(columns)}")

    for place, condition in enumerate(conditions(text)):
        rows = narrowed_model(rows, place, condition, operand)
    return ordered(rows, [(each, operand) for each in orders], ("-pk",))


def narrowed_model(rows: "QuerySet[Row]", place: int, condition: Condition, operand: Operand) -> "QuerySet[Row]":
    """Like `narrowed`; a tag that is missing is another one than any. Raises Refused."""
    if condition.kind == "tags" and condition.sign == "!=":  # its client leaves prompts out so, which have a tag
        return rows.exclude(tags__contains={condition.name: _value(condition)})
    return narrowed(rows, place, condition, operand(condition.kind, condition.name))


def page(found: "QuerySet[Row]", given: Search) -> tuple[list[Row], dict[str, str]]:
    """A page of rows, and where the next one begins, in the protocol's words. Raises Refused."""
    start, most = offset(given.page_token), min(given.max_results, MOST_ROWS)
    rows = list(found[start : start + most + 1])
    return rows[:most], {"next_page_token": token(start + most)} if len(rows) > most else {}


def ordered(rows: "QuerySet[Row]", orders: Sequence[Order], last: tuple[str, ...]) -> "QuerySet[Row]":
    """The rows in the given order, and in that of `last` where it leaves them equal. Raises Refused."""
    asked: list[OrderBy] = []
    for place, (text, operand) in enumerate(orders):
        reader = _TokenReader(text)
        kind, name = _identifier(reader)
        down = reader.word("DESC")
        if not down:
            reader.word("ASC")
        if not reader.done:
            wrong(f"an order is a name and ASC or DESC, not {text[:40]!r}")
        rows = rows.annotate(**{f"order_{place}": operand(kind, name)})
        by = F(f"order_{place}")
        asked.append(by.desc(nulls_last=True) if down else by.asc(nulls_last=True))
    return rows.order_by(*asked, *last)


def token(offset: int) -> str:
    return urlsafe_b64encode(json.dumps({"offset": offset}).encode()).decode()


def offset(page_token: str, most: int = 10**9) -> int:
    """The offset, below `most`, that a page token stands for. Raises Refused."""
    if not page_token:
        return 0
    try:
        found = json.loads(urlsafe_b64decode(page_token.encode()))["offset"]
        if type(found) is not int or not 0 <= found < most:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise MlflowError("page_token: take it from the page before.") from None
    return found
