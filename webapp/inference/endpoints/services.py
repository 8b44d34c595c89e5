"""Writes of endpoints. The key is sealed here; only `targets` opens it again, for the client of a worker."""

from base64 import b64decode
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict, Unpack

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from trainer.judges.chat import EndpointProblem
from trainer.rewards.signing import SECRET_PREFIX
from webapp.accounts.models import Membership
from webapp.core import archiving
from webapp.core.auditing import audit
from webapp.core.encryption import seal
from webapp.core.problems import Invalid
from webapp.core.text.texts import several_lines

from .. import names
from ..models import Endpoint, RegisteredModel
from . import addresses

LONGEST_SECRET = 500
SHORTEST_SIGNING = 16  # bytes
MAX_PRICE = Decimal(100_000)
# smallest and largest; None may stand for "no limit" in those that the model allows to be null
BOUNDS: dict[str, tuple[float, float]] = {
    "concurrency": (1, 1000),
    "requests_per_minute": (1, 1_000_000),
    "timeout_s": (1, 3600),
    "retries": (0, 10),
    "price_prompt": (0, float(MAX_PRICE)),
    "price_completion": (0, float(MAX_PRICE)),
}
OPTIONAL = {"requests_per_minute", "price_prompt", "price_completion"}
FOR_CHAT = {"url", "model", "secret", *BOUNDS}
Kind = Endpoint.Kind
OF_KIND: dict[str, set[str]] = {
    Kind.CHAT: FOR_CHAT,
    Kind.LOCAL: {"registered_model", "price_prompt", "price_completion"},
    Kind.RECORDED: set(),
    Kind.REWARD: {"url", "secret", "concurrency", "requests_per_minute", "timeout_s", "retries"},
}


class Fields(TypedDict, total=False):
    """`registered_model` is the id of a model of the workspace. An empty `secret` stands for none."""

    name: str
    url: str
    model: str
    registered_model: int | None
    secret: str
    concurrency: int
    requests_per_minute: int | None
    timeout_s: float
    retries: int
    price_prompt: Decimal | None
    price_completion: Decimal | None


def create_endpoint(membership: Membership, kind: str, **fields: Unpack[Fields]) -> Endpoint:
    """Raises Invalid at the field."""
    if kind not in Kind.values:
        raise Invalid("The kind is not known.", {"kind": f"must be one of {', '.join(Kind.values)}"})
    endpoint = Endpoint(workspace=membership.workspace, kind=kind, created_by=membership.user)
    needed: Fields = {"name": ""}
    if kind == Kind.CHAT:
        needed |= {"url": "", "model": ""}
    elif kind == Kind.LOCAL:
        needed |= {"registered_model": None}
    elif kind == Kind.REWARD:
        needed |= {"url": ""}
    _fill(endpoint, {**needed, **fields})
    with transaction.atomic():
        _save(endpoint)
        host = endpoint.url and addresses.host(endpoint.url)
        audit.record(
            membership, membership.user, "endpoint.created", endpoint, name=endpoint.name, kind=kind, host=host
        )
    return endpoint


def change_endpoint(membership: Membership, endpoint: Endpoint, **fields: Unpack[Fields]) -> None:
    """Changes the fields that are given. Raises Invalid at the field.

    A key is sent only to the host that it was given for: with another host it must be entered again. Once verdicts rest on the
    endpoint, it keeps its model.
    """
    with transaction.atomic():
        Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
        endpoint.refresh_from_db()
        before = {name: getattr(endpoint, name) for name in ("url", "model", "registered_model_id", "secret")}
        _fill(endpoint, fields)
        _keep_the_model(endpoint, before)
        if before["secret"] and "secret" not in fields and not addresses.same_origin(before["url"], endpoint.url):
            raise Invalid("Enter the key again.", {"secret": "the address has another host: enter its key, or none"})
        if (before["url"], before["model"]) != (endpoint.url, endpoint.model):
            endpoint.capabilities = {}  # the probe looked at another address or model
        _save(endpoint)
        audit.record(membership, membership.user, "endpoint.changed", endpoint, changed=sorted(fields))


def _keep_the_model(endpoint: Endpoint, before: dict[str, Any]) -> None:
    if endpoint.first_used_at is None:
        return
    reason = "verdicts depend on this model; create another endpoint for another model"
    if endpoint.model != before["model"]:
        raise Invalid("The model of an endpoint cannot change.", {"model": reason})
    if endpoint.registered_model_id != before["registered_model_id"]:
        raise Invalid("The model of an endpoint cannot change.", {"registered_model": reason})


