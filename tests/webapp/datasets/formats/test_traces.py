"""Traces of agents: every format gives the same trace. Parts that an example cannot hold are counted."""

import json
from typing import Any

import pytest

from trainer.contracts import Example
from webapp.datasets import queries
from webapp.datasets.formats.base_importer import Alone
from webapp.datasets.formats.convert import example
from webapp.datasets.formats.importers import REGISTRY
from webapp.files.records import RowProblem

from . import traces

STEPS = [
    {"kind": "reasoning", "text": "I need the weather."},
    {"kind": "call", "tool": "weather", "call": "c1", "text": {"city": "Oslo"}},
    {"kind": "result", "role": "tool", "tool": "weather", "call": "c1", "text": "4 degrees"},
    {"text": "It is 4 degrees."},
]
AS_TEXT = """[1] thinks
I need the weather.

[2] calls weather
{"city":"Oslo"}

[3] result of weather
4 degrees

[4] says
It is 4 degrees."""


def read(name, row) -> Example:
    found = example(name, REGISTRY[name].converter(Alone("")), 1, row, {})
    assert isinstance(found, Example), found
    return found


def refused(name, row) -> RowProblem:
    found = example(name, REGISTRY[name].converter(Alone("")), 1, row, {})
    assert isinstance(found, RowProblem), found
    return found


def steps(found: Example) -> list[dict]:
    """The steps as they are stored. Arguments of calls are given as values, and are stored as text."""
    told = [step.model_dump(exclude_defaults=True) for step in found.responses[0].steps]
    return [step | {"text": json.loads(step["text"])} if step.get("kind") == "call" else step for step in told]


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, rows in traces.ROWS.items() for row in rows])
def test_every_format_gives_the_same_trace(name, row):
    found = read(name, row)
    assert [(message.role, message.content) for message in found.prompt] == [
        ("system", "Use the tools."),
        ("user", traces.QUESTION),
    ]
    assert steps(found) == STEPS
    assert found.responses[0].text.replace('": "', '":"') == AS_TEXT
    assert found.responses[0].origin == "some-model"
    assert not found.tags and "not_imported" not in found.meta
    assert Example.model_validate_json(found.canonical()) == found


def test_what_stands_beside_a_trace_is_kept():
    assert read("openai_trace", traces.CHAT).meta == {"tools": traces.CHAT["tools"]}
    found = read("inspect", traces.INSPECT)
    assert (found.reference, found.meta["scores"]) == ("4", traces.INSPECT["scores"])


def test_an_image_a_secret_thought_and_an_unknown_item_are_named_where_they_stood_and_counted():
    chat: dict[str, Any] = {**traces.CHAT, "messages": [*traces.CHAT["messages"]]}
    chat["messages"][1] = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    found = read("openai_trace", chat)
    assert found.prompt[1].content == "[image_url: not imported]"
    assert (found.tags, found.meta["not_imported"]) == (("parts missing",), {"image_url": 1})

    output = [{"type": "reasoning", "summary": [], "encrypted_content": "x"}, *traces.RESPONSES["output"][1:]]
    found = read("openai_trace", {**traces.RESPONSES, "output": [*output, {"type": "compaction", "id": "y"}]})
    assert found.meta["not_imported"] == {"encrypted reasoning": 1, "compaction": 1}
    assert found.responses[0].steps[-1].text == "[compaction: not imported]"

    messages = [*traces.ANTHROPIC["messages"]]
    messages[1] = {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}
    found = read("anthropic_trace", {**traces.ANTHROPIC, "messages": messages})
    assert found.meta["not_imported"] == {"redacted thinking": 1}


