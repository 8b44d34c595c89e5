"""MLflow's artifacts: files of runs, which its client sends and fetches through this server."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webapp.accounts.areas import Right
from webapp.accounts.models import Membership
from webapp.core.storage.archive import respond
from webapp.tracking import access, files, saved_models
from webapp.tracking.models import LoggedRun

from . import schemas as b
from .endpoint import MlflowError, by_method, json_response, mlflow_view, read_query


@mlflow_view("GET", Right.READ)
def of_run(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Lists the files directly below a folder of the run, by their whole paths."""
    given = read_query(request, b.ListArtifacts)
    row = access.logged_read(membership, given.run_id)
    root = f"mlflow-artifacts:/{row.run.experiment_id}/{row.key}/artifacts"
    below = given.path.strip("/")
    return json_response({"root_uri": root, "files": _listed(row, below, f"{below}/" if below else "")})


@mlflow_view("GET", Right.READ)
def listed(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Lists the files below the path in the artifact's address, each by its name in the folder."""
    row, below = _place(membership, request.GET.get("path", ""), Right.READ)
    return json_response({"files": _listed(row, below, "")})


def _listed(row: LoggedRun, below: str, before: str) -> list[dict[str, object]]:
    return [
        {
            "path": before + each.path,
            "is_dir": each.bytes is None,
            **({} if each.bytes is None else {"file_size": each.bytes}),
        }
        for each in files.listed(row, below)
    ]


@mlflow_view("GET", Right.READ)
def fetch(request: HttpRequest, membership: Membership, path: str) -> HttpResponseBase:
    row, below = _place(membership, path, Right.READ)
    return respond(request, files.download(membership, row, below))


@mlflow_view("PUT", Right.WRITE)
def send(request: HttpRequest, membership: Membership, path: str) -> HttpResponse:
    row, below = _place(membership, path, Right.WRITE)
    files.keep(membership, row, below, request)  # type: ignore[arg-type]  # a request is read as a file is
    return json_response()


file = by_method(GET=fetch, PUT=send)


def _place(membership: Membership, path: str, right: Right) -> tuple[LoggedRun, str]:
    """`12/<run>/artifacts/weights.bin` or `12/models/<model>/artifacts/weights.bin`: the run, and the path below it. Raises Refused,
    Http404."""
    parts = path.strip("/").split("/", 3)
    if len(parts) > 3 and parts[1] == "models" and parts[3].partition("/")[0] == "artifacts":
        saved = saved_models.get_saved_model(
            membership, parts[2], write=right == Right.WRITE, deleted=right == Right.READ
        )
        inside = parts[3].partition("/")[2]
        return saved.row, f"{saved.folder}/{inside}" if inside else saved.folder
    if len(parts) < 3 or parts[2] != "artifacts":
        raise MlflowError(
            "An artifact's path begins with its experiment, its run or its model, and the word artifacts."
        )
    find = access.logged_write if right == Right.WRITE else access.logged_read
    row = find(membership, parts[1])
    if str(row.run.experiment_id) != parts[0]:
        raise MlflowError("The run is of another experiment.", "RESOURCE_DOES_NOT_EXIST", 404)
    return row, parts[3] if len(parts) > 3 else ""
