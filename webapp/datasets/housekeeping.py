"""Renames, archives and deletes datasets. A dataset on which something depends is kept, and the message names what depends on it."""

from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone

from webapp.accounts.models import Membership, User, Workspace
from webapp.core.auditing import audit
from webapp.core.background.jobs import OPEN
from webapp.core.database import locks
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue, silent

from .models import CurationJob, Dataset, DatasetVersion, Example, ImportJob
from .versions import writer
from .versions.services import dataset_name

NAMED = 5  # dependents that are named, of each kind
AT_ONCE = 5_000  # examples that a request deletes
ROWS = (  # rows that are deleted with a dataset, in an order that the triggers allow
    "DELETE FROM datasets_versionmember WHERE version_id IN (SELECT id FROM datasets_datasetversion WHERE dataset_id = %s)",
    "DELETE FROM datasets_wordhits WHERE dataset_id = %s",
    "DELETE FROM datasets_example WHERE dataset_id = %s",
)


@dataclass(frozen=True)
class Dependent:
    """`count` rows of one kind that need the dataset; `names` are those of the first few."""

    kind: str
    count: int
    names: list[str]

    def __str__(self) -> str:
        more = f" and {self.count - len(self.names)} more" if self.count > len(self.names) else ""
        return f"{self.kind}: {', '.join(self.names)}{more}"


def dependents(dataset: Dataset) -> list[Dependent]:
    """All rows that refer to a version of the dataset by a reference that protects it, in any app: one query for each kind."""
    found = []
    for relation in DatasetVersion._meta.related_objects:
        if relation.on_delete is not models.PROTECT:
            continue
        model: type[models.Model] = relation.related_model
        rows = model._default_manager.filter(**{f"{relation.field.name}__dataset": dataset}).distinct()
        names = [str(row) for row in rows.order_by("pk")[: NAMED + 1]]
        if names:
            count = len(names) if len(names) <= NAMED else rows.count()
            found.append(Dependent(str(model._meta.verbose_name_plural), count, names[:NAMED]))
    return found


def rename(membership: Membership, dataset: Dataset, name: str) -> Dataset:
    """Renames the dataset. Raises Invalid at `name`, Conflict while something is written into the dataset."""
    name = dataset_name(name)
    before = dataset.name
    with writer.alone_or_conflict(dataset.workspace_id, before), transaction.atomic():
        _nothing_under_way(dataset)
        try:
            with transaction.atomic():
                Dataset.objects.filter(pk=dataset.pk).update(name=name)
        except IntegrityError as error:
            reason = "another dataset of this workspace has this name"
            raise Invalid("There is a dataset with this name already.", {"name": reason}) from error
        dataset.refresh_from_db(fields=["name"])
        audit.record(membership, membership.user, "dataset.renamed", dataset, before=before, name=name)
    return dataset


@transaction.atomic
def archive(membership: Membership, dataset: Dataset, *, archived: bool) -> Dataset:
    """Takes the dataset off the lists, or puts it back. Rows that depend on it continue to work. The same again changes nothing."""
    rows = Dataset.objects.filter(pk=dataset.pk, archived_at__isnull=archived)
    if rows.update(archived_at=timezone.now() if archived else None):
        audit.record(membership, membership.user, "dataset.archived" if archived else "dataset.restored", dataset)
    dataset.refresh_from_db(fields=["archived_at"])
    return dataset


def delete(membership: Membership, dataset: Dataset) -> bool:
    """Deletes the dataset with all its versions and examples: at once if they are few (True), otherwise by a worker (False).

    Raises Conflict, which names what depends on it or says what is under way. If this is called twice, it is deleted once.
    """
    if dataset.deleting_at:
        return False
    if Example.objects.filter(dataset=dataset)[: AT_ONCE + 1].count() <= AT_ONCE:
        _delete(dataset, membership, membership.user)
        return True
    with writer.alone_or_conflict(dataset.workspace_id, dataset.name), transaction.atomic():
        _unneeded(dataset)
        rows = Dataset.every.filter(
            pk=dataset.pk, deleting_at=None
        )  # if two requests come at once, one of them updates it
        if rows.update(deleting_at=timezone.now(), deleting_by=membership.user, delete_problem=""):
            audit.record(membership, membership.user, "dataset.deletion_asked", dataset, name=dataset.name)
            enqueue("workers.imports.delete_dataset", dataset.pk)
    return False


def carry_out(dataset_id: int) -> None:
    """Deletes a dataset that somebody has asked to delete: all of it or, if something depends on it by now, nothing.

    If this is called twice at once, the second call finds the first one at work and does nothing.
    """
    with locks.exclusive(locks.Work.DELETE_DATASET, dataset_id) as ours:
        rows = Dataset.every.filter(pk=dataset_id, deleting_at__isnull=False)
        dataset = rows.select_related("workspace", "deleting_by").first() if ours else None
        if dataset is None:
            return
        try:
            _delete(dataset, dataset.workspace, None)
        except Conflict as conflict:
            rows.update(deleting_at=None, delete_problem=conflict.message)


def take_up_lost(quiet: timedelta) -> None:
    """Asks again for datasets that no worker has deleted after a long time: the message or the worker was lost."""
    lost = Dataset.every.filter(silent("deleting_at", quiet))
    for dataset_id in lost.values_list("pk", flat=True):
        enqueue("workers.imports.delete_dataset", dataset_id)


def _delete(dataset: Dataset, where: Membership | Workspace, who: User | None) -> None:
    with writer.alone_or_conflict(dataset.workspace_id, dataset.name), transaction.atomic():
        who = who or audit.asked_by(dataset, "deleting_by")
        _unneeded(dataset)
        audit.record(where, who, "dataset.deleted", dataset, name=dataset.name)
        with connection.cursor() as cursor:
            for statement in ROWS:
                cursor.execute(statement, [dataset.pk])
        dataset.delete()


def _unneeded(dataset: Dataset) -> None:
    """Raises Conflict if something depends on the dataset. Until the transaction ends, nobody can refer to its versions."""
    Dataset.every.select_for_update().get(pk=dataset.pk)
    list(DatasetVersion.every.select_for_update().filter(dataset=dataset).values_list("pk"))
    _nothing_under_way(dataset)
    if found := dependents(dataset):
        told = "; ".join(map(str, found))
        raise Conflict(f"This dataset cannot be deleted while something depends on it. {told}.", code="in_use")


def _nothing_under_way(dataset: Dataset) -> None:
    waiting = ImportJob.objects.filter(workspace=dataset.workspace_id, dataset_name=dataset.name, state__in=OPEN)
    curating = CurationJob.objects.filter(version__dataset=dataset, state__in=OPEN)
    if waiting.exists() or curating.exists():
        raise Conflict(
            "An import or a check of this dataset is under way. Wait until it ends, or cancel it.", code="under_way"
        )