def test_a_tool_that_fails_and_one_that_the_server_runs():
    asked = {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"query": "Oslo"}}
    called = {"type": "mcp_call", "id": "m1", "name": "sum", "arguments": "{}", "error": "no network"}
    found = read("openai_trace", {**traces.RESPONSES, "output": [asked, called]})
    told = [(step.kind, step.tool, step.text, step.failed) for step in found.responses[0].steps]
    assert told == [
        ("call", "web_search", '{"action":{"query":"Oslo"}}', False),
        ("call", "sum", "{}", False),
        ("result", "sum", "no network", True),
    ]
    wrong = {"type": "tool_result", "tool_use_id": "c1", "content": "no such city", "is_error": True}
    messages = [*traces.ANTHROPIC["messages"][:2], {"role": "user", "content": [wrong]}]
    assert read("anthropic_trace", {**traces.ANTHROPIC, "messages": messages}).responses[0].steps[2].failed


def test_what_people_say_between_steps_is_a_step_that_is_not_the_agents():
    messages = [*traces.CHAT["messages"], {"role": "user", "content": "And in Rome?"}, traces.CHAT["messages"][-1]]
    found = read("openai_trace", {**traces.CHAT, "messages": messages}).responses[0].steps
    assert [step.by_agent for step in found] == [True, True, False, True, False, True]
    assert found[4].title == "user says"


@pytest.mark.parametrize(
    ("name", "row", "field"),
    [
        ("openai_trace", {**traces.CHAT, "messages": traces.CHAT["messages"][2:]}, "messages"),
        ("openai_trace", {**traces.CHAT, "messages": traces.CHAT["messages"][:2]}, "messages"),
        ("openai_trace", {**traces.CHAT, "messages": [{"role": "robot"}]}, "messages.0.role"),
        (
            "openai_trace",
            {**traces.CHAT, "messages": [{"role": "assistant", "tool_calls": [{}]}]},
            "messages.0.tool_calls.0",
        ),
        ("openai_trace", {**traces.RESPONSES, "input": None}, "input"),
        ("anthropic_trace", {**traces.ANTHROPIC, "messages": "x"}, "messages"),
        ("inspect", {**traces.INSPECT, "messages": [3]}, "messages.0"),
        ("opentelemetry", traces.span(1, [], [], **{"gen_ai.input.messages": "", "gen_ai.output.messages": ""}), ""),
    ],
)
def test_a_row_without_a_trace_is_refused_at_its_field(name, row, field):
    assert refused(name, row).field == field


def test_a_log_of_inspect_gives_each_of_its_samples(import_rows):
    log: dict[str, Any] = {"version": 2, "eval": {"model": "its-model", "task": "weather"}, "samples": []}
    for number in range(2):
        sample: dict[str, Any] = {**traces.INSPECT, "id": number}
        del sample["model"], sample["output"]
        sample["messages"] = [*sample["messages"][:-1], {"role": "assistant", "content": f"{number} degrees."}]
        log["samples"].append(sample)
    job = import_rows(json.dumps(log, indent=1), file_name="log.json")
    assert (job.format, job.counts["examples"], job.rejected_count) == ("inspect", 2, 0)
    [one, other] = [each.content["responses"][0] for each in job.version.dataset.examples.order_by("id")]
    assert (one["origin"], one["steps"][-1], other["steps"][-1]) == (
        "its-model",
        {"text": "0 degrees."},
        {"text": "1 degrees."},
    )


def test_spans_are_joined_by_conversation_whatever_their_order_and_a_second_agent_has_its_own(import_rows):
    helper = [{"role": "user", "parts": [traces.text("Sum up: 4 degrees")]}]
    tool = {
        "context": {"trace_id": "0xt1"},
        "start_time": "2026-01-01T00:00:04Z",
        "attributes": {"gen_ai.operation.name": "execute_tool"},
    }
    rows = [*reversed(traces.TURNS), tool, traces.span(5, helper, [traces.ANSWER])]
    job = import_rows(rows)
    assert (job.format, job.counts["examples"], job.counts["responses"]) == ("opentelemetry", 2, 2)
    found = sorted(each.content["key"] for each in job.version.dataset.examples.all())
    assert found == ["0xt1-1", "0xt1-2"]


