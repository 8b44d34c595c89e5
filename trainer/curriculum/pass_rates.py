"""Tracks the share of solved responses to each training prompt through a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_HARDLY = 0.5
"""Discounted responses. If fewer than this went the other way, those are forgotten."""


@dataclass(frozen=True)
class Reach:
    """The shares of the prompts seen so far that were lately solved every time, sometimes, and never."""

    solved: float
    learnable: float
    unsolved: float


class PassCounts:
    """The passes and the responses of each prompt, by its key, both discounted.

    When a prompt comes again, its earlier counts are multiplied by `keep`. So the rate follows the policy, and
    a visit with many responses says more than one with few. With `keep` = 0 the last visit alone counts.
    """

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._known: dict[str, tuple[float, float]] = {}
        """The discounted passes of each prompt, and its discounted responses."""

    def rate(self, key: str) -> float | None:
        """The prompt's pass rate; None if no outcome of it is known."""
        passes, responses = self._known.get(key, (0.0, 0.0))
        return passes / responses if responses else None

    def responses(self, key: str) -> int:
        """The number of responses that the rate rests on, rounded down."""
        return int(self._known.get(key, (0.0, 0.0))[1])

    def learned(self, visits: Mapping[str, Iterable[bool]]) -> None:
        """Count the outcomes of a step, by prompt. The counts of a prompt without outcomes stay as they are."""
        for key, outcomes in visits.items():
            found = list(outcomes)
            if found:
                passes, responses = self._known.get(key, (0.0, 0.0))
                self._known[key] = (passes * self._keep + sum(found), responses * self._keep + len(found))

    def reach(self) -> Reach | None:
        """The shares so far; None before the first prompt."""
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
