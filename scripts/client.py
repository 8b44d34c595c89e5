"""Writes the typed part of the Python client, `client/touchstone/api/`, from the OpenAPI document of the server.

    python -m scripts.client

Each group of operations is a module: the types of its answers and requests, and a class with a method for each operation. Left out are
operations that no API token opens: those of training processes (`/ingest`), and the exports of a person's data. `tests/client/test_generated.py` compares the
files with the document. No generator that is on the package index writes methods as short as these; those for types alone would need a
second program for the methods.
"""

import keyword
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "client" / "touchstone" / "api"
PREFIX = "/api/v1"
WIDTH = 116
HEAD = "Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."
GROUPS = {  # the beginning of an address -> its group, if the tag of the document is too broad
    "/runs/{run_id}/rollouts": "rollouts",
    "/runs/table": "table",
    "/share-links": "share_links",
    "/repeats": "repeats",
    "/projects": "projects",
    "/datasets": "datasets",
}
NAMES = {  # operations whose function has a name that says too little without its module
    "webapp_annotation_work_api_mine": "my_tasks",
    "webapp_annotation_projects_api_mine": "mine",
    "webapp_experiments_after_api_add": "add_step",
    "webapp_experiments_after_api_cancel": "cancel_step",
    "webapp_experiments_outputs_api_model_as_judge": "of_model",
    "webapp_identity_api_read": "time_outs",
    "webapp_identity_api_change": "change_time_outs",
    "webapp_needs_api_needs_of": "get",
}
LEFT_OUT = ("/ingest/", "/me/data")
SETS = re.compile(  # the ends of addresses whose requests do the same if they arrive twice: they set something, or make nothing that is not there
    r"/((?<=deliveries/)again|archive|budget|cancel|check|early|import|launch|limit|pause|preview|priority|read|render|schedule|settings|size|state|stop|(?<=}/)tokens|try|watches)$"
)
PLAIN = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class ClientOperation:
    """An operation of the document."""

    method: str
    path: str
    said: Mapping[str, Any]

    @cached_property
    def group(self) -> str:
        tag = self.said["tags"][0].replace(" ", "_")
        return next((group for start, group in GROUPS.items() if self.path.startswith(start)), tag)

    @cached_property
    def name(self) -> str:
        """The name of the function on the server, without the words that the group says already."""
        known = self.said["operationId"]
        if known in NAMES:
            return NAMES[known]
        name = known.partition("_api_")[2]
        if known.startswith("webapp_datasets_api_"):  # the module follows, because this API is a folder
            name = name.partition("_")[2]
        name = name.removeprefix(f"{self.group}_")
        one = self.group.removesuffix("s")
        if name in (self.group, f"list_{self.group}"):
            return "all" if self.paged or self.path == f"/{self.group}" else "get"
        if name in (one, f"get_{one}"):
            return "get"
        short = re.sub(rf"(?<=[a-z])_{one}$", "", name.removeprefix(f"{one}_"))
        return name if keyword.iskeyword(short) else short

    def parameters(self, place: str) -> list[Mapping[str, Any]]:
        return [each for each in self.said.get("parameters", []) if each["in"] == place]

    @cached_property
    def answer(self) -> tuple[str, Schema]:
        """(content type, schema) of the answer; ("", {}) if it has no content."""
        code = min(code for code in self.said["responses"] if code != "default")
        content = self.said["responses"][code].get("content", {})
        return next(((kind, told.get("schema", {})) for kind, told in content.items()), ("", {}))

    @cached_property
    def body(self) -> tuple[str, Schema]:
        content = self.said.get("requestBody", {}).get("content", {})
        return next(((kind, told["schema"]) for kind, told in content.items()), ("", {}))

    @property
    def paged(self) -> bool:
        return any(each["name"] == "cursor" for each in self.parameters("query"))


