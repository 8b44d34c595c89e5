"""Measures the work of each person of a project: amount, speed, gold tasks, agreement with others, and how these drift.

`measure` reads every answer that stands and runs where the coefficients are computed (`refresh`). Pages read its result from
`AgreementReport.people`, with warnings and drift, so they take the same time for any number of answers. Agreement here is the plain share
of equal answers among pairs of people on the same task; the agreement page has the coefficients that correct for chance.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, Self

from django.db import connection
from django.utils import timezone

from .. import kinds
from ..models import Project

FAST_SHARE, ENOUGH = 0.2, 5  # a warning needs this share of fast answers, among this many
LOW_GOLD = 0.7
DRIFT_FROM = 20  # answers, or compared answers, in each half before a change is reported
FASTER, LESS_AGREEING = 0.5, 0.15
DAILY_UP_TO = timedelta(days=60)  # of work; beyond, a point is a week

# user, day (NULL: all together), answers, median seconds, fast ones of those timed, right ones of gold answers, the last
SPEEDS = """
    SELECT s.user_id, date_trunc(%(step)s, a.submitted_at)::date AS at, count(*),
        percentile_cont(0.5) WITHIN GROUP (ORDER BY a.seconds) FILTER (WHERE a.seconds > 0),
        count(*) FILTER (WHERE a.seconds > 0 AND a.seconds < %(fast)s), count(*) FILTER (WHERE a.seconds > 0),
        count(*) FILTER (WHERE a.gold_right), count(a.gold_right), max(a.submitted_at)
    FROM annotation_answer a JOIN annotation_assignment s ON s.id = a.assignment_id
    WHERE a.project_id = %(project)s AND a.current
    GROUP BY GROUPING SETS ((s.user_id, at), (s.user_id)) ORDER BY at
"""
AGREEMENT = """
    WITH said AS MATERIALIZED (
        SELECT s.user_id, s.task_id, date_trunc(%(step)s, a.submitted_at)::date AS at, u.unit, u.value
        FROM annotation_answer a JOIN annotation_assignment s ON s.id = a.assignment_id {units}
        WHERE a.project_id = %(project)s AND a.current
    )
    SELECT x.user_id, x.at, count(*) FILTER (WHERE x.value = y.value), count(*)
    FROM said x JOIN said y ON x.task_id = y.task_id AND x.unit = y.unit AND x.user_id <> y.user_id
    GROUP BY GROUPING SETS ((x.user_id, x.at), (x.user_id))
