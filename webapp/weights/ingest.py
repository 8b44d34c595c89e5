"""The endpoints for the process of a job. Its token is the only key."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from ninja import Query, Router
from ninja.security import HttpBearer
from pydantic import ValidationError

from trainer.contracts.base import Record
from trainer.contracts.storing import FolderAsked, Links, Upload
from trainer.contracts.weights import WeightsAssignment, WeightsBatch, WeightsReply
from webapp.core.database.nul_characters import show_nul
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.core.requests.openapi import sends, takes
from webapp.core.storage import artifact_store
from webapp.inference.folders import stored

from . import tokens
from .kinds import KINDS
from .models import WeightsJob, WeightsLogLine, WeightsResult
from .states import OVER, State, broadcast_job, move, refresh

FENCED = "This attempt is over: a newer one has taken the job."


class JobToken(HttpBearer):
    """`Authorization: Bearer <job token>`, checked against the job in the path. Sets `request.auth` to the job."""

    def authenticate(self, request: HttpRequest, token: str) -> WeightsJob | None:
        match = request.resolver_match
        rows = WeightsJob.objects.select_related("workspace", "model__base", "version")
        job = rows.filter(pk=match.kwargs["job_id"]).first() if match else None
        return job if job and tokens.is_current_token(token, job) else None


router = Router(auth=JobToken(), tags=["ingest"])


@router.get("/ingest/weights/{int:job_id}", response=WeightsAssignment, summary="The assignment of this job")
def assignment(request: HttpRequest, job_id: int) -> WeightsAssignment:
    job: WeightsJob = request.auth  # type: ignore[attr-defined]
    kind = KINDS[job.kind]
    WeightsJob.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now())
    if not job.total:
        WeightsJob.objects.filter(pk=job.pk).update(total=(total := sum(1 for _ in kind.items(job, 0))))
    else:
        total = job.total
    return WeightsAssignment(
        job_id=job.pk,
        kind=job.kind,
        params=kind.brief(job),
        models=kind.models(job),
        attempt=job.attempt,
        total=total,
        done=job.done,
        acked=job.acked,
        items_url=request.build_absolute_uri(f"{request.path}/items"),
        folder=""
        if artifact_store.is_configured()
        else kind.folder(job) or str(settings.VAR / "weights" / str(job.pk)),
        store_url=request.build_absolute_uri(request.path) if artifact_store.is_configured() else "",
    )


@router.get(
    "/ingest/weights/{int:job_id}/items",
    summary="The job's items, JSON Lines",
    openapi_extra=sends("application/x-ndjson"),
)
def items(request: HttpRequest, job_id: int, after: Annotated[int, Query(ge=0, lt=2**31)] = 0) -> StreamingHttpResponse:
    """The items in a fixed order, after the first `after`."""
    job: WeightsJob = request.auth  # type: ignore[attr-defined]
    return StreamingHttpResponse(_lines(job, after), content_type="application/x-ndjson")


def _lines(job: WeightsJob, after: int) -> Iterator[bytes]:
    found = KINDS[job.kind].items(job, after)
    while piece := list(islice(found, 100)):
        yield "".join(f"{line}\n" for line in piece).encode()


@router.post(
    "/ingest/weights/{int:job_id}/store/uploads",
    response=Links,
    summary="The addresses to which the files that a job writes may be sent",
    openapi_extra=takes(Upload),
)
def store_uploads(request: HttpRequest, job_id: int) -> Links:
    """A signed address in the artifact store for each piece of each file, good for an hour. 409: such a job writes no files."""
    job: WeightsJob = request.auth  # type: ignore[attr-defined]
    if found := KINDS[job.kind].upload(job, _read(request, Upload)):
        return found
    raise Conflict("A job of this kind writes no files.", code="no_files")


@router.post(
    "/ingest/weights/{int:job_id}/store/folders",
    response=Links,
    summary="Addresses of the files of a model, or of other files that a job reads",
    openapi_extra=takes(FolderAsked),
)
def store_folders(request: HttpRequest, job_id: int) -> Links:
    """Links to the files of a folder that the assignment names. 404: it does not, or the folder is not in the artifact store."""
    job: WeightsJob = request.auth  # type: ignore[attr-defined]
    name, kind = _read(request, FolderAsked).name, KINDS[job.kind]
    found = kind.artifacts(job, name) or stored.links(job.workspace_id, kind.models(job).values(), name)
    if found is None:
        raise Problem(f"The artifact store has no folder {name} for this job.", code="not_found", status=404)
    return found


@router.post(
    "/ingest/weights/{int:job_id}/batches",
    response=WeightsReply,
    summary="Results, stored once each",
    openapi_extra=takes(WeightsBatch),
)
def post_batch(request: HttpRequest, job_id: int) -> WeightsReply:
    """A batch that is sent again changes nothing; after a gap nothing is stored."""
    job: WeightsJob = request.auth  # type: ignore[attr-defined]
    try:
        return apply(job.pk, _read(request, WeightsBatch))
    except Conflict:
        raise Problem(FENCED, code="fenced", status=401) from None


Body = TypeVar("Body", bound=Record)


def _read(request: HttpRequest, kind: type[Body]) -> Body:
    """The body. Raises Problem with every field that is wrong."""
    try:
        return kind.model_validate_json(show_nul(request.body))
    except ValidationError as error:
        fields = {".".join(map(str, item["loc"])): item["msg"] for item in error.errors(include_url=False)[:20]}
        raise Problem("The batch has errors, so nothing of it was stored.", fields, code="invalid_batch") from None


@transaction.atomic
def apply(job_id: int, batch: WeightsBatch) -> WeightsReply:
    """Stores a batch. Raises Conflict, and writes nothing, if the attempt is not the present one."""
    rows = WeightsJob.objects.select_related("workspace", "model__base", "version__dataset")
    job = rows.select_for_update(of=("self",), no_key=True).get(pk=job_id)
    if batch.attempt != job.attempt:
        raise Conflict(FENCED, code="fenced")
    if job.state in OVER:
        return WeightsReply(acked=job.acked, command="abandon" if batch.state == "running" else "continue")
    fields: dict[str, Any] = {"heartbeat_at": timezone.now()}
    if batch.phase:
        fields["phase"] = batch.phase
    if batch.used is not None:
        fields["used"] = batch.used.model_dump(mode="json")
    if batch.total is not None:
        fields["total"] = batch.total
    if batch.results and batch.number == job.acked + 1:
        kept, outcome = KINDS[job.kind].keep(job, batch.results)
        fields |= {"acked": batch.number, "done": job.done + len(kept), "outcome": outcome}
        WeightsResult.objects.bulk_create(
            WeightsResult(job=job, place=job.done + i, content=content) for i, content in enumerate(kept)
        )
    if batch.steps is not None and batch.state == "running":
        fields["outcome"] = {**fields.get("outcome", job.outcome), "steps": batch.steps.model_dump(mode="json")}
    if batch.number <= job.acked + 1 and not (batch.results and batch.number <= job.acked):
        WeightsLogLine.objects.bulk_create(
            WeightsLogLine(job=job, level=line.level, message=line.message) for line in batch.lines
        )
    WeightsJob.objects.filter(pk=job.pk).update(**fields)
    if job.state == State.STARTING:
        move(job, State.RUNNING, started_at=job.started_at or timezone.now())
    refresh(job)
    if batch.state != "running" and batch.number <= job.acked:
        _end(job, batch)
    else:
        broadcast_job(job)
    return WeightsReply(acked=job.acked, command="stop" if job.state == State.STOPPING else "continue")


def _end(job: WeightsJob, batch: WeightsBatch) -> None:
    """Writes the results of the outcome together with the end of the job, or neither."""
    if batch.state != "finished":
        move(job, batch.state, problem=batch.reason)
        return
    try:
        with transaction.atomic():
            move(job, State.FINISHED, outcome=KINDS[job.kind].finish(job, batch.outcome))
    except Invalid as problem:
        move(job, State.FAILED, problem=problem.sentence)
