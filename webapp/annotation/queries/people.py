"""How each person of a project works: amount, speed, gold tasks, agreement with others, and how these drift.

Everything is read from the answers that stand. Agreement here is the plain share of equal answers among pairs of people
on the same task; the agreement page has the coefficients that correct for chance.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Count, Q
from django.utils import timezone
from numpy.typing import NDArray

from webapp.accounts.models import Membership, User

from ..models import Assignment, Participant, Project

# answers compared: the newest, so that the page stays quick in a project of any size. Some hold many values each
RECENT = {"pairwise": 20_000, "ranking": 20_000, "grading": 4_000, "rating": 8_000}
FAST_SHARE, ENOUGH = 0.2, 5  # a warning needs this share of fast answers, among so many
LOW_GOLD = 0.7
DRIFT_FROM = 20  # answers, or compared answers, in each half before a change is spoken of
FASTER, LESS_AGREEING = 0.5, 0.15
DAILY_UP_TO = timedelta(days=60)  # of work; beyond, a point is a week
State = Assignment.State
Seconds = NDArray[np.float64]

# (unit, value) of each answer `a`: what two people can say equally or not. Strength counts by its sign.
UNITS = {
    "pairwise": """CROSS JOIN LATERAL (SELECT '' AS unit, CASE WHEN a.content->>'verdict' = 'compared'
        THEN sign((a.content->>'strength')::int)::text ELSE a.content->>'verdict' END AS value) u""",
    "grading": """CROSS JOIN LATERAL (SELECT g->>'criterion' AS unit, g->>'verdict' AS value
        FROM jsonb_array_elements(a.content->'grades') g) u""",
    "rating": """CROSS JOIN LATERAL (SELECT key AS unit, coalesce(value, 'cannot_assess') AS value
        FROM jsonb_each_text(a.content->'ratings')) u""",
    "ranking": """CROSS JOIN LATERAL (SELECT '' AS unit, coalesce((SELECT string_agg(side, ',' ORDER BY side)
        FROM jsonb_array_elements_text(a.content->'tiers'->0) side), 'cannot_assess') AS value) u""",
}
SPEEDS = """
    SELECT s.user_id, date_trunc(%(step)s, a.submitted_at)::date AS at, count(*),
        coalesce(string_agg(float8send(a.seconds), '') FILTER (WHERE a.seconds > 0), ''),
        count(a.gold_right), count(*) FILTER (WHERE a.gold_right), max(a.submitted_at)
    FROM annotation_answer a JOIN annotation_assignment s ON s.id = a.assignment_id
    WHERE a.project_id = %(project)s AND a.current
    GROUP BY s.user_id, at
"""
AGREEMENT = """
    WITH newest AS (
        SELECT id, assignment_id, content, submitted_at FROM annotation_answer
        WHERE project_id = %(project)s AND current ORDER BY id DESC LIMIT %(recent)s
    ), said AS MATERIALIZED (
        SELECT s.user_id, s.task_id, date_trunc(%(step)s, a.submitted_at)::date AS at, u.unit, u.value
        FROM newest a JOIN annotation_assignment s ON s.id = a.assignment_id {units}
    )
    SELECT x.user_id, x.at, count(*), count(*) FILTER (WHERE x.value = y.value)
    FROM said x JOIN said y ON x.task_id = y.task_id AND x.unit = y.unit AND x.user_id <> y.user_id
    GROUP BY GROUPING SETS ((x.user_id, x.at), (x.user_id)) ORDER BY x.at
