"""The doors (sign in, link, invitation), and the settings of a person and a workspace."""

from collections.abc import AsyncIterator
from typing import cast
from urllib.parse import urlencode

from allauth.account.decorators import reauthentication_required
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.core import mail, sure
from webapp.core.addresses import public_url
from webapp.core.limits import TooMany, seconds_to_wait
from webapp.core.models import AuditEntry
from webapp.core.numbers import whole
from webapp.core.problems import Problem

from . import access, addresses, queries, services, sessions, time_outs
from .access import member
from .agents import browser_name
from .entering import BACKEND, let_in
from .forms import AddressForm, InviteForm, JoinForm, PasswordForm, SignInForm, TokenForm, WorkspaceForm
from .middleware import SESSION_KEY
from .models import Membership, Role, User

MOST_SESSIONS = 50  # on the page
CHECKS_PER_MINUTE = 3  # mails to an address that somebody typed
SIGN_INS_PER_MINUTE = 60  # from one address, whoever they say they are: one password tried on everybody is stopped, too


def _next(request: HttpRequest) -> str:
    """Where to go after signing in, if it is on this site."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if safe else settings.LOGIN_REDIRECT_URL


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.method == "GET" and request.user.is_authenticated:
        return redirect(_next(request))
    form = SignInForm(request.POST or None)
    if request.method == "POST" and seconds_to_wait(f"sign-in:{request.META.get('REMOTE_ADDR')}", SIGN_INS_PER_MINUTE):
        return _not_now(request, "Too many people sign in from this address at the same time. Try again in a minute.")
    if form.is_valid():
        email = form.cleaned_data["email"].strip().lower()
        user = _whose(request, email, form.cleaned_data["password"])
        if user is not None:
            return let_in(request, user, "password", _next(request))
        form.add_error(None, "The email address or the password is wrong.")
    return render(
        request,
        "accounts/sign_in.html",
        {"form": form, "next": _next(request)},
        status=422 if form.errors else 200,
    )


def _whose(request: HttpRequest, email: str, password: str) -> User | None:
    """Whose password it is as it was typed, or without the spaces at its ends: those were cut off before 23 November 2026. Each is an
    attempt that counts."""
    tried = dict.fromkeys(each for each in (password, password.strip()) if each)
    return next(filter(None, (authenticate(request, email=email, password=each) for each in tried)), None)


def locked_out(request: HttpRequest, credentials: dict[str, str], *args: object) -> HttpResponse:
    """Shown by axes after too many failures; the wait is AXES_COOLOFF_TIME."""
    return _not_now(request, f"Too many attempts. Try again in {round(settings.AXES_COOLOFF_TIME * 60)} minutes.")


def _not_now(request: HttpRequest, why: str) -> HttpResponse:
    return render(
        request, "accounts/sign_in.html", {"form": SignInForm(), "next": _next(request), "locked": why}, status=429
    )


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in_link(request: HttpRequest, secret: str) -> HttpResponse:
    """GET only shows a button (a script presses it): programs that preview links must not use the link up."""
    if request.method == "GET":
        return render(request, "accounts/link.html", {"secret": secret})
    user = services.claim_sign_in_link(secret)
    if user is None:
        return render(request, "accounts/link.html", {"spent": True}, status=410)
    return let_in(request, user, "link", settings.LOGIN_REDIRECT_URL)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        services.record_session(request.user, "session.ended")
    logout(request)
    return redirect(settings.LOGIN_URL)


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def invite_link(request: HttpRequest, secret: str) -> HttpResponse:
    """Accepts an invitation as the person signed in, or makes the account it is addressed to."""
    row = services.open_invite(secret)
    if row is None:
        return render(request, "accounts/invite.html", {"spent": True}, status=410)
    holder = User.objects.filter(email=row.email).first()
    if holder and not request.user.is_authenticated and not addresses.gives_way(holder, row.proof):
        return access.to_sign_in(request)
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


@require_POST
def switch_workspace(request: HttpRequest, workspace_id: int) -> HttpResponse:
    mine = get_object_or_404(queries.my_memberships(cast(User, request.user)), workspace_id=workspace_id)
    request.session[SESSION_KEY] = mine.workspace_id
    return redirect(settings.LOGIN_REDIRECT_URL)


@require_http_methods(["GET", "POST"])
def workspaces(request: HttpRequest) -> HttpResponse:
    """The workspaces one belongs to, and a form for another: also where people without any begin."""
    user = cast(User, request.user)
    allowed = services.may_create_workspaces(user)
    form = WorkspaceForm(request.POST or None)
    if request.method == "POST" and not allowed:
        raise PermissionDenied("Only administrators, and people whom they allow, can make workspaces here.")
    if form.is_valid():
        membership = services.create_workspace(form.cleaned_data["name"], user)
        request.session[SESSION_KEY] = membership.workspace_id
        return redirect(settings.LOGIN_REDIRECT_URL)
    context = {"form": form if allowed else None, "memberships": queries.my_memberships(user)}
    return render(request, "accounts/workspaces.html", context)


@sensitive_post_parameters("current", "new")
@require_http_methods(["GET", "POST"])
@reauthentication_required(enabled=lambda request: "email" in request.POST)  # type: ignore[untyped-decorator]  # allauth has no types
def profile(request: HttpRequest) -> HttpResponse:
    """Address, theme and password."""
    user = cast(User, request.user)
    if "email" in request.POST:
        return _change_address(request, user)
    form = PasswordForm(user, request.POST or None)
    if form.is_valid():
        services.set_password(user, form.cleaned_data["new"], here=request.session.session_key)
        update_session_auth_hash(request, user)  # this browser stays signed in; all others are signed out
        messages.success(request, "Password changed.")
        return redirect("profile")
    return _profile(request, form, AddressForm(initial={"email": user.email}))


def _profile(request: HttpRequest, password: PasswordForm, address: AddressForm) -> HttpResponse:
    user, here = cast(User, request.user), request.session.session_key
    allowed = time_outs.of(user)
    context = {
        "form": password,
        "address": address,
        "themes": User.Theme.choices,
        "mails": mail.configured(),
        "sessions": [
            (row, browser_name(row.agent), row.session_key == here) for row in sessions.of(user)[:MOST_SESSIONS]
        ],
        "idle": time_outs.in_words(allowed.idle),
        "longest": time_outs.in_words(allowed.longest),
    }
    return render(request, "accounts/profile.html", context, status=422 if password.errors or address.errors else 200)


def _change_address(request: HttpRequest, user: User) -> HttpResponse:
    form = AddressForm(request.POST)
    if form.is_valid():
        try:
            addresses.change(user, form.cleaned_data["email"])
            messages.success(request, "Address changed.")
            return redirect("profile")
        except Problem as problem:
            form.add_error("email", problem.fields.get("email", problem.message))
    return _profile(request, PasswordForm(user), form)


@require_GET
def sessions_used(request: HttpRequest) -> HttpResponse:
    """Somebody is at a page that asks for nothing: `WorkspaceMiddleware` has noted it."""
    return HttpResponse(status=204)


@require_POST
@reauthentication_required  # type: ignore[untyped-decorator]
def sessions_end(request: HttpRequest) -> HttpResponse:
    """Signs out the browser that the button names, or with `others` all but this one; whoever asks confirms first that it is
    them, as whoever found an open browser cannot."""
    user, here = cast(User, request.user), request.session.session_key
    rows = sessions.of(user).order_by().exclude(session_key=here)
    if "others" not in request.POST:
        rows = rows.filter(pk=whole(request.POST.get("session", ""), 15) or 0)
    title = "Sign out of all other browsers?" if "others" in request.POST else "Sign this browser out?"
    text = "The people who use them must sign in again. This browser stays signed in."
    if asked := sure.question(request, title=title, text=text, yes="Sign out", back=reverse("profile")):
        return asked
    count = services.end_sessions(user, rows)
    messages.success(request, f"Signed out of {count} other {'browser' if count == 1 else 'browsers'}.")
    return redirect("profile")


@require_POST
def address_check(request: HttpRequest) -> HttpResponse:
    """Mails a link to the address of one's account."""
    try:
        if wait_s := seconds_to_wait(f"check:{request.user.pk}", CHECKS_PER_MINUTE):
            raise TooMany(wait_s)
        addresses.mail_check(cast(User, request.user))
        messages.success(request, f"A link was mailed to {cast(User, request.user).email}.")
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("profile")


