"""Leaks: prompts and named groups that are both in train and held out, within a version or between several.

A leak makes a held-out score too good: the model has seen the question. Prompts are compared as `prompt_hashes` says. A worker finds
prompts that are only nearly the same, see `near_leaks`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..columns import packed
from ..columns.packed import Mask, SplitColumns
from ..models import CurationJob, DatasetVersion, Example
from .compared_versions import HELDOUT, Side, side_of
from .near_leaks import VersionPair, near_leaks_of

SHOWN = 5  # examples named for each leak
MOST_EXAMPLES = 3_000_000  # of other datasets that are compared with one, the newest datasets first
Hashed = NDArray[np.int64]


@dataclass(frozen=True)
class Leak:
    """`prompts` and `groups` are in train in one version and held out in the other, which may be the same one.

    `train_examples` and `heldout_examples` count their examples there; `shown` are the first few held-out ones.
    Examples without a side are trained on, so they count as train.
    """

    train: Side
    heldout: Side
    prompts: int
    groups: int
    train_examples: int
    heldout_examples: int
    shown: list[dict[str, Any]]

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Shared:
    """The common part of two versions: distinct prompts and groups, and the positions of their examples on each side."""

    prompts: int
    groups: int
    train: NDArray[np.int64]
    heldout: NDArray[np.int64]

    @property
    def count(self) -> int:
        return self.prompts + self.groups


def leaks(version_ids: Iterable[int]) -> list[Leak]:
    """Every leak within these versions, and between the training side of one and the held-out side of another, the largest first.

    It takes three queries, for any number of versions and examples. Named groups are compared only within one dataset, because the same
    word may mean something else in another.
    """
    versions = list(DatasetVersion.objects.filter(pk__in=set(version_ids)).select_related("dataset").order_by("pk"))
    columns = packed.split_columns(version.pk for version in versions)
    found = []
    for train in versions:
        for heldout in versions:
            same = train.dataset_id == heldout.dataset_id
            shared = leaks_between(columns[train.pk], columns[heldout.pk], groups=same)
            if shared.count:
                found.append((train, heldout, shared))
    return _told(found, columns)


def leaks_of_training(tried: DatasetVersion, trained: Iterable[DatasetVersion], side: str = HELDOUT) -> list[Leak]:
    """The leaks of `tried` with the training examples of the others: by its examples on `side`, or by all if `side` is empty. Three
    queries."""
    versions = [each for each in dict.fromkeys(trained) if not VersionPair(each, tried, side).nothing]
    columns = packed.split_columns({each.pk for each in (tried, *versions)}) if versions else {}
    found = []
    for version in versions:
        there = columns[tried.pk]
        held = there.heldout if side == HELDOUT else there.train if side else np.ones(len(there.ids), bool)
        same = version.dataset_id == tried.dataset_id
        shared = leaks_between(columns[version.pk], there, groups=same, held=held)
        if shared.count:
            found.append((version, tried, shared))
    return _told(found, columns)


def _told(found: list[tuple[DatasetVersion, DatasetVersion, Shared]], columns: dict[int, SplitColumns]) -> list[Leak]:
    """The leaks, the largest first."""
    shown = _examples(columns[heldout.pk].ids[shared.heldout[:SHOWN]] for _, heldout, shared in found)
    made = [
        Leak(
            side_of(train),
            side_of(heldout),
            shared.prompts,
            shared.groups,
            len(shared.train),
            len(shared.heldout),
            [shown[each] for each in columns[heldout.pk].ids[shared.heldout[:SHOWN]].tolist()],
        )
        for train, heldout, shared in found
    ]
    return sorted(made, key=lambda leak: -leak.heldout_examples)


def leaks_between(
    train: SplitColumns,
    heldout: SplitColumns,
    *,
    groups: bool = True,
    train_kept: Mask | None = None,
    held: Mask | None = None,
) -> Shared:
    """Leaks from train of one version to held out of the other. `train_kept`: only these positions of both; the versions are then the same
    one. `held`: the examples of the other to compare, if these are not the held-out ones."""
    trained, held = ~train.heldout, heldout.heldout if held is None else held
    if train_kept is not None:
        trained, held = trained & train_kept, held & train_kept
    prompts = np.intersect1d(train.prompts[trained], heldout.prompts[held])
    named = np.intersect1d(train.groups[trained], heldout.groups[held]) if groups else prompts[:0]
    named = named[named != 0]
    return Shared(
        len(prompts),
        len(named),
        np.flatnonzero(trained & _any(train, prompts, named)),
        np.flatnonzero(held & _any(heldout, prompts, named)),
    )


def _any(columns: SplitColumns, prompts: Hashed, groups: Hashed) -> Mask:
    found: Mask = np.isin(columns.prompts, prompts)
    return found | np.isin(columns.groups, groups) if len(groups) else found


def leaks_within(version: DatasetVersion, removed: Sequence[int] | NDArray[np.int64] = ()) -> Shared:
    """The shared prompts of one version without the removed positions."""
    columns = packed.split_columns([version.pk])[version.pk]
    kept = np.ones(len(columns.ids), bool)
    kept[np.asarray(removed, np.int64)] = False
    return leaks_between(columns, columns, train_kept=kept)


def of_page(version: DatasetVersion) -> int:
    """The number of prompts and groups of one version that leak. It is kept in memory with the version's columns."""
    return packed.columns(version).once("leaked", lambda: leaks_within(version).count)


