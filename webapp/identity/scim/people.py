"""The people of a directory: each has an account, which follows the directory's data."""

from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from scim2_models import (
    Context,
    GroupMembership,
    InvalidValueException,
    Meta,
    NotFoundException,
    Reference,
    UniquenessException,
)

from webapp.accounts.addresses import services as addresses
from webapp.accounts.administration import closing
from webapp.accounts.models import Membership, Proof
from webapp.accounts.models import User as Account
from webapp.identity import groups
from webapp.identity.models import Directory, DirectoryPerson

from .resources import POLICY, User, fold
from .versions import Altered, checked

LARGEST = 20_000  # characters of what is kept of a person
TAKEN = "Somebody else has this address or userName."
ELSEWHERE = (
    "The account of this person or address belongs to more than this directory may change. Ask an administrator."
)


def known(directory: Directory) -> QuerySet[DirectoryPerson]:
    return DirectoryPerson.objects.filter(directory=directory, deleted_at=None).select_related("user", "directory")


def shown(person: DirectoryPerson, root: str) -> User:
    """The resource; `root` is the address of the service. `groups` comes from what is prefetched."""
    resource = User.model_validate(person.document | {"active": person.user.is_active}, scim_policy=POLICY)
    resource.id = str(person.key)
    resource.groups = [
        GroupMembership(
            value=str(each.key), ref=Reference(f"{root}/Groups/{each.key}"), display=each.name, type="direct"
        )
        for each in person.groups.all()
    ] or None
    resource.meta = Meta(
        resource_type="User",
        created=person.created_at,
        last_modified=person.changed_at,
        location=f"{root}/Users/{person.key}",
        version=f'W/"{person.version}"',
    )
    return resource


def complete(payload: dict[str, Any], former: User | None) -> dict[str, Any]:
    """Adds what many directories leave out: a new account is active, another stays as it was; a userName that is an address is also the
    address."""
    said = {key.lower(): value for key, value in payload.items()}
    payload = {key: value for key, value in payload.items() if key.lower() not in ("emails", "active")}
    emails, called = said.get("emails"), said.get("username")
    if isinstance(emails, list):
        emails = [each for each in emails if not isinstance(each, dict) or each.get("value")]
    if not emails and isinstance(called, str) and not addresses.wrong(called.strip()):
        emails = [{"value": called.strip(), "type": "work", "primary": True}]
    active = said["active"] if said.get("active") is not None else former is None or former.active
    return payload | {"emails": emails, "active": active}


@transaction.atomic
def create(directory: Directory, resource: User) -> DirectoryPerson:
    """The person with their account: a new one; the one that the directory had closed for the same person, without its former
    ways in; or one whose address is known to be theirs. Raises UniquenessException if address or userName are somebody else's."""
    email = address(resource)
    row = DirectoryPerson.objects.select_for_update(of=("self",)).filter(user__email=email).first()
    if row is not None and (row.directory_id != directory.pk or row.deleted_at is None):
        raise UniquenessException(detail=TAKEN)
    _guard(directory, Q(email=email))
    if row is not None:
        addresses.end_ways_in(row.user)
        if not _same(row, resource):  # companies give the address of who has left to somebody else
            addresses.lose(row.user)
            row = None
    if row is None:
        row = DirectoryPerson(directory=directory, user=_account(directory, email, name(resource)))
    row.key, row.deleted_at, row.version = uuid4(), None, 0
    row.created_at = timezone.now()
    return _kept(row, resource)


@transaction.atomic
def change(directory: Directory, key: UUID, expected: str, altered: Altered[User]) -> DirectoryPerson:
    """The person as `altered` leaves them, if they are still at the version `expected` (empty: at any)."""
    person = known(directory).select_for_update(of=("self",)).filter(key=key).first()
    if person is None:
        raise NotFoundException(detail="There is no such person.")
    checked(expected, person.version)
    after = altered(shown(person, ""))
    if _document(after) == person.document:
        return person
    _guard(directory, Q(pk=person.user_id) | Q(email=address(after)))
    return _kept(person, after)