"""


@dataclass(frozen=True)
class Share:
    """`part` of `whole`; `value` is None where there is nothing to take a share of."""

    part: int = 0
    whole: int = 0

    @property
    def value(self) -> float | None:
        return self.part / self.whole if self.whole else None

    def __add__(self, other: "Share") -> "Share":
        return Share(self.part + other.part, self.whole + other.whole)


@dataclass
class Figures:
    """Of one person over some time. `median_seconds` leaves out answers whose time was not measured."""

    done: int = 0
    median_seconds: float | None = None
    fast: Share = Share()
    gold: Share = Share()
    agreement: Share = Share()


@dataclass
class Point(Figures):
    at: date = field(default_factory=date.today)


@dataclass
class Person:
    """`role` is None for somebody who has left the workspace; their work stays."""

    user: User
    joined_at: datetime | None = None
    takes_part: bool = False
    paused: bool = False
    role: str | None = None
    skipped: int = 0
    open: int = 0
    last_at: datetime | None = None
    total: Figures = field(default_factory=Figures)
    points: list[Point] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def people(project: Project) -> list[Person]:
    """Everybody who takes part or has worked, the busiest first; in six queries however many they are."""
    found = _persons(project)
    step = "day" if _span(project) <= DAILY_UP_TO else "week"
    for user_id, at, figures, last in _speeds(project, step):
        if user_id not in found:
            continue
        if at is None:
            found[user_id].total, found[user_id].last_at = figures, last
        else:
            found[user_id].points.append(Point(**vars(figures), at=at))
    for user_id, at, share in _agreements(project, step):
        if user_id in found:
            person = found[user_id]
            target = person.total if at is None else next((p for p in person.points if p.at == at), None)
            if target is not None:
                target.agreement = share
    for person in found.values():
        person.warnings = warnings(person)
    return sorted(found.values(), key=lambda person: (-person.total.done, not person.takes_part, str(person.user)))


def warnings(person: Person) -> list[str]:
    """What a manager should look into, in sentences."""
    total, told = person.total, []
    if total.fast.whole >= ENOUGH and (total.fast.value or 0) >= FAST_SHARE:
        told.append(f"{total.fast.value:.0%} of the answers came faster than one can read.")
    if total.gold.whole >= ENOUGH and total.gold.value is not None and total.gold.value < LOW_GOLD:
        told.append(f"Right on {total.gold.part} of {total.gold.whole} gold tasks.")
    early, late = _halves(person.points)
    if min(early.done, late.done) >= DRIFT_FROM and early.median_seconds and late.median_seconds:
        ratio = late.median_seconds / early.median_seconds
        if ratio < FASTER:
            told.append(f"Takes {late.median_seconds:.0f} s a task now, {early.median_seconds:.0f} s in the beginning.")
    before, now = early.agreement, late.agreement
    if min(before.whole, now.whole) >= DRIFT_FROM and (before.value or 0) - (now.value or 0) > LESS_AGREEING:
        told.append(f"Agrees with others in {now.value:.0%} now, in {before.value:.0%} in the beginning.")
    return told


def _halves(points: Sequence[Point]) -> tuple[Figures, Figures]:
    """The first and the second half of a person's answers; a median of a half is the mean of its points' medians."""
    total, passed = sum(point.done for point in points), 0
    parts: tuple[list[Point], list[Point]] = ([], [])
    for point in points:
        parts[passed * 2 >= total].append(point)
        passed += point.done
    return _together(parts[0]), _together(parts[1])


def _together(points: Iterable[Point]) -> Figures:
    listed = list(points)
    timed = [(point.median_seconds, point.done) for point in listed if point.median_seconds is not None]
    weight = sum(done for _, done in timed)
    return Figures(
        done=sum(point.done for point in listed),
        median_seconds=sum(median * done for median, done in timed) / weight if weight else None,
        agreement=sum((point.agreement for point in listed), Share()),
    )


def _persons(project: Project) -> dict[int, Person]:
    counted = {
        user_id: (skipped, held)
        for user_id, skipped, held in Assignment.objects.filter(project=project)
        .values_list("user_id")
        .annotate(
            skipped=Count("id", filter=Q(state=State.SKIPPED)),
            held=Count("id", filter=Q(state=State.CLAIMED, lease_until__gt=timezone.now())),
        )
        .order_by()
    }
    parts = {row.user_id: row for row in Participant.objects.filter(project=project)}
    roles = dict(Membership.objects.filter(workspace_id=project.workspace_id).values_list("user_id", "role"))
    found = {}
    for user in User.objects.filter(pk__in={*counted, *parts}):
        part = parts.get(user.pk)
        person = Person(user, takes_part=part is not None, role=roles.get(user.pk))
        if part:
            person.joined_at, person.paused = part.created_at, part.paused
        person.skipped, person.open = counted.get(user.pk, (0, 0))
        found[user.pk] = person
    return found


def _span(project: Project) -> timedelta:
    return timezone.now() - project.created_at


def _speeds(project: Project, step: str) -> Iterable[tuple[int, date | None, Figures, datetime]]:
    """(user, day or None for all together, figures, last answer), in the order of the days.

    The seconds of a person's day come as one packed text: medians of a hundred thousand answers are quicker taken from
    arrays than by sorting rows in the database, once for the days and once more for all together.
    """
    fast = project.settings.get("fast_seconds", 0)
    together: dict[int, list[tuple[Figures, Seconds, datetime]]] = defaultdict(list)
    rows = _rows(SPEEDS, {"project": project.pk, "step": step})
    for user_id, at, done, packed, known, right, last in sorted(rows, key=lambda row: row[1]):
        seconds = np.frombuffer(packed, ">f8")
        figures = _figures(done, seconds, fast, Share(right, known))
        together[user_id].append((figures, seconds, last))
        yield user_id, at, figures, last
    for user_id, days in together.items():
        seconds = np.concatenate([each for _, each, _ in days])
        done, gold = sum(day.done for day, _, _ in days), sum((day.gold for day, _, _ in days), Share())
        yield user_id, None, _figures(done, seconds, fast, gold), max(last for _, _, last in days)


def _figures(done: int, seconds: Seconds, fast: float, gold: Share) -> Figures:
    median = float(np.median(seconds)) if len(seconds) else None
    return Figures(done, median, Share(int((seconds < fast).sum()), len(seconds)), gold)


def _agreements(project: Project, step: str) -> Iterable[tuple[int, date | None, Share]]:
    """(user, day or None for all together, equal answers); nothing for kinds whose answers are texts."""
    if project.kind not in UNITS:
        return
    sql = AGREEMENT.format(units=UNITS[project.kind])
    for user_id, at, compared, same in _rows(
        sql, {"project": project.pk, "step": step, "recent": RECENT[project.kind]}
    ):
        yield user_id, at, Share(same, compared)


def _rows(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def candidates(project: Project) -> list[Membership]:
    """Members who do not take part yet."""
    members = Membership.objects.filter(workspace_id=project.workspace_id).select_related("user")
    return list(members.exclude(user__participations__project=project).order_by("user__email")[:500])


def by_day(points: Iterable[Point]) -> dict[str, list[float]]:
    """{"seconds": [...], "agreement": [...]}: the drift as lines; points where a figure is undefined are left out."""
    lines: dict[str, list[float]] = defaultdict(list)
    for point in points:
        if point.median_seconds is not None:
            lines["seconds"].append(point.median_seconds)
        if point.agreement.value is not None:
            lines["agreement"].append(point.agreement.value)
    return dict(lines)
