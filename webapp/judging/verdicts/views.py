"""The page of a verdict. It needs the role reviewer."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.datasets.models import Example

from .. import access
from . import queries


@member(Role.REVIEWER)
@require_GET
def verdict(request: HttpRequest, verdict_id: int) -> HttpResponseBase:
    """Shows a call: what was asked, the reply to the letter, and what was read from it."""
    row = access.verdict_read(require(request), verdict_id)
    example_id = row.subject.get("example_id")
    example = Example.objects.filter(pk=example_id, dataset__workspace=require(request).workspace).only("id", "key")
    context = {
        "verdict": row,
        "version": row.version,
        "judge": row.version.judge,
        "example": example.first() if isinstance(example_id, int) else None,
        "samples": queries.samples(row),
    }
    return render(request, "judging/verdict.html", context)


urls = [path("verdicts/<int:verdict_id>", verdict, name="verdict")]
