"""The call of a tool as a request to the API, with the token of the agent."""

import json
from io import BytesIO
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlencode
from uuid import uuid4

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from webapp.core import scanning

from .tools import FORM, JSON, KEY, Tool


class WrongArguments(ValueError):
    """The arguments do not fit the tool. The agent reads the message and can correct itself."""


def ask(request: HttpRequest, tool: Tool, given: Any) -> HttpResponse:
    """The response of the API to the call. Raises WrongArguments."""
    _check(tool, given)
    path = "/api/v1" + tool.path
    for name in tool.schema["properties"].keys() - tool.query - {"body", KEY}:
        path = path.replace(f"{{{name}}}", quote(str(given[name]), safe=""))
    asked = {name: given[name] for name in sorted(tool.query & given.keys()) if given[name] is not None}
    kind, body = _form(given["body"]) if tool.form else (JSON, json.dumps(given.get("body", {})).encode())
    inner = _inner(request, tool.method, path, _query(asked), kind, body, given.get(KEY))
    try:
        match = resolve(path)
    except Resolver404:  # an argument that is not an id
        raise WrongArguments(f"{tool.name} cannot be called like this: an id must be a whole number.") from None
    inner.resolver_match = match
    if refused := scanning.refused(inner):
        return refused
    answer: HttpResponse = match.func(inner, *match.args, **match.kwargs)
    return answer


def _check(tool: Tool, given: Any) -> None:
    if not isinstance(given, dict):
        raise WrongArguments("`arguments` must be an object.")
    known = tool.schema["properties"]
    if unknown := sorted(given.keys() - known.keys()):
        raise WrongArguments(f"{tool.name} takes no {unknown[0][:80]!r}. {_takes(tool, unknown[0])}")
    if missing := [name for name in tool.schema["required"] if name not in given]:
        raise WrongArguments(f"{tool.name} needs {missing[0]!r}.")


def _takes(tool: Tool, wrong: str) -> str:
    """The arguments that the tool takes, in words: an agent often puts a field of the body beside it."""
    known = tool.schema["properties"]
    body = known.get("body", {})
    inside = {**tool.schema.get("$defs", {}).get(str(body.get("$ref", "")).rpartition("/")[2], {}), **body}.get(
        "properties", {}
    )
    if wrong in inside:
        return f"It is a field of 'body': send {{'body': {{{wrong!r}: ...}}}}."
    return f"It takes {', '.join(known)}." if known else "It takes no arguments."


def _query(asked: dict[str, Any]) -> str:
    """The query of the address. A list is its name several times: `tag=wrong&tag=judge:hasty`."""
    pairs = [(name, each) for name, value in asked.items() for each in (value if isinstance(value, list) else [value])]
    return urlencode([(name, _written(each)) for name, each in pairs])


def _form(body: Any) -> tuple[str, bytes]:
    """(content type, body) of the same form as a browser sends. Raises WrongArguments."""
    if not isinstance(body, dict):
        raise WrongArguments("`body` must be an object.")
    line, parts = uuid4().hex, list[bytes]()
    for name, value in body.items():
        said, told = f'form-data; name="{quote(name)}"', value
        if name == "file":
            if not isinstance(value, dict) or not {"name", "content"} <= value.keys():
                raise WrongArguments("`file` needs `name` and `content`.")
            said += f"; filename*=UTF-8''{quote(str(value['name']), safe='')}"
            told = value["content"]
        if told is not None:
            parts.append(f"--{line}\r\nContent-Disposition: {said}\r\n\r\n{_written(told)}\r\n".encode())
    return f"{FORM}; boundary={line}", b"".join(parts) + f"--{line}--\r\n".encode()


def _inner(
    request: HttpRequest, method: str, path: str, query: str, kind: str, body: bytes, key: str | None
) -> WSGIRequest:
    """The inner request to the API: the token, the network address and the id of the outer request, and nothing else of it."""
    body = body if method != "GET" else b""
    inner = WSGIRequest(
        {
            "REQUEST_METHOD": method,
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "CONTENT_TYPE": kind,
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_AUTHORIZATION": request.headers["Authorization"],
            "HTTP_HOST": request.META.get("HTTP_HOST", "localhost"),
            "REMOTE_ADDR": request.META.get("REMOTE_ADDR", ""),
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": request.scheme,
            "wsgi.input": BytesIO(body),
            **({} if key is None else {"HTTP_IDEMPOTENCY_KEY": str(key)}),
        }
    )
    inner.id = request.id  # type: ignore[attr-defined]
    inner.user, inner.membership = request.user, None  # type: ignore[attr-defined]  # the token says who it is
    return inner


def _written(value: Any) -> str:
    """A value as the text of a query or a form. `{"prompt": "question"}` and true are JSON there too."""
    return json.dumps(value) if isinstance(value, bool | dict) else str(value)
