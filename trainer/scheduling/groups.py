"""A group of responses on its way from the data to a batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .records import Stretch

SampleState = Literal["waiting", "running", "scoring", "done", "excluded"]
UNFINISHED = ("waiting", "running", "scoring")


@dataclass(slots=True)
class Sample:
    state: SampleState = "waiting"
    stretches: tuple[Stretch, ...] = ()
    version: int | None = None
    """The weights that the response was first started with; None before."""
    attempt: int = 0
    losses: int = 0
    worker: str = ""

    @property
    def oldest(self) -> int | None:
        """The oldest weights in the response, or those it will start with; None while these are not known."""
        return self.stretches[0].version if self.stretches else self.version

    def state_dict(self) -> list[Any]:
        """The state to save. A response that is being sampled or scored is lost with the process, so it is saved as waiting."""
        state = "waiting" if self.state in UNFINISHED else self.state
        return [state, [list(stretch) for stretch in self.stretches], self.version, self.attempt, self.losses]

    @classmethod
    def of(cls, state: Sequence[Any]) -> "Sample":
        kind, stretches, version, attempt, losses = state
        return cls(kind, tuple(Stretch(*stretch) for stretch in stretches), version, attempt, losses)


@dataclass(slots=True)
class Group:
    number: int
    domain: str
    samples: list[Sample] = field(default_factory=list)
    open: int = 0
    """The number of responses that are neither done nor excluded."""
    begun: int | None = None
    """The oldest weights that any response of the group was started with; None before the first."""

    @property
    def size(self) -> int:
        return len(self.samples)

    def begin(self, sample: Sample) -> None:
        if sample.oldest is not None:
            self.begun = sample.oldest if self.begun is None else min(self.begun, sample.oldest)

    def valid(self) -> list[int]:
        return [index for index, sample in enumerate(self.samples) if sample.state == "done"]

    def state_dict(self) -> dict[str, Any]:
        samples = [sample.state_dict() for sample in self.samples]
        return {"number": self.number, "domain": self.domain, "begun": self.begun, "samples": samples}

    @classmethod
    def of(cls, state: dict[str, Any]) -> "Group":
        samples = [Sample.of(row) for row in state["samples"]]
        still_open = sum(sample.state == "waiting" for sample in samples)
        return cls(state["number"], state["domain"], samples, still_open, state["begun"])


def padded(valid: Sequence[int], size: int) -> tuple[int, ...]:
    """Places of the valid responses, repeated cyclically up to `size`; empty if half of the responses or fewer are valid.

    GLM-5 (2026), noisy samples: if a group lost at most a minority to crashed environments, its valid responses fill it up. Any other
    group is dropped. Advantages come from the unrepeated responses.
    """
    if 2 * len(valid) <= size:
        return ()
    return tuple(valid[i % len(valid)] for i in range(size))
