"""The workspaces that a person belongs to."""

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST

from webapp.core.requests.own_pages import own_page

from ..access import member, require
from ..authentication.middleware import SESSION_KEY
from ..models import Role, User
from . import queries, services
from .forms import WorkspaceForm


@require_http_methods(["GET", "POST"])
def workspaces(request: HttpRequest) -> HttpResponse:
    """The person's workspaces, and a form for another one. People without a workspace start here too."""
    user = cast(User, request.user)
    allowed = services.may_create_workspaces(user)
    form = WorkspaceForm(request.POST or None)
    if request.method == "POST" and not allowed:
        raise PermissionDenied(
            "Only administrators, and people to whom they give the right, can create workspaces here."
        )
    if form.is_valid():
        membership = services.create_workspace(form.cleaned_data["name"], user)
        request.session[SESSION_KEY] = membership.workspace_id
        return redirect(settings.LOGIN_REDIRECT_URL)
    context = {"form": form if allowed else None, "memberships": queries.my_memberships(user)}
    return render(request, "accounts/workspaces.html", context)


@require_POST
def switch_workspace(request: HttpRequest, workspace_id: int) -> HttpResponse:
    mine = get_object_or_404(queries.my_memberships(cast(User, request.user)), workspace_id=workspace_id)
    request.session[SESSION_KEY] = mine.workspace_id
    return redirect(settings.LOGIN_REDIRECT_URL)


@member(Role.OWNER)
@require_POST
def share_links_allow(request: HttpRequest) -> HttpResponse:
    """Allows share links or not, as the pressed button says in `allow`: "yes" or "no". Then the person is at `next` again."""
    allowed = services.allow_share_links(require(request), request.POST.get("allow") == "yes").allows_share_links
    messages.success(request, "Share links are allowed." if allowed else "Share links are forbidden. None opens now.")
    back = own_page(request, request.POST.get("next")) if allowed else ""
    return redirect(back or "share_links")


urls = [
    path("settings/share-links/allowed", share_links_allow, name="share_links_allow"),
    path("workspaces", workspaces, name="workspaces"),
    path("workspaces/<int:workspace_id>/switch", switch_workspace, name="switch_workspace"),
]
