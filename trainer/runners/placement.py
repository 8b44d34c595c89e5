"""Where the actors of a run go: places that Ray reserves for all of them at once.

Its processes that train together and its workers are one placement group: it has all of its places or none. Two runs that each
held half of what they need would wait for each other for ever.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from trainer.config import OnPolicyConfig
from trainer.contracts.counted import counted
from trainer.loops.session.errors import RunFailed

WAIT_S = 900.0
"""How long places are waited for; the run itself waits in the server's queue, so that others hold them is rare."""
_LOOK_S = 0.5
SAY_S = 5.0
"""A wait that is longer is told of."""

_EACH = {"GPU": "runner.gpus_per_worker", "CPU": "runner.cpus_per_worker"}
"""What an actor may ask for, and the field that says how much of it one worker does."""

Role = Literal["learner", "rollout", "reward"]
Look = Callable[[str], None]
"""Called now and then with what is waited for, and with nothing once it is there. What it raises ends the waiting."""


class PlacementPart(NamedTuple):
    """`count` places with these resources each; `field` of the config says how many there are."""

    role: Role
    count: int  # type: ignore[assignment]  # hides the method of tuples, which nobody calls
    each: Mapping[str, float]
    field: str


class RolePlace(NamedTuple):
    role: Role
    index: int  # type: ignore[assignment]  # as above
    options: dict[str, Any]
    """For the actor that takes it."""


def cluster_gpus() -> int:
    """That Ray may give away on all machines."""
    return int(ray.cluster_resources().get("GPU", 0))


def parts(config: OnPolicyConfig, gpus: int) -> list[PlacementPart]:
    """What a run asks for on a cluster with so many GPUs. Actors that ask for nothing need no place."""
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
    """All places of a run, once it has them. Raises RunFailed where it gets none, and what `look` raises."""
    places = Places(parts(config, cluster_gpus()))
    places.wait(look)
    return places


class Places:
    """One group. Those that train together are PACKed on as few machines as possible; workers alone are SPREAD over many."""

    def __init__(self, parts: Sequence[PlacementPart]) -> None:
        """Raises RunFailed where the cluster could never give that, whoever ends."""
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
        """Until all of them are reserved. Raises RunFailed where that takes too long, and what `look` raises; nothing is held then."""
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
        """A free one; None where actors of this role ask for nothing. Raises IndexError where all are taken."""
        if self._group is None or role not in self._free:
            return None
        index, each = self._free[role].pop(0), self._each[role]
        strategy = PlacementGroupSchedulingStrategy(
            self._group, placement_group_bundle_index=index, placement_group_capture_child_tasks=False
        )
        options = {"num_gpus": each.get("GPU", 0), "num_cpus": each.get("CPU", 0), "scheduling_strategy": strategy}
        return RolePlace(role, index, options)

    def give_back(self, place: RolePlace) -> None:
        """For whoever replaces the actor that had it."""
        self._free[place.role].append(place.index)

    def leave(self, *roles: Role) -> None:
        """These need no places any more. When none does, the cluster has them back."""
        self._parts = [part for part in self._parts if part.role not in roles]
        if not self._parts:
            self.close()

    def close(self) -> None:
        """Gives all of them back, and ends whatever is in them."""
        group, self._group = self._group, None
        if group is not None:
            remove_placement_group(group)

    def _total(self, resource: str) -> float:
        return sum(part.count * part.each.get(resource, 0) for part in self._parts)

    def _fields(self, resource: str = "") -> str:
        return ", ".join(part.field for part in self._parts if not resource or resource in part.each)

    def _too_much(self) -> str:
        """What is asked for at once and is more than all machines have; empty if nothing is."""
        has = ray.cluster_resources()
        for name in _EACH:
            wanted, there = int(self._total(name)), int(has.get(name, 0))
            if wanted > there:
                asked = counted(wanted, f"{name}s")
                return f"{self._fields(name)}: {asked} are needed at once, and the cluster has {counted(there, f'{name}s')}"
        return ""

    def _too_large(self) -> str:
        """What one actor asks for and no machine has; empty if there is none such."""
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        for part in self._parts:
            if not any(all(has.get(name, 0) >= count for name, count in part.each.items()) for has in machines):
                fields = ", ".join(_EACH[name] for name in part.each)
                asked = " and ".join(counted(int(count), f"{name}s") for name, count in part.each.items())
                return f"{fields}: {asked} are needed on one machine, and no machine of the cluster has so many"
        return ""

    def _words(self) -> str:
        """What is asked for, and what there is."""
        names = [name for name in ("GPU", "CPU") if self._total(name)]
        asked = " and ".join(counted(int(self._total(name)), f"{name}s") for name in names)
        has, free = ray.cluster_resources(), ray.available_resources()
        there = " and ".join(
            f"{free.get(name, 0):.0f} of {counted(int(has.get(name, 0)), f'{name}s')}" for name in names
        )
        return f"{asked} at once; the cluster has {there} free"


def _some(resources: Mapping[str, float]) -> dict[str, float]:
    return {name: float(count) for name, count in resources.items() if count}
