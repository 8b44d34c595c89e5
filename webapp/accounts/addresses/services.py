"""Email addresses of accounts, and what has shown that an address belongs to the person.

A person who follows a project's open link types any address that they like. So an account records what has shown that the address is its
person's (`User.proof`): nothing; an invitation bound to the address, which an owner passed on; a mail to the address; or a link from the
person who runs the server. Invitations and other things bound to an address go only to accounts with a proof. An account loses its address
to a person who shows a stronger proof: the account stays, with an address that nobody has.
"""

import secrets
from datetime import timedelta

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.core.network import mail
from webapp.core.network.addresses import public_url
from webapp.core.problems import Conflict, Invalid

from ..audit_everywhere import record_everywhere
from ..models import AddressCheck, ApiToken, Proof, SignedIn, SignInLink, User, hash_secret
from ..sessions.services import end

CHECK_LIFETIME = timedelta(days=1)
STRENGTH = {Proof.NONE: 0, Proof.INVITATION: 1, Proof.MAIL: 2, Proof.SERVER: 2, Proof.COMPANY: 2}
NOWHERE = "touchstone.invalid"  # RFC 2606: no such domain will ever be
HAS_ACCOUNT = "There is an account with this address. Sign in first."


def wrong(email: str) -> dict[str, str]:
    """Validates an address: problems by field, as `Invalid` takes them. Empty if the address is fine."""
    try:
        validate_email(email)
    except ValidationError:
        return {"email": "is not an e-mail address"}
    return {"email": "has more than 254 characters"} if len(email) > 254 else {}


def must_be_verified(user: User) -> None:
    """Raises Conflict unless the address of the account is verified: rights are given only to people known by their address."""
    if not user.verified:
        raise Conflict(
            f"The address {user.email} is not verified. Invite it: opening the invitation verifies the address.",
            code="not_verified",
        )


def gives_way(holder: User, proof: str) -> bool:
    """Whether the account loses its address to a person who shows `proof`."""
    return STRENGTH[Proof(holder.proof)] < STRENGTH[Proof(proof)]


def placeholder(user: User) -> str:
    """An address that nobody can type first. If somebody could, it would be taken already when its owner comes."""
    return f"unverified-{user.pk}-{secrets.token_hex(4)}@{NOWHERE}"


@transaction.atomic
def take(email: str, proof: str) -> None:
    """Frees `email` for a person who shows `proof`. Raises Conflict if the account that has it has shown as much.

    That account keeps its password, its memberships and its answers, and signs in with the address that its profile shows.
    """
    holder = User.objects.select_for_update().filter(email=email).first()
    if holder is None:
        return
    if not gives_way(holder, proof):
        raise Conflict(HAS_ACCOUNT)
    lose(holder)


@transaction.atomic
def lose(holder: User) -> None:
    """Takes the address away from the account, because it is somebody else's. The account stays, with an address that nobody has."""
    User.objects.filter(pk=holder.pk).update(email=placeholder(holder), proof=Proof.NONE)
    SignInLink.objects.filter(user=holder, used_at=None).update(used_at=timezone.now())
    _record(holder, "address.lost", holder.email)


@transaction.atomic
def prove(user: User, proof: str) -> None:
    """Notes that the person who uses `user` has shown that its address is theirs. A weaker proof does not replace a stronger one."""
    row = User.objects.select_for_update().get(pk=user.pk)
    if STRENGTH[Proof(row.proof)] >= STRENGTH[Proof(proof)]:
        return
    User.objects.filter(pk=user.pk).update(proof=proof)
    user.proof = proof
    _record(user, "address.verified", user.email, by=proof)


@transaction.atomic
def hand_over(user: User, proof: Proof = Proof.SERVER) -> None:
    """Gives the account to the person of its address, at the word of the person who runs the server or of the company's directory. If less
    was shown before, somebody else may have made the account with that address: all their ways in end."""
    if not gives_way(user, proof):
        return
    end_ways_in(user)
    prove(user, proof)


@transaction.atomic
def end_ways_in(user: User) -> None:
    """Ends every way into the account: password, second factors, the company's sign-in, sessions, tokens and sign-in links."""
    user.set_unusable_password()
    user.save(update_fields=["password"])
    Authenticator.objects.filter(user=user).delete()  # otherwise a passkey would still open the account
    SocialAccount.objects.filter(user=user).delete()
    end(SignedIn.objects.filter(user=user))
    ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())
    SignInLink.objects.filter(user=user, used_at=None).update(used_at=timezone.now())


@transaction.atomic
def assign(user: User, email: str, proof: Proof) -> None:
    """Gives another address to a person whom the company's directory knows. Raises Conflict if another account has shown that the address
    is theirs. Links sent to the former address open nothing any more."""
    if user.email == email:
        return
    take(email, proof)
    SignInLink.objects.filter(user=user, used_at=None).update(used_at=timezone.now())
    AddressCheck.objects.filter(user=user).delete()
    User.objects.filter(pk=user.pk).update(email=email, proof=proof)
    user.email, user.proof = email, proof
    _record(user, "address.changed", email)


def change(user: User, email: str) -> None:
    """Changes the address of an account without a proof. Raises Invalid at `email`, Conflict if the address is verified."""
    email = email.strip().lower()
    try:
        with transaction.atomic():  # the address is unique: the second of two requests at once gets an error
            changed = User.objects.filter(pk=user.pk, proof=Proof.NONE).update(email=email)
    except IntegrityError as error:
        raise Invalid("There is an account with this address.", {"email": "has an account already"}) from error
    if not changed:
        raise Conflict("This address is verified, so it cannot be changed in this way.")
    AddressCheck.objects.filter(user=user).delete()
    _record(user, "address.changed", email)


@transaction.atomic
def mail_check(user: User) -> None:
    """Mails a link to the address of the account. Raises NotSent, and Conflict if there is nothing to verify or no mail server."""
    if user.verified:
        raise Conflict("This address is verified already.")
    if not mail.is_configured():
        raise Conflict("This installation sends no mail, so it cannot verify an address by mail.")
    secret = secrets.token_urlsafe(32)
    AddressCheck.objects.filter(user=user).delete()  # the newest link counts
    AddressCheck.objects.create(
        user=user, email=user.email, digest=hash_secret(secret), expires_at=timezone.now() + CHECK_LIFETIME
    )
    mail.send(
        user.email,
        "Is this address yours?",
        "Somebody signed in to Touchstone with this address. If it was you, open this link in the browser in which you are\n"
        f"signed in; it works for a day:\n\n{public_url()}/verify/{secret}\n\nIf it was not you, do nothing.\n",
    )


@transaction.atomic
def check(user: User, secret: str) -> None:
    """Verifies the address by the link that was mailed. Raises Conflict if the link is not for this account and its present address, was
    used or has expired."""
    rows = AddressCheck.objects.filter(digest=hash_secret(secret), user=user, email=user.email)
    if not rows.filter(expires_at__gt=timezone.now()).delete()[0]:
        raise Conflict("This link was used, has expired, or is for another account.")
    prove(user, Proof.MAIL)


def mail_invitation(email: str, into: str, path: str) -> None:
    """Mails an invitation. Raises NotSent."""
    mail.send(
        email,
        f"Invitation to {into}",
        f"You are invited to {into}. The link works once and only for this address:\n\n{public_url()}{path}\n",
    )


def _record(user: User, action: str, email: str, **detail: object) -> None:
    record_everywhere(user, None, action, user, email=email, **detail)
