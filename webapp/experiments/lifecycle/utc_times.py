"""Times in words, for texts that people of all time zones read."""

from datetime import UTC, datetime

from django.utils import timezone


def utc_text(moment: datetime, now: datetime) -> str:
    """22:00 UTC; on another day 29 Nov, 22:00 UTC."""
    local = timezone.localtime(moment)
    other_day = local.date() != timezone.localtime(now).date()
    year = f" {local:%Y}" if local.year != timezone.localtime(now).year else ""
    return f"{f'{local.day} {local:%b}{year}, ' * other_day}{local:%H:%M %Z}"


def read(text: str) -> datetime | None:
    """The value of a field of date and time, in UTC; None: it is empty. Raises ValueError."""
    text = text.strip()
    if not text:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def field(moment: datetime | None) -> str:
    """The first value of such a field."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}" if moment else ""
