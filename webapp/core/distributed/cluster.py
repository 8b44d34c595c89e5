"""The cluster of the runs: its GPUs, its processors, its memory, and the jobs that it has.

Pages never wait for Ray: upkeep asks it, and the cache keeps the last result. A file also records that there were GPUs, so that a restart
or an emptied cache does not make a cluster look as if it had none.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from webapp.machine.places import facts, write_facts

from . import ray_client, reconciling
from .ray_client import JobResources, ListedJob, RayAway, RayRefused

logger = logging.getLogger(__name__)

KEY, ASKED = "cluster:nodes", "cluster:asked"
JOBS, JOBS_ASKED = "cluster:jobs", "cluster:jobs_asked"
GPUS = "gpus"
REMEMBERED = f"run/{GPUS}.json"  # of the installation's folder; remove it if the GPUs are gone for good
EVERY_S = 30
JOBS_EVERY_S = 60  # Ray lists all jobs since its start, also those that are over
KEPT_S = 86_400  # what was there yesterday is no longer believed
_MIB = 2**20


@dataclass(frozen=True)
class Node:
    """A machine of the cluster. Counts and `lends` are what Ray may give away; `memory`, `lends`, which is the part of it that jobs may
    have set aside, and `card_memory`, that of its largest card, are bytes, 0 if Ray does not say."""

    cpus: float = 0
    gpus: float = 0
    memory: int = 0
    card_memory: int = 0
    card: str = ""
    lends: int = 0

    def has(self, wanted: JobResources) -> bool:
        """Whether it has so much when it is empty. An unknown size does not prevent anything."""
        return (
            wanted.cpus <= self.cpus
            and wanted.gpus <= self.gpus
            and (not self.lends or wanted.memory_bytes <= self.lends)
        )


@dataclass(frozen=True)
class RayCluster:
    nodes: tuple[Node, ...]

    @property
    def gpus(self) -> int:
        return int(sum(node.gpus for node in self.nodes))

    @property
    def cpus(self) -> float:
        return sum(node.cpus for node in self.nodes)

    @property
    def best_card(self) -> Node | None:
        """The machine with the largest card; None if there is none whose size is known."""
        found = [node for node in self.nodes if node.gpus and node.card_memory]
        return max(found, key=lambda node: node.card_memory, default=None)

    @property
    def best_machine(self) -> Node | None:
        """The machine with most memory; None if no size is known."""
        return max((node for node in self.nodes if node.memory), key=lambda node: node.memory, default=None)


@dataclass(frozen=True)
class UnfinishedJobs:
    """The jobs that Ray had at a time."""

    at: datetime
    jobs: tuple[ListedJob, ...]


def refresh_jobs() -> None:
    """Asks Ray which of its jobs are not over, at most every JOBS_EVERY_S. If it does not answer, nothing is known."""
    if not cache.add(JOBS_ASKED, 1, JOBS_EVERY_S):
        return
    at = timezone.now()
    try:
        found = ray_client.client().unfinished()
    except (RayAway, RayRefused):
        cache.delete(JOBS)
        return
    cache.set(JOBS, (at.isoformat(), [asdict(job) for job in found]), 10 * JOBS_EVERY_S)


def unfinished_jobs() -> UnfinishedJobs | None:
    """The last result of Ray; None if it does not answer, or has not answered yet."""
    found = cache.get(JOBS)
    return (
        UnfinishedJobs(datetime.fromisoformat(found[0]), tuple(ListedJob(**job) for job in found[1])) if found else None
    )


def refresh() -> None:
    """Asks Ray, at most every EVERY_S once it has answered. If it does not answer, the last result stays."""
    if not cache.add(ASKED, 1, EVERY_S):
        return
    try:
        nodes = read(ray_client.client().nodes())
        reconciling.record_answer()
    except (RayAway, RayRefused) as error:
        reconciling.not_heard(str(error))
        nodes = []
    if not nodes:  # one that has just started has not looked at its machines yet
        cache.delete(ASKED)
        return
    cache.set(KEY, [asdict(node) for node in nodes], KEPT_S)
    _remember(RayCluster(tuple(nodes)).gpus)


def last_state() -> RayCluster | None:
    """The last result of Ray; None if it has not answered yet."""
    found = cache.get(KEY)
    return RayCluster(tuple(Node(**each) for each in found)) if found else None


def last_reported_gpus() -> int:
    """The number of GPUs that Ray last reported, if it ever reported any."""
    return int(facts(settings.VAR, GPUS).get("count", 0))


def _remember(gpus: int) -> None:
    if gpus and gpus != last_reported_gpus():
        try:
            write_facts(settings.VAR, GPUS, count=str(gpus))
        except OSError as error:
            logger.warning("the number of GPUs cannot be written down: %s", error)


def read(summaries: list[Any]) -> list[Node]:
    """The living machines of Ray's own summary; a missing value counts as 0."""
    return [_node(each) for each in summaries if each.get("raylet", {}).get("state") == "ALIVE"]


def _node(summary: Mapping[str, Any]) -> Node:
    resources = summary["raylet"].get("resourcesTotal") or {}
    cards = summary.get("gpus") or []
    largest: Mapping[str, Any] = max(cards, key=lambda card: card.get("memoryTotal") or 0, default={})
    return Node(
        cpus=float(resources.get("CPU", 0)),
        gpus=float(resources.get("GPU", 0)),
        memory=int((summary.get("mem") or [0])[0]),
        card_memory=int((largest.get("memoryTotal") or 0) * _MIB),
        card=str(largest.get("name") or "")[:80],
        lends=int(resources.get("memory") or 0),
    )
