"""The engine with an endpoint in the same process."""

import asyncio
import threading
import time
from dataclasses import replace
from decimal import Decimal
from itertools import count

import pytest

from trainer.contracts import Criterion
from trainer.judges import engine
from trainer.judges.calls import expand, read
from trainer.judges.chat import ChatReply, EndpointProblem, Prices
from trainer.judges.engine import run
from trainer.judges.loop_thread import run_beside
from trainer.judges.spec import resolve

from .inputs import INPUT, answer

SPEC = resolve({"kind": "criterion"})
PRICES = Prices(Decimal(1), Decimal(2))


class Endpoint:
    """Answers with the result of `says` for a request, or raises it if it is a problem. Counts the requests in flight."""

    def __init__(self, says=lambda request: answer("criterion"), pause=0.001, finish="stop"):
        self.says, self.pause, self.finish = says, pause, finish
        self.requests, self.flying, self.peak = [], 0, 0

    async def chat(self, request):
        self.requests.append(request)
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        try:
            await asyncio.sleep(self.pause)
        finally:
            self.flying -= 1
        said = self.says(request)
        if isinstance(said, Exception):
            raise said
        return ChatReply(said, self.finish, 10, 0, 5, self.pause)


def calls(number):
    criteria = [Criterion(id=f"c{i}", text=f"Says {i}.", points=1) for i in range(number)]
    return expand(SPEC, "v", replace(INPUT, responses={"r1": "Paris."}, criteria=tuple(criteria)))


def judge(asked, endpoint, **options):
    outcomes = []

    def parse(call, reply):
        return read(SPEC, call.subject, reply.text, complete=reply.finish_reason != "length")

    def main(executor):
        options.setdefault("on_outcome", outcomes.extend)
        return run(asked, endpoint, parse, concurrency=options.pop("concurrency", 4), executor=executor, **options)

    return run_beside(main), outcomes


def test_every_call_has_an_outcome_with_its_price():
    counts, outcomes = judge(calls(30), Endpoint(), prices=PRICES)
    assert (counts.done, counts.missing, counts.failed, counts.halted) == (30, 0, 0, "")
    assert sorted(o.subject["criterion"] for o in outcomes) == sorted(f"c{i}" for i in range(30))
    assert {o.cost for o in outcomes} == {Decimal("0.00002")} and all(o.parsed["met"] for o in outcomes)


def test_no_call_at_all_is_fine():
    assert judge([], Endpoint())[0] == engine.Counts()


def test_an_unreadable_answer_is_asked_for_again_and_the_judge_is_told_why():
    replies = iter(["no idea", answer("criterion")])
    endpoint = Endpoint(lambda request: next(replies))
    counts, (outcome,) = judge(calls(1), endpoint)
    assert counts.done == 1 and outcome.reply.attempts == 2 and outcome.reply.prompt_tokens == 20
    told = endpoint.requests[1].messages
    assert told[-2] == {"role": "assistant", "content": "no idea"} and "no JSON object" in told[-1]["content"]


def test_after_the_last_try_the_answer_is_missing_and_its_text_is_kept():
    counts, (outcome,) = judge(calls(1), Endpoint(lambda request: "no\x00 idea"), retries=1)
    assert (counts.missing, outcome.state, outcome.parsed, outcome.raw) == (1, "missing", None, "no\ufffd idea")
    assert outcome.problem == "the answer holds no JSON object"


def test_a_cut_answer_is_missing():
    counts, (outcome,) = judge(calls(1), Endpoint(lambda request: '{"explanation": "x", "met": true', finish="length"))
    assert counts.missing == 1 and "cut before its end" in outcome.problem


def test_a_partial_answer_is_kept_when_no_better_one_comes():
    spec = resolve({"kind": "checklist"})
    half = '{"verdicts": [{"number": 1, "explanation": "", "met": true}]}'
    replies = iter([half, "sorry", "sorry"])
    outcomes = []

    async def main():
        endpoint = Endpoint(lambda request: next(replies))
        asked = expand(spec, "v", replace(INPUT, responses={"r1": "Paris."}))
        return await run(
            asked, endpoint, lambda c, r: read(spec, c.subject, r.text), on_outcome=outcomes.extend, concurrency=1
        )

    assert asyncio.run(main()).done == 1
    assert outcomes[0].parsed["missing"] == ["sure"] and outcomes[0].raw == half and outcomes[0].problem


