"""The MCP server: messages of JSON-RPC over HTTP, without sessions and without streams."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from trainer.product import SLUG
from webapp.accounts.authentication.credentials import live_token
from webapp.core.auditing import audit
from webapp.core.network.addresses import public_url
from webapp.core.requests.authorization import bearer_token
from webapp.core.requests.limits import seconds_to_wait
from webapp.version import VERSION

from .requests import WrongArguments, ask
from .tools import Tool, tools

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
LARGEST = 1_000_000  # bytes of a message
LONGEST_ANSWER = 400_000  # characters that an agent gets at once
STRANGERS_PER_MINUTE = 60
PARSE, INVALID, UNKNOWN_METHOD, WRONG_PARAMS = -32700, -32600, -32601, -32602


class Wrong(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@csrf_exempt
@login_not_required
@never_cache
def endpoint(request: HttpRequest) -> HttpResponse:
    """Handles one message of JSON-RPC and gives one response; a notification has none (202). Only a token opens it: a browser's session
    does not, and a page of another origin is refused."""
    if request.method != "POST":
        return _refused(405, "Send a message of JSON-RPC by POST.")
    origin = request.headers.get("Origin")
    if origin and urlsplit(origin).netloc != urlsplit(public_url()).netloc:
        return _refused(403, "Pages of other addresses may not call this address.")
    token = live_token(bearer_token(request.headers.get("Authorization")))
    if token is None:
        if seconds_to_wait(f"mcp:{audit.origin.get().address}", STRANGERS_PER_MINUTE):
            return _refused(429, "Too many requests.")
        answer = _refused(401, "Send an API token as a bearer token.")
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    return _answered(request, token.areas)


def _answered(request: HttpRequest, held: Mapping[str, str]) -> HttpResponse:
    number: Any = None
    try:
        message = _message(request)
        number = message.get("id")
        if "id" not in message:
            return HttpResponse(status=202)
        result = _result(request, held, str(message.get("method", "")), message.get("params") or {})
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


def _result(request: HttpRequest, held: Mapping[str, str], method: str, params: dict[str, Any]) -> dict[str, Any]:
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
        return {"tools": [each.shown() for each in tools().values() if each.opens(held)]}
    if method == "tools/call":
        tool = tools().get(str(params.get("name")))
        if tool is None:
            raise Wrong(WRONG_PARAMS, _no_tool(str(params.get("name"))[:80]))
        return _called(request, tool, params.get("arguments") or {})
    raise Wrong(UNKNOWN_METHOD, f"{method[:80]!r} is not a method of this server.")


def _no_tool(name: str) -> str:
    """An agent may have put two names together, or taken one of another version."""
    near = get_close_matches(name, tools(), 3, 0.5)
    return f"There is no tool {name!r}." + (f" Names like it are {', '.join(near)}." if near else "")


def _called(request: HttpRequest, tool: Tool, given: Any) -> dict[str, Any]:
    """Calls a tool and returns the API's response. An error is also the tool's result, for the agent to read."""
    try:
        answer = ask(request, tool, given)
    except WrongArguments as error:
        told = {"error": {"code": "invalid", "message": str(error)}}
        return _content(json.dumps(told), failed=True)
    return _content(answer.content.decode(), failed=answer.status_code >= 400)


def _content(text: str, failed: bool) -> dict[str, Any]:
    if len(text) > LONGEST_ANSWER:
        text = f"{text[:LONGEST_ANSWER]}\n(cut at {LONGEST_ANSWER:,} of {len(text):,} characters: ask for fewer rows)"
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _refused(status: int, message: str) -> HttpResponse:
    answer = JsonResponse({"jsonrpc": "2.0", "id": None, "error": {"code": INVALID, "message": message}}, status=status)
    if status == 405:
        answer["Allow"] = "POST"
    return answer