def leaks_of_version(version: DatasetVersion) -> dict[str, Any]:
    """The leaks of one version for pages: {"leaks", "near"}."""
    found = leaks([version.pk]) if of_page(version) else []
    return {"leaks": found, "near": near_leaks_of([VersionPair(version, version)])}


def looked_for(version_ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """The result of the newest finished search for leaks in each of these versions, including prompts that are nearly the same: {"job",
    "exact", "near", "examples", "along"}. A version that was not searched is absent. One query."""
    kind, finished = CurationJob.Kind.LEAKS, CurationJob.State.FINISHED
    jobs = CurationJob.objects.filter(version__in=set(version_ids), kind=kind, state=finished)
    newest = jobs.order_by("version_id", "-id").distinct("version_id")
    return {job.version_id: {"job": job.pk, **job.result} for job in newest}


@dataclass(frozen=True)
class Overlap:
    """Prompts that another dataset's newest version has on the other side: `heldout_there` are in train here, and the
    other way round."""

    dataset: int
    name: str
    number: int
    heldout_there: int
    train_there: int


@dataclass(frozen=True)
class Overlaps:
    """`compared` counts the workspace's other datasets that were compared; `passed_over` counts those that were not, because there are too
    many examples."""

    found: list[Overlap]
    compared: int
    passed_over: int

    def json(self) -> dict[str, Any]:
        return asdict(self)


def newest_of_others(workspace_id: int, dataset_id: int | None) -> list[DatasetVersion]:
    """The newest version of each of the workspace's datasets except this one, the newest first."""
    rows = DatasetVersion.objects.filter(dataset__workspace_id=workspace_id, dataset__ready=True)
    if dataset_id is not None:
        rows = rows.exclude(dataset_id=dataset_id)
    rows = rows.select_related("dataset").order_by("dataset_id", "-number").distinct("dataset_id")
    return sorted(rows, key=lambda version: -version.pk)


def with_others(workspace_id: int, dataset_id: int | None, train: Hashed, heldout: Hashed) -> Overlaps:
    """The prompts of two sides, given as hashes, that the newest versions of the workspace's other datasets have on the other side."""
    versions = newest_of_others(workspace_id, dataset_id)
    sizes = np.cumsum([version.counts.get("examples", 0) for version in versions] or [0])
    compared = versions[: int((sizes <= MOST_EXAMPLES).sum())] if versions else []
    columns = packed.split_columns(version.pk for version in compared)
    found = []
    for version in compared:
        there = columns[version.pk]
        overlap = Overlap(
            version.dataset_id,
            version.dataset.name,
            version.number,
            len(np.intersect1d(train, there.prompts[there.heldout])),
            len(np.intersect1d(heldout, there.prompts[~there.heldout])),
        )
        if overlap.heldout_there or overlap.train_there:
            found.append(overlap)
    return Overlaps(found, len(compared), len(versions) - len(compared))


def of_version(version: DatasetVersion) -> Overlaps:
    """The prompts of a version that the workspace's other datasets have on the other side."""
    columns = packed.split_columns([version.pk])[version.pk]
    train, heldout = columns.prompts[~columns.heldout], columns.prompts[columns.heldout]
    return with_others(version.dataset.workspace_id, version.dataset_id, train, heldout)


def _examples(ids: Iterable[NDArray[np.int64]]) -> dict[int, dict[str, Any]]:
    wanted = {int(each) for some in ids for each in some}
    rows = Example.objects.filter(pk__in=wanted).values("id", "key", "excerpt") if wanted else ()
    return {row["id"]: dict(row) for row in rows}
