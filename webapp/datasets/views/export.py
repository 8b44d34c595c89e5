"""The page of exports: every layout with the parts that it would leave out, and the data card."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Role

from .. import access
from ..exports import data_card
from ..exports import stream as exports
from ..formats.exporters import REGISTRY


@member(access.READER)
@require_GET
def export(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    told = data_card.build(version)
    base = f"/api/v1/datasets/{dataset_id}/versions/{number}"
    signed = request.GET.get("labels") == "signed"
    context = {
        "signed": signed,
        "asked": "&imported=false" if signed else "",
        "dataset": version.dataset,
        "version": version,
        "tab": "export",
        "layouts": [
            (
                each,
                exports.leaves_out(each, version),
                exports.says_otherwise(each, version),
                exports.is_empty(each, version),
            )
            for each in REGISTRY.values()
        ],
        "splits": exports.splits_of(version),
        "base": base,
        "card": told,
        "card_text": data_card.markdown(told),
        "command": f"curl -H 'Authorization: Bearer $TOUCHSTONE_TOKEN' -OJ '{request.build_absolute_uri(base)}/export?format=trl_preference&file=parquet&archive=true'",
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "datasets/export.html", context)
