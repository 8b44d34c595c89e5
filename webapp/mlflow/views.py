"""Experiments, runs, metrics, params and tags of MLflow's REST protocol, version 2.0."""

from collections.abc import Iterable

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from webapp.accounts.areas import Right
from webapp.accounts.models import Membership
from webapp.core.problems import Invalid
from webapp.experiments.access import may_read, may_write
from webapp.experiments.metrics.points import LoggedPoint, numbers
from webapp.experiments.models import Experiment
from webapp.tracking import access, saved_models, services
from webapp.tracking.models import LoggedRun
from webapp.tracking.queries import latest, logged_runs
from webapp.tracking.saved_models import ModelValue

from . import schemas as b
from . import searching, serializers
from .endpoint import MlflowError, json_response, mlflow_view, read_body, read_query

DEFAULT = "Default"
"""The experiment that MLflow calls 0: where a program logs that names none."""


@mlflow_view("POST", Right.WRITE)
def create_experiment(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.CreateExperiment)
    may_write(membership)
    if Experiment.objects.filter(workspace=membership.workspace, name=given.name.strip()).exists():
        raise MlflowError(f"Experiment '{given.name}' already exists.", "RESOURCE_ALREADY_EXISTS")
    row = services.experiment(membership, given.name, {tag.key: tag.value for tag in given.tags})
    return json_response({"experiment_id": str(row.pk)})


@mlflow_view("GET", Right.READ)
def get_experiment(request: HttpRequest, membership: Membership) -> HttpResponse:
    row = experiment_of(membership, read_query(request, b.OfExperiment).experiment_id)
    return json_response({"experiment": serializers.experiment(row)})


@mlflow_view("GET", Right.READ)
def get_experiment_by_name(request: HttpRequest, membership: Membership) -> HttpResponse:
    name = read_query(request, b.ExperimentNamed).experiment_name
    rows = Experiment.objects.select_related("logged").filter(workspace=may_read(membership).workspace, name=name)
    row = rows.first()
    if row is None:
        raise MlflowError(f"Could not find experiment with name '{name}'.", "RESOURCE_DOES_NOT_EXIST", 404)
    return json_response({"experiment": serializers.experiment(row)})


@mlflow_view("POST", Right.READ)
def search_experiments(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.SearchExperiments)
    rows = Experiment.objects.select_related("logged").filter(workspace=may_read(membership).workspace)
    if given.view_type == "DELETED_ONLY":  # no experiment is ever deleted
        rows = rows.none()
    found = searching.experiments(rows, given.filter, given.order_by)
    page, more = searching.page(found, given)
    return json_response({"experiments": [serializers.experiment(row) for row in page], **more})


@mlflow_view("POST", Right.WRITE)
def set_experiment_tag(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.SetExperimentTag)
    may_write(membership)
    services.tag_experiment(experiment_of(membership, given.experiment_id), {given.key: given.value})
    return json_response()


@mlflow_view("POST", Right.WRITE)
def create_run(request: HttpRequest, membership: Membership) -> HttpResponse:
    """`Idempotency-Key` is ours: MLflow's own client sends none, and begins another run when it asks again."""
    given = read_body(request, b.CreateRun)
    may_write(membership)
    tags = {tag.key: tag.value for tag in given.tags}
    name = given.run_name or tags.get(serializers.RUN_NAME, "")
    if given.user_id:
        tags.setdefault("mlflow.user", given.user_id)
    row = services.begin(
        membership,
        experiment_of(membership, given.experiment_id),
        LoggedRun.Door.MLFLOW,
        name=_short(name),
        started_at=None if given.start_time is None else b.moment(given.start_time),
        tags=tags | ({serializers.RUN_NAME: name} if name else {}),
        key=request.headers.get("Idempotency-Key", "")[:64] or None,
    )
    return json_response({"run": serializers.run(row, ())})


@mlflow_view("POST", Right.WRITE)
def update_run(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.UpdateRun)
    row = access.logged_write(membership, given.run_id)
    services.settle(
        membership,
        row,
        state=None if given.status is None else serializers.STATES[given.status],
        ended_at=None if given.end_time is None else b.moment(given.end_time),
        name=None if given.run_name is None else _short(given.run_name),
    )
    if given.run_name is not None:
        services.log(row, tags={serializers.RUN_NAME: given.run_name})
    return json_response({"run_info": serializers.info(row)})


def _short(name: str) -> str:
    """The beginning of a name, for lists. The whole name stays in its tag."""
    name = " ".join(name.split())
    return name if len(name) <= 120 else name[:119] + "…"


@mlflow_view("GET", Right.READ)
def get_run(request: HttpRequest, membership: Membership) -> HttpResponse:
    row = access.logged_read(membership, read_query(request, b.OfRun).run_id)
    models = row.saved_models.filter(deleted_at=None).order_by("pk")
    return json_response({"run": serializers.run(row, latest([row.run_id])[row.run_id], models)})


@mlflow_view("POST", Right.READ)
def search_runs(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.SearchRuns)
    may_read(membership)
    wanted = [experiment_id(membership, each) for each in given.experiment_ids]
    rows = logged_runs(membership.workspace_id).filter(run__experiment_id__in=wanted)
    if given.run_view_type != "ALL":
        rows = rows.filter(deleted_at__isnull=given.run_view_type == "ACTIVE_ONLY")
    found = searching.runs(rows, given.filter, given.order_by)
    page, more = searching.page(found, given)
    points = latest([row.run_id for row in page])
    return json_response({"runs": [serializers.run(row, points[row.run_id]) for row in page], **more})


