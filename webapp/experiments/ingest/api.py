"""The endpoints for a training process. Its run token is the only key; sessions and API tokens do not work here."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router
from ninja.security import HttpBearer
from pydantic import ValidationError

from trainer.config import upgrade_stored
from trainer.contracts import (
    MAX_POST_BYTES,
    EventBatch,
    IngestReply,
    KnownVerdicts,
    OwnVerdicts,
    QuestionBatch,
    RunAssignment,
)
from trainer.contracts.base import Record
from trainer.contracts.storing import FolderAsked, Links, Upload
from webapp.core.database import prepared
from webapp.core.database.nul_characters import show_nul
from webapp.core.problems import Problem
from webapp.core.requests.openapi import sends, takes
from webapp.core.storage import artifact_store
from webapp.inference.queries import source

from .. import queries
from ..lifecycle import tokens
from ..models import Run
from ..outputs import artifact_store as storing
from ..outputs import artifacts
from ..rewards import grants, own_verdicts, questions, relay
from . import events

LINES_PER_READ = 500
LONGEST_ANSWER_S = 25.0  # proxies end requests that take long
SHORTEST_LOOK_S, LONGEST_LOOK_S = 0.05, 0.4
NAMED = prepared.RowBy(Run.objects.with_names, "pk")
CHECKED = prepared.RowBy(lambda: Run.objects.only("ended_at", "token_digest"), "pk")


class RunToken(HttpBearer):
    """`Authorization: Bearer <run token>`, checked against the run in the path. Sets `request.auth` to the run."""

    def authenticate(self, request: HttpRequest, token: str) -> tuple[Run, str] | None:
        match = request.resolver_match
        run = NAMED(match.kwargs["run_id"]) if match else None
        return (run, token) if run and tokens.is_current_token(token, run) else None


class EventToken(HttpBearer):
    """Like `RunToken`, but reads only what the check needs: `events.apply` reads the run again under its lock. Leaves the token on
    `request.auth`."""

    def authenticate(self, request: HttpRequest, token: str) -> str | None:
        match = request.resolver_match
        run = CHECKED(match.kwargs["run_id"]) if match else None
        return token if run and tokens.is_current_token(token, run) else None


router = Router(auth=RunToken(), tags=["ingest"])


@router.get("/ingest/runs/{int:run_id}", response=RunAssignment, summary="The assignment of this run")
def assignment(request: HttpRequest, run_id: int) -> RunAssignment:
    """The job of the process. It asks once when it starts, which is also its first sign of life."""
    run, token = request.auth  # type: ignore[attr-defined]
    _beat(run, token)
    models = queries.models_by_role(run)
    return RunAssignment(
        run_id=run.id,
        name=str(run),
        recipe=run.recipe,
        config=upgrade_stored(run.recipe, run.config),
        attempt=run.attempt,
        resume=run.attempt > 1 or run.start_step > 0,
        forked=run.start_step > 0,
        last_seq=run.last_seq,
        models={role: source(model) for role, model in models.items()},
        judges=grants.judges(run),
        **_places(request, run),
        examples_url=request.build_absolute_uri(f"{request.path}/examples"),
        judges_url=request.build_absolute_uri(f"{request.path}/questions"),
        verdicts_url=request.build_absolute_uri(f"{request.path}/verdicts"),
        examples_digest=run.data.digest,
        services=tuple(relay.named(run.config)),
        services_url=request.build_absolute_uri(f"{request.path}/services"),
    )


def _places(request: HttpRequest, run: Run) -> dict[str, Any]:
    if not artifact_store.is_configured():
        return {"run_dir": str(artifacts.folder(run.id))}
    return {
        "run_dir": "",
        "store_url": request.build_absolute_uri(request.path),
        "checkpoints": storing.checkpoints(run),
    }


@router.post(
    "/ingest/runs/{int:run_id}/store/uploads",
    response=Links,
    summary="The addresses to which the files of an artifact may be sent",
    openapi_extra=takes(Upload),
)
def store_uploads(request: HttpRequest, run_id: int) -> Links:
    """A signed address in the artifact store for each piece of each file, good for an hour. 503: the storage is away."""
    run, _ = request.auth  # type: ignore[attr-defined]
    return storing.upload(run.id, _read(request, Upload))


@router.post(
    "/ingest/runs/{int:run_id}/store/folders",
    response=Links,
    summary="The addresses from which the files of a model or a checkpoint are read",
    openapi_extra=takes(FolderAsked),
)
def store_folders(request: HttpRequest, run_id: int) -> Links:
    """Links to the files of a folder that the assignment names, or of an artifact of the run. 404: it is neither, or is not in the artifact
    store."""
    run, _ = request.auth  # type: ignore[attr-defined]
    return storing.folder(run, _read(request, FolderAsked).name)


@router.post(
    "/ingest/runs/{int:run_id}/events",
    response=IngestReply,
    summary="Numbered events, stored once each",
    auth=EventToken(),
    openapi_extra=takes(EventBatch),
)
def post_events(request: HttpRequest, run_id: int) -> IngestReply:
    """An empty batch is a heartbeat. 401: a newer attempt has taken over, stop. 422: an event is malformed and nothing of the batch is
    stored. 503: the database is down, send the same batch again."""
    token: str = request.auth  # type: ignore[attr-defined]
    try:
        return events.apply(run_id, token, _read(request, EventBatch))
    except events.Fenced:
        raise Problem(
            "This attempt has ended: a newer attempt of the run has started.", code="fenced", status=401
        ) from None


@router.get(
    "/ingest/runs/{int:run_id}/examples",
    summary="The examples of the run's dataset version, JSON Lines",
    openapi_extra=sends("application/x-ndjson"),
)
def examples(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """One canonical `Example` per line, in the version's order. Streamed: a version may be larger than memory."""
    run, _ = request.auth  # type: ignore[attr-defined]
    return StreamingHttpResponse(_lines(run.data.pk), content_type="application/x-ndjson")


