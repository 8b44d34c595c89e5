"""Pages of the endpoints."""

from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.database.paging import page
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests.numbers import whole_number

from ..models import Endpoint, EndpointCheck
from . import access, checks, queries, recorded_outputs, services
from .forms import EndpointForm, LocalForm, RecordedForm

KINDS = {
    Endpoint.Kind.CHAT: "An OpenAI-compatible chat API: vLLM, SGLang, llama.cpp or a hosted provider.",
    Endpoint.Kind.LOCAL: "A registered model. Jobs of the cluster load it, and the worker loads it for trials.",
    Endpoint.Kind.RECORDED: "Replays outputs that you upload, for tests and for audits of judges that you cannot ask.",
    Endpoint.Kind.REWARD: "Your own service that gives rewards to responses. Runs post signed responses to it, one group at a time.",
}


@member(Role.REVIEWER)
@require_GET
def endpoints(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    archived = request.GET.get("archived") == "1"
    try:
        rows = queries.endpoints(membership.workspace_id, archived=archived)
        found = page(rows, request.GET.get("cursor"), 50, "-id")
    except Invalid:
        return redirect("endpoints")
    context = {"rows": found.items, "next": found.next, "archived": archived}
    return render(request, "models/endpoints.html", {**context, "may_write": membership.may(Role.RESEARCHER)})


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def endpoint_new(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    kind = request.GET.get("kind", Endpoint.Kind.CHAT)
    if kind not in KINDS:
        raise Http404("no such kind")
    chosen = request.GET.get("registered_model", "")
    form = _form(membership, kind, request, {"registered_model": whole_number(chosen)} if chosen else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = services.create_endpoint(membership, kind, **form.fields_given())
        except Invalid as problem:
            _tell(form, problem)
        else:
            messages.success(request, f"{made.name} is saved.")
            return redirect("endpoint", made.pk)
    kinds = [(name, Endpoint.Kind(name).label) for name in KINDS]
    context = {"form": form, "kind": kind, "kinds": kinds, "about": KINDS[Endpoint.Kind(kind)]}
    return render(request, "models/endpoint_new.html", context, status=422 if form.is_bound else 200)


def _form(
    membership: Membership, kind: str, request: HttpRequest, initial: dict[str, Any] | None = None
) -> EndpointForm:
    chosen = EndpointForm.of(kind)
    more: dict[str, Any] = {"workspace_id": membership.workspace_id} if chosen is LocalForm else {}
    return chosen(request.POST or None, initial=initial, **more)


def _tell(form: EndpointForm, problem: Invalid) -> None:
    for field, reason in problem.fields.items():
        form.add_error(field if field in form.fields else None, reason)


@member(Role.REVIEWER)
@require_GET
def endpoint(request: HttpRequest, endpoint_id: int) -> HttpResponseBase:
    membership = require(request)
    return _page(request, access.endpoint_read(membership, endpoint_id), RecordedForm())


def _page(request: HttpRequest, row: Endpoint, upload: RecordedForm, status: int = 200) -> HttpResponseBase:
    context = {
        "endpoint": row,
        "checks": {kind: row.checks.filter(kind=kind).order_by("-id").first() for kind in EndpointCheck.Kind.values},
        "troubles": row.troubles.order_by("-last_at"),
        "recorded_count": row.recorded_outputs.count() if row.kind == Endpoint.Kind.RECORDED else None,
        "recorded": row.recorded_outputs.order_by("id")[:10],
        "upload": upload,
        "capabilities": _capabilities(row),
        "prices": {"prompt": _plain(row.price_prompt), "completion": _plain(row.price_completion)},
        "may_write": require(request).may(Role.RESEARCHER),
    }
    return render(request, "models/endpoint.html", context, status=status)


def _plain(value: Decimal | float | None) -> str:
    """0.150000 -> 0.15, 120.0 -> 120; empty without a value."""
    return "" if value is None else f"{Decimal(str(value)).normalize():f}"


def _capabilities(row: Endpoint) -> list[dict[str, Any]]:
    titles = {"schema": "Output by JSON schema", "logprobs": "Log-probabilities", "prefix_cache": "Prefix cache"}
    reasons = row.capabilities.get("reasons", {})
    return [
        {"title": title, "found": row.capabilities.get(name), "reason": reasons.get(name, "")}
        for name, title in titles.items()
        if row.capabilities
    ]


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def endpoint_edit(request: HttpRequest, endpoint_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.endpoint_write(membership, endpoint_id)
    fields = EndpointForm.of(row.kind).base_fields
    initial = {name: getattr(row, name) for name in fields if name not in ("secret", "remove_secret")}
    initial |= {name: _plain(value) for name, value in initial.items() if isinstance(value, Decimal | float)}
    form = _form(membership, row.kind, request, initial)
    if request.method == "POST" and form.is_valid():
        try:
            services.change_endpoint(membership, row, **form.fields_given())
        except Invalid as problem:
            row.refresh_from_db()  # what was refused must not be shown as if it were saved
            _tell(form, problem)
        else:
            messages.success(request, "Saved.")
            return redirect("endpoint", row.pk)
    context = {"form": form, "endpoint": row, "kind": row.kind}
    return render(request, "models/endpoint_edit.html", context, status=422 if form.is_bound else 200)


@member(Role.RESEARCHER)
@require_POST
def endpoint_act(request: HttpRequest, endpoint_id: int) -> HttpResponseBase:
    """Buttons of the page: test, probe, archive, restore."""
    membership = require(request)
    row = access.endpoint_write(membership, endpoint_id)
    action = request.POST.get("action", "")
    try:
        if action in EndpointCheck.Kind.values:
            checks.start_check(membership, row, action)
        elif action == "archive":
            services.archive(membership, row)
        elif action == "restore":
            services.restore(membership, row)
    except Conflict as problem:
        messages.error(request, problem.message)
    return redirect("endpoint", row.pk)


@member(Role.REVIEWER)
@require_GET
def endpoint_check(request: HttpRequest, endpoint_id: int, check_id: int) -> HttpResponseBase:
    """A fragment that asks again while the check is on its way; once it is over, the whole page is loaded again."""
    row = access.check_read(require(request), endpoint_id, check_id)
    answer = render(request, "models/_check.html", {"check": row, "endpoint": row.endpoint})
    if row.finished_at is not None and request.headers.get("HX-Request"):
        answer["HX-Refresh"] = "true"
    return answer


@member(Role.REVIEWER)
@require_GET
def endpoint_use(request: HttpRequest, endpoint_id: int) -> HttpResponseBase:
    """A fragment that the page fetches after it is shown: it counts over every verdict."""
    row = access.endpoint_read(require(request), endpoint_id)
    return render(request, "models/_use.html", {"rows": queries.judges_of_endpoint(row)[0]})


@member(Role.RESEARCHER)
@require_POST
def endpoint_recorded(request: HttpRequest, endpoint_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.endpoint_write(membership, endpoint_id)
    form = RecordedForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            found = recorded_outputs.add_recorded(membership, row, form.cleaned_data["file"].file)
        except Invalid as problem:
            for reason in problem.fields.values():
                form.add_error("file", reason)
        except Conflict as problem:
            form.add_error("file", problem.message)
        else:
            unchanged = f", {found.unchanged:,} were there already" if found.unchanged else ""
            messages.success(request, f"{found.added:,} recorded outputs added{unchanged}.")
            return redirect("endpoint", row.pk)
    return _page(request, row, form, status=422)


urls = [
    path("models/endpoints", endpoints, name="endpoints"),
    path("models/endpoints/new", endpoint_new, name="endpoint_new"),
    path("models/endpoints/<int:endpoint_id>", endpoint, name="endpoint"),
    path("models/endpoints/<int:endpoint_id>/edit", endpoint_edit, name="endpoint_edit"),
    path("models/endpoints/<int:endpoint_id>/act", endpoint_act, name="endpoint_act"),
    path("models/endpoints/<int:endpoint_id>/use", endpoint_use, name="endpoint_use"),
    path("models/endpoints/<int:endpoint_id>/recorded", endpoint_recorded, name="endpoint_recorded"),
    path("models/endpoints/<int:endpoint_id>/checks/<int:check_id>", endpoint_check, name="endpoint_check"),
]
