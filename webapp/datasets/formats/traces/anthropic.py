"""Anthropic's messages: text, thoughts, `tool_use` and `tool_result` as blocks of one message."""

from typing import Any

from webapp.files.records import Row

from ..base_importer import Importer
from ..convert import Mapping
from .trace import AgentTrace, each, key_of, role_of, written

TEXTS = {"text": "text"}
USED = {"key", "id", "messages", "system", "model", "content", "role", "type"}


def knows(row: Row) -> float:
    messages = row.get("messages")
    blocks = [block for message in messages for block in _blocks(message)] if isinstance(messages, list) else []
    return 0.97 if any(map(_is_of_agent, [*blocks, *_blocks(row)])) else 0.0


def _blocks(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def _is_of_agent(block: Any) -> bool:
    kind = str(block.get("type")) if isinstance(block, dict) else ""
    return kind.endswith(("tool_use", "tool_result")) or kind in ("thinking", "redacted_thinking")


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    """`system` goes before the messages; `content` at the top is the reply to them."""
    trace = AgentTrace()
    trace.say("system", trace.text(row.get("system"), "system", TEXTS))
    each(row.get("messages"), "messages", lambda message, field: _message(trace, message, field))
    if row.get("content") is not None:
        _content(trace, "assistant", row["content"], "content")
    return trace.example(row, USED, field="messages", model=row.get("model"), key=key_of(row))


def _message(trace: AgentTrace, message: Any, field: str) -> None:
    _content(trace, role_of(message, field), message.get("content"), f"{field}.content")


def _content(trace: AgentTrace, role: str, content: Any, field: str) -> None:
    """Consecutive blocks of text are one message. Thoughts, calls and results are steps of their own."""
    if not isinstance(content, list):
        trace.say(role, trace.text(content, field, TEXTS))
        return
    said: list[str] = []
    for index, block in enumerate(content):
        if _is_of_agent(block):
            trace.say(role, "\n\n".join(said))
            said = []
            _step(trace, block, f"{field}.{index}")
        else:
            said.append(trace.text([block], f"{field}.{index}", TEXTS))
    trace.say(role, "\n\n".join(said))


def _step(trace: AgentTrace, block: Row, field: str) -> None:
    kind = str(block["type"])
    if kind.endswith("tool_use"):
        trace.call(block.get("name"), block.get("input"), block.get("id"))
    elif kind == "thinking":
        trace.think(trace.text(block.get("thinking"), f"{field}.thinking", TEXTS))
    elif kind == "redacted_thinking":
        trace.lose("redacted thinking")
    else:
        back = block.get("content")
        failed = block.get("is_error") is True or (isinstance(back, dict) and str(back.get("type")).endswith("_error"))
        trace.result(block.get("tool_use_id"), _back(trace, kind, back, f"{field}.content"), failed=failed)


def _back(trace: AgentTrace, kind: str, back: Any, field: str) -> str:
    """The result of a tool: blocks from the program's own tools, objects from tools that the server runs."""
    if isinstance(back, list) and kind == "tool_result":
        return trace.text(back, field, TEXTS)
    if isinstance(back, list):
        back = [{name: part[name] for name in part if name != "encrypted_content"} for part in back]
    return written(back)


IMPORTER = Importer(
    name="anthropic_trace",
    label="Anthropic messages with tools",
    help="Messages whose blocks are text, thinking, tool_use and tool_result: one trace of an agent each.",
    knows=knows,
    convert=convert,
)
