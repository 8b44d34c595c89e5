"""The API's reference page, drawn from its own OpenAPI document, so the page shows what is served."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.api import api

REF = "#/components/schemas/"


@dataclass(frozen=True)
class ApiField:
    """A parameter, or a field of a body; `where` is path, query, header, body or form."""

    name: str
    where: str
    kind: str
    required: bool
    description: str


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    summary: str
    description: str
    fields: list[ApiField]


def operations() -> dict[str, list[Operation]]:
    """Every operation, grouped by its tag, in the order of the document."""
    groups: dict[str, list[Operation]] = {}
    document = api.get_openapi_schema()
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, spec in methods.items():
            operation = Operation(
                method=method.upper(),
                path=path,
                summary=spec.get("summary", ""),
                description=spec.get("description", ""),
                fields=[*map(_parameter, spec.get("parameters", [])), *_body(spec, schemas)],
            )
            groups.setdefault((spec.get("tags") or ["other"])[0], []).append(operation)
    return groups


def _parameter(told: dict[str, Any]) -> ApiField:
    return ApiField(told["name"], told["in"], kind(told["schema"]), told["required"], told.get("description", ""))


def _body(spec: dict[str, Any], schemas: dict[str, Any]) -> list[ApiField]:
    """The fields of the body. Records within it are given by their names only, because the document explains them."""
    for media, content in spec.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        schema = schemas.get(schema.get("$ref", "").removeprefix(REF), schema)
        where = "body" if media == "application/json" else "form"
        needed = schema.get("required", [])
        return [
            ApiField(name, where, kind(each), name in needed, each.get("description", ""))
            for name, each in schema.get("properties", {}).items()
        ]
    return []


def kind(schema: dict[str, Any]) -> str:
    """The type of a value in words: "integer or null", "list of string", "open, paused or closed"."""
    if "$ref" in schema:
        return str(schema["$ref"].removeprefix(REF))
    if choices := schema.get("enum"):
        return _either([str(each) for each in choices])
    if "anyOf" in schema:
        return _either([kind(each) for each in schema["anyOf"]])
    if schema.get("type") == "array":
        return f"list of {kind(schema['items'])}" if schema.get("items") else "list"
    return "file" if schema.get("format") == "binary" else str(schema.get("type", "anything"))


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


@login_not_required
def page(request: HttpRequest) -> HttpResponse:
    """The reference page. It is open to all, like the document itself, because it holds no data."""
    return render(request, "api_docs.html", {"groups": operations()})
