"""Fetching is authorisation: a logged run of the caller's workspace, or 404; too small a role is refused."""

from django.http import Http404

from webapp.accounts.models import Membership
from webapp.experiments.access import may_read, may_write
from webapp.experiments.models import Experiment

from .models import LoggedRun
from .queries import logged_runs


def logged_read(membership: Membership, key: str) -> LoggedRun:
    """A logged run that the caller may read, also if its program has deleted it."""
    return _logged(may_read(membership), key)


def logged_write(membership: Membership, key: str) -> LoggedRun:
    return _logged(may_write(membership), key)


def experiment_read(membership: Membership, experiment_id: int) -> Experiment:
    return _experiment(may_read(membership), experiment_id)


def _logged(membership: Membership, key: str) -> LoggedRun:
    found = logged_runs(membership.workspace_id).filter(key=key).first()
    if found is None:
        raise Http404("no such logged run")
    return found


def _experiment(membership: Membership, experiment_id: int) -> Experiment:
    rows = Experiment.objects.select_related("logged", "workspace")
    found = rows.filter(workspace_id=membership.workspace_id, id=experiment_id).first()
    if found is None:
        raise Http404("no such experiment")
    return found
