"""Permissions of datasets: each function returns a row of the caller's workspace, or answers 404. A role that is too low is refused.

Annotators see no dataset, because labels, other answers and the names of models would influence their judgement.
"""

from collections.abc import Collection
from typing import TypeVar

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role

from .models import CurationJob, Dataset, DatasetVersion, Example, ImportJob, Probe, SavedView

Row = TypeVar("Row")
READER = Role.REVIEWER
WRITER = Role.RESEARCHER


def may_read(membership: Membership) -> Membership:
    return at_least(membership, READER)


def may_write(membership: Membership) -> Membership:
    return at_least(membership, WRITER)


def dataset_read(membership: Membership, dataset_id: int) -> Dataset:
    return _dataset(may_read(membership), dataset_id)


def dataset_write(membership: Membership, dataset_id: int) -> Dataset:
    return _dataset(may_write(membership), dataset_id)


def version_read(membership: Membership, dataset_id: int, number: int | None = None) -> DatasetVersion:
    """Version `number` of the dataset; without a number, the newest."""
    return _version(may_read(membership), dataset_id, number)


def version_write(membership: Membership, dataset_id: int, number: int) -> DatasetVersion:
    return _version(may_write(membership), dataset_id, number)


def versions_read(membership: Membership, ids: Collection[int]) -> list[DatasetVersion]:
    """The versions with these ids, of any dataset; 404 if one is missing."""
    wanted = set(ids)
    rows = DatasetVersion.objects.filter(dataset__workspace_id=may_read(membership).workspace_id, pk__in=wanted)
    found = list(rows.select_related("dataset"))
    return _found(found if len(found) == len(wanted) else None, "version")


def example_read(membership: Membership, example_id: int) -> Example:
    examples = Example.objects.filter(dataset__workspace_id=may_read(membership).workspace_id)
    return _found(examples.select_related("dataset").filter(id=example_id).first(), "example")


def import_read(membership: Membership, job_id: int) -> ImportJob:
    return _import(may_read(membership), job_id)


def import_write(membership: Membership, job_id: int) -> ImportJob:
    return _import(may_write(membership), job_id)


def _import(membership: Membership, job_id: int) -> ImportJob:
    jobs = ImportJob.objects.filter(workspace_id=membership.workspace_id)
    return _found(jobs.select_related("version__dataset").filter(id=job_id).first(), "import")


def view_write(membership: Membership, view_id: int) -> SavedView:
    """Everybody who reads datasets may save and delete views: they belong to the workspace."""
    views = SavedView.objects.filter(workspace_id=may_read(membership).workspace_id)
    return _found(views.select_related("dataset").filter(id=view_id).first(), "view")


def probe_of(membership: Membership, version: DatasetVersion, probe_id: int) -> Probe:
    """A probe of the version's dataset; it may have asked about another version."""
    probes = Probe.objects.filter(version__dataset__workspace_id=may_read(membership).workspace_id)
    found = probes.select_related("version").filter(id=probe_id, version__dataset=version.dataset_id).first()
    return _found(found, "probe of this dataset")


def probe_write(membership: Membership, probe_id: int) -> Probe:
    probes = Probe.objects.filter(version__dataset__workspace_id=may_write(membership).workspace_id)
    return _found(probes.select_related("version__dataset").filter(id=probe_id).first(), "probe")


def curation_read(membership: Membership, job_id: int) -> CurationJob:
    jobs = CurationJob.objects.filter(version__dataset__workspace_id=may_read(membership).workspace_id)
    return _found(jobs.select_related("version__dataset", "made").filter(id=job_id).first(), "curation job")


def curation_of(membership: Membership, version: DatasetVersion, job_id: int) -> CurationJob:
    """A job whose findings are about this version."""
    job = curation_read(membership, job_id)
    return _found(job if job.version_id == version.pk else None, "curation job of this version")


def _dataset(membership: Membership, dataset_id: int) -> Dataset:
    return _found(Dataset.objects.filter(workspace_id=membership.workspace_id, id=dataset_id).first(), "dataset")


def _version(membership: Membership, dataset_id: int, number: int | None) -> DatasetVersion:
    versions = DatasetVersion.objects.filter(dataset__workspace_id=membership.workspace_id, dataset_id=dataset_id)
    if number is not None:
        versions = versions.filter(number=number)
    return _found(versions.select_related("dataset").order_by("-number").first(), "version")


def _found(row: Row | None, what: str) -> Row:
    if row is None:
        raise Http404(f"no such {what}")
    return row
