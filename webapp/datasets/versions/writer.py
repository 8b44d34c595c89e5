"""Makes versions: they are numbered under a lock, filled in one transaction, and described by their contents.

An import fills its version while it reads (see `ingest.loader`). Everything else uses `create`.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from webapp.core.database import locks
from webapp.core.problems import Conflict

from ..columns import packed
from ..leakage import near_leaks
from ..models import Dataset, DatasetVersion
from . import planner, staging

Lineage = dict[str, Any]


@contextmanager
def lock_dataset_name(workspace_id: int, name: str) -> Iterator[None]:
    """Allows one writer at a time for a name of a dataset, because splits of known keys are read first and written at the end."""
    digest = hashlib.sha256(f"{workspace_id}:{name}".encode()).digest()
    with locks.exclusive(locks.Work.DATASET_NAME, int.from_bytes(digest[:4], "big"), wait=True):
        yield


@contextmanager
def alone_or_conflict(workspace_id: int, name: str) -> Iterator[None]:
    """Like `lock_dataset_name`, but raises Conflict instead of waiting if there is another writer."""
    digest = hashlib.sha256(f"{workspace_id}:{name}".encode()).digest()
    with locks.exclusive(locks.Work.DATASET_NAME, int.from_bytes(digest[:4], "big")) as ours:
        if not ours:
            raise Conflict("Another job is writing into this dataset. Try again when it is done.", code="under_way")
        yield


def create(dataset: Dataset, lineage: Lineage, fill: Callable[[int], None]) -> tuple[DatasetVersion, bool]:
    """Makes the version whose members `fill(version id)` lists. Returns it, and whether it is new.

    If there is a version with exactly these examples, that one is returned and nothing is written.
    """
    with transaction.atomic():
        mark = transaction.savepoint()
        version = DatasetVersion.objects.create(
            dataset=dataset, number=next_number(dataset), digest="", lineage=lineage
        )
        fill(version.pk)
        version.counts, version.facets, version.digest = facts(version.pk)
        same = dataset.versions.filter(digest=version.digest).order_by("-number").first()
        if same:
            transaction.savepoint_rollback(mark)
            return same, False
        version.save(update_fields=["counts", "facets", "digest"])
        packed.pack(version.pk)
        transaction.savepoint_commit(mark)
        near_leaks.ask(near_leaks.VersionPair(version, version))
    planner.analyze(version.counts["examples"])
    return version, True


def next_number(dataset: Dataset) -> int:
    """The number of the next version. A version that is still being filled does not count, even if its row has a number."""
    Dataset.every.select_for_update().get(pk=dataset.pk)  # otherwise two writers would take the same number
    numbers = dataset.versions.order_by("-number").values_list("number", flat=True)
    return (numbers.first() or 0) + 1


def facts(version_id: int) -> tuple[dict[str, int], dict[str, dict[str, int]], str]:
    """Counts by kind, facets for the filters, and the digest of a version's members."""
    held = f"""(
        SELECT example.* FROM datasets_versionmember AS member
        JOIN datasets_example AS example ON example.id = member.example_id WHERE member.version_id = {int(version_id)}
    ) AS held"""  # noqa: S608  a number
    return staging.facts(held)