def test_a_result_that_only_the_tools_own_span_has_stands_behind_its_call():
    tool = {
        "context": {"trace_id": "0xt1"},
        "start_time": "2026-01-01T00:00:02Z",
        "attributes": {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "weather",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.result": "4 degrees",
        },
    }
    rows = iter(enumerate([traces.TURNS[0], tool], 1))
    [(line, row)] = REGISTRY["opentelemetry"].merge(rows)
    assert line == 1
    assert steps(read("opentelemetry", row)) == STEPS[:3]


def test_older_spans_tell_of_messages_by_events_or_numbered_attributes():
    sent = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "some-model"}
    call = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}]
    events = [
        ("gen_ai.system.message", {"content": "Use the tools."}),
        ("gen_ai.user.message", {"content": traces.QUESTION}),
        ("gen_ai.assistant.message", {"tool_calls": json.dumps(call)}),
        ("gen_ai.tool.message", {"id": "c1", "content": "4 degrees"}),
        ("gen_ai.choice", {"index": 0, "message": json.dumps({"content": "It is 4 degrees."})}),
    ]
    told = [{"name": name, "attributes": attributes} for name, attributes in events]
    found = read("opentelemetry", {"trace_id": "t1", "start_time": 1, "attributes": sent, "events": told})
    assert steps(found) == STEPS[1:]

    numbered = {
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Use the tools.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": traces.QUESTION,
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.2.tool_calls.0.name": "weather",
        "gen_ai.prompt.2.tool_calls.0.id": "c1",
        "gen_ai.prompt.2.tool_calls.0.arguments": '{"city": "Oslo"}',
        "gen_ai.prompt.3.role": "tool",
        "gen_ai.prompt.3.tool_call_id": "c1",
        "gen_ai.prompt.3.content": "4 degrees",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "It is 4 degrees.",
    }
    found = read("opentelemetry", {"trace_id": "t1", "start_time": 1, "attributes": sent | numbered})
    assert steps(found) == STEPS[1:]


@pytest.mark.parametrize(
    "row",
    [
        {"resourceSpans": [3]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": [{"key": "x", "value": {"intValue": "y"}}]}]}]}]},
        {"trace_id": "t", "attributes": {"gen_ai.prompt.0.role": "user"}, "events": [4]},
        {"trace_id": "t", "attributes": {}, "events": [{"name": "gen_ai.choice", "attributes": {"tool_calls": "[1]"}}]},
    ],
)
def test_spans_of_no_known_shape_are_refused_and_end_nothing(row):
    good = traces.span(1, [*traces.SENT], [traces.ANSWER])
    found = [one for _, one in REGISTRY["opentelemetry"].merge(iter([(1, row), (2, good)]))]
    assert [isinstance(one, RowProblem) for one in found] == [True, False]


def test_the_report_of_an_import_counts_what_was_not_imported(import_rows):
    rows = []
    for number in range(3):
        messages = [*traces.CHAT["messages"]]
        parts = [{"type": "text", "text": f"{number}?"}, {"type": "input_audio"}, {"type": "image_url"}]
        messages[1] = {"role": "user", "content": parts[: number + 1]}
        rows.append({**traces.CHAT, "id": f"t{number}", "messages": messages})
    job = import_rows(rows)
    assert job.not_imported == {"input_audio": 2, "image_url": 1}
    assert queries.import_report(job)["counts"]["not imported: input_audio"] == 2


def test_the_page_of_an_example_shows_the_steps(import_rows, as_researcher):
    job = import_rows([traces.CHAT])
    page = as_researcher.get(f"/examples/{job.version.dataset.examples.get().pk}").content.decode()
    assert page.count('<li class="trace-step"') == 4 and page.count("data-agent") == 3
    assert "Calls weather" in page and "Result of weather" in page
