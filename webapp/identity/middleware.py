"""Keeps a workspace that asks for a second factor closed until the session has one."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse

from webapp.accounts.models import Membership
from webapp.core.problems import error_body
from webapp.core.requests.middleware import ViewGuard

from . import second_factor

WHY = "This workspace asks for a second factor. Set one up first."
# what somebody without one still reaches: their own account, and the way to other workspaces
OPEN = {"profile", "sessions_used", "theme", "sign_out", "workspaces", "switch_workspace", "version"}


class SecondFactorMiddleware(ViewGuard):
    """Comes after `WorkspaceMiddleware`, whose `request.membership` it checks. Tokens are not sessions and need no factor.

    The pages of the installation belong to no workspace: they are closed if one of the person's workspaces asks for a factor.
    """

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: object, kwargs: object
    ) -> HttpResponse | None:
        membership: Membership | None = getattr(request, "membership", None)
        if membership is not None and getattr(view, "for_administrators", False):
            membership = second_factor.membership_that_requires_it(membership)
        if membership is None or not second_factor.is_missing(request.session, membership):
            return None
        name = request.resolver_match.url_name if request.resolver_match else None
        if name == "workspaces" and request.method != "GET":
            name = None  # a workspace of one's own would ask for nothing
        if name in OPEN or (name or "").startswith(("mfa_", "account_")):
            return None
        if request.path.startswith("/api/v1/"):
            return JsonResponse(error_body(request, "second_factor", WHY), status=403)
        if request.headers.get("HX-Request"):
            return HttpResponse(status=204, headers={"HX-Redirect": reverse("mfa_index")})
        return redirect("mfa_index")
