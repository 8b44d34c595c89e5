"""Links are made and revoked, and it is noted when somebody opens one. A secret is returned once; only its digest is stored."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import Membership, hash_secret
from webapp.core.auditing import audit
from webapp.core.network.addresses import public_url
from webapp.core.problems import Invalid, Problem
from webapp.core.text.texts import several_lines

from ..models import Run, SharedRun, ShareLink
from .models import COMPARISON, MAX_NAME

DAYS = 30  # where nobody says otherwise
MOST_DAYS = 365
MINUTE = timedelta(minutes=1)


class NotAllowed(Problem):
    def __init__(self) -> None:
        message = "This workspace does not allow share links. An owner can allow them under Settings, Share links."
        super().__init__(message, code="share_links_not_allowed", status=403)


@transaction.atomic
def share(
    membership: Membership, runs: Sequence[Run], name: str = "", days: int | None = DAYS, baseline: int | None = None
) -> tuple[ShareLink, str]:
    """A new link to the comparison of `runs`, which are the membership's, and its secret, which cannot be read again.

    It ends after this many `days`; None: when somebody revokes it. `baseline` is the id of one of the runs. Raises Invalid at `name`,
    `days` or `baseline`, NotAllowed.
    """
    link, secret = made(membership, COMPARISON, name or f"Comparison of {len(runs)} runs", days)
    ids = [run.pk for run in runs]
    if baseline is not None and baseline not in ids:
        raise Invalid("The baseline is unknown.", {"baseline": "must be one of the runs"})
    open_runs(link, ids, baseline)
    audit.record(membership, membership.user, "share_link.made", link, name=link.name, days=days, runs=ids)
    return link, secret


def open_runs(link: ShareLink, ids: Sequence[int], baseline: int | None = None) -> None:
    """From now on the link opens these runs of its workspace, in this order, and no other."""
    link.runs.all().delete()
    SharedRun.objects.bulk_create(
        SharedRun(link=link, run_id=run_id, place=place, baseline=run_id == baseline)
        for place, run_id in enumerate(ids)
    )


def made(membership: Membership, shows: str, name: str, days: int | None) -> tuple[ShareLink, str]:
    """A link that opens nothing yet, and its secret. For services that share: they say what it opens and write the entry of the audit log.
    Raises Invalid at `name` or `days`, NotAllowed."""
    membership.workspace.refresh_from_db(fields=["allows_share_links"])
    if not membership.workspace.allows_share_links:
        raise NotAllowed
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise Invalid("A link cannot last that long.", {"days": f"must be between 1 and {MOST_DAYS}, or null"})
    secret = secrets.token_urlsafe(32)
    link = ShareLink.objects.create(
        workspace=membership.workspace,
        shows=shows,
        name=several_lines(name, MAX_NAME, "A link needs a name.", "name"),
        digest=hash_secret(secret),
        created_by=membership.user,
        expires_at=None if days is None else timezone.now() + timedelta(days=days),
    )
    return link, secret


def address(secret: str) -> str:
    return f"{public_url()}/shared/{secret}"


@transaction.atomic
def revoke(membership: Membership, link: ShareLink) -> None:
    """From now on the link opens nothing. Revoking it twice is not an error."""
    if ShareLink.objects.filter(pk=link.pk, withdrawn_at=None).update(withdrawn_at=timezone.now()):
        audit.record(membership, membership.user, "share_link.revoked", link, name=link.name, whose=link.created_by_id)


@transaction.atomic
def note_opened(link: ShareLink) -> None:
    """The first time is an entry of the audit log; after that the minute of the last time is kept."""
    now = timezone.now()
    rows = ShareLink.objects.filter(pk=link.pk)
    if rows.filter(first_opened_at=None).update(first_opened_at=now, last_opened_at=now):
        audit.record(link.workspace, None, "share_link.first_opened", link, name=link.name)
    elif link.last_opened_at is None or now - link.last_opened_at > MINUTE:
        rows.update(last_opened_at=now)
