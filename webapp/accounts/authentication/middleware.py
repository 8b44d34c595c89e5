"""Sets the membership under which a page acts on the request, and sends people who are not signed in to the sign-in page."""

from collections.abc import Callable

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.crypto import constant_time_compare

from webapp.core.monitoring.logs import current_person

from ..access import to_sign_in
from ..models import Membership
from ..sessions import services as sessions
from . import queries

SESSION_KEY = "workspace"


class WorkspaceMiddleware:
    """Sets `request.membership`: the signed-in person's membership in the workspace chosen in the session, or None; and `request.memberships`,
    all of the person's.

    Every view needs a signed-in person unless it is marked `login_not_required`. So a page without a mark is closed, not open. The API does
    its own checks, with its own error format.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.membership = None  # type: ignore[attr-defined]
        if request.path.startswith(("/static/", "/healthz", "/readyz", "/metrics")):
            return self.get_response(request)
        mine = _signed_in(request)
        if request.user.is_authenticated:
            current_person.set(str(request.user.pk))
            request.memberships = queries.memberships_of(request.user.pk) if mine is None else mine  # type: ignore[attr-defined]
            request.membership = _membership(request)  # type: ignore[attr-defined]
            sessions.note_use(request)
        response = self.get_response(request)
        if "Cache-Control" not in response:  # pages of signed-in people must not stay in the cache of a shared machine
            response["Cache-Control"] = "no-store"
        return response

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: object, kwargs: object
    ) -> HttpResponse | None:
        if not getattr(view, "login_required", True) or request.path.startswith("/api/v1/"):
            return None
        return None if request.user.is_authenticated else to_sign_in(request)


def _signed_in(request: HttpRequest) -> list[Membership] | None:
    """The memberships of the session's person, who becomes `request.user`, in one query.

    Only if the session is plainly good, by the same checks as `django.contrib.auth.get_user`; None leaves the decision to that function.
    """
    session = request.session
    user_id, signature = session.get(auth.SESSION_KEY), session.get(auth.HASH_SESSION_KEY)
    if not user_id or not signature or session.get(auth.BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    mine = queries.memberships_of(user_id)
    if not mine or not mine[0].user.is_active:
        return None
    user = mine[0].user
    if not constant_time_compare(signature, user.get_session_auth_hash()):
        return None
    request._cached_user = user  # type: ignore[attr-defined]  # where AuthenticationMiddleware's `request.user` looks
    return mine


def _membership(request: HttpRequest) -> Membership | None:
    """The membership in the chosen workspace if the person still belongs to it, else in the first that they joined."""
    mine: list[Membership] = request.memberships  # type: ignore[attr-defined]
    chosen = request.session.get(SESSION_KEY)
    return next((m for m in mine if m.workspace_id == chosen), mine[0] if mine else None)
