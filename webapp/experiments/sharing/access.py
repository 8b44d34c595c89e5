"""The rules of sharing: which roles may share, and which runs a link opens. Everything that a shared page reads comes from `opened_by`: there is no other way to a run."""

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from webapp.accounts.access import at_least
from webapp.accounts.models import RANK, Membership, hash_secret

from .. import queries as runs_queries
from ..access import WRITER
from ..models import Run, ShareLink
from .models import COMPARISON

SHARER = WRITER
SHARERS = [role for role in RANK if RANK[role] >= RANK[SHARER]]


class NothingShared(Exception):
    """The secret is wrong, or its link is revoked, has expired or is closed. The answer is the same for all of these."""


@dataclass(frozen=True)
class OpenedLink:
    """A link that works, with the runs that are left of it, in their order. `baseline` is the id of one of them, `maker` the membership by
    whose rights it opens."""

    link: ShareLink
    maker: Membership
    runs: list[Run]
    baseline: int | None


def may_share(membership: Membership) -> Membership:
    return at_least(membership, SHARER)


def link_write(membership: Membership, link_id: int) -> ShareLink:
    """A link of the workspace, revoked or not, or 404. People who may share may also revoke the links of others."""
    found = ShareLink.objects.filter(workspace_id=may_share(membership).workspace_id, pk=link_id).first()
    if found is None:
        raise Http404("no such link")
    return found


def opened_by(secret: str) -> OpenedLink:
    """The present content of the link. Raises NothingShared; the same statement runs first for every reason."""
    digest = hash_secret(secret)
    # the index compares digests: how far one fits tells nothing about a secret that would
    link = working().filter(digest=digest).select_related("workspace").first()
    if link is None or not constant_time_compare(link.digest, digest):
        raise NothingShared
    shared = {row.run_id: row for row in link.runs.all()}
    # of the link's own workspace again: a row that names another's run would show nothing
    found = {run.pk: run for run in runs_queries.runs(link.workspace_id).filter(pk__in=shared)}
    runs = [found[row.run_id] for row in sorted(shared.values(), key=lambda row: row.place) if row.run_id in found]
    maker = _maker(link)
    if maker is None or (link.shows == COMPARISON and not runs):
        raise NothingShared
    baseline = next((run.pk for run in runs if shared[run.pk].baseline), None)
    return OpenedLink(link, maker, runs, baseline)


def _maker(link: ShareLink) -> Membership | None:
    held = Membership.objects.select_related("user", "workspace")
    return held.filter(user_id=link.created_by_id, workspace_id=link.workspace_id, role__in=SHARERS).first()


def working() -> "QuerySet[ShareLink]":
    """Links that open: neither revoked nor expired, of a workspace that allows them, made by somebody who may still share there.

    The rights of the maker of a link are looked up each time, as those of a token's owner are.
    """
    lasting = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return ShareLink.objects.filter(lasting, Exists(makers()), withdrawn_at=None, workspace__allows_share_links=True)


def makers() -> "QuerySet[Membership]":
    """Memberships by which the maker of a link may share, in a statement about links."""
    mine = Membership.objects.filter(user=OuterRef("created_by"), workspace=OuterRef("workspace"))
    return mine.filter(role__in=SHARERS, user__is_active=True)
