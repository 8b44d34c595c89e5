"""The page on which owners say how people sign in to their workspace."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts import access, queries
from webapp.accounts.access import member
from webapp.accounts.models import Role
from webapp.core.problems import Problem

from . import groups, second_factor
from .models import GroupRole


@member(Role.OWNER)
@never_cache
@require_GET
def rules(request: HttpRequest) -> HttpResponse:
    membership = access.require(request, Role.OWNER)
    members = list(queries.members(membership).order_by("user__email"))
    without = second_factor.without(members)
    context = {
        "members": members,
        "without": [each.user for each in members if each.user_id in without],
        "groups": GroupRole.objects.filter(workspace=membership.workspace).order_by("group"),
        "roles": Role.choices,
        "company": settings.ENV.oidc_name if settings.ENV.oidc_server_url else "",
    }
    return render(request, "identity/rules.html", context)


@member(Role.OWNER)
@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Whether the workspace asks for a second factor, by the pressed button's `ask`: "yes" or "no"."""
    membership = access.require(request, Role.OWNER)
    try:
        second_factor.ask(membership, request.POST.get("ask") == "yes")
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("sign_in_rules")


@member(Role.OWNER)
@require_POST
def map_group(request: HttpRequest) -> HttpResponse:
    membership = access.require(request, Role.OWNER)
    try:
        row = groups.map_group(membership, request.POST.get("group", ""), request.POST.get("role", ""))
        messages.success(request, f"People of {row.group} come in as {row.get_role_display().lower()}.")
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("sign_in_rules")


@member(Role.OWNER)
@require_POST
def unmap_group(request: HttpRequest, row_id: int) -> HttpResponse:
    membership = access.require(request, Role.OWNER)
    row = get_object_or_404(GroupRole, workspace=membership.workspace, pk=row_id)
    groups.unmap(membership, row)
    messages.success(request, f"{row.group} means nothing here any more.")
    return redirect("sign_in_rules")
