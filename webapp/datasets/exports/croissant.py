"""Croissant metadata of an exported version, with its part on responsible AI computed from the data.

Croissant 1.0 and its RAI vocabulary 1.0 (MLCommons, http://mlcommons.org/croissant/). A property that is unknown is left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trainer.contracts.plurals import with_noun
from trainer.product import NAME
from webapp.version import VERSION

from . import data_card
from .annotated import Annotated

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
ENCODINGS = {"jsonl": "application/jsonlines", "parquet": "application/x-parquet"}


@dataclass(frozen=True)
class ExportedFile:
    """A file of the export: its side of the split, its place in the archive, its SHA-256 and its size."""

    split: str
    path: str
    sha256: str
    bytes: int


def build(
    told: dict[str, Any], files: list[ExportedFile], kind: str, schema: pa.Schema | None, by: list[Annotated]
) -> dict[str, Any]:
    """The document, as JSON. `told` is the data card; without a `schema` the files are listed and their rows not described."""
    rows = [_records(file, schema) for file in files] if schema is not None else []
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": told["name"],
        "description": told["description"] or f"Version {told['version']} of {told['name']}.",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        **({"license": told["licence"]} if told["licence"] else {}),
        "version": f"{told['version']}.0.0",
        "datePublished": told["created_at"],
        "identifier": told["digest"],
        "keywords": told["tags"],
        **responsible(told, by),
        "distribution": [_file(file, kind) for file in files],
        "recordSet": rows,
    }


def responsible(told: dict[str, Any], by: list[Annotated]) -> dict[str, Any]:
    """The properties of the RAI vocabulary that follow from the data."""
    steps = [". ".join([step["origin"], *step["detail"]]) for step in reversed(told["lineage"])]
    found: dict[str, Any] = {
        "rai:dataCollection": f"In this order: {'; '.join(steps)}.",
        "rai:dataManipulationProtocol": "; ".join(steps[1:]),
        "rai:dataAnnotationAnalysis": data_card.agreement_words(told) if any(told["labels"].values()) else "",
    }
    if by:
        found |= _annotation(by)
    return {name: value for name, value in found.items() if value}


def _annotation(by: list[Annotated]) -> dict[str, Any]:
    models = sorted({name for each in by for name in each.suggested_by})
    first, last = min(each.first for each in by), max(each.last for each in by)
    return {
        "rai:dataAnnotationPlatform": f"{NAME} {VERSION}",
        "rai:dataAnnotationProtocol": " ".join(map(_protocol, by)),
        "rai:annotationsPerItem": " ".join(map(_per_item, by)),
        "rai:annotatorDemographics": " ".join(
            f"{each.project}: {with_noun(each.people, 'people')}; nothing else about them is asked." for each in by
        ),
        "rai:machineAnnotationTools": models,
        "rai:dataCollectionTimeframe": [first.isoformat(), last.isoformat()],
    }


def _protocol(each: Annotated) -> str:
    by = "without guidelines"
    if each.guidelines:
        numbers = ", ".join(map(str, each.guidelines))
        by = f"by {'version' if len(each.guidelines) == 1 else 'versions'} {numbers} of its guidelines"
    shown = f" Before {each.suggested} of them a model's view was shown." if each.suggested else ""
    return f"{each.project}: {each.kind}, {by}; {with_noun(each.answers, 'answers')} to {with_noun(each.tasks, 'tasks')}.{shown}"


def _per_item(each: Annotated) -> str:
    mean = each.answers / each.tasks
    return f"{each.project}: {mean:.2f} answers to a task that has any ({each.least} to {each.most})."


def _file(file: ExportedFile, kind: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": f"{file.split}-file",
        "name": f"{file.split}-file",
        "description": f"The examples of the split {file.split}.",
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": ENCODINGS[kind],
        "sha256": file.sha256,
    }


def _records(file: ExportedFile, schema: pa.Schema) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": file.split,
        "name": file.split,
        "field": [field for column in schema for field in _fields(file, column)],
    }


def _fields(file: ExportedFile, column: pa.Field) -> Iterator[dict[str, Any]]:
    """One field for a column of plain values, of lists of them, of records, or of lists of records."""
    repeated = pa.types.is_list(column.type)
    inner = column.type.value_type if repeated else column.type
    name = f"{file.split}/{column.name}"
    head = {"@type": "cr:Field", "@id": name, "name": name, **({"repeated": True} if repeated else {})}
    if not pa.types.is_struct(inner):
        yield {**head, "dataType": _type(inner), "source": _source(file, column.name)}
        return
    parts = []
    for part in inner:
        inside = f"{name}/{part.name}"
        source = _source(file, column.name, f"{'[*].' if repeated else '$.'}{part.name}")
        parts.append(
            {"@type": "cr:Field", "@id": inside, "name": inside, "dataType": _type(part.type), "source": source}
        )
    yield {**head, "subField": parts}


def _source(file: ExportedFile, column: str, path: str = "") -> dict[str, Any]:
    source: dict[str, Any] = {"fileObject": {"@id": f"{file.split}-file"}, "extract": {"column": column}}
    return {**source, "transform": {"jsonPath": path}} if path else source


def _type(type_: pa.DataType) -> str:
    if pa.types.is_boolean(type_):
        return "sc:Boolean"
    if pa.types.is_integer(type_):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(type_) else "sc:Text"
