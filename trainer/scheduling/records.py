"""What happens (events) and what follows from it (decisions)."""

from dataclasses import dataclass
from typing import NamedTuple


class SampleId(NamedTuple):
    """One response: the number of its group in the order of the data, and its place in the group."""

    group: int
    place: int


class Stretch(NamedTuple):
    """Tokens `start <= t < end` of a response were sampled by weights `version`."""

    version: int
    start: int
    end: int


# Events


@dataclass(frozen=True, slots=True)
class WorkerJoined:
    """`slots`: responses it can sample side by side."""

    worker: str
    slots: int


@dataclass(frozen=True, slots=True)
class WorkerLost:
    worker: str
    reason: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    worker: str


@dataclass(frozen=True, slots=True)
class Sampled:
    """All tokens of a response are there: its place is free. What it is worth is still awaited (`Finished`)."""

    sample: SampleId
    attempt: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A response can be trained on. `problem`: it crashed for a reason of its own, and is excluded for it."""

    sample: SampleId
    attempt: int
    stretches: tuple[Stretch, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Paused:
    """A response was stopped before its end; `stretches` are the tokens it goes on from."""

    sample: SampleId
    attempt: int
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class LearnerReady:
    """The learner waits for a batch."""


@dataclass(frozen=True, slots=True)
class Updated:
    """The learner has finished optimiser step `step`; the engines now hold, or may fetch, weights `version` <= step."""

    step: int
    version: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: see who has not been heard of."""


Event = WorkerJoined | WorkerLost | Heartbeat | Sampled | Finished | Paused | LearnerReady | Updated | Tick


# Decisions


@dataclass(frozen=True, slots=True)
class Start:
    """Sample this response there with weights `version`, going on after the tokens of `stretches` if there are any.

    `attempt` comes back with the result: one that belongs to an earlier attempt is ignored.
    """

    worker: str
    sample: SampleId
    attempt: int
    version: int
    stretches: tuple[Stretch, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop sampling. `keep`: hand over the tokens there are (`Paused`); else they are thrown away."""

    worker: str
    sample: SampleId
    attempt: int
    keep: bool


@dataclass(frozen=True, slots=True)
class GroupTaken:
    """A group of a batch. `rows`: places of its responses, valid ones repeated where others were excluded; the first
    `valid` of them are all different, and advantages are computed from those alone.
    """

    number: int
    domain: str
    rows: tuple[int, ...]
    valid: int
    staleness: tuple[int, ...]
    """Of each valid response: optimiser steps since the oldest weights in it."""


@dataclass(frozen=True, slots=True)
class Train:
    """The batch of optimiser step `step`. Without groups (all were dropped) the step changes no weights."""

    step: int
    groups: tuple[GroupTaken, ...]


@dataclass(frozen=True, slots=True)
class Drop:
    """A response (`index`) or a whole group (`index` None) takes no further part."""

    group: int
    index: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Replace:
    """The worker has not been heard of: end it and start another. Its responses are already waiting again."""

    worker: str
    reason: str


Decision = Start | Stop | Train | Drop | Replace