@never_cache
@require_http_methods(["GET", "POST"])
def verify(request: HttpRequest, secret: str) -> HttpResponse:
    """GET only shows a button: programs that preview links must not use the link up."""
    if request.method == "GET":
        return render(request, "accounts/verify.html")
    try:
        addresses.check(cast(User, request.user), secret)
        messages.success(request, "Your address is verified.")
    except Problem as problem:
        return render(request, "accounts/verify.html", {"problem": problem}, status=problem.status)
    return redirect("profile")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    try:
        services.set_theme(cast(User, request.user), request.POST.get("theme", ""))
    except Problem as problem:
        return HttpResponse(problem.message, status=problem.status, content_type="text/plain; charset=utf-8")
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204)
    return redirect("profile")


@member()
@never_cache
def tokens(request: HttpRequest) -> HttpResponseBase:
    """One's keys. A new key's secret is in the answer to the form and nowhere else."""
    membership = access.require(request)
    form = TokenForm(request.POST or None)
    secret = None
    if form.is_valid():
        given = form.cleaned_data
        _, secret = services.create_token(membership, given["name"], given["scope"], form.days(), form.rights())
        form = TokenForm()
    context: dict[str, object] = {"form": form, "tokens": queries.my_tokens(membership), "secret": secret}
    if membership.may(Role.OWNER):
        context["others"] = queries.all_tokens(membership).exclude(user=membership.user)
    if secret:
        context["example"] = f'curl -H "Authorization: Bearer {secret}" {public_url()}/api/v1/me'
    return render(request, "accounts/tokens.html", context)


