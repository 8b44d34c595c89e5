"""Pages of aliases and stages."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.database.paging import page
from webapp.core.pages import confirmation
from webapp.core.problems import Conflict, Invalid

from .. import access as models
from . import access, queries, services
from .forms import AliasForm, StageForm


@member(Role.REVIEWER)
@require_GET
def aliases(request: HttpRequest) -> HttpResponse:
    membership = require(request)
    try:
        history = page(queries.history(membership.workspace_id), request.GET.get("cursor"))
    except Invalid:
        return redirect("model_aliases")
    context = {
        "aliases": queries.aliases(membership.workspace_id),
        "history": history.items,
        "next": history.next,
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "models/aliases.html", context)


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def model_promote(request: HttpRequest, model_id: int) -> HttpResponse:
    """An alias for the model. The form remembers where each alias pointed when it was shown, so that nobody undoes a move unseen."""
    membership = require(request)
    model = models.model_write(membership, model_id)
    form = AliasForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            name = services.alias_name(given["name"])
            expected = request.POST.get(f"seen-{name}", "")
            alias = services.move(membership, name, model, reason=given["reason"], expected=expected)
        except Invalid as problem:
            for field, reason in problem.fields.items():
                form.add_error(field if field in form.fields else None, reason)
        except Conflict as problem:
            form.add_error("name", problem.message)
        else:
            messages.success(request, f"{alias} points at {model.name} now.")
            return redirect("model", model_id)
    context = {"form": form, "model": model, "aliases": queries.aliases(membership.workspace_id)}
    return render(request, "models/model_promote.html", context, status=422 if form.is_bound else 200)


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def model_stage(request: HttpRequest, model_id: int) -> HttpResponse:
    membership = require(request)
    model = models.model_write(membership, model_id)
    form = StageForm(request.POST or None, initial={"stage": model.stage})
    if request.method == "POST" and form.is_valid():
        services.set_stage(membership, model, form.cleaned_data["stage"], reason=form.cleaned_data["reason"])
        return redirect("model", model_id)
    context = {"form": form, "model": model}
    return render(request, "models/model_stage.html", context, status=422 if form.is_bound else 200)


@member(Role.RESEARCHER)
@require_POST
def alias_remove(request: HttpRequest, name: str) -> HttpResponse:
    membership = require(request)
    alias = access.alias_write(membership, name)
    text = f"From then on, runs and programs that ask for {alias} are refused. {alias.model.name} and the history stay."
    back = reverse("model_aliases")
    if asked := confirmation.question(request, title=f"Remove {alias}?", text=text, yes="Remove it", back=back):
        return asked
    services.remove(membership, alias)
    messages.success(request, f"{alias} is removed.")
    return redirect("model_aliases")


urls = [
    path("models/<int:model_id>/promote", model_promote, name="model_promote"),
    path("models/<int:model_id>/stage", model_stage, name="model_stage"),
    path("models/aliases", aliases, name="model_aliases"),
    path("models/aliases/<slug:name>/remove", alias_remove, name="model_alias_remove"),
]
