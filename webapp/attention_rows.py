"""The rows of a workspace that need attention, kind by kind: what failed, stands still, waits for a person, or ended since yesterday."""

from datetime import timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from trainer.metrics.claims import PLANS
from webapp.annotation.models import Comment, Project
from webapp.annotation.models import Job as ProjectJob
from webapp.datasets.models import CurationJob, ImportJob
from webapp.evaluation.models import Evaluation
from webapp.experiments import queries
from webapp.experiments.models import ChainStep, ClaimStudy, Run, RunAlarm, Sweep
from webapp.weights.models import WeightsJob

LATELY = timedelta(days=3)
"""The time for which failures and alarms are listed."""
NEWS = timedelta(days=1)


def failed_runs(workspace: int) -> QuerySet[Run]:
    """Failed runs, without those after which a run of the same experiment finished: somebody has dealt with them."""
    later = Run.objects.filter(experiment=OuterRef("experiment"), id__gt=OuterRef("id"), state=Run.State.FINISHED)
    failed = _runs(workspace).filter(state=Run.State.FAILED, ended_at__gt=timezone.now() - LATELY)
    return failed.exclude(Exists(later))


def waiting_evaluations(workspace: int) -> QuerySet[Evaluation]:
    """Work that waits in the line, without the runs, which the page shows itself."""
    return Evaluation.objects.filter(workspace_id=workspace, state=Evaluation.State.QUEUED).exclude(problem="")


def failed_evaluations(workspace: int) -> QuerySet[Evaluation]:
    """Failed evaluations, without those that were run again since."""
    rows = Evaluation.objects.filter(workspace_id=workspace, reruns=None)
    return rows.filter(state=Evaluation.State.FAILED, ended_at__gt=timezone.now() - LATELY).order_by("-ended_at")


def failed_imports(workspace: int) -> QuerySet[ImportJob]:
    """Failed imports, without those after which an import into the same dataset finished."""
    rows = ImportJob.objects.filter(workspace_id=workspace, finished_at__gt=timezone.now() - LATELY)
    later = ImportJob.objects.filter(
        workspace_id=workspace,
        dataset_name=OuterRef("dataset_name"),
        id__gt=OuterRef("id"),
        state=ImportJob.State.FINISHED,
    )
    return rows.filter(state=ImportJob.State.FAILED).exclude(Exists(later)).order_by("-finished_at")


def failed_sweeps(workspace: int) -> QuerySet[Sweep]:
    """Failed sweeps; one that somebody resumes is under way again."""
    rows = Sweep.objects.filter(workspace_id=workspace, state=Sweep.State.FAILED)
    return rows.filter(ended_at__gt=timezone.now() - LATELY).order_by("-ended_at")


def failed_weights_jobs(workspace: int) -> QuerySet[WeightsJob]:
    """Failed jobs that need weights, without those of evaluations, which fail themselves."""
    rows = WeightsJob.objects.filter(workspace_id=workspace, state=WeightsJob.State.FAILED, evaluations=None)
    return rows.filter(ended_at__gt=timezone.now() - LATELY).order_by("-ended_at")


def failed_curations(workspace: int) -> QuerySet[CurationJob]:
    """Failed curations, without those after which a curation of the same kind finished for the same version."""
    later = CurationJob.objects.filter(
        version=OuterRef("version"), kind=OuterRef("kind"), id__gt=OuterRef("id"), state=CurationJob.State.FINISHED
    )
    rows = CurationJob.objects.filter(version__dataset__workspace_id=workspace, state=CurationJob.State.FAILED)
    lately = rows.filter(finished_at__gt=timezone.now() - LATELY).exclude(Exists(later))
    return lately.select_related("version__dataset").order_by("-finished_at")


def refused_steps(workspace: int) -> QuerySet[ChainStep]:
    """Steps of chains that could not be launched."""
    rows = ChainStep.objects.filter(workspace_id=workspace, state=ChainStep.State.REFUSED, after__archived_at=None)
    rows = rows.filter(decided_at__gt=timezone.now() - LATELY).select_related("after__experiment", "project")
    return rows.exclude(after=None, project=None)


def refused_claims(workspace: int) -> QuerySet[ClaimStudy]:
    """Claims whose runs could not be launched. They have no time of that, so those are shown that were asked for lately."""
    rows = ClaimStudy.objects.filter(workspace_id=workspace, state=ClaimStudy.State.REFUSED, plan__in=PLANS)
    return rows.filter(created_at__gt=timezone.now() - LATELY)


def paused_evaluations(workspace: int) -> QuerySet[Evaluation]:
    """Evaluations that paused by themselves. If a person has paused one, it says no reason."""
    return Evaluation.objects.filter(workspace_id=workspace, state=Evaluation.State.PAUSED).exclude(problem="")


def failed_project_jobs(workspace: int) -> QuerySet[ProjectJob]:
    """A project keeps the last job of each kind, so one that was repeated is not among them."""
    rows = ProjectJob.objects.filter(project__workspace_id=workspace, state=ProjectJob.State.FAILED)
    return rows.filter(finished_at__gt=timezone.now() - LATELY).select_related("project")


def blocked_runs(workspace: int) -> QuerySet[Run]:
    """Runs that wait for something outside them. Their reasons say for what, and what a person can do."""
    return _runs(workspace).filter(state=Run.State.BLOCKED)


def stepping_runs(workspace: int) -> QuerySet[Run]:
    return _runs(workspace).filter(state=Run.State.RUNNING, first_metric_at__isnull=False)


def alarms(workspace: int) -> QuerySet[RunAlarm]:
    rows = RunAlarm.objects.filter(run__in=_runs(workspace), time__gt=timezone.now() - LATELY)
    return rows.select_related("run__experiment")


def remarks(workspace: int) -> QuerySet[Comment]:
    rows = Comment.objects.filter(project__workspace_id=workspace, resolved_at=None)
    return rows.exclude(project__state=Project.State.CLOSED)


def finished_runs(workspace: int) -> QuerySet[Run]:
    return _runs(workspace).filter(state=Run.State.FINISHED, ended_at__gt=timezone.now() - NEWS)


def finished_sweeps(workspace: int) -> QuerySet[Sweep]:
    rows = Sweep.objects.filter(workspace_id=workspace, state=Sweep.State.FINISHED)
    return rows.filter(ended_at__gt=timezone.now() - NEWS).order_by("-ended_at")


def finished_evaluations(workspace: int) -> QuerySet[Evaluation]:
    rows = Evaluation.objects.filter(workspace_id=workspace, state=Evaluation.State.FINISHED)
    return rows.filter(ended_at__gt=timezone.now() - NEWS).order_by("-ended_at")


def finished_imports(workspace: int) -> QuerySet[ImportJob]:
    rows = ImportJob.objects.filter(workspace_id=workspace, state=ImportJob.State.FINISHED)
    return rows.filter(finished_at__gt=timezone.now() - NEWS).order_by("-finished_at")


def _runs(workspace: int) -> QuerySet[Run]:
    return queries.runs(workspace).filter(archived_at=None)
