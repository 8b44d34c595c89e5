"""Notes on tokens of rollouts over the API. Reading needs the role reviewer, writing researcher; an author changes their own."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Path, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.core.database.paging import Limit
from webapp.core.requests import idempotency

from ..access import run_read, run_write
from ..parameters import LaunchKey, RunId, Step, router
from . import access, queries, serializers, services
from .schemas import NoteChange, NoteIn, NoteList, NoteOut

NoteId = Path[Annotated[int, Field(ge=1, lt=2**63)]]


@router.get("/runs/{run_id}/rollouts/notes", response=NoteList, summary="Notes on tokens of its responses")
def list_notes(
    request: HttpRequest,
    run_id: RunId,
    step: Step | None = None,
    phase: Literal["train", "eval"] | None = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """Notes, the newest first."""
    membership = require(request)
    found, following = queries.notes(run_read(membership, run_id), step, phase, cursor, limit)
    return {"items": [serializers.note(each, membership) for each in found], "next": following}


@router.post("/runs/{run_id}/rollouts/notes", response={201: NoteOut}, summary="Write a note on tokens of a response")
def write_note(
    request: HttpRequest, run_id: RunId, payload: NoteIn, idempotency_key: LaunchKey = None
) -> Status[dict[str, Any]]:
    membership = require(request)
    run = run_write(membership, run_id)
    given = payload.model_dump()
    key = idempotency.key(idempotency_key, "note", run.pk, given)
    text = given.pop("text")
    note = services.write(membership, run, services.TokenSpan(**given), text, key)
    return Status(201, serializers.one(note, membership))


@router.get("/runs/{run_id}/rollouts/notes/{note_id}", response=NoteOut, summary="One note")
def read_note(request: HttpRequest, run_id: RunId, note_id: NoteId) -> dict[str, Any]:
    membership = require(request)
    return serializers.one(access.note_read(membership, run_id, note_id), membership)


@router.patch("/runs/{run_id}/rollouts/notes/{note_id}", response=NoteOut, summary="Change the text of your note")
def change_note(request: HttpRequest, run_id: RunId, note_id: NoteId, payload: NoteChange) -> dict[str, Any]:
    """409 if the note has changed since the revision that you have read; the error then has its `text` and `revision`."""
    membership = require(request)
    note = access.note_change(membership, run_id, note_id)
    return serializers.one(services.rewrite(membership, note, payload.text, payload.revision), membership)


@router.delete("/runs/{run_id}/rollouts/notes/{note_id}", response={204: None}, summary="Delete a note")
def delete_note(request: HttpRequest, run_id: RunId, note_id: NoteId) -> Status[None]:
    membership = require(request)
    services.delete(membership, access.note_delete(membership, run_id, note_id))
    return Status(204, None)
