"""The people of most tests: one workspace with a member of each role, and an outsider with a workspace of their own."""

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model
from django.db.models.fields import AutoFieldMixin
from django.test import Client
from django.utils import timezone
from django.utils.crypto import get_random_string

from webapp.accounts.models import Membership, Proof, Role, SignedIn, User, Workspace
from webapp.accounts.sessions.store import SessionStore
from webapp.accounts.tokens.services import create_token
from webapp.accounts.workspaces.services import create_workspace
from webapp.core.auditing import audit
from webapp.core.database import prepared

Row = TypeVar("Row", bound=Model)
Answered = Any  # the client of tests returns a response with .json(), whose type depends on the view


@dataclass(frozen=True)
class Team:
    """The memberships. `.user` is the person. `outsider` owns another workspace and must not see anything of this one."""

    workspace: Workspace
    owner: Membership
    researcher: Membership
    reviewer: Membership
    annotator: Membership
    outsider: Membership


PEOPLE = {
    "Ada": "ada@example.org",
    "Rosa": "rosa@example.org",
    "Ravi": "ravi@example.org",
    "Anna": "anna@example.org",
    "Otto": "otto@example.net",
}
PASSWORDS = "django.contrib.auth.backends.ModelBackend"
ROLES = (Role.OWNER, Role.RESEARCHER, Role.REVIEWER, Role.ANNOTATOR, Role.OWNER)


SOME_WORKSPACE = f"SELECT 1 FROM {Workspace._meta.db_table} LIMIT 1"  # noqa: S608  a constant


@cache
def unusable_password(email: str) -> str:
    """What `set_unusable_password` draws, which takes as long as to store the row."""
    return make_password(None)


def make_team() -> Team:
    """Makes the team in five statements, because thousands of tests begin with it. The services would need thirty (`made_by_services`)."""
    if prepared.rows(SOME_WORKSPACE, ()):
        return made_by_services()
    users = [
        User(email=email, name=name, proof=Proof.SERVER, password=unusable_password(email))
        for name, email in PEOPLE.items()
    ]
    users[0].is_administrator = True  # of the first workspace
    bulk_insert(users)
    lab, elsewhere = bulk_insert([Workspace(name=name, slug=name.lower()) for name in ("Lab", "Elsewhere")])
    places = (lab, lab, lab, lab, elsewhere)
    members = bulk_insert(
        [
            Membership(user=user, workspace=place, role=role)
            for user, place, role in zip(users, places, ROLES, strict=True)
        ]
    )
    bulk_insert(
        [
            audit._entry(owner.workspace, owner.user, "workspace.created", owner.workspace, {})
            for owner in (members[0], members[-1])
        ]
    )
    users[0].is_administrator = False  # the object that the caller of the service has does not know of it
    return Team(lab, *members)


def bulk_insert(rows: list[Row]) -> list[Row]:
    """Like `bulk_create`, with a prepared statement. Django writes the statement again for each test, which takes longer than to run it."""
    model = type(rows[0])
    values = [
        field.get_db_prep_save(field.pre_save(row, True), connection) for row in rows for field in _stored_fields(model)
    ]
    for row, (key,) in zip(rows, prepared.rows(_statement(model, len(rows)), values), strict=True):
        row.pk = key
        row._state.adding, row._state.db = False, connection.alias
    return rows


@cache
def _stored_fields(model: type[Model]) -> list[Any]:
    """Without the key if the database makes it."""
    return [field for field in model._meta.concrete_fields if not isinstance(field, AutoFieldMixin)]


@cache
def _statement(model: type[Model], count: int) -> str:
    fields = _stored_fields(model)
    columns = ", ".join(f'"{field.column}"' for field in fields)
    row = ", ".join(["%s"] * len(fields))
    # the names come from the model, the values are bound
    return f"""
        INSERT INTO "{model._meta.db_table}" ({columns}) VALUES {", ".join([f"({row})"] * count)}
        RETURNING "{model._meta.pk.column}"
    """  # noqa: S608


def made_by_services() -> Team:
    owner = create_workspace("Lab", User.objects.create_user("ada@example.org", name="Ada", proof=Proof.SERVER))
    people = {
        role.value: Membership.objects.create(
            user=User.objects.create_user(f"{name.lower()}@example.org", name=name, proof=Proof.SERVER),
            workspace=owner.workspace,
            role=role,
        )
        for role, name in ((Role.RESEARCHER, "Rosa"), (Role.REVIEWER, "Ravi"), (Role.ANNOTATOR, "Anna"))
    }
    outsider = create_workspace(
        "Elsewhere", User.objects.create_user("otto@example.net", name="Otto", proof=Proof.SERVER)
    )
    return Team(owner.workspace, owner, outsider=outsider, **people)


def browser(membership: Membership) -> Client:
    """A browser in which this person is signed in and has chosen this workspace. It takes three statements; signing in would take twenty
    (`signed_in_by_django`)."""
    user, now, store = membership.user, timezone.now(), SessionStore()
    key, address = get_random_string(32, VALID_KEY_CHARS), audit.origin.get().address[:45]
    told = {
        SESSION_KEY: str(user.pk),
        BACKEND_SESSION_KEY: PASSWORDS,
        HASH_SESSION_KEY: user.get_session_auth_hash(),
        "workspace": membership.workspace_id,
    }
    row = Session(session_key=key, session_data=store.encode(told), expire_date=store.get_expiry_date())
    bulk_insert([row])
    known = SignedIn(session_key=key, user=user, created_at=now, last_used_at=now, address=address)
    bulk_insert([known])
    User.objects.filter(pk=user.pk).update(last_login=now)
    user.last_login, user.backend = now, PASSWORDS
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    secure = settings.SESSION_COOKIE_SECURE or None
    sent: Any = {
        "max-age": None,
        "path": "/",
        "domain": settings.SESSION_COOKIE_DOMAIN,
        "secure": secure,
        "expires": None,
    }
    client.cookies[settings.SESSION_COOKIE_NAME].update(sent)
    return client


def signed_in_by_django(membership: Membership) -> Client:
    client = Client()
    client.force_login(membership.user, backend=PASSWORDS)
    session = client.session
    session["workspace"] = membership.workspace_id
    session.save()
    return client


class ApiClient:
    """A script with a token: JSON in, JSON out, paths below /api/v1/."""

    def __init__(self, membership: Membership, scope: str = "write") -> None:
        _, secret = create_token(membership, "test", scope)
        self.client = Client(headers={"authorization": f"Bearer {secret}"})

    def get(self, path: str, **query: Any) -> Answered:
        return self.client.get(f"/api/v1{path}", query)

    def post(self, path: str, body: Any = None) -> Answered:
        return self.client.post(f"/api/v1{path}", {} if body is None else body, content_type="application/json")

    def patch(self, path: str, body: Any) -> Answered:
        return self.client.patch(f"/api/v1{path}", body, content_type="application/json")

    def put(self, path: str, body: Any) -> Answered:
        return self.client.put(f"/api/v1{path}", body, content_type="application/json")

    def delete(self, path: str) -> Answered:
        return self.client.delete(f"/api/v1{path}")