@mlflow_view("POST", Right.WRITE)
def delete_run(request: HttpRequest, membership: Membership) -> HttpResponse:
    services.delete(membership, access.logged_write(membership, read_body(request, b.OfRun).run_id))
    return json_response()


@mlflow_view("POST", Right.WRITE)
def restore_run(request: HttpRequest, membership: Membership) -> HttpResponse:
    services.restore(membership, access.logged_write(membership, read_body(request, b.OfRun).run_id))
    return json_response()


@mlflow_view("POST", Right.WRITE)
def log_metric(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.LogMetric)
    row = access.logged_write(membership, given.run_id)
    with transaction.atomic():
        services.log(row, [_point(given)])
        saved_models.measured(membership, row, _of_models([given]))
    return json_response()


@mlflow_view("POST", Right.WRITE)
def log_batch(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.LogBatch)
    if len(given.metrics) + len(given.params) + len(given.tags) > b.MOST_AT_ONCE:
        raise MlflowError(f"A batch has at most {b.MOST_AT_ONCE:,} metrics, params and tags.")
    params: dict[str, str] = {}
    for place, param in enumerate(given.params):
        if params.setdefault(param.key, param.value) != param.value:
            raise Invalid("A param cannot change.", {f"params.{place}": f"{param.key} comes twice with two values"})
    tags = {tag.key: tag.value for tag in given.tags}
    row = access.logged_write(membership, given.run_id)
    with transaction.atomic():
        services.log(row, [_point(each) for each in given.metrics], params, tags)
        saved_models.measured(membership, row, _of_models(given.metrics))
    if serializers.RUN_NAME in tags:
        services.settle(membership, row, name=_short(tags[serializers.RUN_NAME]))
    return json_response()


def _point(metric: b.MetricBody) -> LoggedPoint:
    return LoggedPoint(metric.key, metric.step, b.moment(metric.timestamp), metric.value)


def _of_models(metrics: Iterable[b.MetricBody]) -> list[ModelValue]:
    """The values that are about a logged model."""
    return [
        ModelValue(
            each.model_id,
            each.key,
            each.step,
            b.moment(each.timestamp),
            each.value,
            each.dataset_name,
            each.dataset_digest,
        )
        for each in metrics
        if each.model_id
    ]


@mlflow_view("POST", Right.WRITE)
def log_param(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.LogParam)
    services.log(access.logged_write(membership, given.run_id), params={given.key: given.value})
    return json_response()


@mlflow_view("POST", Right.WRITE)
def set_tag(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.SetTag)
    row = access.logged_write(membership, given.run_id)
    services.log(row, tags={given.key: given.value})
    if given.key == serializers.RUN_NAME:
        services.settle(membership, row, name=_short(given.value))
    return json_response()


@mlflow_view("POST", Right.WRITE)
def delete_tag(request: HttpRequest, membership: Membership) -> HttpResponse:
    given = read_body(request, b.DeleteTag)
    row = access.logged_write(membership, given.run_id)
    if given.key not in row.tags:
        raise MlflowError(f"The run has no tag '{given.key[:80]}'.", "RESOURCE_DOES_NOT_EXIST", 404)
    services.log(row, without=[given.key])
    return json_response()


@mlflow_view("GET", Right.READ)
def get_history(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The points of one metric. `page_token` is the step after which to continue."""
    given = read_query(request, b.GetHistory)
    row = access.logged_read(membership, given.run_id)
    after = searching.offset(given.page_token, most=2**31) if given.page_token else None
    found = numbers(row.run_id, given.metric_key, after, given.max_results + 1)
    points = found[: given.max_results]
    told = {"metrics": [serializers.metric(each) for each in points]}
    return json_response(
        told | ({"next_page_token": searching.token(points[-1].step)} if len(found) > len(points) else {})
    )


def experiment_of(membership: Membership, text: str) -> Experiment:
    """The experiment by its id; 0 is the experiment `Default`, which is made when a person who may write asks for it."""
    if text == "0":
        try:
            return services.experiment_named(may_write(membership), DEFAULT)
        except PermissionDenied:
            row = Experiment.objects.filter(workspace=may_read(membership).workspace, name=DEFAULT).first()
        if row is not None:
            return row
    elif text.isascii() and text.isdigit() and len(text) < 19:
        return access.experiment_read(membership, int(text))
    raise MlflowError(f"No experiment with id={text} exists.", "RESOURCE_DOES_NOT_EXIST", 404)


def experiment_id(membership: Membership, text: str) -> int:
    """The id of an experiment for a search, which finds nothing in an experiment that does not exist."""
    if text == "0":
        rows = Experiment.objects.filter(workspace=membership.workspace, name=DEFAULT)
        return rows.values_list("pk", flat=True).first() or 0
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


@mlflow_view(None, Right.READ)
def nothing(request: HttpRequest, membership: Membership, rest: str = "") -> HttpResponse:
    raise MlflowError(f"Touchstone does not support {rest or 'this'} of MLflow's protocol.", "ENDPOINT_NOT_FOUND", 404)
