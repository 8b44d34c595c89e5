"""One attempt at a task, which a reward values as a whole."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trainer.contracts import Example, Rubric

from .trajectory import Reward, Trajectory, TrajectoryKey


class RolloutTask(Protocol):
    """The task that responses are sampled for. `rubric` may hold fewer criteria than the example's."""

    @property
    def example(self) -> Example: ...

    @property
    def rubric(self) -> Rubric | None: ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """JSON that a task's rewards read (`trainer.tasks`); empty for a plain prompt."""
        ...


@dataclass(frozen=True)
class Episode:
    """Trajectories in the order of their turns, and facts about the attempt.

    One response to one prompt is one trajectory without facts. Turns of one conversation are spans of one trajectory; there
    are several trajectories if the context was written again between turns.
    """

    task: RolloutTask
    trajectories: tuple[Trajectory, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The environment's report on the attempt, as JSON, such as whether the task is done."""

    @property
    def text(self) -> str:
        """The last text of the policy."""
        return self.trajectories[-1].text

    @property
    def length(self) -> int:
        """The number of tokens that the policy wrote."""
        return sum(trajectory.length for trajectory in self.trajectories)

    @property
    def cut(self) -> bool:
        """Whether the last text of the policy was cut at the limit."""
        return self.trajectories[-1].stop == "length"

    def worth(self, reward: Reward) -> "Episode":
        """The episode with this reward, which each of its trajectories gets."""
        return replace(self, trajectories=tuple(replace(each, reward=reward) for each in self.trajectories))


def episode_rows(trajectories: Sequence[Trajectory]) -> tuple[list[int], list[int]]:
    """For each trajectory the number of its episode, and for each episode the place of its first trajectory.

    Trajectories of one episode differ in their turn; if a step has the same one twice, those are two episodes.
    """
    seen: Counter[TrajectoryKey] = Counter()
    numbers: dict[tuple[str, int, int, int], int] = {}
    firsts: list[int] = []
    row_of = []
    for place, key in enumerate(trajectory.key for trajectory in trajectories):
        episode = (key.role, key.group, key.place, seen[key])
        seen[key] += 1
        if episode not in numbers:
            numbers[episode] = len(firsts)
            firsts.append(place)
        row_of.append(numbers[episode])
    return row_of, firsts


def one_of_each(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """The first trajectory of each episode: it has the episode's reward, which is counted once."""
    return [trajectories[place] for place in episode_rows(trajectories)[1]]
