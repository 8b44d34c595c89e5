"""How often the policy solves each training prompt, kept through a run (METHODS 9)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_HARDLY = 0.5
"""Discounted responses: so few that went the other way are forgotten."""


@dataclass(frozen=True)
class Reach:
    """Shares of the prompts met so far: solved every time of late, sometimes, never."""

    solved: float
    learnable: float
    unsolved: float


class PassCounts:
    """By the key of a prompt: passes among responses, both discounted.

    When a prompt is met again, what was known of it counts `keep` times as much as before. So the rate follows the policy, and
    a visit with many responses says more than one with few. `keep` = 0: the last visit alone counts.
    """

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._known: dict[str, tuple[float, float]] = {}
        """Discounted passes, and the responses that they are among."""

    def rate(self, key: str) -> float | None:
        """None for a prompt without a single known outcome."""
        passes, responses = self._known.get(key, (0.0, 0.0))
        return passes / responses if responses else None

    def responses(self, key: str) -> int:
        """How many responses the rate rests upon, rounded down."""
        return int(self._known.get(key, (0.0, 0.0))[1])

    def learned(self, visits: Mapping[str, Iterable[bool]]) -> None:
        """The outcomes of a step, by prompt. A prompt without outcomes was not met: nothing is forgotten of it."""
        for key, outcomes in visits.items():
            found = list(outcomes)
            if found:
                passes, responses = self._known.get(key, (0.0, 0.0))
                self._known[key] = (passes * self._keep + sum(found), responses * self._keep + len(found))

    def reach(self) -> Reach | None:
        """None before the first prompt."""
        if not self._known:
            return None
        count = len(self._known)
        solved = sum(responses - passes < _HARDLY for passes, responses in self._known.values())
        unsolved = sum(passes < _HARDLY for passes, _ in self._known.values())
        return Reach(solved / count, (count - solved - unsolved) / count, unsolved / count)

    def state_dict(self) -> dict[str, Any]:
        return {key: list(known) for key, known in self._known.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._known = {key: (float(passes), float(responses)) for key, (passes, responses) in state.items()}
