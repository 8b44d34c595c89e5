"""Where the actors of a run go: places that Ray reserves for all of them at once.

Without GPUs nothing is reserved beyond what each actor asks for itself. With them a run has its places together or not at
all: two runs that each held half of what they need would wait for each other for ever.
"""

from typing import Any, Literal

import ray
from ray.exceptions import GetTimeoutError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from trainer.contracts.counted import counted
from trainer.loops.errors import RunFailed

WAIT_S = 900.0
"""How long places are waited for; the run itself waits in the server's queue, so that others hold them is rare."""


def cluster_gpus() -> int:
    """That Ray may give away on all machines."""
    return int(ray.cluster_resources().get("GPU", 0))


class Places:
    """`count` places with these resources each, `PACK`ed on as few machines as possible or `SPREAD` over many."""

    def __init__(
        self, count: int, resources: dict[str, float], strategy: Literal["PACK", "SPREAD"], field: str
    ) -> None:
        """`field` of the config says how many there are. Raises RunFailed where the cluster can never have them."""
        self._count, self._each, self._field = count, resources, field
        has, wanted = cluster_gpus(), count * resources.get("GPU", 0)
        if wanted > has:
            raise RunFailed(
                f"{field}: {self._words()} are needed, and the cluster has {counted(has, 'GPUs')}; lower it"
            )
        self._group: PlacementGroup = placement_group([dict(resources) for _ in range(count)], strategy=strategy)

    def wait(self, seconds: float = WAIT_S) -> None:
        """Until all of them are reserved. Raises RunFailed where that takes too long."""
        try:
            ray.get(self._group.ready(), timeout=seconds)
        except GetTimeoutError as error:
            free = int(ray.available_resources().get("GPU", 0))
            self.close()
            raise RunFailed(
                f"{self._field}: waited {seconds:.0f} s for {self._words()}; the cluster has {cluster_gpus()}, of which {free} "
                "are free. Resume when others have finished, or lower it."
            ) from error

    def options(self) -> dict[str, Any]:
        """For an actor that takes any free one of the places."""
        strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_capture_child_tasks=False)
        return {
            "num_gpus": self._each.get("GPU", 0),
            "num_cpus": self._each.get("CPU", 0),
            "scheduling_strategy": strategy,
        }

    def close(self) -> None:
        """Gives them back, and ends whatever is in them."""
        remove_placement_group(self._group)

    def _words(self) -> str:
        return counted(int(self._count * self._each.get("GPU", 0)), "GPUs")
