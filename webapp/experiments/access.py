"""Permissions of runs: each function returns a run of the caller's workspace, or answers 404. A role that is too low is refused."""

from collections.abc import Sequence

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role
from webapp.core.database import prepared

from .models import Artifact, ClaimStudy, Rollout, Run, RunAlarm, RunJudge, Sweep
from .queries import runs, studies, sweeps

READER = Role.REVIEWER  # annotators must not see what models answer: it would colour their judgement
WRITER = Role.RESEARCHER
MANY = 50
"""Runs for which it takes less time to read what they share once than with each of them."""
# Prepared, because every page and every request of a run asks for it
_one = prepared.RowBy(lambda: Run.objects.with_names().present(), "experiment__workspace_id", "id")


def may_read(membership: Membership) -> Membership:
    return at_least(membership, READER)


def may_write(membership: Membership) -> Membership:
    return at_least(membership, WRITER)


def launcher(workspace_id: int, user_id: int | None) -> Membership | None:
    """The membership in whose name a worker launches what this person has asked for. None if the person may not launch any more: the role
    is too low, the membership is gone, or the account is closed."""
    rows = Membership.objects.filter(workspace_id=workspace_id, user=user_id, user__is_active=True)
    found = rows.select_related("user", "workspace").first()
    return found if found is not None and found.may(WRITER) else None


def run_read(membership: Membership, run_id: int) -> Run:
    return _run(may_read(membership), run_id)


def run_write(membership: Membership, run_id: int) -> Run:
    return _run(may_write(membership), run_id)


def runs_read(membership: Membership, ids: Sequence[int]) -> list[Run]:
    """Several runs in this order, or 404 if one of them is not the workspace's: one query, or six for more than `MANY`."""
    rows = runs(may_read(membership).workspace_id)
    found = {run.pk: run for run in (rows.sharing_names() if len(ids) > MANY else rows).filter(pk__in=ids)}
    if len(found) < len(set(ids)):
        raise Http404("no such run")
    return [found[run_id] for run_id in ids]


def rollout_read(membership: Membership, run_id: int, rollout_id: int) -> Rollout:
    run = run_read(membership, run_id)
    found = Rollout.objects.filter(run=run, id=rollout_id).first()
    if found is None:
        raise Http404("no such rollout")
    found.run = run
    return found


def artifact_read(membership: Membership, run_id: int, artifact_id: int) -> Artifact:
    run = run_read(membership, run_id)
    found = Artifact.objects.select_related("registered").filter(run=run, id=artifact_id).first()
    if found is None:
        raise Http404("no such artifact")
    found.run = run
    return found


def judge_write(membership: Membership, run_id: int, judge_id: int) -> RunJudge:
    """A judge that the run asks, by its id within runs."""
    run = run_write(membership, run_id)
    found = RunJudge.objects.select_related("version__judge", "version__endpoint").filter(run=run, id=judge_id).first()
    if found is None:
        raise Http404("no such judge of this run")
    found.run = run
    return found


def alarm_write(membership: Membership, run_id: int, alarm_id: int) -> RunAlarm:
    run = run_write(membership, run_id)
    found = RunAlarm.objects.filter(run=run, id=alarm_id).first()
    if found is None:
        raise Http404("no such alarm of this run")
    found.run = run
    return found


def study_read(membership: Membership, study_id: int) -> ClaimStudy:
    return _study(may_read(membership), study_id)


def study_write(membership: Membership, study_id: int) -> ClaimStudy:
    return _study(may_write(membership), study_id)


def _study(membership: Membership, study_id: int) -> ClaimStudy:
    found = studies(membership.workspace_id).filter(id=study_id).first()
    if found is None:
        raise Http404("no such study of a claim")
    return found


def sweep_read(membership: Membership, sweep_id: int) -> Sweep:
    found = sweeps(may_read(membership).workspace_id).filter(id=sweep_id).first()
    if found is None:
        raise Http404("no such sweep")
    return found


def sweep_write(membership: Membership, sweep_id: int) -> Sweep:
    return sweep_read(may_write(membership), sweep_id)


def _run(membership: Membership, run_id: int) -> Run:
    found = _one(membership.workspace_id, run_id)
    if found is None:
        raise Http404("no such run")
    return found