class ClientDocument:
    """The parts of the document that become code."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.schemas: Mapping[str, Schema] = document["components"]["schemas"]
        self.groups: dict[str, list[ClientOperation]] = defaultdict(list)
        for path, operations in document["paths"].items():
            for method, said in operations.items():
                operation = ClientOperation(method.upper(), path.removeprefix(PREFIX), said)
                if not operation.path.startswith(LEFT_OUT):
                    self.groups[operation.group].append(operation)
        self.sent = self.closure(schema for each in self._operations() for schema in [each.body[1]])
        self.used = {
            group: self.closure(schema for each in operations for schema in (each.body[1], each.answer[1]))
            for group, operations in self.groups.items()
        }
        for group, operations in self.groups.items():  # a page is read item by item, so nobody sees its type
            for each in operations:
                if each.paged:
                    self.used[group].discard(named(each.answer[1]))

    def _operations(self) -> Iterator[ClientOperation]:
        for operations in self.groups.values():
            yield from operations

    def closure(self, schemas: Iterator[Schema]) -> set[str]:
        """The names of all schemas to which these lead."""
        found, waiting = set[str](), [name for schema in schemas for name in refs(schema)]
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                waiting += refs(self.schemas[name])
        return found

    def shared(self) -> set[str]:
        """The types of several groups."""
        counts: dict[str, int] = defaultdict(int)
        for names in self.used.values():
            for name in names:
                counts[name] += 1
        return {name for name, count in counts.items() if count > 1}

    def item(self, page: Schema) -> Schema:
        found: Schema = self.schemas[named(page)]["properties"]["items"]["items"]
        return found

    def type_of(self, name: str) -> str:
        """The definition of a type."""
        schema = self.schemas[name]
        if "properties" not in schema:
            return f"{name} = {hint(schema)}\n"
        told = schema.get("description", "")
        lines = [f"class {name}(TypedDict):", *(docstring(told, 4) if told else [])]
        needed = set(schema.get("required", []))
        for field, kind in schema["properties"].items():
            said = hint(kind)
            optional = name in self.sent and field not in needed
            lines.append(f"    {field}: {f'NotRequired[{said}]' if optional else said}")
        return "\n".join(lines) + "\n"

    def files(self) -> dict[str, str]:
        """{name: text} of the modules, not yet formatted."""
        shared = self.shared()
        found = {"shared.py": self.module("shared", "Types of several groups.", sorted(shared), "")}
        for group, operations in sorted(self.groups.items()):
            own = sorted(self.used[group] - shared)
            methods = "\n".join(self.method_of(each) for each in operations)
            text = f"class {camel(group)}(Group):\n{methods}"
            title = f"The group `{group}` of the API."
            found[f"{group}.py"] = self.module(group, title, own, text, sorted(self.used[group] & shared))
        found["__init__.py"] = self.entrance()
        return found

    def module(self, name: str, title: str, types: list[str], methods: str, borrowed: list[str] | None = None) -> str:
        parts = "\n\n".join([*(self.type_of(each) for each in types), *([methods] if methods else [])])
        return f'"""{title} {HEAD}"""\n\n{imports(parts, borrowed or [])}\n\n{parts}'

    def entrance(self) -> str:
        groups = sorted(self.groups)
        lines = [f'"""The API of the server, in groups. A group is loaded when it is first used. {HEAD}"""', ""]
        lines += ["from __future__ import annotations", "", "from functools import cached_property"]
        lines += ["from typing import TYPE_CHECKING", "", "from ..http import Connection", "", "if TYPE_CHECKING:"]
        lines += [f"    from .{group} import {camel(group)}" for group in groups]
        lines += ["", "", "class Groups(Connection):", '    """A method for each operation of the API."""']
        for group in groups:
            lines += ["", "    @cached_property", f"    def {group}(self) -> {camel(group)}:"]
            lines += [f"        from .{group} import {camel(group)}", "", f"        return {camel(group)}(self)"]
        return "\n".join(lines) + "\n"

    def method_of(self, operation: ClientOperation) -> str:
        """A method that calls one operation."""
        given, query = ["self"], dict[str, str]()
        for each in operation.parameters("path"):
            given.append(f"{each['name']}: {hint(each['schema'])}")
        kind, schema = operation.body
        form = kind == "multipart/form-data"
        if form:
            given.append("file: Path")
        elif schema:
            given.append(f"body: {hint(schema)}")
        named_only = [] if not form else [each for each in fields(schema) if not each.startswith("file:")]
        for each in operation.parameters("query"):
            if each["name"] != "cursor":
                name = "page_size" if operation.paged and each["name"] == "limit" else each["name"]
                query[each["name"]] = name
                named_only.append(argument(name, each["schema"], each.get("required", False)))
        if operation.parameters("header"):
            named_only.append("key: str | None = None")
        returns, does = self.call(operation, query, form)
        if "to" in does:
            given.append("to: Path")
        named_only.sort(key=lambda each: "=" in each)
        given += ["*", *named_only] if named_only else []
        told = f"{operation.said['summary']}. {operation.said.get('description', '')}"
        lines = [f"    def {operation.name}({', '.join(given)}) -> {returns}:", *docstring(told.strip(), 8)]
        return "\n".join([*lines, f"        {does['code']}", ""])

    def call(self, operation: ClientOperation, query: dict[str, str], form: bool) -> tuple[str, dict[str, str]]:
        """(the type of the answer, the code of the call)."""
        kind, schema = operation.answer
        asked = [f'"{operation.method}"', address(operation)]
        if form:
            names = [each.partition(":")[0] for each in fields(operation.body[1]) if not each.startswith("file:")]
            said = hint(schema)
            sent = mapping({name: name for name in names})
            again = ", again=True" if SETS.search(operation.path) else ""
            return said, {"code": f"return self._sent({said}, {asked[1]}, file, {sent}{again})"}
        if operation.body[1]:
            asked.append("body=body")
        if query:
            asked.append(f"query={mapping(query)}")
        if operation.parameters("header"):
            asked.append("key=key or new_key()")
        elif operation.method == "POST" and SETS.search(operation.path):
            asked.append("again=True")
        if operation.paged:
            item = hint(self.item(schema))
            return f"Iterator[{item}]", {"code": f"return self._pages({item}, {', '.join(asked[1:])})"}
        if not kind:
            return "None", {"code": f"self._nothing({', '.join(asked)})"}
        if kind == "text/event-stream":
            return "Iterator[tuple[str, dict[str, Any]]]", {"code": f"return self._events({', '.join(asked)})"}
        if kind != "application/json":
            return "Path", {"code": f"return self._file(to, {', '.join(asked[1:])})", "to": "yes"}
        said = hint(schema)
        call = ", ".join(asked)
        if " | " in said:  # a class stands for its type when it is called, a union does not
            return said, {"code": f"found: {said} = self._any({call})\n        return found"}
        return said, {"code": f"return self._json({said}, {call})"}


def refs(schema: Any) -> list[str]:
    if isinstance(schema, Mapping):
        own = [named(schema)] if "$ref" in schema else []
        return own + [name for key, part in schema.items() if key != "discriminator" for name in refs(part)]
    return [name for part in schema for name in refs(part)] if isinstance(schema, list) else []


def named(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def hint(schema: Schema) -> str:
    """The Python type of a schema."""
    if "$ref" in schema:
        return "Any" if named(schema) == "JsonValue" else named(schema)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            kinds = list(dict.fromkeys(hint(each) for each in schema[several]))
            return "Any" if "Any" in kinds else " | ".join(kinds)
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return f"Literal[{', '.join(map(repr, values))}]"
    kind = schema.get("type")
    if kind == "array":
        return f"list[{hint(schema.get('items', {}))}]"
    if kind == "object" or "additionalProperties" in schema:
        inner = schema.get("additionalProperties")
        return f"dict[str, {hint(inner) if isinstance(inner, Mapping) and inner else 'Any'}]"
    return PLAIN.get(str(kind), "Any")


def argument(name: str, schema: Schema, required: bool) -> str:
    """A parameter of a method; None means that it is not sent."""
    said = hint(schema)
    if required:
        return f"{name}: {said}"
    return f"{name}: {said if said.endswith('| None') or said == 'Any' else f'{said} | None'} = None"


def fields(form: Schema) -> list[str]:
    needed = form.get("required", [])
    return [argument(name, kind, name in needed) for name, kind in form["properties"].items()]


def mapping(values: Mapping[str, str]) -> str:
    pairs = ", ".join(f'"{name}": {value}' for name, value in values.items())
    return f"{{{pairs}}}"


def address(operation: ClientOperation) -> str:
    """The address as Python text; a text in it is quoted."""
    path = operation.path
    for each in operation.parameters("path"):
        if hint(each["schema"]) != "int":
            path = path.replace(f"{{{each['name']}}}", f"{{quote_part({each['name']})}}")
    return f'{"f" if "{" in path else ""}"{path}"'


def docstring(text: str, indent: int) -> list[str]:
    lines = textwrap.wrap(" ".join(text.split()), WIDTH - indent - 6, break_long_words=False) or [""]
    quoted = "\n".join(lines)
    mark = 'r"""' if "\\" in quoted else '"""'
    end = "" if len(lines) == 1 else "\n"
    return textwrap.indent(f'{mark}{quoted}{end}"""', " " * indent).splitlines()


