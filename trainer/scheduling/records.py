"""Records describe events, and the decisions that follow from them."""

from dataclasses import dataclass
from typing import NamedTuple


class SampleId(NamedTuple):
    """A response: the number of its group in the order of the data, and its place in the group."""

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
    """A worker has joined. `slots` is the number of responses that it can sample side by side."""

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
    """All tokens of a response are there, so its place is free. Its reward is still awaited (`Finished`)."""

    sample: SampleId
    attempt: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A response can be trained on. `problem` is the reason of a crash that was not the worker's; the response is then excluded."""

    sample: SampleId
    attempt: int
    stretches: tuple[Stretch, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Paused:
    """A response was stopped before its end; it continues after the tokens of `stretches`."""

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
    """Time has passed: look for workers that have sent nothing."""


Event = WorkerJoined | WorkerLost | Heartbeat | Sampled | Finished | Paused | LearnerReady | Updated | Tick


# Decisions


@dataclass(frozen=True, slots=True)
class Start:
    """Sample this response on this worker with weights `version`, after the tokens of `stretches` if there are any.

    `attempt` comes back with the result: a result of an earlier attempt is ignored.
    """

    worker: str
    sample: SampleId
    attempt: int
    version: int
    stretches: tuple[Stretch, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop sampling a response. With `keep` its tokens are handed over (`Paused`); otherwise they are dropped."""

    worker: str
    sample: SampleId
    attempt: int
    keep: bool


@dataclass(frozen=True, slots=True)
class GroupTaken:
    """A group of a batch. `rows` are places of its responses; valid ones are repeated if others were excluded. The first `valid` rows
    are all different, and only these give the advantages.
    """

    number: int
    domain: str
    rows: tuple[int, ...]
    valid: int
    staleness: tuple[int, ...]
    """For each valid response, the optimiser steps since the oldest weights in it."""


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
    """The worker has sent nothing: end it and start another. Its responses already wait again."""

    worker: str
    reason: str


Decision = Start | Stop | Train | Drop | Replace
