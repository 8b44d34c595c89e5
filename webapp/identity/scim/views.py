"""The service of RFC 7644 below /scim/v2."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from scim2_models import (
    Context,
    ForbiddenException,
    InvalidValueException,
    ListResponse,
    NotFoundException,
    NotImplementedException,
    PatchOp,
    Resource,
    ResponseParameters,
)

from webapp.identity.models import Directory, DirectoryGroup, DirectoryPerson

from . import filters, groups, people, resources, versions
from .endpoint import json_body, scim_response, scim_view

Row = TypeVar("Row", DirectoryPerson, DirectoryGroup)
Kept = TypeVar("Kept", resources.User, resources.Group)


@dataclass(frozen=True)
class Kind(Generic[Row, Kept]):
    """The differences between people and groups."""

    model: type[Kept]
    rows: Callable[[Directory], QuerySet[Row]]
    shown: Callable[[Row, str], Kept]
    create: Callable[[Directory, Kept], Row]
    change: Callable[[Directory, UUID, str, versions.Altered[Kept]], Row]
    delete: Callable[[Directory, UUID, str], None]
    filters: Mapping[str, filters.Condition]
    complete: Callable[[dict[str, Any], Kept | None], dict[str, Any]]
    others: str  # the attribute that lists resources of the other kind
    with_others: Callable[[QuerySet[Row]], QuerySet[Row]]
    with_nobody: Callable[[QuerySet[Row]], QuerySet[Row]]  # for answers without `others`


PEOPLE = Kind(
    resources.User,
    people.known,
    people.shown,
    people.create,
    people.change,
    people.delete,
    filters.PEOPLE,
    people.complete,
    "groups",
    lambda rows: rows.prefetch_related("groups"),
    lambda rows: rows.prefetch_related(Prefetch("groups", DirectoryGroup.objects.none())),
)
GROUPS = Kind(
    resources.Group,
    groups.known,
    groups.shown,
    groups.create,
    groups.change,
    groups.delete,
    filters.GROUPS,
    lambda payload, former: payload,
    "members",
    lambda rows: rows.prefetch_related(Prefetch("people", DirectoryPerson.objects.only("key").order_by("pk"))),
    lambda rows: rows.prefetch_related(Prefetch("people", DirectoryPerson.objects.none())),
)


@scim_view
def listed(request: HttpRequest, directory: Directory, kind: Kind[Row, Kept]) -> HttpResponse:
    """GET: a page of what the filter finds; POST: a new one."""
    if request.method == "POST":
        payload = kind.complete(json_body(request), None)
        made = kind.model.model_validate(payload, scim_ctx=Context.RESOURCE_CREATION_REQUEST)
        return _one(request, kind, _again(kind, directory, kind.create(directory, made)), 201)
    if request.method != "GET":
        return _wrong_method("GET, POST")
    wanted = _attributes(request)
    rows = kind.rows(directory)
    if text := request.GET.get("filter", ""):
        rows = rows.filter(filters.condition(text, kind.filters)).distinct()
    start, count = (
        max(1, _number(request, "startIndex", 1)),
        min(resources.MOST, max(0, _number(request, "count", resources.PAGE))),
    )
    shown_rows = _for_answer(kind, rows, wanted).order_by("pk")[start - 1 : start - 1 + count]
    found = [kind.shown(row, _root(request)) for row in shown_rows]
    return _list(found, rows.count(), start, wanted)


@scim_view
def one(request: HttpRequest, directory: Directory, kind: Kind[Row, Kept], key: str) -> HttpResponse:
    expected = request.headers.get("If-Match", "")
    if request.method == "DELETE":
        kind.delete(directory, _key(key), expected)
        return HttpResponse(status=204)
    if request.method in ("PUT", "PATCH"):
        change = (_replaced if request.method == "PUT" else _patched)(kind, json_body(request))
        return _one(request, kind, _again(kind, directory, kind.change(directory, _key(key), expected, change)))
    if request.method != "GET":
        return _wrong_method("GET, PUT, PATCH, DELETE")
    wanted = _attributes(request)
    row = _for_answer(kind, kind.rows(directory), wanted).filter(key=_key(key)).first()
    if row is None:
        raise NotFoundException(detail="There is no such resource.")
    if versions.named(request.headers.get("If-None-Match", ""), row.version):
        return HttpResponse(status=304)
    return _one(request, kind, row)


@scim_view
def described(request: HttpRequest, directory: Directory, what: str, key: str = "") -> HttpResponse:
    """The abilities of the service, and the schemas of its resources."""
    if request.method != "GET":
        return _wrong_method("GET")
    if "filter" in request.GET:  # RFC 7644, 4
        raise ForbiddenException(detail="Descriptions of the service are not filtered.")
    if what == "ServiceProviderConfig":
        return scim_response(resources.config().model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))
    found: list[Resource[Any]] = [*(resources.schemas() if what == "Schemas" else resources.resource_types())]
    if not key:
        return _list(found, len(found), 1, None)
    chosen = next((each for each in found if (each.id or "").lower() == key.lower()), None)
    if chosen is None:
        raise NotFoundException(detail="There is no such description.")
    return scim_response(chosen.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))


@scim_view
def nothing(request: HttpRequest, directory: Directory, rest: str = "") -> HttpResponse:
    if rest.split("/")[-1] in (".search", "Bulk", "Me"):
        raise NotImplementedException(detail="This service has no such operation: see ServiceProviderConfig.")
    raise NotFoundException(detail="There is no such address.")


def _replaced(kind: Kind[Row, Kept], payload: dict[str, Any]) -> versions.Altered[Kept]:
    def altered(former: Kept) -> Kept:
        whole = kind.complete(payload, former)
        made = kind.model.model_validate(whole, scim_ctx=Context.RESOURCE_REPLACEMENT_REQUEST)
        made.replace(former)
        return made

    return altered


def _patched(kind: Kind[Row, Kept], payload: dict[str, Any]) -> versions.Altered[Kept]:
    for operation in _operations(payload):
        if str(operation.get("op", "")).lower() == "remove" and isinstance(operation.get("value"), list):
            # Entra names who is to be removed with a reference of null, which is nobody's
            operation["value"] = [_by_value(each) for each in operation["value"]]
    patch: Any = PatchOp[kind.model].model_validate(  # type: ignore[name-defined]
        payload, scim_ctx=Context.RESOURCE_PATCH_REQUEST
    )

    def altered(former: Kept) -> Kept:
        patch.patch(former)
        return former

    return altered


def _operations(payload: dict[str, Any]) -> list[dict[str, Any]]:
    found = next((value for name, value in payload.items() if name.lower() == "operations"), None)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _by_value(entry: Any) -> Any:
    return {"value": entry["value"]} if isinstance(entry, dict) and entry.get("value") else entry


def _again(kind: Kind[Row, Kept], directory: Directory, row: Row) -> Row:
    """The row with what the answer shows of others, read after the change."""
    return kind.with_others(kind.rows(directory)).get(pk=row.pk)


def _for_answer(kind: Kind[Row, Kept], rows: QuerySet[Row], wanted: ResponseParameters[Any] | None) -> QuerySet[Row]:
    """Rows with what the answer shows of others: directories ask for groups without their members."""
    asked, left_out = (_names(wanted.attributes), _names(wanted.excluded_attributes)) if wanted else ([], [])
    without = kind.others in left_out or bool(asked and not any(each.startswith(kind.others) for each in asked))
    return kind.with_nobody(rows) if without else kind.with_others(rows)


def _names(paths: list[Any] | None) -> list[str]:
    return [str(path).rsplit(":", 1)[-1].lower() for path in paths or ()]


def _one(request: HttpRequest, kind: Kind[Row, Kept], row: Row, status: int = 200) -> HttpResponse:
    resource = kind.shown(row, _root(request))
    body = resource.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=_attributes(request))
    where = resource.meta.location if resource.meta else ""
    return scim_response(body, status, f'W/"{row.version}"', (where or "") if status == 201 else "")


def _list(found: list[Any], total: int, start: int, wanted: ResponseParameters[Any] | None) -> HttpResponse:
    body = {
        "schemas": [str(ListResponse.__schema__)],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": len(found),
        "Resources": [
            each.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=wanted) for each in found
        ],
    }
    return scim_response(body)


def _attributes(request: HttpRequest) -> ResponseParameters[Any] | None:
    """The attributes of the response; None: all."""
    names = {"attributes": "attributes", "excludedAttributes": "excluded_attributes"}
    asked = {ours: request.GET[theirs] for theirs, ours in names.items() if theirs in request.GET}
    return ResponseParameters[Any].model_validate(asked) if asked else None


def _number(request: HttpRequest, name: str, default: int) -> int:
    text = request.GET.get(name, "")
    try:
        return max(-1, min(int(text), 10**9)) if text else default
    except ValueError as error:
        raise InvalidValueException(detail=f"{name} is a whole number.") from error


def _key(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFoundException(detail="There is no such resource.") from error


def _root(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("scim_users")).removesuffix("/Users")


def _wrong_method(allowed: str) -> HttpResponse:
    answer = HttpResponse(status=405)
    answer["Allow"] = allowed
    return answer
