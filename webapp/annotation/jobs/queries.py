"""What workers do, or did last, over a whole project."""

from ..models import Job, Project


def jobs(project: Project) -> dict[str, Job]:
    """The newest of each kind, {kind: job}; kinds that never ran are left out."""
    return {job.kind: job for job in Job.objects.filter(project=project).order_by("id")}
