"""Creates, describes, extends, freezes and tags datasets and their versions."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NoReturn

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.core import broadcast
from webapp.core.auditing import audit
from webapp.core.problems import Invalid
from webapp.core.text.texts import one_line
from webapp.files.records import RowProblem
from webapp.webhooks.services import announce

from .. import queries
from ..models import Dataset, DatasetVersion, VersionTag
from . import staging, writer
from .earlier_splits import Settler

TAG = re.compile(r"[\w.-]{1,40}")
BATCH = 2_000  # records read and staged at a time


def dataset_name(name: str) -> str:
    """The name in the form in which it is stored. Raises Invalid at `name`."""
    return one_line(name, 120, "The dataset needs a name.")


def create_dataset(membership: Membership, name: str, description: str = "", licence: str = "") -> Dataset:
    """Creates an empty dataset, for versions that do not come from a file. Raises Invalid at `name` if it is taken."""
    name = dataset_name(name)
    try:
        with transaction.atomic():
            row = Dataset.objects.create(
                workspace=membership.workspace, name=name, description=description, licence=licence
            )
            audit.record(membership, membership.user, "dataset.created", row, name=name)
    except IntegrityError as error:
        raise Invalid(
            "There is a dataset with this name already.", {"name": "another dataset of this workspace has this name"}
        ) from error
    return row


@transaction.atomic
def describe(membership: Membership, dataset: Dataset, *, description: str, licence: str) -> Dataset:
    """Sets the description and the licence of the dataset. Raises Invalid at `licence` or `description`."""
    if len(licence) > 120:
        raise Invalid("The licence is too long.", {"licence": "must have at most 120 characters"})
    if len(description) > 20_000:
        raise Invalid("The description is too long.", {"description": "must have at most 20,000 characters"})
    dataset.description, dataset.licence = description, licence
    dataset.save(update_fields=["description", "licence"])
    audit.record(membership, membership.user, "dataset.described", dataset)
    return dataset


def new_version(
    membership: Membership,
    dataset: Dataset,
    records: Iterable[Example],
    base: DatasetVersion | None,
    lineage: dict[str, Any],
    as_given: bool = False,
) -> DatasetVersion:
    """Makes a new draft version of the dataset. `records` is read once, and is never in memory as a whole.

    Without `base`, the version has exactly the records, in their order. With `base`, it has the examples of that version: each record
    replaces the example with its key, and records with new keys follow at the end. A key keeps the side of the split that it has in any
    earlier version, and so do prompts and groups. With `as_given`, each record keeps the side that it has, or none. `lineage` says where
    the version comes from: {"from": "annotation", ...}; number and id of `base` are added. If there is a version with exactly this content,
    that one is returned. Raises Invalid at `records.N.field`, or at `base` if it is a version of another dataset.
    """
    if base and base.dataset_id != dataset.pk:
        raise Invalid("The base is a version of another dataset.", {"base": f"must be a version of {dataset}"})
    if base:
        lineage = {**lineage, "base": base.number, "base_id": base.pk}

    def fill(version_id: int) -> None:
        if base:
            staging.move_over(dataset.pk, version_id, base.pk)
        else:
            staging.move(dataset.pk, version_id)

    with writer.lock_dataset_name(dataset.workspace_id, dataset.name), staging.table():
        _stage(dataset, records, as_given)
        return announce_version(membership, *writer.create(dataset, lineage, fill))


def _stage(dataset: Dataset, records: Iterable[Example], as_given: bool) -> None:
    settler = None if as_given else Settler(dataset)
    numbered = enumerate(records)
    while batch := list(islice(numbered, BATCH)):
        rows = [_sound(row) for row in settler.settle(batch)] if settler else batch
        staging.copy(
            list(_prepared(rows))
        )  # complete before COPY, because an error inside COPY would break the transaction
    for line, key, first in staging.repeated_keys():
        _refuse(line, "key", f"record {first} already has the key {key!r}")


def _prepared(rows: list[tuple[int, Example]]) -> Iterator[tuple[Any, ...]]:
    for line, example in rows:
        try:
            yield staging.prepare(line, example)
        except ValueError as error:
            _refuse(line, "", f"holds a value that cannot be stored: {error}")


def _sound(row: tuple[int, Example] | RowProblem) -> tuple[int, Example]:
    if isinstance(row, RowProblem):
        _refuse(row.line, row.field, row.reason)
    return row


def _refuse(line: int, field: str, reason: str) -> NoReturn:
    raise Invalid("A record cannot be stored.", {".".join(filter(None, ("records", str(line), field))): reason})


@transaction.atomic
def announce_version(membership: Membership, version: DatasetVersion, new: bool) -> DatasetVersion:
    """Announces a version that was just made. A version that was there already is not announced."""
    if new:
        audit.record(membership, membership.user, "version.made", version, number=version.number, **_origin(version))
        message: dict[str, object] = {"type": "version", "id": version.pk, "state": version.state}
        broadcast.send(f"workspace.{membership.workspace_id}", message)
    return version


def _origin(version: DatasetVersion) -> dict[str, Any]:
    return {key: version.lineage[key] for key in ("from", "base") if key in version.lineage}


def keep_version(version: DatasetVersion) -> None:
    """Prevents that the version is deleted before the transaction ends, for code that makes a row which refers to it. Others can hold it at
    the same time. Raises Invalid at `dataset` if it is gone by now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM datasets_datasetversion WHERE id = %s FOR KEY SHARE", [version.pk])
        if cursor.fetchone() is None:
            raise Invalid("This dataset is gone.", {"dataset": "was deleted meanwhile"})


@transaction.atomic
def freeze(membership: Membership, version: DatasetVersion) -> DatasetVersion:
    """Freezes the version, which promises that it is kept. To freeze it again changes nothing. It stays until the transaction ends, see `keep_version`."""
    keep_version(version)
    changed = DatasetVersion.objects.filter(pk=version.pk, state=DatasetVersion.State.DRAFT).update(
        state=DatasetVersion.State.FROZEN, frozen_at=timezone.now()
    )
    if changed:
        audit.record(membership, membership.user, "version.frozen", version, digest=version.digest)
        message: dict[str, object] = {"type": "version", "id": version.pk, "state": "frozen"}
        broadcast.send(f"workspace.{membership.workspace_id}", message)
        announce(membership.workspace_id, "version.frozen", queries.version_facts(version), by=membership.user_id)
    version.refresh_from_db(fields=["state", "frozen_at"])
    return version


@transaction.atomic
def tag(membership: Membership, version: DatasetVersion, name: str) -> VersionTag:
    """Gives the version the tag `name`. A tag of that name on another version of the dataset moves here. Raises Invalid."""
    if not TAG.fullmatch(name):
        raise Invalid(
            "The tag cannot be used.", {"name": "must be 1 to 40 letters, digits, dots, dashes or underscores"}
        )
    made, _ = VersionTag.objects.update_or_create(
        dataset_id=version.dataset_id, name=name, defaults={"version": version}
    )
    audit.record(membership, membership.user, "version.tagged", version, tag=name, number=version.number)
    return made


@transaction.atomic
def untag(membership: Membership, version: DatasetVersion, name: str) -> None:
    """Removes the tag, if the version has it."""
    gone, _ = VersionTag.objects.filter(version=version, name=name).delete()
    if gone:
        audit.record(membership, membership.user, "version.untagged", version, tag=name, number=version.number)
