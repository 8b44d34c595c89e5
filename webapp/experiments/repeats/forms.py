"""The form that repeats a run, as a person fills it in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from typing import Any
from uuid import uuid4

from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number

from ..lifecycle import utc_times
from .rhythm import WEEKDAYS, Rhythm
from .services import RepeatAsked

HOURS, DAILY = "hours", "daily"
FIELDS = ("run", "rhythm", "every_hours", "at", "zone", "ends_at", "newest_data", "key")
RHYTHMS = [
    (DAILY, "Every day"),
    *((str(day), f"Every {name}") for day, name in enumerate(WEEKDAYS)),
    (HOURS, "Every few hours"),
]


@dataclass
class RepeatForm:
    """The typed values. `rhythm` is a choice of `RHYTHMS`; times of the day are by the clock of `zone`, the end is in UTC."""

    run: str = ""
    rhythm: str = DAILY
    every_hours: str = ""
    at: str = "02:00"
    zone: str = ""
    ends_at: str = ""
    newest_data: str = ""
    key: str = field(default_factory=lambda: uuid4().hex)
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def posted(cls, post: Mapping[str, str]) -> "RepeatForm":
        typed: dict[str, Any] = {name: post.get(name, "").strip()[:64] for name in FIELDS}
        return cls(**typed)

    @property
    def rhythms(self) -> list[tuple[str, str]]:
        return RHYTHMS

    def asked(self) -> RepeatAsked:
        """Raises Invalid at what is not a time or a number; the services check the rest."""
        wrong = {}
        hours = at = ends_at = None
        if self.rhythm == HOURS:
            hours = whole_number(self.every_hours, 5)
            if hours is None:
                wrong["every_hours"] = "enter a whole number"
        else:
            try:
                at = time.fromisoformat(self.at)
            except ValueError:
                wrong["at"] = "enter a time such as 02:00"
        try:
            ends_at = utc_times.read(self.ends_at)
        except ValueError:
            wrong["ends_at"] = "enter a date and a time"
        if wrong:
            raise Invalid("The run cannot be repeated in this way.", wrong)
        weekday = int(self.rhythm) if self.rhythm.isdigit() and self.rhythm in dict(RHYTHMS) else None
        zone = (at and self.zone) or "UTC"  # the page shows no zone beside hours
        return RepeatAsked(Rhythm(hours, at, weekday, zone), ends_at, bool(self.newest_data))
