"""A run as it happens, over the API."""

from functools import partial

from django.http import HttpRequest, StreamingHttpResponse

from webapp.accounts.access import require
from webapp.accounts.authentication.credentials import TokenAuth, bearer
from webapp.core.requests.authorization import bearer_token
from webapp.core.requests.openapi import sends

from .. import access
from ..models import Run
from ..parameters import RunId, router
from . import stream
from .consumers import LISTENING


@router.get(
    "/runs/{run_id}/feed",
    auth=TokenAuth(),
    summary="Events of a run, as they happen",
    openapi_extra=sends("text/event-stream"),
)
def feed(request: HttpRequest, run_id: RunId) -> StreamingHttpResponse:
    """Server-sent events with the messages of the websocket: `now` first, then `run`, `metrics`, `rollouts`, `log`, `judges`, or `resync`
    if you were too slow to get everything. The stream ends when the run is over, and after an hour. For tokens: a page has the
    websocket."""
    run = access.run_read(require(request), run_id)
    secret = bearer_token(request.headers.get("Authorization"))
    return stream.response(run.pk, partial(_may_listen, secret, run.pk))


def _may_listen(secret: str, run_id: int) -> bool:
    membership = bearer(secret, LISTENING)
    if membership is None or not membership.may(access.READER):
        return False
    return Run.objects.present().filter(id=run_id, experiment__workspace_id=membership.workspace_id).exists()
