"""Puts the membership that a page acts under on the request, and sends strangers to the door."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from .access import to_sign_in
from .models import Membership

SESSION_KEY = "workspace"


class WorkspaceMiddleware:
    """Sets `request.membership`: the signed-in person's membership in the workspace chosen in the session, or None.

    Every view needs someone signed in unless it is marked `login_not_required`: a page whose author forgot to
    say who may see it is closed, not open. The API answers for itself, in its own error shape.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.membership = None  # type: ignore[attr-defined]
        if request.path.startswith(("/static/", "/healthz")):
            return self.get_response(request)
        if request.user.is_authenticated:
            request.membership = _membership(request)  # type: ignore[attr-defined]
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: object, kwargs: object
    ) -> HttpResponse | None:
        if not getattr(view, "login_required", True) or request.path.startswith("/api/v1/"):
            return None
        return None if request.user.is_authenticated else to_sign_in(request)


def _membership(request: HttpRequest) -> Membership | None:
    """The chosen workspace if the person still belongs to it, else the first they joined."""
    chosen = request.session.get(SESSION_KEY)
    mine = list(Membership.objects.filter(user_id=request.user.pk).select_related("user", "workspace").order_by("id"))
    return next((m for m in mine if m.workspace_id == chosen), mine[0] if mine else None)
