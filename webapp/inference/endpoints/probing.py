"""The answer of an endpoint to one tiny request, and the other things that it can do.

A finding is yes, no, or not known with the reason: an endpoint that reports nothing about its cache may still have one.
"""

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from trainer.contracts import Example, Message
from trainer.judges.chat import ChatReply, ChatRequest, EndpointProblem, Target
from trainer.judges.client import ChatClient
from trainer.judges.local import LocalClient, LocalTarget
from trainer.judges.sampling import Sampling
from trainer.judges.templates import scrub
from trainer.rewards.http_service import HttpService
from trainer.rewards.kinds.custom import as_json, read
from trainer.rewards.parts import Away, Item, Unscored

TRIES = 1  # beyond the first: people wait for the answer at a page
PATIENCE_S = 30.0
NEW_TOKENS_FIELD = "max_completion_tokens"
# the question asks for a word; only an endpoint that enforces the schema answers with the object
SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "colour": {"type": "string", "enum": ["blue", "green"]}},
    "required": ["count", "colour"],
    "additionalProperties": False,
}
# hosted caches begin at 1,024 tokens; about twice that, for any tokenizer
LONG = " ".join(f"Line {number} of a list that only makes this prompt long." for number in range(200))
Finding = dict[str, Any]
_ASKED = Example(key="test", prompt=(Message(role="user", content="Say hello."),))
TRIED = as_json(Item("test", _ASKED, None, "Hello. This is a test.", tokens=7, longest=64))
"""The question to a reward service: as in a run, with texts that say that it is a test."""


async def test(target: Target) -> Finding:
    """Asks for one word. Raises EndpointProblem."""
    async with ChatClient(_patient(target)) as client:
        return _tested(await client.chat(READY))


async def test_local(target: LocalTarget) -> Finding:
    """Like `test`, for a local model, which a process loads first. `load_ms` is the time until the first answer."""
    started = perf_counter()
    async with LocalClient(target) as client:
        await client.chat(READY)
        loaded = perf_counter() - started
        return {**_tested(await client.chat(READY)), "load_ms": round(1000 * loaded)}


async def test_reward(target: Target) -> Finding:
    """Posts one response, signed as in a run. `value` is its score, `why` the reason that came with it. Raises EndpointProblem if the
    answer cannot be used."""
    started = perf_counter()
    service = HttpService(_patient(target))
    try:
        (found,) = read(await service.answer([TRIED]), 1)
    except Away as problem:
        raise EndpointProblem("down", str(problem)) from None
    except Unscored as problem:
        raise EndpointProblem("bad_response", str(problem)) from None
    finally:
        await service.close()
    return {"value": found.value, "why": scrub(found.why[:500]), "latency_ms": round(1000 * (perf_counter() - started))}


def _tested(reply: ChatReply) -> Finding:
    return {
        "text": scrub(reply.text[:500]),
        "latency_ms": round(1000 * reply.latency_s),
        "attempts": reply.attempts,
        "finish_reason": scrub(reply.finish_reason[:40]),
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
    }


async def probe(target: Target) -> Finding:
    """`logprobs`, `schema` and `prefix_cache`, each true, false or None; `reasons` says what was seen.

    It takes about 6,000 tokens in five or six requests. Raises EndpointProblem if not even a plain request is answered.
    """
    target = _patient(target)
    tokens_field = await _tokens_field(target)
    found: Finding = {"tokens_field": tokens_field}
    reasons: dict[str, str] = {}
    async with ChatClient(dataclasses.replace(target, tokens_field=tokens_field, supports_schema=True)) as client:
        for name, find in FINDERS.items():
            try:
                found[name], reasons[name] = await find(client)
            except EndpointProblem as problem:
                refused = problem.code == "refused"
                found[name] = False if refused else None
                reasons[name] = problem.message[:300]
    return {**found, "reasons": reasons}


async def probe_local(target: LocalTarget) -> Finding:
    """Like `probe`, for a local model: it asks yes-no questions, as judges of criteria do. Raises EndpointProblem."""
    questions = [f"{LONG}\n\nIs there a line {number}?" for number in (7, 8)]
    async with LocalClient(target) as client:
        replies = await asyncio.gather(*(client.chat(_asking(question, 1)) for question in questions))
    cached, length = max(each.cached_tokens or 0 for each in replies), replies[0].prompt_tokens or 0
    return {
        "tokens_field": "max_tokens",
        "logprobs": True,
        "schema": False,
        "prefix_cache": cached > 0,
        "reasons": {
            "logprobs": f"a criterion is decided by the probability of yes: {json.loads(replies[0].text)['explanation']}",
            "schema": "no schema constrains its output; the output is read tolerantly, or is missing",
            "prefix_cache": f"{cached:,} of {length:,} prompt tokens were computed once for both questions",
        },
    }


async def _tokens_field(target: Target) -> str:
    """The endpoint's name for the field with the largest number of new tokens. Newer hosted models refuse the old name."""
    for name in ("max_tokens", NEW_TOKENS_FIELD):
        async with ChatClient(dataclasses.replace(target, tokens_field=name)) as client:
            try:
                await client.chat(READY)
                return name
            except EndpointProblem as problem:
                if NEW_TOKENS_FIELD not in problem.message or name == NEW_TOKENS_FIELD:
                    raise
    raise AssertionError("unreachable: the second round returns or raises")


async def _logprobs(client: ChatClient) -> tuple[bool, str]:
    body = client.body(_asking("Reply with the single word ready.", 8))
    answer, _ = await client.post(json.dumps({**body, "logprobs": True, "top_logprobs": 2}).encode())
    try:
        first = json.loads(answer)["choices"][0]["logprobs"]["content"][0]["logprob"]
        return isinstance(first, int | float), "tokens come with their log-probabilities"
    except (ValueError, KeyError, IndexError, TypeError):
        return False, "the endpoint accepts the parameter, but returns no log-probabilities"


async def _schema(client: ChatClient) -> tuple[bool, str]:
    reply = await client.chat(dataclasses.replace(_asking("Greet me with one word.", 64), schema=SCHEMA))
    try:
        given = json.loads(reply.text)
        good = set(given) == {"count", "colour"} and given["colour"] in ("blue", "green")
    except (ValueError, TypeError):
        good = False
    return (
        good,
        "the reply follows the schema" if good else "the endpoint accepts the schema, but the reply does not follow it",
    )


async def _prefix_cache(client: ChatClient) -> tuple[bool | None, str]:
    first = await client.chat(_asking(f"{LONG}\n\nHow many lines are there?", 8))
    second = await client.chat(_asking(f"{LONG}\n\nWhat is the first line?", 8))
    if second.cached_tokens is None:
        return None, "the endpoint does not report cached tokens"
    if second.cached_tokens:
        return True, f"{second.cached_tokens:,} of {second.prompt_tokens or 0:,} prompt tokens came from the cache"
    if first.cached_tokens is None:
        return None, "cached tokens are not reported every time"
    return False, "a repeated beginning of a prompt is computed again"


FINDERS: dict[str, Callable[[ChatClient], Awaitable[tuple[bool | None, str]]]] = {
    "logprobs": _logprobs,
    "schema": _schema,
    "prefix_cache": _prefix_cache,
}


def _asking(text: str, max_tokens: int) -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), Sampling(max_tokens=max_tokens))


READY = _asking("Reply with the single word ready.", 32)


def _patient(target: Target) -> Target:
    return dataclasses.replace(
        target, retries=min(target.retries, TRIES), timeout_s=min(target.timeout_s, PATIENCE_S), prices=None
    )
