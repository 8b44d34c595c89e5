"""Pages of tokens for scripts."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from webapp.core.network.addresses import public_url
from webapp.core.pages import confirmation

from ..access import member, require
from ..models import Role
from . import access, queries, services
from .forms import TokenForm


@member()
@never_cache
def tokens(request: HttpRequest) -> HttpResponseBase:
    """The person's tokens. Only the response to the form has the secret of a new token."""
    membership = require(request)
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
    membership = require(request)
    token = access.token_write(membership, token_id)
    text = "From then on, programs that use it are refused. You cannot undo this, but you can create another token."
    title = f"Revoke the token “{token.name}”?"
    if asked := confirmation.question(request, title=title, text=text, yes="Revoke", back=reverse("tokens")):
        return asked
    services.revoke_token(membership, token)
    messages.success(request, "Token revoked.")
    return redirect("tokens")


urls = [
    path("settings/tokens", tokens, name="tokens"),
    path("settings/tokens/<int:token_id>/revoke", token_revoke, name="token_revoke"),
]
