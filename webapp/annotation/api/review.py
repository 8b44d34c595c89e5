"""Agreement, consolidation, answers out."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Path as InPath
from ninja import Router, Schema

from webapp.accounts.access import require

from .. import access
from ..queries import agreement
from ..queries.faces import faces, published
from ..services import matching, standing

router = Router(tags=["annotation"])
Id = Annotated[int, InPath(ge=1, le=2**63 - 1)]


class AgreementOut(Schema):
    """`computing`: newer answers are being counted; `report` is the last result, as of `computed_at`, or null."""

    state: Literal["ready", "computing"]
    computed_at: datetime | None
    started_at: datetime | None
    report: dict[str, Any] | None


@router.get(
    "/projects/{int:project_id}/agreement", response=AgreementOut, summary="Agreement by field, domain and pair"
)
def get_agreement(request: HttpRequest, project_id: Id) -> dict[str, Any]:
    """Percent, Cohen, Fleiss, AC1 and Krippendorff's alpha, each with n and a 95% interval, or `undefined` with why."""
    project = access.project_read(require(request), project_id)
    report = standing.freshen(project)
    matching.ask(project)
    return published(report, faces(project), agreement.newest_answer(project))
