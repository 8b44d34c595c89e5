"""Tokens of scripts for a workspace. A secret is returned once, when the token is made; only its digest is stored."""

from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from webapp.core.auditing import audit
from webapp.core.problems import Invalid
from webapp.core.text.texts import several_lines

from .. import areas
from ..models import ApiToken, Membership, hash_secret

TOKEN_DAYS = 90  # the default
LONGEST_TOKEN_DAYS = 3650


@transaction.atomic
def create_token(
    membership: Membership,
    name: str,
    scope: str = areas.Right.WRITE,
    days: int | None = TOKEN_DAYS,
    rights: Mapping[str, str] | None = None,
) -> tuple[ApiToken, str]:
    """Creates a token for the membership's workspace, and returns it with its secret, which cannot be read again.

    `rights`: {area: "read" or "write"}; None: `scope` in all areas. The token opens nothing after this many `days`; None: until somebody
    revokes it. Raises Invalid at `scope`, `areas`, `days` or `name`.
    """
    given = areas.rights_in_all_areas(scope) if rights is None else areas.checked(rights)
    if days is not None and not 1 <= days <= LONGEST_TOKEN_DAYS:
        raise Invalid("A token cannot last that long.", {"days": f"must be between 1 and {LONGEST_TOKEN_DAYS}"})
    name = several_lines(name, 80, "A token needs a name.", "name")
    secret = ApiToken.new_secret()
    token = ApiToken.objects.create(
        user=membership.user,
        workspace=membership.workspace,
        name=name,
        areas=given,
        prefix=secret[:9],
        digest=hash_secret(secret),
        expires_at=None if days is None else timezone.now() + timedelta(days=days),
    )
    audit.record(membership, membership.user, "token.created", token, name=token.name, areas=given, days=days)
    return token, secret


@transaction.atomic
def revoke_token(membership: Membership, token: ApiToken) -> None:
    """Revokes the token: it opens nothing from now on. Revoking it twice is not an error."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record(membership, membership.user, "token.revoked", token, name=token.name, whose=token.user_id)


def touch_token(token: ApiToken) -> None:
    """Notes to the minute when and from which network address the token was used: one write a minute, not one a request."""
    now, address = timezone.now(), audit.origin.get().address[:45]
    if token.last_used_at is None or now - token.last_used_at > timedelta(minutes=1):
        fields = {"last_used_at": now, **({"last_used_from": address} if address else {})}
        ApiToken.objects.filter(pk=token.pk).update(**fields)
