"""What the workbench reads besides its tasks."""

from ..models import Guidelines, Participant, Project


def latest_guidelines(project: Project) -> Guidelines | None:
    return Guidelines.objects.filter(project=project).order_by("-number").first()


def own_keys(project: Project, user_id: int) -> dict[str, str]:
    """The keys this person chose in this project: {action: key}."""
    keys = Participant.objects.filter(project=project, user_id=user_id).values_list("keys", flat=True).first()
    return keys or {}
