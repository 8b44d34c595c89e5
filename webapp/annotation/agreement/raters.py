"""Who answered, under names that tell nobody who they are."""

from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from webapp.accounts.models import User
from webapp.annotation.models import Assignment, Participant, Project


@dataclass(frozen=True)
class Rater:
    """`number` counts the people of one project in the order they came in, and never changes after that. `name` is the
    address of somebody without one."""

    user: int
    number: int
    name: str

    @property
    def pseudonym(self) -> str:
        return f"annotator-{self.number}"

    @property
    def label(self) -> str:
        return f"Annotator {self.number}"


def raters(project: Project | int) -> dict[int, Rater]:
    """{user id: rater} of everybody who takes part in the project or has worked in it."""
    project_id = project if isinstance(project, int) else project.pk
    people = Participant.objects.filter(project_id=project_id).order_by("id")
    found = {user: name or email for user, name, email in people.values_list("user_id", "user__name", "user__email")}
    # someone without a participation is rare (it was removed): they come after all others. Each other account is looked
    # up in the index of submissions; to look through the seats would take as long as there are many
    worked = Assignment.objects.filter(project_id=project_id, user=OuterRef("pk"), submitted_at__isnull=False)
    others = User.objects.exclude(pk__in=found).filter(Exists(worked)).order_by("pk")
    found |= {user: name or email for user, name, email in others.values_list("pk", "name", "email")}
    return {user: Rater(user, number, name) for number, (user, name) in enumerate(found.items(), start=1)}
