"""Creates accounts, and links that sign people in once."""

import secrets
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.core.problems import Invalid

from ..addresses import services as addresses
from ..models import Proof, SignInLink, User, hash_secret

LINK_LIFETIME = timedelta(hours=12)


def get_or_create_user(email: str, name: str = "") -> User:
    """The user with this address, for the person who runs the server. A new user has no password and signs in by link until they set one.
    An account that took the address without a proof loses it."""
    known = User.objects.filter(email=email.strip().lower()).exclude(proof=Proof.NONE).first()
    if known:
        return known
    addresses.take(email.strip().lower(), Proof.SERVER)
    return User.objects.create_user(email, name=name, proof=Proof.SERVER)


def sign_up(email: str, name: str, password: str | None, proof: str = Proof.NONE) -> User:
    """Creates an account. Raises Invalid at `email` if the address has an account: its owner signs in instead."""
    email = email.strip().lower()
    try:
        with transaction.atomic():  # the address is unique: if two people sign up at once, the second one gets an error
            return User.objects.create_user(email, password, name, proof)
    except IntegrityError as error:
        raise Invalid(
            "There is an account with this address.",
            {
                "email": "already has an account. If it is yours, sign in, or ask for an invitation to this address: opening it gives you the account"
            },
        ) from error


def create_sign_in_link(user: User) -> str:
    """The secret of a link that signs `user` in once, within LINK_LIFETIME."""
    secret = secrets.token_urlsafe(32)
    SignInLink.objects.create(user=user, digest=hash_secret(secret), expires_at=timezone.now() + LINK_LIFETIME)
    return secret


def claim_sign_in_link(secret: str) -> User | None:
    """Claims the link and returns its person; None for every later, late or wrong attempt.

    The person who runs the server gave the link to the person of the address, so the link verifies that address.
    """
    now = timezone.now()
    link = SignInLink.objects.filter(digest=hash_secret(secret)).select_related("user").first()
    # the update claims the link, not the read: two browsers with the same link must not both get in
    if link and SignInLink.objects.filter(pk=link.pk, used_at=None, expires_at__gt=now).update(used_at=now):
        if not link.user.is_active:
            return None
        addresses.hand_over(link.user)
        return link.user
    return None