@member()
@require_POST
def token_revoke(request: HttpRequest, token_id: int) -> HttpResponseBase:
    membership = access.require(request)
    token = access.token_write(membership, token_id)
    text = "From then on, programs that use it are refused. You cannot undo this, but you can make another token."
    title = f"Revoke the token “{token.name}”?"
    if asked := sure.question(request, title=title, text=text, yes="Revoke", back=reverse("tokens")):
        return asked
    services.revoke_token(membership, token)
    messages.success(request, "Token revoked.")
    return redirect("tokens")


@member(Role.REVIEWER)
@never_cache
def members(request: HttpRequest) -> HttpResponseBase:
    """Who belongs here; owners also invite, change roles and remove."""
    membership = access.require(request, Role.REVIEWER)
    form, link = InviteForm(), ""
    if request.method == "POST":
        access.require(request, Role.OWNER)
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
        "mails": mail.configured(),
    }
    return render(request, "accounts/members.html", context)


def _invited(request: HttpRequest, membership: Membership, email: str, role: str) -> str:
    """The link to show; empty where it was mailed."""
    secret = services.invite(membership, email, role)
    if not secret:
        messages.success(request, f"The invitation was mailed to {email}.")
    return f"{public_url()}/invite/{secret}" if secret else ""


@member(Role.OWNER)
@require_POST
def invite_cancel(request: HttpRequest, invite_id: int) -> HttpResponseBase:
    membership = access.require(request, Role.OWNER)
    row = access.invite_write(membership, invite_id)
    title, text = f"Revoke the invitation of {row.email}?", "The link stops working. You can make another invitation."
    if asked := sure.question(request, title=title, text=text, yes="Revoke", back=reverse("members")):
        return asked
    services.revoke_invite(membership, row)
    messages.success(request, f"The invitation of {row.email} no longer works.")
    return redirect("members")


@member(Role.OWNER)
@require_POST
def member_change(request: HttpRequest, member_id: int) -> HttpResponseBase:
    """Changes a role, or removes the member when the button says so."""
    membership = access.require(request, Role.OWNER)
    other = access.member_write(membership, member_id)
    try:
        if "remove" in request.POST:
            text = (
                f"{other.user.email} can no longer open this workspace, and their tokens for it end. Their work stays."
            )
            title = f"Remove {other.user} from {membership.workspace}?"
            if asked := sure.question(request, title=title, text=text, yes="Remove", back=reverse("members")):
                return asked
            services.remove_member(membership, other)
            messages.success(request, f"{other.user} was removed.")
        else:
            services.change_role(membership, other, request.POST.get("role", ""))
            messages.success(request, f"{other.user} has a new role.")
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("members")


@member(Role.OWNER)
@require_GET
def audit(request: HttpRequest) -> HttpResponseBase:
    """Who did what, newest first."""
    action, who = request.GET.get("action", ""), request.GET.get("who", "")
    entries = queries.audit_page(access.require(request, Role.OWNER), request.GET.get("cursor"), action, who)
    query = urlencode({"action": action, "who": who})
    return render(request, "accounts/audit.html", {"page": entries, "action": action, "who": who, "query": query})


@member(Role.OWNER)
@require_GET
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """The log, or as much of it as is asked for, as JSON Lines; that it was taken stands in it as well."""
    membership = access.require(request, Role.OWNER)
    asked = {"action": request.GET.get("action", ""), "who": request.GET.get("who", "")}
    services.record_audit_export(membership, asked)
    entries = queries.audit_entries(membership, **asked)
    response = StreamingHttpResponse(_audit_chunks(entries), content_type="application/x-ndjson")
    response["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
    return response


async def _audit_chunks(entries: QuerySet[AuditEntry]) -> AsyncIterator[bytes]:
    after: int | None = 0
    while after is not None:
        text, after = await sync_to_async(queries.audit_lines)(entries, after)
        yield text.encode()