@router.post(
    "/ingest/runs/{int:run_id}/services",
    summary="Responses for a reward service that the run's config names",
    openapi_extra={**sends("application/json"), **takes(relay.Responses)},
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


@router.post(
    "/ingest/runs/{int:run_id}/questions",
    summary="Questions to the judges of the run's rewards, each asked once",
    openapi_extra={**sends("application/x-ndjson"), **takes(QuestionBatch)},
)
def ask(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """One `QuestionReply` a line, as judges answer. After half a minute the rest is left out: send it again, under the same
    keys. 409: the run is over. 422: the batch is malformed, or names a judge that is not the run's."""
    run, _ = request.auth  # type: ignore[attr-defined]
    taken = questions.take(run, _read(request, QuestionBatch).questions)
    return StreamingHttpResponse(_replies(taken), content_type="application/x-ndjson")


@router.post(
    "/ingest/runs/{int:run_id}/verdicts",
    response=KnownVerdicts,
    summary="Verdicts of a judge with local weights, brought and asked for",
    openapi_extra=takes(OwnVerdicts),
)
def verdicts(request: HttpRequest, run_id: int) -> KnownVerdicts:
    """Sent twice, a verdict is stored and counted once. 409: the run is over. 422: the batch is malformed, names no such judge,
    or has a verdict whose key is not that of its question."""
    run, _ = request.auth  # type: ignore[attr-defined]
    return own_verdicts.exchange(run, _read(request, OwnVerdicts))


async def _replies(taken: questions.TakenQuestions) -> AsyncIterator[bytes]:
    """The replies. It waits here because waiting holds no thread; the database is checked now and then."""
    left, pause, deadline = set(taken.keys), SHORTEST_LOOK_S, monotonic() + LONGEST_ANSWER_S
    while left and monotonic() < deadline:
        found = await database_sync_to_async(questions.ready)(taken, left)
        if found:
            yield b"".join(reply.model_dump_json().encode() + b"\n" for reply in found)
            left -= {reply.key for reply in found}
            pause = SHORTEST_LOOK_S
        else:
            yield b"\n"  # who is gone is noticed, and who waits knows that somebody is there
            await asyncio.sleep(pause)
            pause = min(LONGEST_LOOK_S, 1.5 * pause)


def _beat(run: Run, token: str) -> None:
    """An empty batch: marks the run alive, if this is still its present attempt."""
    try:
        events.apply(run.id, token, EventBatch(attempt=run.attempt))
    except events.Fenced:
        raise Problem(
            "This attempt has ended: a newer attempt of the run has started.", code="fenced", status=401
        ) from None


Body = TypeVar("Body", bound=Record)


def _read(request: HttpRequest, kind: type[Body]) -> Body:
    """The body as a record. Raises Problem 413 or 422, the latter with every field that is wrong."""
    body = request.body
    if len(body) > MAX_POST_BYTES:
        limit = f"{MAX_POST_BYTES:,} bytes"
        raise Problem(f"The batch is larger than {limit}; send less at once.", code="too_big", status=413)
    try:
        return kind.model_validate_json(show_nul(body))
    except ValidationError as error:
        fields = {".".join(map(str, item["loc"])): item["msg"] for item in error.errors(include_url=False)[:20]}
        code = "invalid_events" if kind is EventBatch else "invalid"
        raise Problem("The batch has errors, so nothing of it was stored.", fields, code=code) from None
