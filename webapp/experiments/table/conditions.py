"""Turns the terms of a query into conditions on runs. Every name is resolved in the reader's own workspace."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from webapp.accounts.models import Membership
from webapp.core.requests.numbers import whole_number

from ..models import ACTIVE, OVER, Experiment, Run, SweepRun
from . import columns
from .among import Among
from .columns import Column
from .language import Piece, QueryProblem, Term, parse
from .models import RunStar, RunTag, RunValue

Source = columns.Source
NUMBERS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte", ":": "exact", "=": "exact", "!=": "exact"}
SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
LASTING = re.compile(r"(\d+(?:\.\d+)?)([a-z]*)\Z")
MOMENTS = {"created": "created_at", "started": "started_at", "ended": "ended_at"}
WORDS = {  # names of other rows that a run shows
    "experiment": "experiment__name",
    "model": "model__name",
    "dataset": "dataset_version__dataset__name",
    "recipe": "recipe",
    "group": "group",
    "name": "name",
}
IS = ("active", "over", "starred", "mine", "archived", "any")
PLAIN = (":", "=", "!=")


@dataclass(frozen=True)
class _Reader:
    membership: Membership
    named: dict[str, "Column | columns.UnknownColumn"]
    within: Collection[int] | None = None

    def runs_with(self, rows: "QuerySet[Any]") -> Q:
        """The condition to have one of the rows. If only some runs are looked at, only their rows are: the database could not know how few
        they are."""
        held = rows if self.within is None else rows.filter(Among("run_id", self.within))
        return Q(pk__in=held.values("run_id"))


@dataclass(frozen=True)
class RunCondition:
    """The condition that a run must meet to be found by a query. Archived runs are left out unless the query names them."""

    terms: Sequence[Term]
    _reader: _Reader

    def of(self, within: Collection[int] | None = None) -> Q:
        """`within`: the ids of the runs that are looked at, if these are known."""
        reader, found = replace(self._reader, within=within), Q()
        for term in self.terms:
            each = _term(reader, term)
            found &= ~each if term.turned != (term.operator == "!=" and _by_fact(term)) else each
        return found if any(map(_tells_of_archived, self.terms)) else found & Q(archived_at__isnull=True)


def condition(membership: Membership, text: str) -> RunCondition:
    """Raises QueryProblem."""
    terms = parse(text)
    asked = [name for term in terms if term.field for name in _named(term.field, term) if name not in FIELDS]
    read = RunCondition(terms, _Reader(membership, columns.resolve(membership.workspace_id, asked)))
    read.of()  # raises what is wrong
    return read


def _named(field: Piece, term: Term) -> list[str]:
    """The names of columns in a term."""
    return [each.text for each in term.values] if field.text == "has" else [field.text]


def _by_fact(term: Term) -> bool:
    return term.field is not None and term.field.text in FIELDS


def _tells_of_archived(term: Term) -> bool:
    return bool(term.field and term.field.text == "is" and {"archived", "any"} & {each.text for each in term.values})


def _term(reader: _Reader, term: Term) -> Q:
    if term.field is None:
        return _words(reader, term.values[0].text)
    if term.field.text in FIELDS:
        return FIELDS[term.field.text](reader, term)
    column = reader.named[term.field.text]
    if isinstance(column, columns.UnknownColumn):
        raise QueryProblem(column.message, term.field.start, term.field.end)
    return _valued(reader, column, term)


def _words(reader: _Reader, text: str) -> Q:
    """Searches the names that a row shows. The few rows of other tables are found first, so that runs need no join."""
    named = Experiment.objects.filter(workspace_id=reader.membership.workspace_id, name__icontains=text)
    found = Q(name__icontains=text) | Q(group__icontains=text) | Q(experiment__in=named.values("pk"))
    found |= Q(model__in=_models(reader, text)) | Q(dataset_version__in=_versions(reader, text))
    number = whole_number(text.lower().removeprefix("run").strip(), 9)
    return found if number is None else found | Q(number=number)


def _models(reader: _Reader, text: str) -> list[int]:
    from webapp.inference.models import RegisteredModel

    rows = RegisteredModel.objects.filter(workspace_id=reader.membership.workspace_id, name__icontains=text)
    return list(rows.values_list("pk", flat=True)[:500])


def _versions(reader: _Reader, text: str) -> list[int]:
    from webapp.datasets.models import DatasetVersion

    rows = DatasetVersion.objects.filter(
        dataset__workspace_id=reader.membership.workspace_id, dataset__name__icontains=text
    )
    return list(rows.values_list("pk", flat=True)[:500])


# ---- facts of every run ----


def _plain(term: Term, *more: str) -> None:
    """Checks the operator. Raises QueryProblem if the field does not have it."""
    if term.operator not in (*PLAIN, *more):
        assert term.field is not None  # noqa: S101
        signs = " ".join((*PLAIN, *more))
        at = term.field.end
        raise QueryProblem(f"{term.field.text} takes {signs}", at, at + len(term.operator))


def _state(reader: _Reader, term: Term) -> Q:
    _plain(term)
    found = Q()
    for value in term.values:
        if value.text not in (*Run.State.values, "active", "over"):
            known = ", ".join((*Run.State.values, "active", "over"))
            raise QueryProblem(f"There is no state {value.text}. There are {known}.", value.start, value.end)
        many = {"active": ACTIVE, "over": tuple(OVER)}
        found |= Q(state__in=many.get(value.text, (value.text,)))
    return found


def _is(reader: _Reader, term: Term) -> Q:
    _plain(term)
    user = reader.membership.user
    known = {
        "active": Q(state__in=ACTIVE),
        "over": Q(state__in=tuple(OVER)),
        "starred": Q(pk__in=RunStar.objects.filter(user=user).values("run_id")),
        "mine": Q(created_by=user),
        "archived": Q(archived_at__isnull=False),
        "any": Q(),
    }
    found = Q()
    for value in term.values:
        if value.text not in known:
            raise QueryProblem(f"A run can be {', '.join(IS)}.", value.start, value.end)
        if value.text == "any":
            return Q()
        found |= known[value.text]
    return found


def _tag(reader: _Reader, term: Term) -> Q:
    _plain(term)
    names = [value.text.lower() for value in term.values]
    return reader.runs_with(RunTag.objects.filter(name__in=names))


def _word(path: str) -> Callable[[_Reader, Term], Q]:
    def found(reader: _Reader, term: Term) -> Q:
        _plain(term, "~")
        way = "icontains" if term.operator == "~" else "iexact"
        either = Q()
        for value in term.values:
            either |= Q(**{f"{path}__{way}": value.text})
        return either

    return found


def _by(reader: _Reader, term: Term) -> Q:
    _plain(term, "~")
    either = Q()
    for value in term.values:
        if value.text == "me":
            either |= Q(created_by=reader.membership.user)
        else:
            way = "iexact" if term.operator == "=" else "icontains"
            either |= Q(**{f"created_by__name__{way}": value.text}) | Q(created_by__email__iexact=value.text)
    return either


GIVEN = {  # facts that a run may lack
    "tag": Q(pk__in=RunTag.objects.values("run_id")),
    "group": ~Q(group=""),
    "by": Q(created_by__isnull=False),
    "model": Q(model__isnull=False),
    "dataset": Q(dataset_version__isnull=False),
    "started": Q(started_at__isnull=False),
    "ended": Q(ended_at__isnull=False),
}


def _has(reader: _Reader, term: Term) -> Q:
    """A condition by whether a run has a value at all."""
    _plain(term)
    either = Q()
    for value in term.values:
        column = reader.named.get(value.text)
        if value.text in GIVEN:
            either |= GIVEN[value.text]
        elif isinstance(column, Column) and column.pk is not None:
            either |= reader.runs_with(RunValue.objects.filter(column_id=column.pk))
        else:
            unknown = column.message if isinstance(column, columns.UnknownColumn) else "Every run has this."
            raise QueryProblem(unknown, value.start, value.end)
    return either


def _run(reader: _Reader, term: Term) -> Q:
    """A condition by the ids of runs, as addresses have them."""
    _plain(term)
    for value in term.values:
        if whole_number(value.text) is None:
            raise QueryProblem("Write the number from the run's address.", value.start, value.end)
    return Q(pk__in=[whole_number(value.text) for value in term.values])


def _sweep(reader: _Reader, term: Term) -> Q:
    """A condition by the id of a sweep, as its address has it."""
    _plain(term)
    for value in term.values:
        if whole_number(value.text) is None:
            raise QueryProblem("Write the number from the sweep's address.", value.start, value.end)
    return Q(
        pk__in=SweepRun.objects.filter(trial__sweep__in=[whole_number(each.text) for each in term.values]).values(
            "run_id"
        )
    )


def _step(reader: _Reader, term: Term) -> Q:
    return _compared(term, "step", _whole)


def _moment(column: str) -> Callable[[_Reader, Term], Q]:
    def found(reader: _Reader, term: Term) -> Q:
        _plain(term, "<", "<=", ">", ">=")
        either = Q()
        for value in term.values:
            start, end = _span(value)
            either |= {
                "<": Q(**{f"{column}__lt": start}),
                "<=": Q(**{f"{column}__lt": end}),
                ">": Q(**{f"{column}__gte": end}),
                ">=": Q(**{f"{column}__gte": start}),
            }.get(term.operator) or Q(**{f"{column}__gte": start, f"{column}__lt": end})
        return either

    return found


def _age(reader: _Reader, term: Term) -> Q:
    """A condition by the age of a run: a younger one was made later."""
    _plain(term, "<", "<=", ">", ">=")
    turned = {"<": "gt", "<=": "gte", ">": "lt", ">=": "lte"}
    if term.operator not in turned:
        raise QueryProblem("Compare ages, such as age<7d", term.start, term.end)
    moment = timezone.now() - timedelta(seconds=_seconds(term.values[0]))
    return Q(**{f"created_at__{turned[term.operator]}": moment})


def _span(value: Piece) -> tuple[datetime, datetime]:
    """The start and end of a day, or one moment twice. Raises QueryProblem."""
    try:
        if day := parse_date(value.text):
            start = timezone.make_aware(datetime.combine(day, time.min))
            return start, start + timedelta(days=1)
        if moment := parse_datetime(value.text):
            moment = moment if timezone.is_aware(moment) else timezone.make_aware(moment)
            return moment, moment + timedelta(microseconds=1)
    except (ValueError, OverflowError):
        pass
    raise QueryProblem("Write a day as 2026-11-25, or a moment as 2026-11-25T14:30.", value.start, value.end)


def _seconds(value: Piece) -> float:
    found = LASTING.match(value.text)
    if not found or found[2] not in SECONDS or (seconds := float(found[1]) * SECONDS[found[2]]) > 1e10:
        raise QueryProblem("Write a length of time as 90s, 5m, 2h or 7d.", value.start, value.end)
    return seconds


# ---- values of the config, metrics, and stored facts of a run ----


def _number(value: Piece) -> float:
    try:
        number = float(value.text)
    except ValueError:
        number = float("nan")
    if number != number or abs(number) == float("inf"):
        raise QueryProblem(f"{value.text} is not a number.", value.start, value.end)
    return number


def _whole(value: Piece) -> float:
    """A whole number: the database would cut the rest off, and find step 1 for 1.5."""
    number = _number(value)
    if not number.is_integer():
        raise QueryProblem(f"{value.text} is not a whole number.", value.start, value.end)
    return number


def _compared(term: Term, attribute: str, read: Callable[[Piece], float]) -> Q:
    if term.operator == "~":
        raise QueryProblem("Compare numbers with : = != < <= > >=", term.start, term.end)
    if len(term.values) > 1 and term.operator not in PLAIN:
        raise QueryProblem("Compare with one number.", term.values[1].start, term.values[-1].end)
    either = Q()
    for value in term.values:
        either |= Q(**{f"{attribute}__{NUMBERS[term.operator]}": read(value)})
    return either


def _valued(reader: _Reader, column: Column, term: Term) -> Q:
    """A run without a value never matches, with any operator; `-` in front finds such runs as well."""
    if column.source == Source.CONFIG:
        held = _of_config(term)
    else:
        held = _compared(term, column.attribute, _seconds if column.name == "took" else _number)
    if term.operator == "!=":
        given = Q(number__isnull=False) | Q(text__isnull=False)
        held = ~held & (given if column.source == Source.CONFIG else Q(**{f"{column.attribute}__isnull": False}))
    return reader.runs_with(RunValue.objects.filter(held, column_id=column.pk))


def _of_config(term: Term) -> Q:
    if term.operator in ("<", "<=", ">", ">="):
        return _compared(term, "number", _number)
    either = Q()
    for value in term.values:
        if term.operator == "~":
            either |= Q(text__icontains=value.text)
            continue
        either |= Q(text__iexact=value.text)
        try:
            either |= Q(number=_number(value))
        except QueryProblem:
            continue  # a word is equal only to words
    return either


FIELDS: dict[str, Callable[[_Reader, Term], Q]] = {
    "state": _state,
    "is": _is,
    "tag": _tag,
    "by": _by,
    "has": _has,
    "age": _age,
    "run": _run,
    "sweep": _sweep,
    "step": _step,
    **{name: _word(path) for name, path in WORDS.items()},
    **{name: _moment(column) for name, column in MOMENTS.items()},
}


def explained(problem: QueryProblem, text: str) -> Sequence[str]:
    """The query in three parts; the middle one is wrong."""
    return text[: problem.start], text[problem.start : problem.end], text[problem.end :]
