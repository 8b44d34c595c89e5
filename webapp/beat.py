"""Celery's beat for a clock that may be set back."""

from datetime import timedelta

from celery.beat import PersistentScheduler

AHEAD = timedelta(seconds=1)


class Scheduler(PersistentScheduler):  # type: ignore[misc]  # celery has no types
    """Celery waits until the clock has come to a time that it worked out before. On a clock that was set two hours back all upkeep
    would rest for these two hours. What was last started in the future counts as started now."""

    def tick(self, *arguments: object, **named: object) -> float:
        now = self.app.now()
        ahead = [entry for entry in self.schedule.values() if entry.last_run_at > now + AHEAD]
        for entry in ahead:
            entry.last_run_at = now
        if ahead:
            self._heap = None  # worked out anew
        return float(super().tick(*arguments, **named))
