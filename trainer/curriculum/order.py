"""The order in which the training prompts are visited."""

import random
from functools import lru_cache
from typing import Any

from trainer.seeding import derive_seed


class DataOrder:
    """Endless passes over `count` prompts; each pass has its own order, which follows from the seed.

    A step may span two passes; within a pass every prompt comes exactly once.
    """

    def __init__(self, count: int, seed: int, shuffle: bool = True) -> None:
        if count < 1:
            raise ValueError("there is no training prompt to visit")
        self._count, self._seed, self._shuffle = count, seed, shuffle
        self._position = 0

    def take(self, wanted: int) -> list[int]:
        """The next `wanted` indices."""
        taken = [self.at(position) for position in range(self._position, self._position + wanted)]
        self._position += wanted
        return taken

    def state_dict(self) -> dict[str, Any]:
        return {"position": self._position, "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError if the state belongs to a data set of another size."""
        if state["count"] != self._count:
            raise ValueError(
                f"the checkpoint was made with {state['count']} training prompts, and now there are {self._count}; give the run the same data"
            )
        self._position = state["position"]

    def at(self, position: int) -> int:
        """The index at any place of the order; place 0 is the first of the run."""
        epoch, place = divmod(position, self._count)
        return _permutation(self._count, derive_seed(self._seed, "order", epoch))[place] if self._shuffle else place


@lru_cache(
    maxsize=8
)  # a step spans at most two passes, or some more if domains have quotas; without a cache, shuffling for each draw would show
def _permutation(count: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)  # noqa: S311 - order, not secrecy
    return order
