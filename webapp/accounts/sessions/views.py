"""A browser reports that it is used; other browsers are signed out."""

from typing import cast

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_GET, require_POST

from webapp.core.pages import confirmation
from webapp.core.requests.numbers import whole_number

from ..models import User
from . import queries, services


@require_GET
def sessions_used(request: HttpRequest) -> HttpResponse:
    """Called by a page that is used and sends no other request. `WorkspaceMiddleware` notes the use."""
    return HttpResponse(status=204)


@require_POST
@reauthentication_required  # type: ignore[untyped-decorator]
def sessions_end(request: HttpRequest) -> HttpResponse:
    """Signs out the browser that the button names, or with `others` all but this one. The person first confirms who they are, so a stranger
    at an open browser cannot do it."""
    user, here = cast(User, request.user), request.session.session_key
    rows = queries.open_sessions(user).order_by().exclude(session_key=here)
    if "others" not in request.POST:
        rows = rows.filter(pk=whole_number(request.POST.get("session", ""), 15) or 0)
    title = "Sign out of all other browsers?" if "others" in request.POST else "Sign this browser out?"
    text = "The people who use them must sign in again. This browser stays signed in."
    if asked := confirmation.question(request, title=title, text=text, yes="Sign out", back=reverse("profile")):
        return asked
    count = services.end_sessions(user, rows)
    messages.success(request, f"Signed out of {count} other {'browser' if count == 1 else 'browsers'}.")
    return redirect("profile")


urls = [
    path("settings/sessions/used", sessions_used, name="sessions_used"),
    path("settings/sessions/end", sessions_end, name="sessions_end"),
]
