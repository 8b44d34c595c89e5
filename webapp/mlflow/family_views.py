"""MLflow's registered models and their versions."""

import re
from collections import defaultdict
from collections.abc import Sequence

from django.http import Http404, HttpRequest, HttpResponse

from webapp.accounts.areas import Right
from webapp.accounts.models import Membership
from webapp.experiments.access import may_read
from webapp.tracking import access, families, saved_models
from webapp.tracking.families import VersionFiles
from webapp.tracking.models import FamilyVersion, ModelFamily

from . import model_schemas as m
from . import model_serializers as serializers
from . import schemas as b
from . import searching
from .endpoint import MlflowError, by_method, json_response, mlflow_view, read_body, read_query

SAVED = re.compile(r"models:/(m-[0-9a-f]{32})(?:/(.*))?")
VERSION = re.compile(r"models:/([^/@]+)/(\d+)")
OF_RUN = re.compile(r"runs:/([^/]+)(?:/(.*))?")
IN_RUN = re.compile(r"mlflow-artifacts:/+(?:[^/]+/)?([0-9a-f]{32})/artifacts(?:/(.*))?")
OF_SAVED = re.compile(r"mlflow-artifacts:/+(?:[^/]+/)?models/(m-[0-9a-f]{32})/artifacts(?:/(.*))?")


@mlflow_view("POST", Right.WRITE)
def make(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.MakeFamily)
    try:
        made = families.make(membership, given.name, given.description, {each.key: each.value for each in given.tags})
    except families.Taken as error:
        raise MlflowError(error.message, "RESOURCE_ALREADY_EXISTS") from None
    return json_response({"registered_model": serializers.family(made, [])})


@mlflow_view("POST", Right.WRITE)
def rename(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.RenameFamily)
    try:
        found = families.rename(membership, families.family(membership, given.name, write=True), given.new_name)
    except families.Taken as error:
        raise MlflowError(error.message, "RESOURCE_ALREADY_EXISTS") from None
    return json_response({"registered_model": _family(found)})


@mlflow_view("PATCH", Right.WRITE)
def describe(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.DescribeFamily)
    found = families.family(membership, given.name, write=True)
    families.describe(found, description=given.description)
    return json_response({"registered_model": _family(found)})


@mlflow_view("DELETE", Right.WRITE)
def delete(request: HttpRequest, membership: Membership) -> HttpResponse:
    families.delete(membership, families.family(membership, read_body(request, m.OfFamily).name, write=True))
    return json_response()


@mlflow_view("GET", Right.READ)
def get(request: HttpRequest, membership: Membership) -> HttpResponse:
    return json_response(
        {"registered_model": _family(families.family(membership, read_query(request, m.OfFamily).name, write=False))}
    )


