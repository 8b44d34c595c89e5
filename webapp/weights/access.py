"""Permissions of jobs: each function returns a job of the caller's workspace, or answers 404."""

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role

from .models import WeightsJob


def may_read(membership: Membership) -> Membership:
    return at_least(membership, Role.REVIEWER)


def may_write(membership: Membership) -> Membership:
    return at_least(membership, Role.RESEARCHER)


def job_read(membership: Membership, job_id: int) -> WeightsJob:
    return _job(may_read(membership), job_id)


def job_write(membership: Membership, job_id: int) -> WeightsJob:
    return _job(may_write(membership), job_id)


def _job(membership: Membership, job_id: int) -> WeightsJob:
    rows = WeightsJob.objects.select_related("workspace", "model__base", "version__dataset", "created_by")
    found = rows.filter(workspace_id=membership.workspace_id, id=job_id).first()
    if found is None:
        raise Http404("no such job")
    return found
