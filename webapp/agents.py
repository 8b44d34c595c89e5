"""The server's side for agents: `llms.txt`, which lists what is here, and an MCP server (streamable HTTP) at `/mcp`.

A tool is an operation of the API. The API itself carries it out, as a request with the same token. So the areas, the role, the limits, the
checks and the audit log are those of the API, and a tool can do nothing that the API cannot.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlencode, urlsplit

from django.contrib.auth.decorators import login_not_required
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import Resolver404, resolve
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from trainer.product import NAME, SLUG
from webapp.accounts.authentication.credentials import live_token
from webapp.api import api
from webapp.core import audit
from webapp.core.addresses import public_url
from webapp.core.authorization import bearer_token
from webapp.core.limits import seconds_to_wait
from webapp.help import pages as help_pages
from webapp.version import VERSION

VERSIONS = ("2025-06-18", "2025-03-26")
LARGEST = 1_000_000  # bytes of a message
LONGEST_ANSWER = 400_000  # characters that an agent gets at once
STRANGERS_PER_MINUTE = 60
REF, DEFS = "#/components/schemas/", "#/$defs/"
PARSE, INVALID, UNKNOWN_METHOD, WRONG_PARAMS = -32700, -32600, -32601, -32602

TOOLS = {  # name -> its operation
    "who_am_i": ("GET", "/me"),
    "list_runs": ("GET", "/runs"),
    "get_run": ("GET", "/runs/{run_id}"),
    "run_metric": ("GET", "/runs/{run_id}/metrics"),
    "run_curves": ("GET", "/runs/{run_id}/curves"),
    "run_rollouts": ("GET", "/runs/{run_id}/rollouts"),
    "run_log": ("GET", "/runs/{run_id}/log"),
    "run_alarms": ("GET", "/runs/{run_id}/alarms"),
    "run_artifacts": ("GET", "/runs/{run_id}/artifacts"),
    "compare_runs": ("GET", "/runs/compare"),
    "launch_run": ("POST", "/runs"),
    "stop_run": ("POST", "/runs/{run_id}/stop"),
    "pause_run": ("POST", "/runs/{run_id}/pause"),
    "resume_run": ("POST", "/runs/{run_id}/resume"),
    "fork_run": ("POST", "/runs/{run_id}/fork"),
    "list_recipes": ("GET", "/recipes"),
    "recipe_schema": ("GET", "/recipes/{name}/schema"),
    "recipe_metrics": ("GET", "/recipes/{name}/metrics"),
    "check_config": ("POST", "/recipes/{name}/check"),
    "list_experiments": ("GET", "/experiments"),
    "list_datasets": ("GET", "/datasets"),
    "get_dataset": ("GET", "/datasets/{dataset_id}"),
    "list_models": ("GET", "/models"),
    "list_evaluations": ("GET", "/evaluations"),
    "get_evaluation": ("GET", "/evaluations/{evaluation_id}"),
    "list_judges": ("GET", "/judges"),
    "costs": ("GET", "/costs"),
}


@dataclass(frozen=True)
class Tool:
    name: str
    method: str
    path: str
    told: str
    schema: dict[str, Any]
    query: frozenset[str]

    def shown(self) -> dict[str, Any]:
        hints = {"readOnlyHint": self.method == "GET"}
        return {"name": self.name, "description": self.told, "inputSchema": self.schema, "annotations": hints}


@cache
def tools() -> dict[str, Tool]:
    document = api.get_openapi_schema()
    return {name: _tool(name, method, path, document) for name, (method, path) in TOOLS.items()}


def _tool(name: str, method: str, path: str, document: dict[str, Any]) -> Tool:
    spec = document["paths"][f"/api/v1{path}"][method.lower()]
    given = [each for each in spec.get("parameters", []) if each["in"] in ("path", "query")]
    fields = {each["name"]: _words(each) for each in given}
    required = [each["name"] for each in given if each.get("required")]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }
    if body := spec.get("requestBody", {}).get("content", {}).get("application/json"):
        fields["body"] = body["schema"]
        required.append("body")
    schema = json.loads(json.dumps(schema).replace(REF, DEFS))
    if defs := dict(_named(schema, document["components"]["schemas"])):
        schema["$defs"] = defs
    told = ". ".join(part.rstrip(".") for part in (spec.get("summary", ""), spec.get("description", "")) if part)
    return Tool(name, method, path, told, schema, frozenset(each["name"] for each in given if each["in"] == "query"))


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


class Wrong(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@csrf_exempt
@login_not_required
@never_cache
def mcp(request: HttpRequest) -> HttpResponse:
    """Handles one message of JSON-RPC and gives one response; a notification has none (202). Only a token opens it: a browser's session
    does not, and a page of another origin is refused."""
    if request.method != "POST":
        return _refused(405, "Send a message of JSON-RPC by POST.")
    origin = request.headers.get("Origin")
    if origin and urlsplit(origin).netloc != urlsplit(public_url()).netloc:
        return _refused(403, "Pages of other addresses may not call this address.")
    if live_token(bearer_token(request.headers.get("Authorization"))) is None:
        if seconds_to_wait(f"mcp:{audit.origin.get().address}", STRANGERS_PER_MINUTE):
            return _refused(429, "Too many requests.")
        answer = _refused(401, "Send an API token as a bearer token.")
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    return _answered(request)


def _answered(request: HttpRequest) -> HttpResponse:
    number: Any = None
    try:
        message = _message(request)
        number = message.get("id")
        if "id" not in message:
            return HttpResponse(status=202)
        result = _result(request, str(message.get("method", "")), message.get("params") or {})
        return JsonResponse({"jsonrpc": "2.0", "id": number, "result": result})
    except Wrong as error:
        told = {"code": error.code, "message": str(error)}
        status = 400 if error.code in (PARSE, INVALID) else 200
        return JsonResponse({"jsonrpc": "2.0", "id": number, "error": told}, status=status)


def _message(request: HttpRequest) -> dict[str, Any]:
    if len(request.body) > LARGEST:
        raise Wrong(INVALID, f"A message has at most {LARGEST:,} bytes.")
    try:
        found = json.loads(request.body)
        json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is not text
    except (ValueError, RecursionError):
        raise Wrong(PARSE, "The message is not JSON.") from None
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        raise Wrong(INVALID, "The message is not a JSON-RPC 2.0 request.")
    if not isinstance(found.get("id"), str | int | None) or not isinstance(found.get("params") or {}, dict):
        raise Wrong(INVALID, "`id` must be a text or a number, and `params` must be an object.")
    return found


def _result(request: HttpRequest, method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": SLUG, "version": VERSION},
            "instructions": "Tools are operations of this server's API. They may do what the owner of the token may do.",
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [each.shown() for each in tools().values()]}
    if method == "tools/call":
        tool = tools().get(str(params.get("name")))
        if tool is None:
            raise Wrong(WRONG_PARAMS, f"There is no tool {str(params.get('name'))[:80]!r}.")
        return _called(request, tool, params.get("arguments") or {})
    raise Wrong(UNKNOWN_METHOD, f"{method[:80]!r} is not a method of this server.")


def _called(request: HttpRequest, tool: Tool, given: Any) -> dict[str, Any]:
    """Calls a tool and returns the API's response. An error of the API is also the tool's result, for the agent to read."""
    if not isinstance(given, dict):
        raise Wrong(WRONG_PARAMS, "`arguments` must be an object.")
    if unknown := given.keys() - tool.schema["properties"].keys():
        raise Wrong(WRONG_PARAMS, f"{tool.name} takes no {sorted(unknown)[0][:80]!r}.")
    if missing := [name for name in tool.schema["required"] if name not in given]:
        raise Wrong(WRONG_PARAMS, f"{tool.name} needs {missing[0]!r}.")
    answer = _ask(request, tool, given)
    text = answer.content.decode()
    if len(text) > LONGEST_ANSWER:
        text = f"{text[:LONGEST_ANSWER]}\n(cut at {LONGEST_ANSWER:,} of {len(text):,} characters: ask for fewer rows)"
    return {"content": [{"type": "text", "text": text}], "isError": answer.status_code >= 400}


def _ask(request: HttpRequest, tool: Tool, given: dict[str, Any]) -> HttpResponse:
    path = "/api/v1" + tool.path
    for name in tool.schema["properties"].keys() - tool.query - {"body"}:
        path = path.replace(f"{{{name}}}", quote(str(given[name]), safe=""))
    query = {name: _written(given[name]) for name in tool.query & given.keys() if given[name] is not None}
    inner = _inner(request, tool.method, path, urlencode(query), json.dumps(given.get("body", {})).encode())
    try:
        match = resolve(path)
    except Resolver404:  # an argument that is not an id
        raise Wrong(WRONG_PARAMS, f"{tool.name} cannot be called like this: an id must be a whole number.") from None
    inner.resolver_match = match
    answer: HttpResponse = match.func(inner, *match.args, **match.kwargs)
    return answer


def _inner(request: HttpRequest, method: str, path: str, query: str, body: bytes) -> WSGIRequest:
    """The inner request to the API: the token, the network address and the id of the outer request, and nothing else of it."""
    body = body if method != "GET" else b""
    inner = WSGIRequest(
        {
            "REQUEST_METHOD": method,
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_AUTHORIZATION": request.headers["Authorization"],
            "HTTP_HOST": request.META.get("HTTP_HOST", "localhost"),
            "REMOTE_ADDR": request.META.get("REMOTE_ADDR", ""),
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": request.scheme,
            "wsgi.input": BytesIO(body),
        }
    )
    inner.id = request.id  # type: ignore[attr-defined]
    inner.user, inner.membership = request.user, None  # type: ignore[attr-defined]  # the token says who it is
    return inner


def _written(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _refused(status: int, message: str) -> HttpResponse:
    answer = JsonResponse({"jsonrpc": "2.0", "id": None, "error": {"code": INVALID, "message": message}}, status=status)
    if status == 405:
        answer["Allow"] = "POST"
    return answer


@login_not_required
@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    """Describes the product to programs (llmstxt.org). The text holds nothing of any workspace."""
    base = public_url()
    lines = [
        f"# {NAME}",
        "",
        "> Turns human judgement into reward models and better language models: datasets, annotation, judges, runs, evaluations.",
        "",
        "Everything needs an API token (`Authorization: Bearer ts_...`), which a person makes under Settings → API tokens.",
        "",
        "## Interfaces",
        "",
        f"- [OpenAPI document]({base}/api/v1/openapi.json): every operation of the REST API, with what it asks of a token",
        f"- [API reference]({base}/api/v1/docs): the same for people",
        f"- [MCP server]({base}/mcp): streamable HTTP; {len(TOOLS)} tools, which are operations of the API",
        f"- [MLflow tracking]({base}/mlflow): set MLFLOW_TRACKING_URI to it to log runs from elsewhere",
        "",
        "## Documentation",
        "",
        f"The pages of {base}/help as Markdown, with the same token:",
        "",
        *(
            f"- [{entry.title}]({base}/help/{entry.file.slug}.md)"
            for section in help_pages.sections()
            for entry in section.entries
        ),
        "",
        "## Tools of the MCP server",
        "",
        *(f"- `{each.name}`: {each.told.split('. ')[0]}" for each in tools().values()),
        "",
    ]
    return HttpResponse("\n".join(lines), content_type="text/plain; charset=utf-8")
