"""The pages of webhooks under Settings: for owners."""

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from trainer.contracts.plurals import with_noun
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership
from webapp.core.database.paging import page
from webapp.core.problems import Conflict, Invalid, Problem

from . import access, queries, services
from .forms import WebhookForm
from .models import Delivery, Webhook

PAGE = 50
ON_THE_WAY = (Delivery.State.WAITING, Delivery.State.SENDING)
# of the stores' own words: how a delivery's state is drawn
SHAPES = {"waiting": "queued", "sending": "running", "delivered": "finished", "failed": "failed"}


@member(access.OWNER)
@never_cache
@require_http_methods(["GET", "POST"])
def webhooks(request: HttpRequest) -> HttpResponseBase:
    """All hooks, and the form for another. A new hook's secret is in the answer to the form and nowhere else."""
    membership = require(request, access.OWNER)
    form = WebhookForm(request.POST or None)
    context: dict[str, object] = {"made": None}
    if form.is_valid():
        try:
            context["made"], context["secret"] = services.create(membership, **form.cleaned_data)
            form = WebhookForm()
        except Problem as problem:
            _show(problem, form)
    context |= {"form": form, "hooks": queries.hooks(membership.workspace_id), "shapes": SHAPES}
    return render(request, "webhooks/webhooks.html", context, status=422 if form.errors else 200)


def _show(problem: Problem, form: WebhookForm) -> None:
    if not problem.fields:
        form.add_error(None, problem.message)
    for field, reason in problem.fields.items():
        form.add_error(field if field in form.fields else None, f"{reason[:1].upper()}{reason[1:]}.")


@member(access.OWNER)
@never_cache
@require_http_methods(["GET", "POST"])
def webhook(request: HttpRequest, hook_id: int) -> HttpResponseBase:
    """One hook: its address and events, and its log. Asked for by HTMX it is the log alone."""
    membership = require(request, access.OWNER)
    hook = access.hook_write(membership, hook_id)
    form = WebhookForm(request.POST or None, initial={"url": hook.url, "events": hook.events})
    if form.is_valid():
        try:
            services.change(membership, hook, **form.cleaned_data)
            messages.success(request, "Saved.")
            return redirect("webhook", hook.pk)
        except Invalid as problem:
            _show(problem, form)
    return _hook_page(request, hook, form)


def _hook_page(request: HttpRequest, hook: Webhook, form: WebhookForm, secret: str | None = None) -> HttpResponseBase:
    state = request.GET.get("state") or ""
    try:
        found = page(queries.deliveries(hook, state), request.GET.get("cursor"), PAGE, "-id")
    except Invalid:
        return redirect("webhook", hook.pk)
    context = {
        "hook": hook,
        "form": form,
        "secret": secret,
        "page": found,
        "state": state,
        "states": Delivery.State.values,
        "shapes": SHAPES,
        "moving": any(row.state in ON_THE_WAY for row in found.items),
        "again": hook.active and queries.failed(hook, state).exists(),
    }
    fragment = request.headers.get("HX-Request") and request.method == "GET"
    template = "webhooks/_log.html" if fragment else "webhooks/webhook.html"
    return render(request, template, context, status=422 if form.errors else 200)


@member(access.OWNER)
@never_cache
@require_POST
def act(request: HttpRequest, hook_id: int) -> HttpResponseBase:
    """Does what a button of a hook's page asks: `action` is test, failed, pause, resume, secret or delete."""
    membership = require(request, access.OWNER)
    hook = access.hook_write(membership, hook_id)
    action = request.POST.get("action", "")
    if action == "secret":
        secret = services.renew_secret(membership, hook)
        return _hook_page(request, hook, WebhookForm(initial={"url": hook.url, "events": hook.events}), secret)
    if action == "delete":
        services.delete(membership, hook)
        messages.success(request, "The webhook and its log are deleted.")
        return redirect("webhooks")
    _press(request, membership, hook, action)
    return redirect("webhook", hook.pk)


def _press(request: HttpRequest, membership: Membership, hook: Webhook, action: str) -> None:
    try:
        if action == "test":
            services.test(membership, hook)
            messages.success(request, "A test is being sent; see the log.")
        elif action == "failed":
            count = services.deliver_failed_again(membership, hook)
            are = "is" if count == 1 else "are"
            messages.success(request, f"{with_noun(count, 'messages')} {are} sent again in the next seconds.")
        elif action in ("pause", "resume"):
            services.set_active(membership, hook, action == "resume")
            messages.success(
                request, "Resumed." if action == "resume" else "Paused: nothing is sent until you resume it."
            )
    except Conflict as problem:
        messages.error(request, problem.message)


@member(access.OWNER)
@require_http_methods(["GET", "POST"])
def delivery(request: HttpRequest, hook_id: int, delivery_id: int) -> HttpResponseBase:
    """The event that was sent, and the reply. POST sends the event again."""
    membership = require(request, access.OWNER)
    row = access.delivery_write(membership, hook_id, delivery_id)
    if request.method == "POST":
        try:
            services.deliver_again(membership, row)
            messages.success(request, "It is being sent again.")
        except Conflict as problem:
            messages.error(request, problem.message)
        return redirect("webhook_delivery", hook_id, delivery_id)
    context = {
        "hook": row.webhook,
        "row": row,
        "shapes": SHAPES,
        "moving": row.state in ON_THE_WAY,
        "message": json.dumps(queries.message(row), indent=2, ensure_ascii=False, default=str),
    }
    template = "webhooks/_delivery.html" if request.headers.get("HX-Request") else "webhooks/delivery.html"
    return render(request, template, context)
