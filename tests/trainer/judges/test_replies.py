"""Answers of servers that use different forms."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from trainer.judges.chat import EndpointProblem
from trainer.judges.replies import problem, read, retry_after


def answer(message, **rest):
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], **rest}).encode()


@pytest.mark.parametrize(
    "words",
    [
        '{"object":"error","message":"This model\'s maximum context length is 2048 tokens.","code":400}',
        '{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}',
        '{"error":{"message":"The input (9001 tokens) is longer than the model\'s context length (8192 tokens)."}}',
        '{"error":{"message":"too long","code":"context_length_exceeded"}}',
        '{"detail":"prompt is too long: 210000 tokens > 200000 maximum"}',
    ],
)
def test_a_prompt_beyond_the_context_is_recognised_in_the_words_of_each_server(words):
    assert problem(400, {}, words).code == "context_overflow"


def test_what_an_error_quotes_can_be_stored():
    assert problem(500, {}, '{"error":{"message":"a\\u0000\\ud800"}}').message == "answered 500: a\ufffd\ufffd"


def test_an_overflow_is_nothing_but_an_overflow():
    assert problem(400, {}, '{"error":{"message":"max_tokens must be positive"}}').code == "refused"
    assert problem(404, {}, '{"error":{"message":"no model gpt-9"}}').message.endswith("no model gpt-9")


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "7"}, {"prompt_tokens": -1}, {"prompt_tokens": True}, 5])
def test_tokens_that_are_not_reported_are_unknown_not_zero(usage):
    reply = read(answer({"content": "yes"}, usage=usage), 0.1, 1)
    assert reply.prompt_tokens is None and reply.completion_tokens is None and reply.cached_tokens is None


def test_a_refusal_is_the_text_and_no_text_is_empty():
    assert read(answer({"content": None, "refusal": "I cannot"}), 0.1, 1).text == "I cannot"
    assert read(answer({"content": None}), 0.1, 1).text == ""


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff", b"null", b'{"choices": []}', answer({"content": [1]})])
def test_a_body_that_is_no_reply_is_a_bad_response(body):
    with pytest.raises(EndpointProblem) as raised:
        read(body, 0.1, 1)
    assert raised.value.code == "bad_response" and len(raised.value.message) < 500


def test_retry_after_is_seconds_or_a_date():
    assert retry_after("1.5") == 1.5 and retry_after("-3") == 0.0
    assert 50 < retry_after(format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True)) <= 60
    assert [retry_after(value) for value in (None, "", "soon", "nan", "inf")] == [None] * 5
