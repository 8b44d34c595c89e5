"""The page on which owners say how people sign in to their workspace."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts import access, queries
from webapp.accounts.access import member
from webapp.accounts.models import Role
from webapp.core.problems import Problem

from . import second_factor


@member(Role.OWNER)
@never_cache
@require_GET
def rules(request: HttpRequest) -> HttpResponse:
    membership = access.require(request, Role.OWNER)
    members = list(queries.members(membership).order_by("user__email"))
    without = second_factor.without(members)
    context = {"members": members, "without": [each.user for each in members if each.user_id in without]}
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
