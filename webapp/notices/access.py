"""Permissions of notices: people may watch what they may read. Notices are personal, for the workspace in which the person acts."""

from collections.abc import Callable, Mapping

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership
from webapp.annotation.access import project_read
from webapp.datasets.access import curation_read, dataset_read, import_read
from webapp.evaluation.access import evaluation_read
from webapp.experiments.access import run_read, sweep_read
from webapp.inference.access import model_read
from webapp.judging.access import judge_read
from webapp.weights.access import job_read

from .dispatch import READER
from .queries import Watchable

READ: Mapping[str, Callable[[Membership, int], Watchable]] = {
    "run": run_read,
    "sweep": sweep_read,
    "project": project_read,
    "dataset": dataset_read,
    "judge": judge_read,
    "model": model_read,
    "evaluation": evaluation_read,
    "import": import_read,
    "curation": curation_read,
    "weights_job": job_read,
}


def may_read(membership: Membership) -> Membership:
    return at_least(membership, READER)


def subject_read(membership: Membership, kind: str, subject_id: int) -> Watchable:
    """A thing of the workspace that the person may watch, or 404."""
    if kind not in READ:
        raise Http404("nothing of this kind is watched")
    return READ[kind](membership, subject_id)