"""


class Share(NamedTuple):
    """`part` of `whole`; `value` is None if the whole is 0."""

    part: int = 0
    whole: int = 0

    @property
    def value(self) -> float | None:
        return self.part / self.whole if self.whole else None


@dataclass
class Figures:
    """Figures of one person over some time. `median_seconds` leaves out answers whose time was not measured."""

    done: int = 0
    median_seconds: float | None = None
    fast: Share = Share()
    gold: Share = Share()
    agreement: Share = Share()

    def packed(self) -> list[Any]:
        """The figures as `AgreementReport.people` stores them."""
        shares = (self.fast, self.gold, self.agreement)
        return [self.done, self.median_seconds, *(part for share in shares for part in (share.part, share.whole))]

    @classmethod
    def unpacked(cls, kept: Sequence[Any], **more: Any) -> Self:
        done, median, fast, timed, right, gold, same, of = kept
        return cls(done, median, Share(fast, timed), Share(right, gold), Share(same, of), **more)


@dataclass
class FiguresAt(Figures):
    at: date = field(default_factory=date.today)


class FigureLine(NamedTuple):
    """A figure over time: its first and its last value, and each value as a percentage of the highest possible ("agreement") or the highest
    measured ("seconds")."""

    first: float
    last: float
    heights: list[int]


def measure(project: Project) -> dict[str, Any]:
    """{user id: {"total": figures, "last_at": time, "points": [[day, *figures], ...] in their order, "warnings": sentences, "drift": {name:
    `FigureLine`}}}, from every answer that stands; figures are as `Figures.packed` gives them."""
    step = "day" if timezone.now() - project.created_at <= DAILY_UP_TO else "week"
    values = {"project": project.pk, "step": step, "fast": project.settings.get("fast_seconds", 0)}
    compared = {(user_id, at): Share(same, of) for user_id, at, same, of in _agreements(project, values)}
    totals: dict[int, tuple[Figures, datetime]] = {}
    points: dict[int, list[FiguresAt]] = defaultdict(list)
    for user_id, at, done, median, fast, timed, right, gold, last in _rows(SPEEDS, values):
        agreement = compared.get((user_id, at), Share())
        figures = (done, median, Share(fast, timed), Share(right, gold), agreement)
        if at is None:
            totals[user_id] = Figures(*figures), last
        else:
            points[user_id].append(FiguresAt(*figures, at=at))
    return {
        str(user_id): {
            "total": total.packed(),
            "last_at": last.isoformat(),
            "points": [[point.at.isoformat(), *point.packed()] for point in points[user_id]],
            "warnings": warnings(total, points[user_id]),
            "drift": drift(points[user_id]),
        }
        for user_id, (total, last) in totals.items()
    }


def compares(project: Project) -> bool:
    """Whether answers of this kind can be equal. Texts are matched by meaning, on the agreement page."""
    return bool(kinds.get_kind(project.kind).units_sql)


def _agreements(project: Project, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    return _rows(AGREEMENT.format(units=kinds.get_kind(project.kind).units_sql), values) if compares(project) else []


def is_low_gold(gold: Share) -> bool:
    """Whether too few answers to gold tasks are right, among enough of them."""
    return gold.whole >= ENOUGH and gold.value is not None and gold.value < LOW_GOLD


def warnings(total: Figures, points: Sequence[FiguresAt]) -> list[str]:
    """Sentences about what a manager should look into."""
    told = []
    if total.fast.whole >= ENOUGH and (total.fast.value or 0) >= FAST_SHARE:
        told.append(f"{total.fast.value:.0%} of the answers came faster than a person can read.")
    if is_low_gold(total.gold):
        told.append(f"Right on {total.gold.part} of {total.gold.whole} gold tasks.")
    early, late = _halves(points)
    if min(early.done, late.done) >= DRIFT_FROM and early.median_seconds and late.median_seconds:
        ratio = late.median_seconds / early.median_seconds
        if ratio < FASTER:
            told.append(
                f"Takes {late.median_seconds:.0f} s a task now, and {early.median_seconds:.0f} s in the beginning."
            )
    before, now = early.agreement, late.agreement
    if min(before.whole, now.whole) >= DRIFT_FROM and (before.value or 0) - (now.value or 0) > LESS_AGREEING:
        told.append(f"Agrees with others in {now.value:.0%} now, in {before.value:.0%} in the beginning.")
    return told


def drift(points: Iterable[FiguresAt]) -> dict[str, FigureLine]:
    """The lines of figures with two values or more; a point whose figure is undefined is left out."""
    lines: dict[str, list[float]] = defaultdict(list)
    for point in points:
        if point.median_seconds is not None:
            lines["seconds"].append(point.median_seconds)
        if (equal := point.agreement.value) is not None:
            lines["agreement"].append(equal)
    return {
        name: FigureLine(values[0], values[-1], _heights(values, 1.0 if name == "agreement" else max(values)))
        for name, values in lines.items()
        if len(values) > 1
    }


def _heights(values: Iterable[float], most: float) -> list[int]:
    return [round(100 * value / (most or 1)) for value in values]


def _halves(points: Sequence[FiguresAt]) -> tuple[Figures, Figures]:
    """Figures of the first and of the second half of a person's answers. The median of a half is the mean of its points' medians."""
    total, passed = sum(point.done for point in points), 0
    parts: tuple[list[FiguresAt], list[FiguresAt]] = ([], [])
    for point in points:
        parts[passed * 2 >= total].append(point)
        passed += point.done
    return _together(parts[0]), _together(parts[1])


def _together(points: Iterable[FiguresAt]) -> Figures:
    listed = list(points)
    timed = [(point.median_seconds, point.done) for point in listed if point.median_seconds is not None]
    weight = sum(done for _, done in timed)
    return Figures(
        done=sum(point.done for point in listed),
        median_seconds=sum(median * done for median, done in timed) / weight if weight else None,
        agreement=Share(sum(each.agreement.part for each in listed), sum(each.agreement.whole for each in listed)),
    )


def _rows(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
