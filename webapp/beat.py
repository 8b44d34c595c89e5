"""Celery's beat for a clock that may be set back."""

from datetime import timedelta

from celery.beat import PersistentScheduler

AHEAD = timedelta(seconds=1)


class BeatScheduler(PersistentScheduler):  # type: ignore[misc]  # celery has no types
    """Celery waits until the clock reaches a time that it computed before. If the clock is set two hours back, all upkeep would stop for
    two hours. So an entry whose last start lies in the future counts as started now."""

    def tick(self, *arguments: object, **named: object) -> float:
        now = self.app.now()
        ahead = [entry for entry in self.schedule.values() if entry.last_run_at > now + AHEAD]
        for entry in ahead:
            entry.last_run_at = now
        if ahead:
            self._heap = None  # computed again
        return float(super().tick(*arguments, **named))
