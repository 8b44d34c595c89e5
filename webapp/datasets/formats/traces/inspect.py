"""Samples of inspect: one a row, whole logs with their `samples`, or archives (`.eval`) with a file for each sample in each epoch."""

from collections.abc import Iterator
from typing import Any

from webapp.files.records import BadRow, Row, RowProblem

from ..base_importer import Importer
from ..convert import Mapping
from ..fields import UNSAID
from .trace import AgentTrace, each, listed, role_of

TEXTS = {"text": "text"}
# fields that repeat the messages, or are about the run and not the agent
USED = {"messages", "input", "output", "events", "attachments", "store", "model_usage", "target"}


UNTOLD = {"events": "events of the run: its calls of models and tools", "store": "what its solvers stored"}


def knows(row: Row) -> float:
    if _is_log(row) or aside(row):
        return 0.99
    sample = isinstance(row.get("messages"), list) and {"input", "target"} <= row.keys()
    return 0.99 if sample and {"epoch", "scores", "sample_id", "output"} & row.keys() else 0.0


def aside(row: Row) -> bool:
    """The other contents of an archive: header, journal, summaries and reductions."""
    header = isinstance(row.get("eval"), dict) and "eval_id" in row["eval"] and "samples" not in row
    summary = row.keys() >= {"id", "epoch", "input", "target", "uuid"} and "messages" not in row
    return header or summary or (row.keys() >= {"scorer", "samples"} and "eval" not in row)


def _is_log(row: Row) -> bool:
    return isinstance(row.get("samples"), list) and "eval" in row


def merge(rows: Iterator[tuple[int, Row | RowProblem]]) -> Iterator[tuple[int, Row | RowProblem]]:
    """The samples of a log, each a row, with the log's model and task."""
    for line, row in rows:
        if isinstance(row, RowProblem) or not _is_log(row):
            yield line, row
            continue
        about = row["eval"] if isinstance(row["eval"], dict) else {}
        common = {name: about[name] for name in ("model", "task") if isinstance(about.get(name), str)}
        for sample in row["samples"]:
            yield line, {**common, **sample} if isinstance(sample, dict) else RowProblem(line, "samples", "no object")


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    trace = AgentTrace()
    attachments = row.get("attachments")
    held = attachments if isinstance(attachments, dict) else {}
    each(row.get("messages") or _input(row), "messages", lambda message, field: _message(trace, message, field, held))
    output = row.get("output")
    model = row.get("model") or (output.get("model") if isinstance(output, dict) else None)
    stopped = next((name for name in ("error", "limit") if row.get(name)), "")
    data = trace.example(row, USED | {"model"}, field="messages", model=model, may_be_silent=bool(stopped))
    target = row.get("target")
    if isinstance(target, str) and target:
        data["reference"] = target
    elif target:
        data["meta"]["target"] = target
    if row.get("id") is not None and row.get("epoch") is not None:  # the same answer may come in two epochs
        data["key"] = f"{row['id']}/{row['epoch']}"[-200:]
    unsaid = [what for name, what in UNTOLD.items() if row.get(name)]
    if not data["responses"]:
        unsaid.append(f"a response: the sample ended before the model answered (meta.{stopped})")
    if unsaid:
        data["meta"][UNSAID] = unsaid
    return data


def _input(row: Row) -> Any:
    """The input as messages, for a sample that ended before it had any."""
    given = row.get("input")
    stopped = row.get("error") or row.get("limit")
    return [{"role": "user", "content": given}] if isinstance(given, str) and stopped else given


def _message(trace: AgentTrace, message: Any, field: str, held: Row) -> None:
    role = role_of(message, field)
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    said = [_said(trace, part, f"{field}.content.{index}", held) for index, part in enumerate(parts)]
    text = "\n\n".join(one for one in said if one)
    if role == "tool":
        error = message.get("error")
        why = error.get("message") if isinstance(error, dict) else None
        shown = text or (why if isinstance(why, str) else "")
        trace.result(message.get("tool_call_id"), shown, message.get("function"), failed=bool(error))
        return
    trace.say(role, text)
    for index, call in enumerate(listed(message.get("tool_calls"), f"{field}.tool_calls")):
        if not isinstance(call, dict):
            raise BadRow(f"{field}.tool_calls.{index}", "must be the call of a tool, an object with a function")
        trace.call(call.get("function"), call.get("arguments"), call.get("id"))


def _said(trace: AgentTrace, part: Any, field: str, held: Row) -> str:
    """The text of a part in its message. Thoughts, and tools that the model's server ran, are steps of their own."""
    if isinstance(part, dict) and part.get("type") == "reasoning":
        if part.get("redacted"):
            trace.lose("redacted thinking")
            trace.think(_whole(part.get("summary"), held))
        else:
            trace.think(_whole(part.get("reasoning"), held))
        return ""
    if isinstance(part, dict) and part.get("type") == "tool_use":
        trace.call(part.get("name"), part.get("arguments"), part.get("id"))
        trace.result(part.get("id"), str(part.get("error") or part.get("result") or ""), failed=bool(part.get("error")))
        return ""
    if isinstance(part, dict) and part.get("type") == "text":
        return _whole(part.get("text"), held)
    return trace.text([part], field, TEXTS)


def _whole(text: Any, held: Row) -> str:
    """The text itself. A long text is among the sample's attachments, under the name that is in its place."""
    if not isinstance(text, str):
        return ""
    name = text.removeprefix("attachment://")
    return str(held[name]) if name != text and isinstance(held.get(name), str) else text


IMPORTER = Importer(
    name="inspect",
    label="inspect samples",
    help="Samples with messages, a log with samples, or an .eval archive: one trace of an agent each; target → reference, scores kept.",
    knows=knows,
    convert=convert,
    merge=merge,
    aside=aside,
    unsaid=True,
)
