"""One trace in each of the formats of agents' programs: a question, a thought, two calls of which one fails, an answer."""

import json
from typing import Any

QUESTION = "How warm is it in Oslo?"
CHAT = {
    "id": "t1",
    "model": "some-model",
    "messages": [
        {"role": "developer", "content": "Use the tools."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I need the weather.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "4 degrees"},
        {"role": "assistant", "content": "It is 4 degrees."},
    ],
    "tools": [{"type": "function", "function": {"name": "weather"}}],
}
RESPONSES = {
    "id": "t1",
    "object": "response",
    "model": "some-model",
    "instructions": "Use the tools.",
    "input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}],
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I need the weather."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "4 degrees"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 4 degrees."}]},
    ],
}
ANTHROPIC = {
    "id": "t1",
    "model": "some-model",
    "system": "Use the tools.",
    "messages": [
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I need the weather.", "signature": "x"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "4 degrees"}]}
            ],
        },
    ],
    "role": "assistant",
    "content": [{"type": "text", "text": "It is 4 degrees."}],
}
INSPECT = {
    "id": 1,
    "epoch": 1,
    "input": QUESTION,
    "target": "4",
    "model": "some-model",
    "scores": {"match": {"value": "C"}},
    "messages": [
        {"role": "system", "content": "Use the tools."},
        {"role": "user", "content": "attachment://abc", "source": "input"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "I need the weather."}],
            "tool_calls": [{"id": "c1", "function": "weather", "arguments": {"city": "Oslo"}, "type": "function"}],
        },
        {"role": "tool", "tool_call_id": "c1", "function": "weather", "content": "4 degrees"},
        {"role": "assistant", "content": "It is 4 degrees."},
    ],
    "attachments": {"abc": QUESTION},
    "output": {"model": "some-model", "choices": []},
}


def text(content):
    return {"type": "text", "content": content}


SENT = [{"role": "system", "parts": [text("Use the tools.")]}, {"role": "user", "parts": [text(QUESTION)]}]
CALLED = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "I need the weather."},
        {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Oslo"}},
    ],
}
BACK = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "4 degrees"}]}
ANSWER = {"role": "assistant", "parts": [text("It is 4 degrees.")]}


def span(start, sent, back, **attributes):
    """A span of a call of a model, as a program prints it."""
    return {
        "name": "chat some-model",
        "context": {"trace_id": "0xt1", "span_id": f"0x{start}"},
        "start_time": f"2026-01-01T00:00:0{start}Z",
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "some-model",
            "gen_ai.input.messages": json.dumps(sent),
            "gen_ai.output.messages": json.dumps([{**message, "finish_reason": "stop"} for message in back]),
            **attributes,
        },
    }


TURNS = [span(1, SENT, [CALLED]), span(3, [*SENT, CALLED, BACK], [ANSWER])]


def protocol(spans):
    """The same spans as one line of the collector's file."""
    written = [
        {
            "traceId": "0xt1",
            "startTimeUnixNano": str(number),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in one["attributes"].items()],
        }
        for number, one in enumerate(spans)
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": written}]}]}


ROWS: dict[str, Any] = {
    "openai_trace": [CHAT, RESPONSES],
    "anthropic_trace": [ANTHROPIC],
    "inspect": [INSPECT],
    "opentelemetry": [protocol(TURNS), span(1, [*SENT, CALLED, BACK], [ANSWER])],
}
