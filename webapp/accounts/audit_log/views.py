"""The pages of the audit log of a workspace."""

from collections.abc import AsyncIterator
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_GET

from webapp.core.models import AuditEntry

from ..access import member, require
from ..models import Role
from . import queries, services


@member(Role.OWNER)
@require_GET
def audit(request: HttpRequest) -> HttpResponseBase:
    """The audit log, newest first."""
    action, who = request.GET.get("action", ""), request.GET.get("who", "")
    entries = queries.audit_page(require(request, Role.OWNER), request.GET.get("cursor"), action, who)
    query = urlencode({"action": action, "who": who})
    return render(request, "accounts/audit.html", {"page": entries, "action": action, "who": who, "query": query})


@member(Role.OWNER)
@require_GET
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """The audit log as JSON Lines, filtered as the request says. The log records the export as well."""
    membership = require(request, Role.OWNER)
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


urls = [
    path("settings/audit", audit, name="audit"),
    path("settings/audit.jsonl", audit_export, name="audit_export"),
]
