"""Jobs of workers over a whole project, running or last finished."""

from ..models import Job, Project


def jobs(project: Project) -> dict[str, Job]:
    """The newest job of each kind, {kind: job}; kinds that never ran are left out."""
    return {job.kind: job for job in Job.objects.filter(project=project).order_by("id")}