@mlflow_view("GET", Right.READ)
def search(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_query(request, b.Search)
    rows = ModelFamily.objects.filter(workspace_id=may_read(membership).workspace_id)
    page, more = searching.page(searching.models(rows, given.filter, given.order_by, searching.FAMILIES), given)
    newest: dict[int, list[FamilyVersion]] = defaultdict(list)
    for each in _newest(page):
        newest[each.family_id].append(each)
    return json_response({"registered_models": [serializers.family(row, newest[row.pk]) for row in page], **more})


def _latest(membership: Membership, given: m.LatestVersions) -> HttpResponse:
    found = families.family(membership, given.name, write=False)
    rows = [row for row in _newest([found]) if not given.stages or row.stage in given.stages]
    return json_response({"model_versions": [serializers.version(row) for row in rows]})


@mlflow_view("POST", Right.READ)
def post_latest(request: HttpRequest, membership: Membership) -> HttpResponse:
    return _latest(membership, read_body(request, m.LatestVersions))


@mlflow_view("GET", Right.READ)
def get_latest(request: HttpRequest, membership: Membership) -> HttpResponse:
    return _latest(membership, read_query(request, m.LatestVersions))


latest = by_method(GET=get_latest, POST=post_latest)


def _family(found: ModelFamily) -> dict[str, object]:
    return serializers.family(found, _newest([found]))


def _newest(found: Sequence[ModelFamily]) -> list[FamilyVersion]:
    """The newest version of each stage of each family. One query."""
    rows = FamilyVersion.objects.select_related("family", "row__run", "saved", "model").filter(family__in=found)
    return list(rows.order_by("family_id", "stage", "-number").distinct("family_id", "stage"))


@mlflow_view("POST", Right.WRITE)
def set_tag(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.TagFamily)
    families.describe(families.family(membership, given.name, write=True), tags={given.key: given.value})
    return json_response()


@mlflow_view("DELETE", Right.WRITE)
def delete_tag(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.UntagFamily)
    families.describe(families.family(membership, given.name, write=True), without=[given.key])
    return json_response()


@mlflow_view("POST", Right.WRITE)
def set_alias(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.PointAlias)
    found = families.version(membership, given.name, given.version, write=True)
    families.point(membership, found.family, given.alias, found.number)
    return json_response()


@mlflow_view("DELETE", Right.WRITE)
def delete_alias(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.OfAlias)
    families.point(membership, families.family(membership, given.name, write=True), given.alias, None)
    return json_response()


@mlflow_view("GET", Right.READ)
def get_alias(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_query(request, m.OfAlias)
    number = families.family(membership, given.name, write=False).aliases.get(given.alias)
    if number is None:
        raise MlflowError(f"Registered model alias {given.alias} not found.", "RESOURCE_DOES_NOT_EXIST", 404)
    return json_response(
        {"model_version": serializers.version(families.version(membership, given.name, str(number), write=False))}
    )


alias = by_method(GET=get_alias, POST=set_alias, DELETE=delete_alias)


@mlflow_view("POST", Right.WRITE)
def make_version(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.MakeVersion)
    found, tags = families.family(membership, given.name, write=True), {each.key: each.value for each in given.tags}
    place = _files(membership, given.source)
    made = families.add(membership, found, place, source=given.source, description=given.description, tags=tags)
    return json_response(
        {"model_version": serializers.version(families.versions(membership.workspace_id).get(pk=made.pk))}
    )


def _files(membership: Membership, source: str) -> VersionFiles:
    """The files that a source names. Raises Refused, Http404."""
    if found := SAVED.fullmatch(source) or OF_SAVED.fullmatch(source):
        saved = saved_models.get_saved_model(membership, found[1], write=True)
        return VersionFiles(saved.row, "/".join(filter(None, (saved.folder, found[2]))).rstrip("/"), saved)
    if found := OF_RUN.fullmatch(source) or IN_RUN.fullmatch(source):
        return VersionFiles(access.logged_write(membership, found[1]), (found[2] or "").strip("/"))
    if found := VERSION.fullmatch(source):
        other = families.version(membership, found[1], found[2], write=True)
        if other.row is None:
            raise MlflowError("source: the files of that version are deleted")
        return VersionFiles(access.logged_write(membership, other.row.key), other.path, other.saved)
    raise MlflowError(
        "source: names no files here. A version is made of files of a logged run: log the model first, then register it as "
        "runs:/RUN/PATH or models:/MODEL_ID"
    )


@mlflow_view("PATCH", Right.WRITE)
def describe_version(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.DescribeVersion)
    found = families.version(membership, given.name, given.version, write=True)
    families.describe(found, description=given.description)
    return json_response({"model_version": serializers.version(found)})


@mlflow_view("POST", Right.WRITE)
def move_version(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.MoveVersion)
    found = families.version(membership, given.name, given.version, write=True)
    alone = given.archive_existing_versions and given.stage in ("Staging", "Production")
    families.move(membership, found, given.stage, alone=alone)
    return json_response({"model_version": serializers.version(found)})


@mlflow_view("DELETE", Right.WRITE)
def delete_version(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.OfVersion)
    families.delete_version(membership, families.version(membership, given.name, given.version, write=True))
    return json_response()


@mlflow_view("GET", Right.READ)
def get_version(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_query(request, m.OfVersion)
    return json_response(
        {"model_version": serializers.version(families.version(membership, given.name, given.version, write=False))}
    )


@mlflow_view("GET", Right.READ)
def search_versions(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_query(request, b.Search)
    rows = families.versions(may_read(membership).workspace_id)
    page, more = searching.page(searching.models(rows, given.filter, given.order_by, searching.VERSIONS), given)
    return json_response({"model_versions": [serializers.version(row) for row in page], **more})


@mlflow_view("GET", Right.READ)
def download_uri(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_query(request, m.OfVersion)
    found = families.version(membership, given.name, given.version, write=False)
    if found.row is None:
        raise Http404("its run is deleted")
    return json_response({"artifact_uri": serializers.place(found.row, found.path, found.saved)})


@mlflow_view("POST", Right.WRITE)
def set_version_tag(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.TagVersion)
    found = families.version(membership, given.name, given.version, write=True)
    families.describe(found, tags={given.key: given.value})
    return json_response()


@mlflow_view("DELETE", Right.WRITE)
def delete_version_tag(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.UntagVersion)
    families.describe(families.version(membership, given.name, given.version, write=True), without=[given.key])
    return json_response()