def imports(code: str, borrowed: list[str]) -> str:
    """The import lines that the code needs."""
    lines = ["from __future__ import annotations", ""]
    if "Iterator[" in code:
        lines.append("from collections.abc import Iterator")
    if re.search(r"\bPath\b", code):
        lines.append("from pathlib import Path")
    if typed := [name for name in ("Any", "Literal", "NotRequired", "TypedDict") if re.search(rf"\b{name}\b", code)]:
        lines.append(f"from typing import {', '.join(typed)}")
    calls = [name for name in ("Group", "new_key", "quote_part") if re.search(rf"\b{name}\(|\({name}\)", code)]
    lines += ["", f"from ..calling import {', '.join(calls)}"] if calls else []
    if here := [name for name in borrowed if re.search(rf"\b{name}\b", code)]:
        lines.append(f"from .shared import {', '.join(here)}")
    return "\n".join(lines)


def camel(group: str) -> str:
    return "".join(word.capitalize() for word in group.split("_"))


def document() -> Mapping[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django

    django.setup()
    from webapp.api import api

    return api.get_openapi_schema()


def formatted(folder: Path) -> None:
    """Lets ruff sort the imports and break the lines, as in the rest of the repository."""
    ruff = [sys.executable, "-m", "ruff"]
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", "--quiet", str(folder)]
    subprocess.run([*ruff, "check", "--fix", "--select", "I", *settings], check=True)
    subprocess.run([*ruff, "format", *settings], check=True)


def write(folder: Path) -> None:
    """Writes the modules into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in ClientDocument(document()).files().items():
        (folder / name).write_text(text, encoding="utf-8")
    formatted(folder)


if __name__ == "__main__":
    write(OUT)
    print(f"wrote {len(list(OUT.glob('*.py')))} modules to {OUT.relative_to(ROOT)}")
