"""Recorded verdicts and scores over the API. Reading needs the role reviewer, sending researcher."""

from typing import Any

from django.http import HttpRequest
from ninja import File, Router, Status
from ninja.files import UploadedFile

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page

from .. import access, queries, serializers
from .. import schemas as s
from . import services

router = Router()


@router.get(
    "/evaluations/recordings", response=s.RecordingList, summary="Recorded verdicts and scores that were uploaded"
)
def recordings(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    found = page(queries.recordings(access.may_read(require(request)).workspace_id), cursor, limit)
    return {"items": [serializers.recording(row) for row in found.items], "next": found.next}


@router.post("/evaluations/recordings", response={201: s.RecordingOut}, summary="Upload recorded verdicts or scores")
def store_recording(request: HttpRequest, file: File[UploadedFile]) -> Status[dict[str, Any]]:
    """JSON lines {"judge", "pair", "group", "label", "given", "swapped"}; null is a missing verdict, `swapped` is the
    verdict as said. Or scores: {"model", "example", "response", "score"}; null is a missing score. The same file again is the same recording."""
    membership = access.may_write(require(request))
    content = file.read(services.MAX_RECORDING + 1)
    row = services.store_recording(membership, (file.name or "")[:100].replace("\0", ""), content)
    return Status(201, serializers.recording(row))
