"""The page on which owners set how people sign in to their workspace."""

from allauth.account.decorators import reauthentication_required
from allauth.mfa.models import Authenticator
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts import access
from webapp.accounts.access import member
from webapp.accounts.members import queries
from webapp.accounts.models import Role
from webapp.accounts.sessions import time_outs
from webapp.core.problems import Problem

from . import company, directories, groups, second_factor
from . import recovery_codes as codes
from .forms import TimeOutsForm
from .models import GroupRole


@never_cache
@require_GET
@reauthentication_required(app="allauth.mfa")  # type: ignore[untyped-decorator]
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """The codes that were just made, once; afterwards only how many are left."""
    row = get_object_or_404(Authenticator, user_id=request.user.pk, type=codes.KIND)
    context = {"codes": "\n".join(codes.take(row)), "left": row.wrap().left, "count": codes.COUNT}
    return render(request, "mfa/recovery_codes/index.html", context)


@member(Role.OWNER)
@never_cache
@require_GET
def rules(request: HttpRequest) -> HttpResponse:
    return _rules(request, TimeOutsForm.showing(access.require(request, Role.OWNER).workspace))


def _rules(request: HttpRequest, form: TimeOutsForm) -> HttpResponse:
    membership = access.require(request, Role.OWNER)
    members = list(queries.members(membership).order_by("user__email"))
    without = second_factor.users_without_it(members)
    context = {
        "members": members,
        "without": [each.user for each in members if each.user_id in without],
        "groups": GroupRole.objects.filter(workspace=membership.workspace).order_by("group"),
        "roles": Role.choices,
        "directories": directories.counting_in(membership.workspace),
        "companies": [each["name"] for each in company.sign_ins()],
    }
    allowed = time_outs.installation()
    context |= {"form": form, "idle": time_outs.in_words(allowed.idle), "longest": time_outs.in_words(allowed.longest)}
    return render(request, "identity/rules.html", context, status=422 if form.errors else 200)


@member(Role.OWNER)
@require_POST
def limit_sessions(request: HttpRequest) -> HttpResponse:
    """Sets the time after which the sessions of the workspace's people end."""
    membership = access.require(request, Role.OWNER)
    form = TimeOutsForm(request.POST)
    if form.is_valid():
        try:
            time_outs.change(membership, **form.cleaned_data)
        except Problem as problem:
            for name, why in problem.fields.items():
                form.add_error(name, why.capitalize() + ".")
            return _rules(request, form)
        messages.success(request, "The new time-outs are in effect.")
        return redirect("sign_in_rules")
    return _rules(request, form)


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
    messages.success(request, f"{row.group} has no effect here any more.")
    return redirect("sign_in_rules")