def _fill(endpoint: Endpoint, fields: Fields) -> None:
    strange = {name: "" for name in fields if name != "name" and name not in OF_KIND[endpoint.kind]}
    wrong = dict.fromkeys(strange, f"does not belong to an endpoint of kind {endpoint.kind}")
    for name, value in fields.items():
        if name in wrong:
            continue
        try:
            setattr(endpoint, name, _checked(endpoint, name, value))
        except Invalid as problem:
            wrong |= problem.fields
    if wrong:
        raise Invalid("The endpoint cannot be saved like this.", wrong)


def _checked(endpoint: Endpoint, name: str, value: Any) -> Any:
    if name == "name":
        return names.checked(value, "endpoint")
    if name == "url":
        return addresses.posted_to(value) if endpoint.kind == Kind.REWARD else addresses.checked(value)
    if name == "secret":
        return _sealed(_signing(value) if endpoint.kind == Kind.REWARD else value)
    if name == "registered_model":
        return _registered(endpoint, value)
    if name == "model":
        return several_lines(value, 200, "Choose a model.", name)
    return _number(name, value)


def _number(name: str, value: float | None) -> float | None:
    least, most = BOUNDS[name]
    if value is None and name in OPTIONAL:
        return None
    if value is None or not least <= value <= most:  # also refuses nan
        raise Invalid("A number is missing, too small or too large.", {name: f"must be between {least:g} and {most:g}"})
    return value


def _signing(secret: str) -> str:
    """The secret without blanks around it, if it can make signatures of Standard Webhooks; an empty one stands for none."""
    secret = secret.strip()
    if not secret:
        return ""
    try:
        raw = b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError as error:
        reason = "must be Base64, with or without whsec_ before it; `openssl rand -base64 32` makes one"
        raise Invalid("The secret cannot be used.", {"secret": reason}) from error
    if len(raw) < SHORTEST_SIGNING:
        raise Invalid("The secret is too short.", {"secret": f"must decode to at least {SHORTEST_SIGNING} bytes"})
    return secret


def _sealed(secret: str) -> str:
    secret = secret.strip()
    if not secret:
        return ""
    if len(secret) > LONGEST_SECRET or not (secret.isascii() and secret.isprintable()) or " " in secret:
        reason = f"must be at most {LONGEST_SECRET} ASCII characters without blanks, because it is sent in a header"
        raise Invalid("The key cannot be used.", {"secret": reason})
    return seal(secret)


def _registered(endpoint: Endpoint, model_id: int | None) -> RegisteredModel:
    found = RegisteredModel.objects.filter(workspace=endpoint.workspace, id=model_id).first() if model_id else None
    if found is None:
        raise Invalid("Choose a model.", {"registered_model": "must be a model of this workspace"})
    if found.head != RegisteredModel.Head.LM:
        raise Invalid(
            "Choose a model.", {"registered_model": f"{found.name} scores texts and cannot answer a judge's questions"}
        )
    return found


def _save(endpoint: Endpoint) -> None:
    try:
        with transaction.atomic():
            endpoint.save()
    except IntegrityError as error:
        raise Invalid("The name is taken.", {"name": "another endpoint of this workspace has it"}) from error


def archive(membership: Membership, endpoint: Endpoint) -> None:
    """Takes the endpoint off the list. Its verdicts stay, and so do the judges that ask it."""
    archiving.archive(membership, endpoint, "endpoint")


def restore(membership: Membership, endpoint: Endpoint) -> None:
    """Puts an archived endpoint back on the list."""
    archiving.restore(membership, endpoint, "endpoint")


def mark_used(endpoint: Endpoint) -> None:
    """Called before the first verdict is stored: from now on the endpoint keeps its model."""
    if endpoint.first_used_at is None:
        endpoint.first_used_at = timezone.now()
        Endpoint.objects.filter(pk=endpoint.pk, first_used_at=None).update(first_used_at=endpoint.first_used_at)


def note_troubles(endpoint: Endpoint, problems: Iterable[EndpointProblem], at: datetime | None = None) -> None:
    """Counts the problems in which calls ended, for the endpoint's page. Workers call it now and then with the newest problems."""
    found: dict[str, tuple[int, str]] = {}
    for problem in problems:
        if problem.code != "budget":  # a limit that somebody has set is not a problem of the endpoint
            found[problem.code] = (found.get(problem.code, (0, ""))[0] + 1, problem.message[:1000])
    rows = [(endpoint.pk, code, count, said, at or timezone.now()) for code, (count, said) in sorted(found.items())]
    with connection.cursor() as cursor:
        cursor.executemany(
            """
            INSERT INTO inference_endpointtrouble AS old (endpoint_id, code, count, message, last_at)
            VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (endpoint_id, code) DO UPDATE
            SET count = old.count + EXCLUDED.count, message = EXCLUDED.message, last_at = EXCLUDED.last_at
            """,
            rows,
        )
