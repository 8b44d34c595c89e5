"""Pages of the members of a workspace, and of invitations into it."""

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from webapp.core.network import mail
from webapp.core.network.addresses import public_url
from webapp.core.pages import confirmation
from webapp.core.problems import Problem

from ..access import member, require, to_sign_in
from ..addresses.services import gives_way
from ..authentication.middleware import SESSION_KEY
from ..models import Membership, Role, User
from ..sign_in.last_step import BACKEND
from . import access, queries, services
from .forms import InviteForm, JoinForm


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def invite_link(request: HttpRequest, secret: str) -> HttpResponse:
    """Accepts an invitation as the person signed in, or creates the account it is addressed to."""
    row = services.open_invite(secret)
    if row is None:
        return render(request, "accounts/invite.html", {"spent": True}, status=410)
    holder = User.objects.filter(email=row.email).first()
    if holder and not request.user.is_authenticated and not gives_way(holder, row.proof):
        return to_sign_in(request)
    form = None if request.user.is_authenticated else JoinForm(request.POST or None, email=row.email)
    if request.method == "POST" and (form is None or form.is_valid()):
        try:
            if form is None:
                membership = services.join(row, cast(User, request.user))
            else:
                membership = services.join(row, None, form.cleaned_data["name"], form.cleaned_data["password"])
        except Problem as problem:
            return render(request, "accounts/invite.html", {"invite": row, "problem": problem}, status=problem.status)
        if form is not None:
            login(request, membership.user, backend=BACKEND)
        request.session[SESSION_KEY] = membership.workspace_id
        return redirect(settings.LOGIN_REDIRECT_URL)
    context = {"invite": row, "form": form, "email": row.email, "taken": holder if form else None}
    return render(request, "accounts/invite.html", context, status=422 if form and form.errors else 200)


@member(Role.REVIEWER)
@never_cache
def members(request: HttpRequest) -> HttpResponseBase:
    """The members of the workspace. Owners also invite, change roles and remove."""
    membership = require(request, Role.REVIEWER)
    form, link = InviteForm(), ""
    if request.method == "POST":
        require(request, Role.OWNER)
        form = InviteForm(request.POST)
        if form.is_valid():
            try:
                link = _invited(request, membership, **form.cleaned_data)
                form = InviteForm()
            except Problem as problem:
                form.add_error(None, problem.message)
    context = {
        "form": form,
        "link": link,
        "members": queries.members(membership).order_by("user__email"),
        "invites": queries.open_invites(membership),
        "roles": Role.choices,
        "may_manage": membership.may(Role.OWNER),
        "mails": mail.is_configured(),
    }
    return render(request, "accounts/members.html", context)


def _invited(request: HttpRequest, membership: Membership, email: str, role: str) -> str:
    """The link to show; empty if it was mailed."""
    secret = services.invite(membership, email, role)
    if not secret:
        messages.success(request, f"The invitation was mailed to {email}.")
    return f"{public_url()}/invite/{secret}" if secret else ""


@member(Role.OWNER)
@require_POST
def invite_cancel(request: HttpRequest, invite_id: int) -> HttpResponseBase:
    membership = require(request, Role.OWNER)
    row = access.invite_write(membership, invite_id)
    title, text = f"Revoke the invitation of {row.email}?", "The link stops working. You can create another invitation."
    if asked := confirmation.question(request, title=title, text=text, yes="Revoke", back=reverse("members")):
        return asked
    services.revoke_invite(membership, row)
    messages.success(request, f"The invitation of {row.email} no longer works.")
    return redirect("members")


@member(Role.OWNER)
@require_POST
def member_change(request: HttpRequest, member_id: int) -> HttpResponseBase:
    """Changes a role, or removes the member if the pressed button says so."""
    membership = require(request, Role.OWNER)
    other = access.member_write(membership, member_id)
    try:
        if "remove" in request.POST:
            text = (
                f"{other.user.email} can no longer open this workspace, and their tokens for it end. Their work stays."
            )
            title = f"Remove {other.user} from {membership.workspace}?"
            if asked := confirmation.question(request, title=title, text=text, yes="Remove", back=reverse("members")):
                return asked
            services.remove_member(membership, other)
            messages.success(request, f"{other.user} was removed.")
        else:
            services.change_role(membership, other, request.POST.get("role", ""))
            messages.success(request, f"{other.user} has a new role.")
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("members")


urls = [
    path("invite/<str:secret>", invite_link, name="invite"),
    path("settings/members", members, name="members"),
    path("settings/members/<int:member_id>", member_change, name="member_change"),
    path("settings/invites/<int:invite_id>/revoke", invite_cancel, name="invite_cancel"),
]
