"""Events as lines for people at a terminal, and for the job's log."""

import sys
from typing import TextIO

from trainer.config import alarms
from trainer.contracts import (
    AlarmData,
    ArtifactData,
    DevicesData,
    LogData,
    MetricsData,
    ProgressData,
    RunEvent,
    StateData,
)


class Console:
    """Prints events. With `verbose` it also prints progress, which interests only somebody who waits."""

    def __init__(self, out: TextIO | None = None, verbose: bool = False, name: str = "") -> None:
        """`name` is that of the run, if other runs print to the same place."""
        self._out, self._verbose, self._name = out or sys.stdout, verbose, name and f"{name}  "

    def show(self, event: RunEvent) -> None:
        text = self._text(event)
        if text:
            print(f"{event.time:%H:%M:%S} {self._name}step {event.step:>4}  {text}", file=self._out, flush=True)

    def _text(self, event: RunEvent) -> str:
        match event.data:
            case MetricsData(values=values):
                return "  ".join(f"{key} {value:.4g}" for key, value in sorted(values.items()))
            case LogData(level=level, message=message):
                return message if level == "info" else f"{level}: {message}"
            case StateData(state=state, reason=reason):
                return f"{state}: {reason}" if reason else state
            case ArtifactData(role=role, path=path):
                return f"{role}: {path}"
            case DevicesData(learner=learner, sampler=sampler):
                return f"trains on {learner}{f', samples on {sampler}' if sampler else ''}"
            case AlarmData() as alarm:
                return f"alarm: {alarms.title(alarm.signal, alarm.subject, alarm.role)}. {alarms.alarm_text(alarm, event.step)}"
            case ProgressData(phase=phase, done=done, total=total) if self._verbose:
                return f"{phase} {done}/{total}"
            case _:
                return ""
