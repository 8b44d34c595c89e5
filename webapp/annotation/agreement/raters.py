"""The people who answered, under names that do not identify them."""

from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from webapp.accounts.models import User
from webapp.annotation.models import Assignment, Participant, Project


@dataclass(frozen=True)
class Rater:
    """`number` counts the people of one project in the order in which they joined, and never changes after that. `name` is the email
    address if the person has no name."""

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
    # Someone without a participation is rare (it was removed): they come after all others. Each other account is looked up
    # in the index of submissions, because reading all seats would take time in proportion to them
    worked = Assignment.objects.filter(project_id=project_id, user=OuterRef("pk"), submitted_at__isnull=False)
    others = User.objects.exclude(pk__in=found).filter(Exists(worked)).order_by("pk")
    found |= {user: name or email for user, name, email in others.values_list("pk", "name", "email")}
    return {user: Rater(user, number, name) for number, (user, name) in enumerate(found.items(), start=1)}
