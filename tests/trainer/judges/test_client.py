"""The client against a real server over loopback: its requests, its waits, and its name for each failure."""

import asyncio
import dataclasses
import json
from decimal import Decimal
from time import perf_counter

import pytest

from benchmarks.chatserver import ChatServer
from trainer.judges import client as client_module
from trainer.judges.client import Budget, ChatClient, ChatRequest, EndpointProblem, Prices, Target, cost
from trainer.judges.sampling import Sampling

KEY = "sk-very-secret-key"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_PAUSE_S", 0.001)


@pytest.fixture
async def server():
    async with ChatServer(key=KEY) as running:
        yield running


def target(server: ChatServer, **changes) -> Target:
    given = Target(url=server.url, model="judge", key=KEY, concurrency=4, timeout_s=60.0, retries=2)
    return dataclasses.replace(given, **changes)


def ask(text: str = "Is the sky blue?", **sampling) -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), Sampling(**sampling))


async def chat(aimed: Target, request: ChatRequest | None = None, budget: Budget | None = None):
    async with ChatClient(aimed, budget) as client:
        return await client.chat(request or ask())


async def problem_of(aimed: Target, request: ChatRequest | None = None) -> EndpointProblem:
    with pytest.raises(EndpointProblem) as raised:
        await chat(aimed, request)
    assert KEY not in str(raised.value)
    return raised.value


async def test_a_reply_comes_with_its_tokens_and_its_price(server):
    prices = Prices(Decimal("2"), Decimal("10"))
    text = "x" * 400
    reply = await chat(target(server), ask(text))
    again = await chat(target(server), ask(text))
    assert json.loads(reply.text)["explanation"] and reply.finish_reason == "stop" and reply.attempts == 1
    assert reply.cached_tokens == 0 and again.cached_tokens == 96  # 6 whole blocks of 16 tokens in 406 bytes
    assert reply.prompt_tokens == 102
    expected = (Decimal(2) * 102 + Decimal(10) * (reply.completion_tokens or 0)) / 1_000_000
    assert cost(reply, prices) == expected and cost(reply, None) is None


async def test_what_is_sent_is_openais_request(server):
    schema = {"type": "object", "properties": {"met": {"type": "boolean"}}}
    request = ChatRequest(
        ({"role": "user", "content": "ü"},), Sampling(temperature=0.5, max_tokens=7, seed=1), schema=schema, seed=2
    )
    await chat(target(server), request)
    await chat(target(server, supports_schema=True, tokens_field="max_completion_tokens"), request)
    plain, structured = server.bodies
    assert plain == {
        "model": "judge",
        "messages": [{"role": "user", "content": "ü"}],
        "temperature": 0.5,
        "top_p": 1.0,
        "max_tokens": 7,
        "seed": 2,
    }
    assert structured["response_format"]["json_schema"]["schema"] == schema
    assert structured["max_completion_tokens"] == 7 and "max_tokens" not in structured


async def test_a_cut_reply_is_kept_and_says_so(server):
    reply = await chat(target(server), ask(max_tokens=2))
    assert reply.finish_reason == "length" and reply.text == '{"explan' and reply.completion_tokens == 2


@pytest.mark.parametrize(
    ("fault", "code", "tried", "words"),
    [
        ("rate_limited", "rate_limited", 3, "Rate limit reached"),
        ("error", "down", 3, "answered 500: Something broke"),
        ("down", "down", 3, "closed without an answer"),
        ("not_json", "bad_response", 3, "It works!"),
        ("empty", "bad_response", 3, "an empty body"),
        ("wrong_shape", "bad_response", 3, "without choices"),
        ("oversized", "bad_response", 1, "more than 8,000,000 bytes"),
        ("quota", "refused", 1, "exceeded your current quota"),
        ("refused", "refused", 1, "temperature does not suit"),
        ("redirect", "refused", 1, "not followed"),
        ("context_overflow", "context_overflow", 1, "9001"),
    ],
)
async def test_each_failure_has_its_name_and_is_tried_again_only_where_that_may_help(server, fault, code, tried, words):
    server.fault = fault
    found = await problem_of(target(server))
    assert found.code == code and words in found.message
    assert server.requests == tried


async def test_a_slow_endpoint_is_given_up(server):
    server.fault = "slow"
    found = await problem_of(target(server, timeout_s=0.1, retries=0))
    assert found.code == "timeout" and "within 0.1 s" in found.message


async def test_nobody_listening_is_down():
    found = await problem_of(Target("http://127.0.0.1:1/v1", "judge", retries=0))
    assert found.code == "down" and found.retryable