def test_a_call_the_endpoint_does_not_answer_is_failed_and_the_others_go_on():
    def says(request):
        overflow = "Says 3." in request.messages[-1]["content"]
        return EndpointProblem("context_overflow", "too long") if overflow else answer("criterion")

    counts, outcomes = judge(calls(8), Endpoint(says))
    assert (counts.done, counts.failed) == (7, 1)
    assert [(o.problem, o.raw, o.reply) for o in outcomes if o.state == "failed"] == [
        ("context_overflow: too long", "", None)
    ]


def test_an_endpoint_that_keeps_failing_ends_the_run():
    counts, outcomes = judge(calls(500), Endpoint(lambda request: EndpointProblem("down", "refused")))
    assert "calls in a row failed, the last with: refused" in counts.halted
    assert engine.FEWEST_FAILURES <= counts.failed == len(outcomes) < 100


def test_the_budget_ends_the_run_and_what_was_not_called_is_no_outcome():
    left = iter(range(12))

    def says(request):
        return answer("criterion") if next(left, None) is not None else EndpointProblem("budget", "used up")

    counts, outcomes = judge(calls(100), Endpoint(says))
    assert (counts.done, counts.failed, counts.halted, len(outcomes)) == (12, 0, "used up", 12)


def test_stop_ends_the_run_and_hands_over_what_was_in_flight(monkeypatch):
    monkeypatch.setattr(engine, "FLUSH_S", 0.01)
    endpoint = Endpoint(pause=0.02)
    counts, outcomes = judge(calls(5000), endpoint, stop=lambda: len(endpoint.requests) > 20)
    assert counts.halted == "stopped" and counts.done == len(outcomes) == len(endpoint.requests) < 5000


def test_stop_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(engine, "FLUSH_S", 0.01)
    monkeypatch.setattr(engine, "GRACE_S", 0.05)
    counts, outcomes = judge(calls(10), Endpoint(pause=3600), stop=lambda: True)
    assert (counts.halted, outcomes) == ("stopped", [])


def test_calls_with_a_common_prefix_run_together():
    a, b = calls(10), expand(SPEC, "v", replace(INPUT, responses={"x": "Rome."}, criteria=calls_criteria(10)))
    mixed = [call for pair in zip(a, b, strict=True) for call in pair]
    endpoint = Endpoint()
    judge(mixed, endpoint, concurrency=1)
    answers = ["Rome." in request.messages[-1]["content"] for request in endpoint.requests]
    assert sum(one != two for one, two in zip(answers, answers[1:], strict=False)) == 1


def calls_criteria(number):
    return tuple(Criterion(id=f"c{i}", text=f"Says {i}.", points=1) for i in range(number))


def test_outcomes_are_handed_over_on_the_calling_thread_while_others_are_under_way(monkeypatch):
    monkeypatch.setattr(engine, "FLUSH_S", 0.01)
    batches, threads = [], set()

    def keep(batch):
        batches.append(len(batch))
        threads.add(threading.get_ident())

    counts, _ = judge(calls(200), Endpoint(pause=0.01), on_outcome=keep)
    assert threads == {threading.get_ident()} and len(batches) > 3 and sum(batches) == counts.done == 200


def test_what_comes_in_while_the_last_batch_is_handed_over_is_handed_over_too(monkeypatch):
    monkeypatch.setattr(engine, "FLUSH_S", 0.005)
    kept = []

    def slow(batch):
        time.sleep(0.05)
        kept.extend(batch)

    counts, _ = judge(calls(40), Endpoint(pause=0.01), on_outcome=slow)
    assert len(kept) == counts.done == 40


def test_calls_are_read_as_they_are_needed():
    numbers = count()

    def endless():
        for call in calls(1) * 10_000:
            next(numbers)
            yield call

    endpoint = Endpoint()
    judge(endless(), endpoint, stop=lambda: True)
    assert next(numbers) < 3000


def test_an_error_in_the_store_ends_the_run():
    def broken(batch):
        raise ValueError("disk full")

    with pytest.raises(ValueError, match="disk full"):
        judge(calls(5000), Endpoint(pause=0.005), on_outcome=broken)
