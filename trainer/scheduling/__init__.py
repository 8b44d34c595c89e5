"""Decides which response is sampled where, and which groups are trained on next: one core for real runs and for the simulator.

Events go in, decisions come out, and the time is an argument. No module here knows a model, a process or a clock, so the
simulator runs the same code as a training run.
"""

from .groups import padded
from .policies import POLICIES
from .records import (
    Decision,
    Drop,
    Event,
    Finished,
    GroupTaken,
    Heartbeat,
    LearnerReady,
    Paused,
    Replace,
    Sampled,
    SampleId,
    Start,
    Stop,
    Stretch,
    Tick,
    Train,
    Updated,
    WorkerJoined,
    WorkerLost,
)
from .rules import DomainShare, Rules, too_old
from .scheduler import Scheduler
from .source import GroupSource, Ticket

__all__ = [
    "POLICIES",
    "Decision",
    "Drop",
    "Event",
    "Finished",
    "GroupTaken",
    "Heartbeat",
    "LearnerReady",
    "Paused",
    "DomainShare",
    "Replace",
    "Rules",
    "SampleId",
    "Sampled",
    "Scheduler",
    "GroupSource",
    "Stretch",
    "Start",
    "Stop",
    "Tick",
    "Ticket",
    "Train",
    "Updated",
    "WorkerJoined",
    "WorkerLost",
    "padded",
    "too_old",
]
