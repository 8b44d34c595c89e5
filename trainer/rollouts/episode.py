"""One attempt at a task: what a reward of the whole attempt looks at."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trainer.contracts import Example, Rubric

from .trajectory import Reward, Trajectory


class Task(Protocol):
    """What responses are sampled for. `rubric` may hold fewer criteria than the example's."""

    @property
    def example(self) -> Example: ...

    @property
    def rubric(self) -> Rubric | None: ...


@dataclass(frozen=True)
class Episode:
    """Trajectories in the order of their turns, and what else is known of the attempt.

    One response to one prompt is one trajectory without facts. Turns of one conversation are spans of one trajectory; there
    are several where the context was written anew between turns.
    """

    task: Task
    trajectories: tuple[Trajectory, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """JSON: what the environment says of it, such as whether the task is done."""

    @property
    def text(self) -> str:
        """What the policy said last."""
        return self.trajectories[-1].text

    @property
    def length(self) -> int:
        """How many tokens the policy wrote."""
        return sum(trajectory.length for trajectory in self.trajectories)

    def worth(self, reward: Reward) -> "Episode":
        """With this reward, which is that of each of its trajectories."""
        return replace(self, trajectories=tuple(replace(each, reward=reward) for each in self.trajectories))
