"""The people of a project, present and past, with the figures that `person_figures.measure` stored."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import Membership, Role, User

from ..agreement.person_figures import FigureLine, Figures, FiguresAt, is_low_gold
from ..agreement.raters import Rater, raters
from ..models import AgreementReport, Assignment, Participant, Project

State = Assignment.State


@dataclass
class Person:
    """`role` is None for a person who has left the workspace; their work stays. `rater` is their identity among answers, None for a person
    who has neither answered nor taken part."""

    user: User
    rater: Rater | None = None
    joined_at: datetime | None = None
    takes_part: bool = False
    paused: bool = False
    role: str | None = None
    skipped: int = 0
    open: int = 0
    last_at: datetime | None = None
    total: Figures = field(default_factory=Figures)
    warnings: list[str] = field(default_factory=list)
    drift: dict[str, FigureLine] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # the points as `AgreementReport.people` has them

    @property
    def points(self) -> list[FiguresAt]:
        """Built when it is read: pages that list people do not need it."""
        return [FiguresAt.unpacked(point, at=date.fromisoformat(at)) for at, *point in self.kept]

    @property
    def label(self) -> str:
        """The pseudonym, as pages write it."""
        return self.rater.label if self.rater else "Somebody"

    @property
    def low_gold(self) -> bool:
        """Whether a warning is about answers to gold tasks."""
        return is_low_gold(self.total.gold)

    def shown(self, named: bool) -> str:
        """The name that a page shows: the real one for readers who `access.may_name`."""
        return str(self.user) if named else self.label


def people(project: Project) -> list[Person]:
    """Everybody who takes part or has worked, the busiest first, with the figures of the last measurement. The number of queries does not
    depend on people or answers."""
    kept = AgreementReport.objects.filter(project=project).values_list("people", flat=True).first() or {}
    found = _persons(project, map(int, kept))
    for user_id, figures in kept.items():
        person = found.get(int(user_id))
        if person is None:  # erased since then: they are measured again under their pseudonym
            continue
        person.total = Figures.unpacked(figures["total"])
        person.last_at = datetime.fromisoformat(figures["last_at"])
        person.warnings, person.kept = figures["warnings"], figures["points"]
        person.drift = {name: FigureLine(*line) for name, line in figures["drift"].items()}
    return sorted(found.values(), key=lambda person: (-person.total.done, not person.takes_part, person.user.pk))


def _persons(project: Project, worked: Iterable[int]) -> dict[int, Person]:
    """People who take part, have skipped or hold something, or are among those who have `worked`."""
    unfinished = Assignment.objects.filter(project=project, state__in=(State.SKIPPED, State.CLAIMED))
    counted = {
        user_id: (skipped, held)
        for user_id, skipped, held in unfinished.values_list("user_id")
        .annotate(
            skipped=Count("id", filter=Q(state=State.SKIPPED)),
            held=Count("id", filter=Q(state=State.CLAIMED, lease_until__gt=timezone.now())),
        )
        .order_by()
    }
    parts = {row.user_id: row for row in Participant.objects.filter(project=project)}
    roles = dict(Membership.objects.filter(workspace_id=project.workspace_id).values_list("user_id", "role"))
    found, known = {}, raters(project)
    for user in User.objects.filter(pk__in={*counted, *parts, *worked}).only("name", "email", "proof", "erased"):
        part = parts.get(user.pk)
        person = Person(user, known.get(user.pk), takes_part=part is not None, role=roles.get(user.pk))
        if part:
            person.joined_at, person.paused = part.created_at, part.paused
        person.skipped, person.open = counted.get(user.pk, (0, 0))
        found[user.pk] = person
    return found


def candidates(project: Project) -> list[Membership]:
    """Members who do not take part yet, the first 500."""
    return list(_candidates(project).select_related("user").order_by("user__email")[:500])


def annotators_to_add(project: Project) -> int:
    """The number of annotators of the workspace who do not take part yet."""
    return _candidates(project).filter(role=Role.ANNOTATOR).count()


def _candidates(project: Project) -> QuerySet[Membership]:
    """A closed account keeps its membership, and may be opened again."""
    members = Membership.objects.filter(workspace_id=project.workspace_id, user__is_active=True)
    return members.exclude(user__participations__project=project)
