"""Permissions of chains: each function returns a step of a run's chain, or answers 404."""

from django.http import Http404

from webapp.accounts.models import Membership

from .. import access
from ..models import ChainStep, Run


def step_write(membership: Membership, run_id: int, step_id: int) -> tuple[Run, ChainStep]:
    run = access.run_write(membership, run_id)
    step = ChainStep.objects.filter(pk=step_id, workspace_id=membership.workspace_id, project=None).first()
    if step is None:
        raise Http404("no such step")
    return run, step


def behind(membership: Membership, run_id: int, step_id: int) -> tuple[Run, ChainStep | None]:
    """The run of a chain and the step after which a new step would come; 0: after the run itself."""
    return step_write(membership, run_id, step_id) if step_id else (access.run_write(membership, run_id), None)
