"""The endpoints a training process talks to. Its run token is the only key; pages and API tokens do not fit here."""

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router
from ninja.security import HttpBearer
from pydantic import ValidationError

from trainer.config import stored
from trainer.contracts import MAX_POST_BYTES, EventBatch, IngestReply, RunAssignment
from webapp.core.nul import visible
from webapp.core.openapi import sends
from webapp.core.problems import Problem
from webapp.inference.queries import source

from . import events, grants, queries, relay, tokens
from .models import Run

LINES_PER_READ = 500


class RunToken(HttpBearer):
    """`Authorization: Bearer <run token>`, checked against the run in the path. Leaves the run on `request.auth`."""

    def authenticate(self, request: HttpRequest, token: str) -> tuple[Run, str] | None:
        match = request.resolver_match
        run = Run.objects.with_names().filter(id=match.kwargs["run_id"]).first() if match else None
        return (run, token) if run and tokens.fits(token, run) else None


router = Router(auth=RunToken(), tags=["ingest"])


@router.get("/ingest/runs/{int:run_id}", response=RunAssignment, summary="What this run shall do")
def assignment(request: HttpRequest, run_id: int) -> RunAssignment:
    """Asked once by a starting process, which thereby shows its first sign of life."""
    run, token = request.auth  # type: ignore[attr-defined]
    _beat(run, token)
    models = queries.models_by_role(run)
    return RunAssignment(
        run_id=run.id,
        name=str(run),
        recipe=run.recipe,
        config=stored(run.recipe, run.config),
        attempt=run.attempt,
        resume=run.attempt > 1 or run.start_step > 0,
        forked=run.start_step > 0,
        last_seq=run.last_seq,
        models={role: source(model) for role, model in models.items()},
        judges=grants.judges(run),
        run_dir=str(settings.VAR / "runs" / str(run.id)),
        examples_url=request.build_absolute_uri(f"{request.path}/examples"),
        examples_digest=run.dataset_version.digest,
        services=tuple(relay.named(run.config)),
        services_url=request.build_absolute_uri(f"{request.path}/services"),
    )


@router.post(
    "/ingest/runs/{int:run_id}/events",
    response=IngestReply,
    summary="Numbered events, stored once each",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": EventBatch.model_json_schema(ref_template="#/$defs/{model}")}},
        }
    },
)
def post_events(request: HttpRequest, run_id: int) -> IngestReply:
    """An empty batch is a heartbeat. 401: a newer attempt has taken over, stop. 422: an event is malformed and nothing
    of the batch is stored. 503: the database is away, send the same batch again."""
    _, token = request.auth  # type: ignore[attr-defined]
    try:
        return events.apply(run_id, token, _batch(request))
    except events.Fenced:
        raise Problem("This attempt is over: a newer one has taken the run.", code="fenced", status=401) from None


@router.get(
    "/ingest/runs/{int:run_id}/examples",
    summary="The examples of the run's dataset version, JSON Lines",
    openapi_extra=sends("application/x-ndjson"),
)
def examples(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """One canonical `Example` per line, in the version's order. Streamed: a version may be larger than memory."""
    run, _ = request.auth  # type: ignore[attr-defined]
    return StreamingHttpResponse(_lines(run.dataset_version_id), content_type="application/x-ndjson")


@router.post(
    "/ingest/runs/{int:run_id}/services",
    summary="Responses for a reward service that the run's config names",
    openapi_extra={
        **sends("application/json"),
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": relay.Responses.model_json_schema(ref_template="#/$defs/{model}")}
            },
        },
    },
)
def ask_service(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """The server posts them, signed, and answers `{"values": [..]}`, `{"away": why}` or `{"unscored": why}`, with blanks before
    it while it waits. 409: the run is over, or does not name the service."""
    run, _ = request.auth  # type: ignore[attr-defined]
    try:
        given = relay.Responses.model_validate_json(request.body)
    except ValidationError as error:
        fields = {".".join(map(str, item["loc"])): item["msg"] for item in error.errors(include_url=False)[:20]}
        raise Problem("The responses are malformed.", fields, code="invalid") from None
    asked = relay.target(run, given.service)
    return StreamingHttpResponse(relay.answer(asked, given.responses), content_type="application/json")


async def _lines(version_id: int) -> AsyncIterator[bytes]:
    after = -1
    while rows := await sync_to_async(queries.example_lines)(version_id, after, LINES_PER_READ):
        after = rows[-1][0]
        yield "".join(line + "\n" for _, line in rows).encode()


def _beat(run: Run, token: str) -> None:
    """An empty batch: marks the run alive, if this is still its present attempt."""
    try:
        events.apply(run.id, token, EventBatch(attempt=run.attempt))
    except events.Fenced:
        raise Problem("This attempt is over: a newer one has taken the run.", code="fenced", status=401) from None


def _batch(request: HttpRequest) -> EventBatch:
    """The body as an EventBatch. Raises Problem 413 or 422, the latter with every field that is wrong."""
    body = request.body
    if len(body) > MAX_POST_BYTES:
        limit = f"{MAX_POST_BYTES:,} bytes"
        raise Problem(f"The batch is larger than {limit}; send fewer events at once.", code="too_big", status=413)
    try:
        return EventBatch.model_validate_json(visible(body))
    except ValidationError as error:
        fields = {".".join(map(str, item["loc"])): item["msg"] for item in error.errors(include_url=False)[:20]}
        raise Problem("The batch is malformed; nothing of it was stored.", fields, code="invalid_events") from None
