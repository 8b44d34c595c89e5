"""Models that programs log with their runs, and what a run says of its data and models."""

import json

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from webapp.accounts.areas import Right
from webapp.accounts.models import Membership
from webapp.experiments.access import may_read, may_write
from webapp.tracking import access, saved_models, services
from webapp.tracking.models import HIDDEN, SavedModel

from . import model_schemas as m
from . import model_serializers as serializers
from . import saved_search, searching
from . import schemas as b
from .endpoint import MlflowError, by_method, json_response, mlflow_view, read_body
from .views import experiment_id, experiment_of

DATASET = "dataset."  # the beginning of a tag that names a dataset


@mlflow_view("POST", Right.WRITE)
def save(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, m.SaveModel)
    may_write(membership)
    row = access.logged_write(membership, given.source_run_id) if given.source_run_id else None
    where = row.run.experiment if row else experiment_of(membership, given.experiment_id)
    params, tags = ({each.key: each.value for each in found} for found in (given.params, given.tags))
    made = saved_models.save(membership, where, row, name=given.name, kind=given.model_type, params=params, tags=tags)
    return json_response({"model": serializers.saved(made)})


@mlflow_view("GET", Right.READ)
def get(request: HttpRequest, membership: Membership, key: str) -> HttpResponse:
    deleted = request.GET.get("allow_deleted", "").lower() == "true"
    return json_response(
        {"model": serializers.saved(saved_models.get_saved_model(membership, key, write=False, deleted=deleted))}
    )


@mlflow_view("PATCH", Right.WRITE)
def finalize(request: HttpRequest, membership: Membership, key: str) -> HttpResponse:
    state = serializers.STATES[read_body(request, m.FinalizeModel).status]
    found = saved_models.change(saved_models.get_saved_model(membership, key, write=True), state=state)
    return json_response({"model": serializers.saved(found)})


@mlflow_view("DELETE", Right.WRITE)
def delete(request: HttpRequest, membership: Membership, key: str) -> HttpResponse:
    saved_models.delete(membership, saved_models.get_saved_model(membership, key, write=True))
    return json_response()


model = by_method(GET=get, PATCH=finalize, DELETE=delete)


@mlflow_view("POST", Right.WRITE)
def log_params(request: HttpRequest, membership: Membership, key: str) -> HttpResponse:
    params = {each.key: each.value for each in read_body(request, m.ModelParams).params}
    saved_models.change(saved_models.get_saved_model(membership, key, write=True), params=params)
    return json_response()


@mlflow_view("PATCH", Right.WRITE)
def set_tags(request: HttpRequest, membership: Membership, key: str) -> HttpResponse:
    tags = {each.key: each.value for each in read_body(request, m.ModelTags).tags}
    found = saved_models.change(saved_models.get_saved_model(membership, key, write=True), tags=tags)
    return json_response({"model": serializers.saved(found)})


@mlflow_view("DELETE", Right.WRITE)
def delete_tag(request: HttpRequest, membership: Membership, key: str, tag: str) -> HttpResponse:
    found = saved_models.get_saved_model(membership, key, write=True)
    if tag not in found.tags:
        raise MlflowError(f"The model has no tag '{tag[:80]}'.", "RESOURCE_DOES_NOT_EXIST", 404)
    saved_models.change(found, without=[tag])
    return json_response()


@mlflow_view("POST", Right.READ)
def search(request: HttpRequest, membership: Membership) -> HttpResponse:
    """MLflow's client looks for models of a run wherever it lists a run's files."""
    given = read_body(request, m.SearchSaved)
    may_read(membership)
    wanted = [experiment_id(membership, each) for each in given.experiment_ids]
    rows = SavedModel.objects.select_related("row__run__experiment").prefetch_related("metrics__row")
    rows = rows.filter(
        row__run__experiment__workspace_id=membership.workspace_id,
        row__run__experiment_id__in=wanted,
        row__deleted_at=None,
        deleted_at=None,
    )
    found = saved_search.models(rows, given)
    page, more = searching.page(found, b.Search(max_results=given.max_results, page_token=given.page_token))
    return json_response({"models": [serializers.saved(row) for row in page], **more})


@mlflow_view("POST", Right.WRITE)
def log_outputs(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Notes at which step of the run its models were logged."""
    given = read_body(request, m.LogOutputs)
    row = access.logged_write(membership, given.run_id)
    for each in given.models:
        found = saved_models.get_saved_model(membership, each.model_id, write=True)
        if found.row_id != row.pk:
            raise MlflowError(f"Model {each.model_id} is of another run.")
        saved_models.change(found, step=each.step)
    return json_response()


@mlflow_view("POST", Right.WRITE)
def log_inputs(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Names of datasets become tags of the run. Datasets themselves are not sent by the protocol."""
    given = read_body(request, m.LogInputs)
    told = [each.dataset for each in given.datasets]
    tags = {f"{DATASET}{each.name or each.digest}"[:250]: f"{each.digest} {each.source_type}".strip() for each in told}
    services.log(access.logged_write(membership, given.run_id), tags=tags)
    return json_response()


@mlflow_view("POST", Right.WRITE)
def record(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Clients before MLflow 3 note their models so. The newest notes are kept, in the tag that their client reads."""
    given = read_body(request, m.RecordModel)
    row = access.logged_write(membership, given.run_id)
    with transaction.atomic():
        services.locked_run(row)  # two notes at the same moment are both kept
        try:
            notes = [*json.loads(row.tags.get(HIDDEN, "[]")), json.loads(given.model_json)]
        except (ValueError, RecursionError):
            raise MlflowError("model_json: is not JSON") from None
        while len(json.dumps(notes)) > services.LONGEST_TAG:
            notes = notes[1:]
        services.log(row, tags={HIDDEN: json.dumps(notes)})
    return json_response()
