"""A tool as its client sees it: its text and the schema of its arguments, from the OpenAPI document of the API."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from webapp.accounts import areas
from webapp.api import api

from .operations import END, ONLY_READ, TOOLS

REF, DEFS = "#/components/schemas/", "#/$defs/"
JSON, FORM = "application/json", "multipart/form-data"
KEY, KEY_HEADER = "idempotency_key", "Idempotency-Key"
FILE = {
    "type": "object",
    "description": "The file as text",
    "properties": {
        "name": {"type": "string", "description": "Its name with its ending, such as pairs.jsonl"},
        "content": {"type": "string"},
    },
    "required": ["name", "content"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Tool:
    name: str
    method: str
    path: str
    told: str
    schema: dict[str, Any]
    query: frozenset[str]
    """The arguments that belong into the query of the address."""
    form: bool
    """Whether the API takes the body as a form with a file."""

    def shown(self) -> dict[str, Any]:
        reads = self.method == "GET" or self.name in ONLY_READ
        hints = {"readOnlyHint": reads} | ({} if reads else {"destructiveHint": self.name in END})
        return {"name": self.name, "description": self.told, "inputSchema": self.schema, "annotations": hints}

    def opens(self, held: Mapping[str, str]) -> bool:
        """Whether a token with these areas may call it. The role of its person may still forbid it."""
        return areas.allow(held, areas.right_needed(self.method, f"/api/v1{self.path}"))


@cache
def tools() -> dict[str, Tool]:
    document = api.get_openapi_schema()
    return {name: _tool(name, method, path, document) for name, (method, path) in TOOLS.items()}


def _tool(name: str, method: str, path: str, document: dict[str, Any]) -> Tool:
    spec = document["paths"][f"/api/v1{path}"][method.lower()]
    given = [each for each in spec.get("parameters", []) if each["in"] in ("path", "query")]
    fields = {each["name"]: _words(each) for each in given}
    required = [each["name"] for each in given if each.get("required")]
    for each in spec.get("parameters", []):
        if each["name"] == KEY_HEADER:
            fields[KEY] = _words(each)
    content = spec.get("requestBody", {}).get("content", {})
    if body := _body(content):
        fields["body"] = body
        required.append("body")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }
    schema = json.loads(json.dumps(schema).replace(REF, DEFS))
    if defs := dict(_named(schema, document["components"]["schemas"])):
        schema["$defs"] = defs
    told = ". ".join(part.rstrip(".") for part in (spec.get("summary", ""), spec.get("description", "")) if part)
    query = frozenset(each["name"] for each in given if each["in"] == "query")
    return Tool(name, method, path, told, schema, query, FORM in content)


def _body(content: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of the argument `body`. A form is an object of its fields, in which a file is its name and its text."""
    if FORM not in content:
        return content[JSON]["schema"] if JSON in content else None
    schema = content[FORM]["schema"]
    fields = {name: FILE if each.get("format") == "binary" else each for name, each in schema["properties"].items()}
    return {"type": "object", "properties": fields, "required": schema["required"], "additionalProperties": False}


def _words(parameter: dict[str, Any]) -> dict[str, Any]:
    told = parameter.get("description")
    return {**parameter["schema"], **({"description": told} if told else {})}


def _named(schema: Any, known: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The records that a schema names, and those that these name in turn."""
    left, seen = [schema], set[str]()
    while left:
        here = left.pop()
        if isinstance(here, dict):
            name = str(here.get("$ref", "")).removeprefix(DEFS)
            if name in known and name not in seen:
                seen.add(name)
                record = json.loads(json.dumps(known[name]).replace(REF, DEFS))
                yield name, record
                left.append(record)
            left.extend(here.values())
        elif isinstance(here, list):
            left.extend(here)
