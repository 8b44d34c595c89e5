"""Reads spans of OpenTelemetry as JSON: the protocol's own files, and spans that programs print one by one."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from webapp.files.records import Row

PREFIX = "gen_ai."
FLAT = re.compile(
    r"gen_ai\.(prompt|completion)\.(\d+)\.(role|content|tool_call_id|tool_calls\.(\d+)\.(name|arguments|id))"
)
EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
CHOICE = "gen_ai.choice"
DETAILS = "gen_ai.client.inference.operation.details"
Said = dict[str, Any]  # a message: {"role", "parts": [...]}


@dataclass(frozen=True)
class ModelSpan:
    """`start` orders the spans of one trace; `events` are (name, attributes) pairs."""

    trace: str
    start: tuple[int, int | str]
    attributes: Row
    events: list[tuple[str, Row]] = field(default_factory=list)
    failed: bool = False

    @property
    def operation(self) -> str:
        return str(self.attributes.get("gen_ai.operation.name", ""))


def spans_of(row: Row) -> Iterator[ModelSpan]:
    """The spans of one row; none if it holds none."""
    if isinstance(row.get("resourceSpans"), list):
        for resource in row["resourceSpans"]:
            for scope in resource.get("scopeSpans", ()):
                yield from map(_span, scope.get("spans", ()))
    elif isinstance(row.get("attributes"), dict | list):
        yield _span(row)


def _span(row: Row) -> ModelSpan:
    context = row["context"] if isinstance(row.get("context"), dict) else {}
    trace = row.get("traceId", row.get("trace_id", context.get("trace_id", "")))
    events = [(str(event.get("name", "")), _event(event)) for event in row.get("events") or ()]
    status = row["status"] if isinstance(row.get("status"), dict) else {}
    failed = str(status.get("code", status.get("status_code", ""))) in ("2", "STATUS_CODE_ERROR", "ERROR")
    start = row.get("startTimeUnixNano", row.get("start_time", ""))
    return ModelSpan(str(trace), _moment(start), _attributes(row.get("attributes")), events, failed)


def _moment(value: Any) -> tuple[int, int | str]:
    text = str(value)
    return (0, int(text)) if text.isdigit() else (1, text)


def _event(event: Row) -> Row:
    """The attributes of an event, and the fields that older programs put into its body."""
    body = event.get("body")
    return {**(body if isinstance(body, dict) else {}), **_attributes(event.get("attributes"))}


def _attributes(value: Any) -> Row:
    if isinstance(value, dict):
        return value
    listed = value if isinstance(value, list) else []
    return {str(one.get("key")): _value(one.get("value")) for one in listed if isinstance(one, dict)}


def _value(value: Any) -> Any:
    """A value of the protocol, which names its type."""
    if not isinstance(value, dict) or not value:
        return value
    [(kind, held), *_] = value.items()
    if kind == "arrayValue":
        return [_value(one) for one in (held or {}).get("values", ())]
    if kind == "kvlistValue":
        return _attributes((held or {}).get("values"))
    return int(held) if kind == "intValue" else held


# ---- what was said ----


def said(span: ModelSpan) -> tuple[list[Said], list[Said]]:
    """(messages to a model, its answer), in the form that the program used; empty if it kept no content."""
    for held in (span.attributes, *[attributes for name, attributes in span.events if name == DETAILS]):
        if f"{PREFIX}input.messages" in held or f"{PREFIX}output.messages" in held:
            system = _parts(held.get(f"{PREFIX}system_instructions"))
            first = [{"role": "system", "parts": system}] if system else []
            return first + _messages(held.get(f"{PREFIX}input.messages")), _messages(
                held.get(f"{PREFIX}output.messages")
            )
    of_events = _of_events(span.events)
    return of_events if any(of_events) else _of_flat(span.attributes)


def read_json(value: Any) -> Any:
    """Attributes hold structures as JSON text. Text that is not JSON stays text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _messages(value: Any) -> list[Said]:
    listed = read_json(value)
    return [
        {"role": str(one.get("role", "")), "parts": _parts(one.get("parts", one.get("content")))}
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict)
    ]


def _parts(value: Any) -> list[Row]:
    listed = read_json(value)
    if isinstance(listed, str):
        return [{"type": "text", "content": listed}] if listed else []
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _of_events(events: list[tuple[str, Row]]) -> tuple[list[Said], list[Said]]:
    """The messages of programs that write an event for each message."""
    sent = [_one(EVENTS[name], held) for name, held in events if name in EVENTS]
    back = [_one("assistant", _choice(held)) for name, held in events if name == CHOICE]
    return sent, back


def _choice(held: Row) -> Row:
    message = read_json(held.get("message"))
    return {**held, **message} if isinstance(message, dict) else {**held, "content": held.get("content", message)}


def _one(role: str, held: Row) -> Said:
    content, calls = held.get("content"), read_json(held.get("tool_calls"))
    if role == "tool":
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": held.get("id"), "response": content}]}
    parts = [{"type": "text", "content": content}] if isinstance(content, str) and content else _parts(content)
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call.get("function"), dict) else call
        parts.append(_called(function.get("name"), function.get("arguments"), call.get("id")))
    return {"role": role, "parts": parts}


def _called(name: Any, arguments: Any, id: Any) -> Row:
    return {"type": "tool_call", "name": name, "arguments": arguments, "id": id}


def _of_flat(attributes: Row) -> tuple[list[Said], list[Said]]:
    """The messages of programs that number them in the names of attributes: `gen_ai.prompt.0.role`."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for name, value in attributes.items():
        if match := FLAT.fullmatch(name):
            message = found.setdefault((match[1], int(match[2])), {"calls": {}})
            if match[4] is None:
                message[match[3]] = value
            else:
                message["calls"].setdefault(int(match[4]), {})[match[5]] = value
    sent, back = (
        [_numbered(held) for (side, _), held in sorted(found.items()) if side == wanted]
        for wanted in ("prompt", "completion")
    )
    return sent, back


def _numbered(held: dict[str, Any]) -> Said:
    calls = [held["calls"][number] for number in sorted(held["calls"])]
    role = str(held.get("role", "assistant"))
    made = _one(role, {"content": held.get("content"), "id": held.get("tool_call_id")})
    made["parts"] += [_called(call.get("name"), call.get("arguments"), call.get("id")) for call in calls]
    return made
