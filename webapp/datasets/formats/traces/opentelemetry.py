"""Spans of OpenTelemetry with `gen_ai` attributes: each conversation of a trace is one example.

A program sends a model the whole conversation again at each turn. So a span whose messages begin with those of an earlier one continues it,
and any other begins a new conversation: that of a second agent, or one whose past was summed up.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from webapp.files.records import BadRow, Row, RowProblem

from ..base_importer import Importer
from ..convert import Mapping
from .spans import PREFIX, ModelSpan, Said, read_json, said, spans_of
from .trace import AgentTrace, key_of, role_of, written

TEXTS = {"text": "content"}
USED = {"conversation", "model", "key", "results"}
MAX_SPANS = 500_000  # of one file, because its spans are grouped by trace and all of them are then in memory
STRANGE = (TypeError, ValueError, AttributeError, KeyError, IndexError)  # raised for data of an unexpected shape
NO_CONTENT = (
    "holds no content of messages: the program that wrote it left it out. Have it record gen_ai.input.messages and "
    "gen_ai.output.messages"
)


def knows(row: Row) -> float:
    if "conversation" in row and "trace_id" in row:
        return 0.97
    if isinstance(row.get("resourceSpans"), list):
        return 0.98
    if not isinstance(row.get("attributes"), dict | list) or not {"trace_id", "traceId", "context"} & row.keys():
        return 0.0
    return 0.98 if PREFIX in str(row["attributes"]) or PREFIX in str(row.get("events")) else 0.6


def merge(rows: Iterator[tuple[int, Row | RowProblem]]) -> Iterator[tuple[int, Row | RowProblem]]:
    """A row for each conversation, at the line of its trace's first span."""
    traces: dict[str, tuple[int, list[ModelSpan]]] = {}
    count = 0
    for line, row in rows:
        found: list[ModelSpan] = []
        if not isinstance(row, RowProblem):
            try:
                found = list(spans_of(row))
            except STRANGE as error:
                row = RowProblem(line, "", f"holds no spans of a shape that is known: {error}")
        if not found:
            yield line, row
        for span in found:
            traces.setdefault(span.trace, (line, []))[1].append(span)
        count += len(found)
        if count > MAX_SPANS:
            yield line, RowProblem(line, "", f"files of more than {MAX_SPANS:,} spans must be split")
            return
    for trace, (line, spans) in traces.items():
        try:
            told: list[Row | RowProblem] = [*_conversations(trace, spans)]
        except STRANGE as error:
            told = [RowProblem(line, "", f"the messages of trace {trace} have a shape that is not known: {error}")]
        for conversation in told:
            yield line, conversation


def _conversations(trace: str, spans: list[ModelSpan]) -> list[Row]:
    """{trace_id, conversation, model, tools, results, spans: {kind: how many}}. A trace about models without any content makes one
    row that says so; one that is not about models makes none."""
    spans = sorted(spans, key=lambda span: span.start)
    found: list[Row] = []
    asked = [span for span in spans if span.operation != "invoke_agent" and any(said(span))]
    for span in asked or [span for span in spans if any(said(span))]:
        sent, back = said(span)
        going_on = next((each for each in reversed(found) if _begins(sent, each["conversation"])), None)
        if going_on is None:
            going_on = {"trace_id": trace, "conversation": []}
            found.append(going_on)
        going_on["conversation"] = sent + back[:1]
        going_on["choices"] = going_on.get("choices", 0) + len(back[1:])
        model = span.attributes.get(f"{PREFIX}response.model", span.attributes.get(f"{PREFIX}request.model"))
        going_on["model"] = model or going_on.get("model")
        tools = read_json(span.attributes.get(f"{PREFIX}tool.definitions"))
        going_on["tools"] = tools or going_on.get("tools")
    results = {call: result for span in spans for call, result in _result(span)}
    kinds = Counter(span.operation or "without an operation" for span in spans)
    named = [each | {"key": f"{trace}-{number}"[-200:]} for number, each in enumerate(found, 1)]
    if not found and any(name.startswith(PREFIX) for span in spans for name in span.attributes):
        named = [{"trace_id": trace, "conversation": []}]
    return [each | {"results": results, "spans": dict(kinds)} for each in named]


def _begins(sent: list[Said], earlier: list[Said]) -> bool:
    return sent[: len(earlier)] == earlier


def _result(span: ModelSpan) -> Iterator[tuple[str, Row]]:
    """The result of a tool from its own span, if the span has one."""
    call, back = (span.attributes.get(f"{PREFIX}tool.call.{name}") for name in ("id", "result"))
    if isinstance(call, str) and back is not None:
        yield call, {"text": written(back), "tool": span.attributes.get(f"{PREFIX}tool.name"), "failed": span.failed}


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    if "conversation" not in row:
        found = list(merge(iter([(1, row)])))
        if len(found) != 1 or isinstance(found[0][1], RowProblem) or "conversation" not in found[0][1]:
            raise BadRow("", "holds no span about a model, or several conversations")
        row = found[0][1]
    if not row["conversation"]:
        raise BadRow("", NO_CONTENT)
    trace, answered = AgentTrace(), set()
    for index, message in enumerate(row["conversation"]):
        answered |= _message(trace, message, f"conversation.{index}")
    trace.answer({call: back for call, back in row["results"].items() if call not in answered})
    if row.get("choices"):
        trace.lost["further choice"] += row["choices"]
    return trace.example(row, USED | {"choices"}, field="conversation", model=row.get("model"), key=key_of(row))


def _message(trace: AgentTrace, message: Said, field: str) -> set[str]:
    """Adds the message to the trace, and returns the ids of the calls that it answers."""
    role, answered = role_of(message, field), set()
    for part in message["parts"]:
        kind = part.get("type")
        if kind == "tool_call":
            trace.call(part.get("name"), part.get("arguments"), part.get("id"))
        elif kind == "tool_call_response":
            answered.add(str(part.get("id")))
            trace.result(part.get("id"), written(part.get("response", part.get("result"))))
        elif kind == "reasoning":
            trace.think(written(part.get("content")))
        elif role == "tool":
            trace.result(part.get("id"), trace.text([part], field, TEXTS))
        else:
            trace.say(role, trace.text([part], field, TEXTS))
    return answered


IMPORTER = Importer(
    name="opentelemetry",
    label="OpenTelemetry spans",
    help="Spans with gen_ai attributes, as the collector's files or one a line: one example for each conversation.",
    knows=knows,
    convert=convert,
    merge=merge,
)
