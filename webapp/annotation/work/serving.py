"""The tasks that a person gets next."""

from dataclasses import dataclass

from webapp.annotation.kinds import Settings
from webapp.annotation.models import Assignment, Project
from webapp.annotation.tasks import gold_schedule

from ..tasks import seats
from ..tasks.seats import PersonPlace

MAX_HOLD = 10


@dataclass(frozen=True)
class ServedTasks:
    """The present tasks of a person. `left`, the number of unanswered tasks without `items`, is None for many;
    `reason` says why `items` is empty; `guidelines` is the number of the guidelines in force."""

    items: list[Assignment]
    project: Project
    settings: Settings
    left: int | None
    done: int
    reason: str = ""
    guidelines: int | None = None


def why_not(place: PersonPlace) -> str:
    """The reason why this person gets no work; empty if they may."""
    if place.participant.paused:
        return "you_are_paused"
    if place.project.state == Project.State.CLOSED:
        return "closed"
    return "" if place.project.state == Project.State.OPEN else "paused"


def may_finish(place: PersonPlace) -> bool:
    """Whether begun work may become an answer: also while the project is paused."""
    return not place.participant.paused and place.project.state != Project.State.CLOSED


def serve(place: PersonPlace, hold: int) -> ServedTasks:
    """The person's open seats, filled up to `hold` without waiting for any lock."""
    hold, reason = min(hold, MAX_HOLD), why_not(place)
    items: list[Assignment] = []
    if not reason and hold > 0:
        items = seats.open_seats(place, hold)
        items += _fill(place, hold - len(items))
        reason = "" if items else "none_left"
    return turn(place, items, reason)


def serve_waiting(place: PersonPlace, hold: int) -> ServedTasks:
    """If skipping locked tasks found nothing at all: looks once more and waits, so that a free seat is never missed. In a transaction of
    its own, because a transaction that waits must not hold another task."""
    reason = why_not(place)
    if reason:
        return turn(place, [], reason)
    items = seats.open_seats(place, min(hold, MAX_HOLD)) or seats.take_waiting(place)
    return turn(place, items, "" if items else "none_left")


def turn(place: PersonPlace, items: list[Assignment], reason: str) -> ServedTasks:
    waiting = seats.count_waiting(place) if items else 0
    left = waiting + _gold_to_come(place, waiting) if items and waiting <= seats.COUNTED else None
    left = left if items else 0
    number = place.guidelines.number if place.guidelines else None
    return ServedTasks(items, place.project, place.settings, left, place.participant.submitted, reason, number)


def _fill(place: PersonPlace, missing: int) -> list[Assignment]:
    if missing <= 0:
        return []
    due = _gold_due(place, missing)
    found = seats.take_gold(place, due) if due else []
    found += seats.take_next(place, missing - len(found))
    if len(found) < missing and place.participant.cursor > seats.START:
        # once more from the start: seats that others gave back, and tasks that were locked before
        place.participant.cursor = seats.START
        found += seats.take_next(place, missing - len(found))
    return found


def _gold_due(place: PersonPlace, count: int) -> int:
    """The number of gold tasks among the next `count` seats."""
    person, every = place.participant, place.settings.gold_every
    return sum(
        gold_schedule.is_gold(person.pk, number, every) for number in range(person.served, person.served + count)
    )


def _gold_to_come(place: PersonPlace, waiting: int) -> int:
    person, every = place.participant, place.settings.gold_every
    return gold_schedule.to_come(person.pk, person.served, every, seats.count_gold(place), waiting) if every else 0