@pytest.mark.parametrize("url", ["http://nowhere.invalid/v1"])
async def test_a_host_that_does_not_exist_is_down(url):
    assert (await problem_of(Target(url, "judge", retries=0))).code == "down"


async def test_a_key_the_endpoint_quotes_back_is_hidden(server):
    server.key = "another"
    found = await problem_of(target(server))  # problem_of asserts that the key is not in it
    assert found.code == "refused" and "key is not accepted" in found.message and "[key]" in found.message
    assert KEY not in repr(target(server))


@pytest.mark.parametrize("fault", ["rate_limited", "error", "down", "not_json", "wrong_shape"])
async def test_a_failure_that_passes_leaves_no_trace_but_the_attempts(server, fault):
    server.faults.extend([fault, fault])
    assert (await chat(target(server))).attempts == 3


async def test_retry_after_makes_every_call_of_the_client_wait(server):
    server.retry_after = "1"
    server.faults.append("rate_limited")
    async with ChatClient(target(server, retries=0)) as client:
        with pytest.raises(EndpointProblem):
            await client.chat(ask())
        await client.chat(ask("Another question"))
    assert server.arrivals[1] - server.arrivals[0] > 0.9


async def test_the_call_that_was_told_to_wait_waits(server):
    server.retry_after = "1"
    server.faults.append("rate_limited")
    assert (await chat(target(server))).attempts == 2
    assert server.arrivals[1] - server.arrivals[0] > 0.9


async def test_who_asks_for_an_hour_is_not_waited_for(server):
    server.retry_after, server.fault = "3600", "rate_limited"
    found = await problem_of(target(server))
    assert found.code == "rate_limited" and "3600 s" in found.message and server.requests == 1


async def test_no_more_requests_are_in_flight_than_allowed(server):
    server.latency_s = 0.2
    async with ChatClient(target(server, concurrency=3)) as client:
        await asyncio.gather(*(client.chat(ask(str(number))) for number in range(12)))
    assert server.peak == 3


async def test_requests_keep_the_distance_that_the_rate_asks_for(server):
    started = perf_counter()
    async with ChatClient(target(server, requests_per_minute=1200)) as client:
        await asyncio.gather(*(client.chat(ask(str(number))) for number in range(5)))
    assert perf_counter() - started > 0.19  # four distances of 50 ms


async def test_an_address_is_judged_at_the_moment_of_connecting(server):
    def refuse(address: str) -> str:
        return f"{address} is not public" if address == "127.0.0.1" else ""

    for host in ("127.0.0.1", "localhost"):  # a literal address is not looked up in DNS
        url = server.url.replace("127.0.0.1", host)
        found = await problem_of(target(server, url=url, refuse=refuse, retries=0))
        assert "127.0.0.1 is not public" in found.message
    assert server.requests == 0


async def test_the_budget_stops_before_a_call_leaves(server):
    # each call may need 15 + 64 bytes of prompt and 921 tokens of reply: 1000
    budget = Budget(tokens=2000)
    request = ask("x" * 15, max_tokens=921)
    async with ChatClient(target(server), budget) as client:
        outcomes = await asyncio.gather(*(client.chat(request) for _ in range(200)), return_exceptions=True)
    problems = [each for each in outcomes if isinstance(each, EndpointProblem)]
    assert problems and {each.code for each in problems} == {"budget"}
    assert server.requests == 200 - len(problems)
    assert budget.spent_tokens == server.prompt_tokens + server.completion_tokens
    assert 1000 < budget.spent_tokens <= 2000  # it stops when the rest may be too small for one more call


async def test_calls_in_flight_cannot_overshoot_the_budget_together(server):
    server.latency_s = 0.01
    budget = Budget(tokens=1000)
    async with ChatClient(target(server), budget) as client:
        await asyncio.gather(*(client.chat(ask("x" * 15, max_tokens=921)) for _ in range(3)), return_exceptions=True)
    assert server.peak == 1


async def test_money_needs_prices(server):
    with pytest.raises(EndpointProblem, match="no prices"):
        await chat(target(server), budget=Budget(money=Decimal(1)))
    budget = Budget(money=Decimal(1))
    await chat(target(server, prices=Prices(Decimal(1), Decimal(1))), budget=budget)
    spent = server.prompt_tokens + server.completion_tokens
    assert budget.spent_money == Decimal(spent) / 1_000_000


async def test_what_was_not_answered_is_not_charged_and_what_cannot_be_read_is(server):
    for fault, charged in (("down", False), ("error", False), ("not_json", True)):
        server.faults.append(fault)
        budget = Budget(tokens=10_000)
        with pytest.raises(EndpointProblem):
            await chat(target(server, retries=0), budget=budget)
        assert (budget.spent_tokens > 0) is charged
