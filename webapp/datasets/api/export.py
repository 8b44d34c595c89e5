"""Export over the API, streamed: memory does not grow with the version."""

from pathlib import Path
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from ninja import Router, Schema

from webapp.accounts.access import require
from webapp.core.auditing import audit
from webapp.core.requests.openapi import sends

from .. import access
from ..exports import data_card
from ..exports import stream as exports
from ..formats.exporters import REGISTRY
from ..ingest import uploads
from ..models import DatasetVersion
from .datasets import Id, Number

router = Router(tags=["datasets"])
VERSION = "/datasets/{int:dataset_id}/versions/{int:number}"


class LayoutOut(Schema):
    """`leaves_out`: parts of this version for which the layout has no place. `says_otherwise`: parts that the file has in another form,
    which its readers understand otherwise. `reads_back`: an import of the file gives the identical version, as far as its examples are in
    the file (`needs`)."""

    name: str
    label: str
    help: str
    files: list[str]
    needs: str
    reads_back: bool
    leaves_out: list[str]
    says_otherwise: list[str]


class LayoutList(Schema):
    items: list[LayoutOut]
    next: str | None


@router.get(
    VERSION + "/export/formats", response=LayoutList, summary="The layouts of an export, and what each would leave out"
)
def layouts(request: HttpRequest, dataset_id: Id, number: Number) -> dict[str, Any]:
    version = access.version_read(require(request), dataset_id, number)
    items = [
        {
            "name": each.name,
            "label": each.label,
            "help": each.help,
            "files": list(each.kinds),
            "needs": each.needs,
            "reads_back": bool(each.importer),
            "leaves_out": exports.leaves_out(each, version),
            "says_otherwise": exports.says_otherwise(each, version),
        }
        for each in REGISTRY.values()
    ]
    return {"items": items, "next": None}


@router.get(
    VERSION + "/export",
    summary="The examples of a version as a file, streamed",
    openapi_extra=sends(*exports.TYPES.values()),
)
def export(
    request: HttpRequest,
    dataset_id: Id,
    number: Number,
    format: str = "touchstone",
    file: Literal["jsonl", "parquet"] = "jsonl",
    split: Literal["", "train", "heldout", "unsplit"] = "",
    extras: bool = True,
    archive: bool = False,
    imported: bool = True,
) -> StreamingHttpResponse:
    """`format` is one of `export/formats`. With `extras`, layouts that we can import have a column `touchstone` with the rest, so that
    importing the file gives the identical digest. `archive` makes a zip with the data card, Croissant metadata (croissant.json) and one
    file for each split, which the datasets library loads as splits; without it and without `split`, all examples are in one file, each with
    its side in the column `split`. `imported=false` leaves out preferences, rubrics and references that came with an import: labels by
    people of projects remain, and a layout that needs a label has no row for an example without one. The column `labelled_by` gives the
    origin of each label. 422 if the version has nothing for the layout."""
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    asked = exports.order(format, file, split, extras, archive, imported)
    exports.refuse_empty(version, asked)
    audit.record(
        membership, membership.user, "version.exported", version, format=format, split=split, imported=imported
    )
    return streamed(version, asked)


@router.get(
    VERSION + "/card",
    summary="The data card: counts, agreement, licence, lineage",
    openapi_extra=sends("application/json", "text/markdown"),
)
def show_card(
    request: HttpRequest, dataset_id: Id, number: Number, format: Literal["json", "markdown"] = "json"
) -> HttpResponse:
    told = data_card.build(access.version_read(require(request), dataset_id, number))
    if format == "markdown":
        return HttpResponse(data_card.markdown(told), content_type="text/markdown; charset=utf-8")
    return JsonResponse(told, json_dumps_params={"ensure_ascii": False})


def streamed(version: DatasetVersion, asked: exports.ExportOrder) -> StreamingHttpResponse:
    parts = [f"{version.dataset.name}-v{version.number}", asked.split, asked.exporter.name]
    name = Path(uploads.safe_name("-".join(filter(None, parts)))).name
    response = StreamingHttpResponse(exports.chunks(version, asked), content_type=exports.TYPES[asked.suffix])
    response["Content-Disposition"] = f'attachment; filename="{name}.{asked.suffix}"'
    return response
