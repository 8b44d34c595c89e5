"""Places the actors of a run: Ray reserves the places of all of them at once.

The processes that train together and the workers are one placement group: it has all of its places or none. Two runs that each
held half of what they need would wait for each other for ever.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from trainer.config import OnPolicyConfig
from trainer.contracts.plurals import with_noun
from trainer.loops.session.errors import RunFailed

WAIT_S = 900.0
"""Seconds to wait for places. The run itself waits in the server's queue, so its places are rarely taken."""
_LOOK_S = 0.5
SAY_S = 5.0
"""A wait of more seconds is reported."""

_EACH = {"GPU": "runner.gpus_per_worker", "CPU": "runner.cpus_per_worker"}
"""The resources that an actor may ask for, and the config field with the amount for one worker."""

Role = Literal["learner", "rollout", "reward"]
Look = Callable[[str], None]
"""Called now and then with what is awaited, and with an empty text once it is there. An exception of it ends the waiting."""


class PlacementPart(NamedTuple):
    """`count` places with these resources each; `field` is the config field with their number."""

    role: Role
    count: int  # type: ignore[assignment]  # hides the method of tuples, which nobody calls
    each: Mapping[str, float]
    field: str


class RolePlace(NamedTuple):
    role: Role
    index: int  # type: ignore[assignment]  # as above
    options: dict[str, Any]
    """The Ray options of the actor that takes the place."""


def cluster_gpus() -> int:
    """The number of GPUs that Ray may give away on all machines."""
    return int(ray.cluster_resources().get("GPU", 0))


def parts(config: OnPolicyConfig, gpus: int) -> list[PlacementPart]:
    """The places of a run on a cluster with this many GPUs. Actors without resources need no place."""
    runner, processes = config.runner, config.optim.processes
    found = (
        [PlacementPart("learner", processes, _some({"GPU": 1 if gpus else 0}), "optim.processes")]
        if processes > 1
        else []
    )
    if runner.kind == "async":
        cpus = runner.cpus_per_worker
        each = {"GPU": runner.gpus_per_worker if gpus else 0, "CPU": cpus}
        found.append(PlacementPart("rollout", runner.workers, _some(each), "runner.workers"))
        found.append(PlacementPart("reward", runner.reward_workers, _some({"CPU": cpus}), "runner.reward_workers"))
    return [part for part in found if part.each]


def reserve(config: OnPolicyConfig, look: Look = lambda reason: None) -> "Places":
    """All places of a run, once it has them. Raises RunFailed if it gets none, and what `look` raises."""
    places = Places(parts(config, cluster_gpus()))
    places.wait(look)
    return places


class Places:
    """A placement group. Processes that train together are PACKed on as few machines as possible; workers alone are SPREAD over many."""

    def __init__(self, parts: Sequence[PlacementPart]) -> None:
        """Raises RunFailed if the cluster could never give these places, even when it is free."""
        self._parts = list(parts)
        self._group: PlacementGroup | None = None
        if problem := self._too_much() or self._too_large():
            raise RunFailed(f"{problem}. Ask for fewer.")
        bundles = [dict(part.each) for part in parts for _ in range(part.count)]
        roles = [part.role for part in parts for _ in range(part.count)]
        self._free = {role: [i for i, each in enumerate(roles) if each == role] for role in roles}
        self._each = {part.role: part.each for part in parts}
        strategy = "PACK" if "learner" in roles else "SPREAD"
        if bundles:
            self._group = placement_group(bundles, strategy=strategy)

    def wait(self, look: Look = lambda reason: None, seconds: float = WAIT_S) -> None:
        """Wait until all places are reserved. Raises RunFailed if that takes too long, and what `look` raises; then nothing is held."""
        if self._group is None:
            return
        ready, began = self._group.ready(), time.monotonic()
        try:
            while not ray.wait([ready], timeout=min(_LOOK_S, seconds))[0]:
                waited = time.monotonic() - began
                if waited > seconds:
                    raise RunFailed(
                        f"{self._fields()}: waited {seconds:.0f} s for {self._words()}. Resume when others have finished, or ask "
                        "for fewer."
                    )
                look(f"Waits for {self._words()}" if waited > SAY_S else "")
            look("")
        except BaseException:
            self.close()
            raise

    def take(self, role: Role) -> RolePlace | None:
        """A free place; None if actors of this role need none. Raises IndexError if all are taken."""
        if self._group is None or role not in self._free:
            return None
        index, each = self._free[role].pop(0), self._each[role]
        strategy = PlacementGroupSchedulingStrategy(
            self._group, placement_group_bundle_index=index, placement_group_capture_child_tasks=False
        )
        options = {"num_gpus": each.get("GPU", 0), "num_cpus": each.get("CPU", 0), "scheduling_strategy": strategy}
        return RolePlace(role, index, options)

    def give_back(self, place: RolePlace) -> None:
        """Free the place for the actor that replaces the one that had it."""
        self._free[place.role].append(place.index)

    def leave(self, *roles: Role) -> None:
        """Note that these roles need no places any more. When no role does, the cluster gets the places back."""
        self._parts = [part for part in self._parts if part.role not in roles]
        if not self._parts:
            self.close()

    def close(self) -> None:
        """Give all places back, and end the actors in them."""
        group, self._group = self._group, None
        if group is not None:
            remove_placement_group(group)

    def _total(self, resource: str) -> float:
        return sum(part.count * part.each.get(resource, 0) for part in self._parts)

    def _fields(self, resource: str = "") -> str:
        return ", ".join(part.field for part in self._parts if not resource or resource in part.each)

    def _too_much(self) -> str:
        """The text about resources that exceed those of all machines together; empty if none do."""
        has = ray.cluster_resources()
        for name in _EACH:
            wanted, there = int(self._total(name)), int(has.get(name, 0))
            if wanted > there:
                asked = with_noun(wanted, f"{name}s")
                return f"{self._fields(name)}: {asked} are needed at once, and the cluster has {with_noun(there, f'{name}s')}"
        return ""

    def _too_large(self) -> str:
        """The text about an actor that needs more than any machine has; empty if there is none."""
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        for part in self._parts:
            if not any(all(has.get(name, 0) >= count for name, count in part.each.items()) for has in machines):
                fields = ", ".join(_EACH[name] for name in part.each)
                asked = " and ".join(with_noun(int(count), f"{name}s") for name, count in part.each.items())
                return f"{fields}: {asked} are needed on one machine, and no machine of the cluster has so many"
        return ""

    def _words(self) -> str:
        """The places that the run asks for, and what the cluster has, as text."""
        names = [name for name in ("GPU", "CPU") if self._total(name)]
        asked = " and ".join(with_noun(int(self._total(name)), f"{name}s") for name in names)
        has, free = ray.cluster_resources(), ray.available_resources()
        there = " and ".join(
            f"{free.get(name, 0):.0f} of {with_noun(int(has.get(name, 0)), f'{name}s')}" for name in names
        )
        return f"{asked} at once; the cluster has {there} free"


def _some(resources: Mapping[str, float]) -> dict[str, float]:
    return {name: float(count) for name, count in resources.items() if count}