@transaction.atomic
def delete(directory: Directory, key: UUID, expected: str) -> None:
    """Closes the account. What the person did stays; the directory may bring them back."""
    person = known(directory).select_for_update(of=("self",)).filter(key=key).first()
    if person is None:
        raise NotFoundException(detail="There is no such person.")
    checked(expected, person.version)
    _guard(directory, Q(pk=person.user_id))
    closing.close(person.user, by=directory.name)
    person.groups.clear()
    groups.follow_directory(person)
    person.deleted_at = timezone.now()
    person.save(update_fields=["deleted_at", "changed_at"])


def address(resource: User) -> str:
    """The address that is marked as primary, else the first."""
    emails = [each for each in resource.emails or [] if each.value]
    first = next((each for each in emails if each.primary), emails[0] if emails else None)
    if first is None or not first.value or addresses.wrong(first.value.strip().lower()):
        raise InvalidValueException(detail="emails: a person needs an e-mail address.")
    return first.value.strip().lower()


def name(resource: User) -> str:
    of = resource.name
    parts = [part for part in (of.given_name, of.family_name) if part] if of else []
    return (resource.display_name or (of and of.formatted) or " ".join(parts)).strip()[:120]


def _guard(directory: Directory, which: Q) -> None:
    """Raises UniquenessException if one of the accounts `which` is an administrator's, or belongs to workspaces in which
    the directory does not count. An address that nothing has proven keeps nobody from their own.

    Locks the accounts, so that nobody lets them in elsewhere meanwhile, and all administrators with them, in the order in which
    closing an account does."""
    if directory.everywhere:
        return
    administrators = Q(is_administrator=True, is_active=True)
    list(Account.objects.filter(which | administrators).order_by("pk").select_for_update().values_list("pk", flat=True))
    concerned = Account.objects.filter(which)
    members = Membership.objects.filter(user__in=concerned.exclude(proof=Proof.NONE))
    if concerned.filter(is_administrator=True).exists() or members.exclude(workspace__in=directory.reach()).exists():
        raise UniquenessException(detail=ELSEWHERE)


def _same(former: DirectoryPerson, resource: User) -> bool:
    """Whether the directory means the person whom it deleted: it names them as before."""
    if former.external_id and resource.external_id:
        return former.external_id == resource.external_id
    return former.user_name == fold((resource.user_name or "").strip())


def _account(directory: Directory, email: str, called: str) -> Account:
    account = Account.objects.select_for_update().filter(email=email).first()
    if account is None or not account.verified:
        addresses.take(email, Proof.COMPANY)  # the person who typed it first keeps their data, under no address
        return Account.objects.create_user(email, name=called, proof=Proof.COMPANY)
    if not account.is_active:
        raise UniquenessException(detail=TAKEN)
    addresses.hand_over(account, Proof.COMPANY)
    return account


def _kept(person: DirectoryPerson, resource: User) -> DirectoryPerson:
    """Writes what the resource says to the row and to the account."""
    user_name, external_id = fold((resource.user_name or "").strip()), resource.external_id or ""
    named = [fold((each.value or "").strip()) for each in resource.emails or []]
    if not user_name or any(len(text) > 254 for text in (user_name, external_id, *named)):
        raise InvalidValueException(detail="userName, externalId and addresses have 1 to 254 characters.")
    if known(person.directory).filter(user_name=user_name).exclude(pk=person.pk).exists():
        raise UniquenessException(detail=TAKEN)
    # before anything else of accounts is locked: closing locks those of all administrators
    (closing.reopen if resource.active else closing.close)(person.user, by=person.directory.name)
    addresses.assign(person.user, address(resource), Proof.COMPANY)
    Account.objects.filter(pk=person.user_id).update(name=name(resource))
    person.user_name, person.external_id = user_name, external_id
    person.emails = named
    person.document = _document(resource)
    person.version += 1
    person.save()
    groups.follow_directory(person)
    return person


def _document(resource: User) -> dict[str, Any]:
    document: dict[str, Any] = resource.model_dump(scim_ctx=Context.RESOURCE_REPLACEMENT_REQUEST)
    if len(str(document)) > LARGEST:
        raise InvalidValueException(detail=f"A person has at most {LARGEST} characters.")
    return document
