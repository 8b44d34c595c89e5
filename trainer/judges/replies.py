"""The answer of a chat endpoint becomes a reply, or a problem with its reason."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from .chat import ChatReply, Code, EndpointProblem

EXCERPT = 300  # characters of an unexpected answer that a message quotes
# vLLM, SGLang, llama.cpp and hosted endpoints word it differently
TOO_LONG = re.compile(
    r"context.{0,3}(length|size|window)|maximum.{0,20}tokens|longer than the model|(prompt|input) is too long",
    re.IGNORECASE,
)
TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}


def read(body: bytes, latency_s: float, attempts: int) -> ChatReply:
    """The reply in an answer with the status 200. Raises EndpointProblem "bad_response" (worth another try) if there is none."""
    answer = _object(body)
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        text = message.get("content") or message.get("refusal") or ""
        if not isinstance(text, str):
            raise TypeError
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _bad(f"JSON without choices[0].message.content: {excerpt(body)}") from error
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    return ChatReply(
        text=text,
        finish_reason=str(choice.get("finish_reason") or ""),
        prompt_tokens=_count(usage, "prompt_tokens"),
        cached_tokens=_count(details, "cached_tokens") if isinstance(details, dict) else None,
        completion_tokens=_count(usage, "completion_tokens"),
        latency_s=latency_s,
        attempts=attempts,
    )


def problem(status: int, headers: Mapping[str, str], body: str) -> EndpointProblem:
    """The problem of an answer with another status than 200. `headers` have lower-case names."""
    code, said = _error(body)
    if status == 429 and code != "insufficient_quota":
        wait = retry_after(headers.get("retry-after"))
        return EndpointProblem("rate_limited", f"answered 429: {said}", retryable=True, retry_after_s=wait)
    if status in (408, 504):
        return EndpointProblem("timeout", f"answered {status}: {said}", retryable=True)
    if status >= 500:
        wait = retry_after(headers.get("retry-after"))
        return EndpointProblem("down", f"answered {status}: {said}", retryable=True, retry_after_s=wait)
    if 300 <= status < 400:
        to = str(headers.get("location", ""))[:200]
        return EndpointProblem("refused", f"a redirect to {to!r} is not followed; enter the final address")
    if code in TOO_LONG_CODES or (status in (400, 413, 422) and TOO_LONG.search(said)):
        return EndpointProblem("context_overflow", f"the prompt does not fit the model's context: {said}")
    return EndpointProblem("refused", f"{_refusal(status)}: {said}")


def _refusal(status: int) -> str:
    known = {401: "the key is not accepted", 403: "the key may not do this", 404: "no such address or model"}
    return f"answered {status}" + (f", {known[status]}" if status in known else "")


def _error(body: str) -> tuple[str, str]:
    """The code and the message of an error in OpenAI's form, as far as they are there."""
    try:
        found = json.loads(body)
        found = found.get("error", found)
        if isinstance(found, str):
            return "", found[:EXCERPT]
        code = str(found.get("code") or found.get("type") or "")
        said = found.get("message") or found.get("detail")
        return code, str(said)[:EXCERPT] if said else excerpt(body)
    except (ValueError, AttributeError, RecursionError):
        return "", excerpt(body)


def retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header, which is a number or a date (RFC 9110, 10.2.3); None if it is neither."""
    if not value:
        return None
    try:
        seconds = float(value)
        return max(0.0, seconds) if seconds < 1e9 else None  # also refuses inf and nan
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(value)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _bad(f"something that is not JSON: {excerpt(body)}") from error
    if not isinstance(answer, dict):
        raise _bad(f"JSON that is not an object: {excerpt(body)}")
    return answer


def _bad(message: str) -> EndpointProblem:
    code: Code = "bad_response"
    return EndpointProblem(code, f"answered with {message}", retryable=True)


def _count(usage: dict[str, Any], name: str) -> int | None:
    found = usage.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**31 else None


def excerpt(body: str | bytes) -> str:
    """The beginning of an answer, for a quotation."""
    text = body[: 4 * EXCERPT].decode("utf-8", "replace") if isinstance(body, bytes) else body
    return repr(text[:EXCERPT]) if text else "an empty body"
