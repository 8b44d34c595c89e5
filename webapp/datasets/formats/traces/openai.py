"""OpenAI's messages with calls of tools: those of the Chat Completions API, and the items of the Responses API."""

from typing import Any

from webapp.files.records import BadRow, Row

from ..base_importer import Importer
from ..convert import Mapping
from .trace import AgentTrace, each, key_of, listed, role_of, written

TEXTS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
}
USED = {"key", "id", "messages", "input", "output", "instructions", "model", "object"}
CALLED = ("function_call", "custom_tool_call")
OWN = {"type", "id", "status", "call_id", "output", "name", "arguments", "input", "server_label", "error", "result"}


def knows(row: Row) -> float:
    if isinstance(row.get("output"), list) and any(map(_is_item, row["output"])):
        return 0.97
    if isinstance(row.get("input"), list) and "messages" not in row and any(map(_is_call, row["input"])):
        return 0.97
    messages = row.get("messages")
    with_tools = isinstance(messages, list) and any(isinstance(each, dict) and _has_tools(each) for each in messages)
    return 0.97 if with_tools and "input" not in row else 0.0


def _has_tools(message: Row) -> bool:
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls and isinstance(calls[0], dict):
        return isinstance(calls[0].get("function"), dict) or "custom" in calls[0]
    return "tool_call_id" in message or isinstance(message.get("function_call"), dict)


def _is_item(item: Any) -> bool:
    return _is_call(item) or (isinstance(item, dict) and item.get("type") in ("message", "reasoning"))


def _is_call(item: Any) -> bool:
    return isinstance(item, dict) and str(item.get("type")).removesuffix("_output").endswith("_call")


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    trace = AgentTrace()
    if "messages" in row:
        each(row["messages"], "messages", lambda message, field: _message(trace, message, field))
        return trace.example(row, USED, field="messages", model=row.get("model"), key=key_of(row))
    trace.say("system", trace.text(row.get("instructions"), "instructions", TEXTS))
    if isinstance(row.get("input"), str):
        trace.say("user", row["input"])
    else:
        each(row.get("input"), "input", lambda item, field: _item(trace, item, field))
    for index, item in enumerate(listed(row.get("output"), "output")):
        _item(trace, item, f"output.{index}")
    return trace.example(row, USED, field="input", model=row.get("model"), key=key_of(row))


# ---- Chat Completions ----


def _message(trace: AgentTrace, message: Any, field: str) -> None:
    role = role_of(message, field)
    text = trace.text(message.get("content"), f"{field}.content", TEXTS)
    for name in (
        "reasoning_content",
        "reasoning",
    ):  # from servers that speak this protocol and show what a model thinks
        if isinstance(message.get(name), str):
            trace.think(message[name])
            break
    if role == "tool":
        trace.result(message.get("tool_call_id"), text, message.get("name"))
        return
    trace.say(role, text)
    if isinstance(message.get("refusal"), str):
        trace.say(role, message["refusal"])
    if message.get("audio") is not None:
        trace.say(role, trace.lose("audio"))
    for index, call in enumerate(listed(message.get("tool_calls"), f"{field}.tool_calls")):
        _call(trace, call, f"{field}.tool_calls.{index}")
    if message.get("function_call") is not None:  # the older form, for a single call
        _call(trace, {"function": message["function_call"]}, f"{field}.function_call")


def _call(trace: AgentTrace, call: Any, field: str) -> None:
    called = (call.get("function") or call.get("custom")) if isinstance(call, dict) else None
    if not isinstance(called, dict):
        raise BadRow(field, "must be the call of a tool, an object with a function")
    trace.call(called.get("name"), called.get("arguments", called.get("input")), call.get("id"))


# ---- Responses ----


def _item(trace: AgentTrace, item: Any, field: str) -> None:
    if not isinstance(item, dict):
        raise BadRow(field, "must be an item, an object with a type")
    kind = str(item.get("type", "message"))
    if kind == "message":
        role = role_of(item, field)
        trace.say(role, trace.text(item.get("content"), f"{field}.content", TEXTS))
    elif kind == "reasoning":
        _thought(trace, item, field)
    elif kind.endswith("_call_output"):
        trace.result(item.get("call_id"), _output(trace, item.get("output"), f"{field}.output"))
    elif kind in CALLED:
        trace.call(item.get("name"), item.get("arguments", item.get("input")), item.get("call_id"))
    elif kind.endswith("_call"):
        _own_tool(trace, item, kind)
    else:
        trace.say("assistant", trace.lose(kind))


def _thought(trace: AgentTrace, item: Row, field: str) -> None:
    """The summary, or the thoughts themselves if they are shown; encrypted ones are counted."""
    for name in ("summary", "content"):
        trace.think(trace.text(item.get(name), f"{field}.{name}", TEXTS))
    if item.get("encrypted_content") and not (item.get("summary") or item.get("content")):
        trace.lose("encrypted reasoning")


def _own_tool(trace: AgentTrace, item: Row, kind: str) -> None:
    """A tool that the server itself runs, such as `web_search_call`: its arguments and, if they are given, its results."""
    id = item.get("call_id", item.get("id"))
    asked = item.get(
        "arguments", {name: value for name, value in item.items() if name not in OWN and value is not None}
    )
    trace.call(item.get("name") or kind.removesuffix("_call"), asked, id)
    error = item.get("error")
    back = next((item[name] for name in ("output", "result", "results") if item.get(name) is not None), None)
    if error or back is not None:
        trace.result(id, written(error or back), failed=bool(error))


def _output(trace: AgentTrace, value: Any, field: str) -> str:
    return trace.text(value, field, TEXTS) if isinstance(value, list) else written(value)


IMPORTER = Importer(
    name="openai_trace",
    label="OpenAI messages with tools",
    help="Chat messages with tool_calls, or input and output of the Responses API: one trace of an agent each.",
    knows=knows,
    convert=convert,
)
