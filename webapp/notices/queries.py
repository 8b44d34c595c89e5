"""Reads over notices and watches, always of one person in one workspace."""

from collections.abc import Sequence

from django.apps import apps
from django.db.models import Q, QuerySet

from webapp.accounts.models import Membership, User
from webapp.annotation.models import Project
from webapp.core.database import prepared
from webapp.core.network import mail
from webapp.datasets.models import CurationJob, Dataset, ImportJob
from webapp.evaluation.models import Evaluation
from webapp.experiments.models import Run, Sweep
from webapp.inference.models import RegisteredModel
from webapp.judging.models import Judge
from webapp.weights.models import WeightsJob

from .dispatch import MODELS, READER, is_part_of_more
from .models import FIELDS, SUBJECTS, Letter, Notice, NoticeSettings, Watch

Launchable = Run | Sweep | Project | Evaluation | ImportJob | CurationJob | WeightsJob
Watchable = Launchable | Dataset | Judge | RegisteredModel
MANY = 100
"""More unread ones than this are not counted."""
UNREAD = """
    SELECT count(*) FROM (
        SELECT FROM notices_notice WHERE user_id = %s AND workspace_id = %s AND read_at IS NULL LIMIT %s
    ) found
"""


def notices(membership: Membership, *, unread: bool = False) -> "QuerySet[Notice]":
    """The notices of this person in this workspace. None for a role that may not read the things of notices."""
    if not membership.may(READER):
        return Notice.objects.none()
    rows = Notice.objects.filter(user_id=membership.user_id, workspace_id=membership.workspace_id)
    return rows.filter(read_at=None) if unread else rows


def unread(membership: Membership) -> int:
    """The number of unread notices, up to `MANY`. A prepared statement, because every page shows it."""
    if not membership.may(READER):
        return 0
    ((count,),) = prepared.rows(UNREAD, [membership.user_id, membership.workspace_id, MANY])
    return int(count)


def deleted_things(rows: Sequence[Notice]) -> frozenset[tuple[str, int]]:
    """(kind, id) of things that have been deleted since: a link would lead nowhere. A query for each kind."""
    about = {(row.about, row.subject) for row in rows} | {("sweep", row.sweep) for row in rows if row.sweep}
    there: set[tuple[str, int]] = set()
    for kind in {kind for kind, _ in about}:
        ids = [pk for each, pk in about if each == kind]
        found = apps.get_model(MODELS[kind]).objects.filter(pk__in=ids).values_list("pk", flat=True)
        there |= {(kind, pk) for pk in found}
    return frozenset(about - there)


def kind_of(subject: Watchable) -> str:
    return next(kind for kind in SUBJECTS if isinstance(subject, apps.get_model(MODELS[kind])))


def watched(membership: Membership, subject: Watchable) -> bool:
    """Whether this person watches it: by their choice, or because they launched it. Nobody launches data, judges or models."""
    kind = kind_of(subject)
    said = Watch.objects.filter(user_id=membership.user_id, **{FIELDS[kind]: subject.pk}).values_list("on", flat=True)
    if (found := said.first()) is not None:
        return found
    if not isinstance(subject, Launchable) or subject.created_by_id != membership.user_id:
        return False
    return settings(membership.user_id).own and not is_part_of_more(kind, subject.pk)


def settings(user_id: int) -> NoticeSettings:
    return NoticeSettings.objects.filter(user_id=user_id).first() or NoticeSettings(user_id=user_id)


def no_mail(user: User) -> str:
    """The reason why this person can have no notices by mail; empty if they can."""
    if not mail.is_configured():
        return "This installation has no mail server. The person who runs it can set one in MAIL_URL"
    if not user.verified:
        return "The address of your account is not verified yet; see Settings, Profile"
    return ""


def last_letter(user_id: int) -> Letter | None:
    return Letter.objects.filter(user_id=user_id).order_by("-created_at").first()


def watches(membership: Membership) -> "QuerySet[Watch]":
    """The person's choices about things of this workspace, newest first."""
    here = Q(run__experiment__workspace=membership.workspace_id)
    here |= Q(curation__version__dataset__workspace=membership.workspace_id)
    for kind in set(SUBJECTS) - {"run", "curation"}:
        here |= Q(**{f"{FIELDS[kind]}__workspace": membership.workspace_id})
    rows = Watch.objects.filter(here, user_id=membership.user_id)
    return rows.select_related(*FIELDS.values(), "run__experiment", "curation__version__dataset").order_by("-id")
