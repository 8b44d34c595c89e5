"""Pages of the model registry."""

import json
import shlex
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.auditing import audit
from webapp.core.database.paging import page
from webapp.core.pages import confirmation
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.core.storage.archive import respond

from .. import access, queries
from ..folders import files
from ..promotion import queries as promotion
from ..trials import outcomes
from ..trials.services import try_again
from . import facts, services, uses
from .forms import ModelAboutForm, ModelForm
from .queries import lineage

SMALL_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""The name on the hub of the model that comes with the packages of the trainer."""


@member(Role.REVIEWER)
@require_GET
def models(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    archived = request.GET.get("archived") == "1"
    try:
        rows = queries.models(membership.workspace_id, archived=archived)
        found = page(rows, request.GET.get("cursor"), 50, "-id")
    except Invalid:
        return redirect("models")
    context = {"rows": found.items, "next": found.next, "archived": archived}
    return render(request, "models/models.html", {**context, "may_write": membership.may(Role.RESEARCHER)})


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def model_new(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    form = ModelForm(request.POST or None, workspace_id=membership.workspace_id)
    if request.method == "POST" and form.is_valid():
        try:
            model = services.register(membership, **form.fields_given())
        except Invalid as problem:
            for field, reason in problem.fields.items():
                form.add_error(field, reason)
        else:
            messages.success(request, f"{model.name} is registered; its page lists its uses.")
            return redirect("model", model.pk)
    context = {"form": form, **_where_from(membership)}
    return render(request, "models/model_new.html", context, status=422 if form.is_bound else 200)


def _where_from(membership: Membership) -> dict[str, Any]:
    """The folder for models with commands that fill it, and whether the workspace has no model yet."""
    root = settings.MODEL_ROOTS[0]
    folder = shlex.quote(str(root / SMALL_MODEL.rpartition("/")[2].lower()))
    return {
        "root": root,
        "fetch": f".venv/bin/hf download {SMALL_MODEL} --local-dir {folder}",
        "unpack": f".venv/bin/python -m trainer models prepare --dir {folder}",
        "first": not queries.usable(membership.workspace_id).exists(),
    }


@member(Role.REVIEWER)
@require_GET
def model(request: HttpRequest, model_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.model_read(membership, model_id)
    card, config = files.card_parts(files.card(row))
    context = {
        "model": row,
        "present": files.is_there(row),
        "files": files.listed(row),
        "card": card,
        "config": json.dumps(config, indent=2, ensure_ascii=False) if config else "",
        "changed": facts.changed(card, config),
        "facts": facts.fact_lines(row),
        "uses": uses.by_purpose(row),
        "lineage": lineage(row),
        "promotions": promotion.history(row.workspace_id, model=row)[: promotion.MOST_SHOWN],
        "training": outcomes.outcome_text(row),
        "may_try_again": outcomes.may_try_again(row),
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "models/model.html", context)


@member(Role.REVIEWER)
@require_GET
def model_download(request: HttpRequest, model_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.model_read(membership, model_id)
    try:
        found = files.download(row)
        audit.record(membership, membership.user, "model.downloaded", row, name=row.name)
        return respond(request, found)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("model", model_id)


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def model_edit(request: HttpRequest, model_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.model_write(membership, model_id)
    form = ModelAboutForm(request.POST or None, initial={"name": row.name, "description": row.description})
    if request.method == "POST" and form.is_valid():
        try:
            services.change_model(membership, row, **form.cleaned_data)
        except Invalid as problem:
            for field, reason in problem.fields.items():
                form.add_error(field, reason)
        else:
            return redirect("model", model_id)
    context = {"form": form, "model": access.model_read(membership, model_id)}
    return render(request, "models/model_edit.html", context, status=422 if form.is_bound else 200)


@member(Role.RESEARCHER)
@require_POST
def model_act(request: HttpRequest, model_id: int) -> HttpResponseBase:
    """Archive, restore, or try once more whether it can be trained."""
    membership = require(request)
    row = access.model_write(membership, model_id)
    acts = {"archive": services.archive_model, "restore": services.restore_model, "try": try_again}
    act = acts.get(request.POST.get("action", ""))
    if act is None:
        raise Http404("no such action")
    try:
        act(membership, row)
    except Conflict as problem:
        messages.error(request, problem.message)
    return redirect("model", model_id)


@member(Role.RESEARCHER)
@require_POST
def model_delete(request: HttpRequest, model_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.model_write(membership, model_id)
    back = reverse("model", args=[model_id])
    text = "Its name, description and facts are deleted. Its files stay where they are."
    if asked := confirmation.question(
        request, title=f"Remove {row.name} from the list?", text=text, yes="Remove it", back=back
    ):
        return asked
    try:
        services.delete(membership, row)
    except Conflict as problem:
        messages.error(request, problem.message)
        return redirect("model", model_id)
    messages.success(request, f"{row.name} was removed from the list; its files stay where they are.")
    return redirect("models")


urls = [
    path("models", models, name="models"),
    path("models/new", model_new, name="model_new"),
    path("models/<int:model_id>", model, name="model"),
    path("models/<int:model_id>/edit", model_edit, name="model_edit"),
    path("models/<int:model_id>/act", model_act, name="model_act"),
    path("models/<int:model_id>/download", model_download, name="model_download"),
    path("models/<int:model_id>/delete", model_delete, name="model_delete"),
]
