"""Prompts that are nearly the same as one that is trained on: the results of searches, kept for each pair of versions.

A version never changes, so a result never becomes wrong. A search takes up to minutes (`curation.near_leak_search`), so a worker carries it
out when somebody first asks. Until then, the result is unknown.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from django.core.cache import cache
from django.db.models import Q

from webapp.core.tasks import enqueue

from ..models import DatasetVersion, LeakSearch
from .compared_versions import HELDOUT, Side, side_of

FORM = 1  # raise it if the meaning of near changes: then everything is searched again
ASKED_S = 600  # a worker that does not answer in this time is asked again


@dataclass(frozen=True)
class VersionPair:
    """The examples on which a model is trained, which are the training side of `trained`, and those on which it is tried: the examples of
    `tried` on `side`, or all of them if `side` is empty."""

    trained: DatasetVersion
    tried: DatasetVersion
    side: str = HELDOUT

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to compare."""
        here, there = self.trained.counts, self.tried.counts
        train = here.get("examples", 0) - here.get(HELDOUT, 0)
        return not train or not there.get(self.side or "examples", 0)


@dataclass(frozen=True)
class Near:
    """`prompts` counts the tried prompts that are at least `threshold` similar to a prompt that is trained on, and not the same; `examples`
    counts their examples. `known` is false while a worker searches; then the counts mean nothing. `shown`: the first few, each with
    {"key", "excerpt", "trained": {"key", "excerpt"}, "similarity"}."""

    train: Side
    heldout: Side
    known: bool
    prompts: int = 0
    examples: int = 0
    threshold: float | None = None
    shown: list[dict[str, Any]] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        """The result for the API. Counts that are not known yet are null."""
        told = asdict(self)
        return told if self.known else {**told, "prompts": None, "examples": None}


def near_leaks_of(pairs: Iterable[VersionPair]) -> list[Near]:
    """The results of the pairs, in one query. A worker is asked for missing ones."""
    wanted = [pair for pair in dict.fromkeys(pairs) if not pair.nothing]
    found = _kept(wanted)
    for pair in wanted:
        if _key(pair) not in found:
            ask(pair)
    return [
        Near(side_of(pair.trained), side_of(pair.tried), _key(pair) in found, **found.get(_key(pair), {}))
        for pair in wanted
    ]


def ask(pair: VersionPair) -> None:
    """Asks a worker to search, unless one was asked a moment ago."""
    key = _key(pair)
    if not pair.nothing and cache.add("datasets:near:{}:{}:{}:{}".format(FORM, *key), 1, ASKED_S):
        enqueue("workers.curation.look_for_leaks", *key)


def _key(pair: VersionPair) -> tuple[int, int, str]:
    return pair.trained.pk, pair.tried.pk, pair.side


def _kept(pairs: list[VersionPair]) -> dict[tuple[int, int, str], dict[str, Any]]:
    if not pairs:
        return {}
    asked = Q()
    for pair in pairs:
        asked |= Q(trained=pair.trained, tried=pair.tried, side=pair.side)
    rows = LeakSearch.objects.filter(asked, form=FORM).values_list("trained_id", "tried_id", "side", "found")
    return {(trained, tried, side): found for trained, tried, side, found in rows}
