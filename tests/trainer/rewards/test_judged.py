"""Rewards that a judge gives: its decisions, its costs, and the result for a response if it does not answer."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chatserver import ChatServer
from trainer.config.rewards.parts import JudgePart, RubricPart
from trainer.contracts import Message
from trainer.judges.budget import Budget
from trainer.judges.chat import Target
from trainer.judges.engine import Outcome
from trainer.judges.inputs import JudgeInput
from trainer.rewards.journal import Journal
from trainer.rewards.judges import EngineJudge, Memory, VerdictsAway
from trainer.rewards.parts import RewardAnswer

from .judged import CRITERIA, item, judge, literal, longer, score

RUBRIC_PART = RubricPart(judge="j")


def part(**fields: Any) -> JudgePart:
    return JudgePart(judge="j", **fields)


def test_programs_decide_where_there_is_one_and_the_judge_elsewhere() -> None:
    (kind, rude), server = score([RUBRIC_PART], [item("How kind"), item("You are rude, I am not", 1)])
    assert kind.total == pytest.approx((1 + 2) / 3) and rude.total == pytest.approx(-1 / 3)
    assert server.requests == 4, "two criteria of each response; the third has a program"
    found = {verdict.criterion_id: verdict for verdict in kind.parts["rubric"].verdicts}
    assert [found[name].source for name in ("short", "kind", "rude")] == ["verifier", "judge", "judge"]
    assert found["kind"].note == "I looked for kind." and found["kind"].raw and found["kind"].cost
    assert found["short"].cost is None
    usage = kind.parts["rubric"].usage
    assert usage.calls == 2 and usage.cost == pytest.approx(found["kind"].cost + (found["rude"].cost or 0))
    assert usage.latency_s > 0 and usage.tokens > 0


def test_criteria_of_the_judge_alone_leave_those_with_a_program_out() -> None:
    (found,), _ = score([part()], [item("Kind of long and not kind")])
    assert found.total == 1.0, "two of two positive points; being short is no part of it"


def test_a_checklist_gives_the_same_in_one_call() -> None:
    def all_at_once(body: dict[str, Any]) -> str:
        return json.dumps({"verdicts": [{"number": n, "explanation": "", "met": n == 1} for n in (1, 2)]})

    (found,), server = score([part(protocol="checklist")], [item()], serve=all_at_once, kind="checklist")
    assert (found.total, server.requests) == (1.0, 1)
    verdicts = found.parts["judge"].verdicts
    assert sum(v.cost or 0 for v in verdicts) == pytest.approx(found.parts["judge"].usage.cost)


def test_ratings_are_weighed_by_points() -> None:
    def rate(body: dict[str, Any]) -> str:
        return json.dumps({"ratings": [{"number": n, "explanation": "", "rating": r} for n, r in ((1, 10), (2, 4))]})

    (found,), _ = score([part(protocol="likert")], [item()], serve=rate, kind="likert")
    assert found.total == pytest.approx((2 * 1 - 1 * 3 / 9) / (2 - 1))
    assert found.parts["judge"].shown["ratings"] == {"kind": 10, "rude": 4}


def test_a_rating_that_was_passed_over_is_missing() -> None:
    def half(body: dict[str, Any]) -> str:
        return json.dumps({"ratings": [{"number": 1, "explanation": "", "rating": 10}]})

    (found,), _ = score([part(protocol="likert")], [item()], serve=half, kind="likert")
    assert found.total is None and found.excluded.startswith("judge: no rating for rude: no answer on item 2")


def test_one_rating_of_the_whole() -> None:
    (found,), _ = score(
        [part(protocol="pointwise")],
        [item()],
        serve=lambda body: json.dumps({"explanation": "fair", "rating": 4}),
        kind="pointwise",
    )
    assert found.total == pytest.approx(3 / 9) and found.parts["judge"].why == "fair"


@pytest.mark.parametrize(
    ("response", "value"), [("a long answer", 1.0), ("no", 0.0), ("right", 0.0)], ids=["wins", "loses", "ties"]
)
def test_beside_the_reference_in_both_orders(response: str, value: float) -> None:
    pairwise = part(protocol="pairwise", against="reference")
    (found,), server = score([pairwise], [item(response, reference="wrong")], serve=longer, kind="pairwise")
    assert (found.total, server.requests) == (value, 2)
    assert [answer["order"] for answer in found.parts["judge"].shown["answers"]] == ["given", "swapped"]


def test_a_judge_that_likes_the_first_place_gives_a_half() -> None:
    pairwise = part(protocol="pairwise", against="greedy")
    first = json.dumps({"reasons": [], "verdict": "A"})
    (found,), _ = score([pairwise], [item(baseline="greedy")], serve=lambda body: first, kind="pairwise")
    assert found.total == 0.5 and found.parts["judge"].why == "won shown first, lost shown second"


def test_an_empty_answer_of_the_model_is_an_answer_to_compare_with() -> None:
    pairwise = part(protocol="pairwise", against="greedy")
    (found,), server = score([pairwise], [item("a long answer", baseline="")], serve=longer, kind="pairwise")
    assert (found.total, server.requests) == (1.0, 2)


def test_nothing_to_compare_with_is_missing() -> None:
    pairwise = part(protocol="pairwise", against="reference")
    items = [item(), item("b", 1, reference="r"), item("c", 2, reference="")]
    found, server = score([pairwise], items, serve=longer, kind="pairwise")
    assert [each.excluded for each in found] == [lacking := "judge: the example has no reference", "", lacking]
    assert server.requests == 2


def test_an_answer_that_cannot_be_read_excludes_its_response_only() -> None:
    def mumbling(body: dict[str, Any]) -> str:
        return "hm" if "How rude" in body["messages"][-1]["content"] else '{"explanation": "", "met": true}'

    found, _ = score([RUBRIC_PART], [item(), item("How rude", 1)], serve=mumbling)
    assert found[0].total is not None and found[1].total is None
    assert found[1].excluded == "rubric: no verdict for kind, rude: the answer holds no JSON object"
    assert [v.raw for v in found[1].parts["rubric"].verdicts] == ["", "hm", "hm"]


def test_the_same_question_is_asked_and_paid_once() -> None:
    found, server = score([RUBRIC_PART], [item(), item(index=1)])
    assert server.requests == 2 and found[0].total == found[1].total
    assert [each.parts["rubric"].usage.calls for each in found] == [2, 0]


def test_an_endpoint_that_is_down_excludes_where_the_part_says_so() -> None:
    def down(server: ChatServer) -> None:
        server.fault = "down"

    exclude = RUBRIC_PART.model_copy(update={"on_missing": "exclude"})
    (found,), _ = score([exclude], [item()], prepare=down)
    assert found.total is None and found.parts["rubric"].away
    assert found.excluded.startswith("rubric: down:")


def test_an_endpoint_that_is_down_pauses_and_only_what_is_missing_is_asked_again() -> None:
    reasons: list[str] = []

    def fails_once(server: ChatServer) -> None:
        server.faults.extend(["", "error"])

    async def mended(server: ChatServer, reason: str) -> None:
        reasons.append(reason)

    found, server = score([RUBRIC_PART], [item(), item("So kind", 1)], prepare=fails_once, wait=mended)
    assert all(each.total is not None for each in found)
    assert server.requests == 5, "four questions, one of them twice"
    assert len(reasons) == 1 and reasons[0].startswith("rubric: down: answered 500")


def test_a_budget_that_is_spent_pauses_with_its_reason() -> None:
    class Enough(Exception):
        pass

    async def stop(server: ChatServer, reason: str) -> None:
        raise Enough(reason)

    with pytest.raises(ExceptionGroup) as caught:
        score([RUBRIC_PART], [item()], wait=stop, budget=Budget(tokens=10))
    assert "The budget is used up: 0 of 10 tokens" in str(caught.value.exceptions[0])


def test_a_prompt_beyond_the_context_excludes_and_never_pauses() -> None:
    def too_long(server: ChatServer) -> None:
        server.fault = "context_overflow"

    (found,), _ = score([RUBRIC_PART], [item()], prepare=too_long)
    assert found.total is None and "does not fit the model's context" in found.excluded


def test_what_was_measured_before_a_kill_is_not_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "rewards.jsonl"
    before, first = score([RUBRIC_PART], [item()], journal=Journal(path))
    with path.open("ab") as file:
        file.write(b'["cut short')
    after, second = score([RUBRIC_PART], [item()], journal=Journal(path))
    assert (first.requests, second.requests) == (2, 0)
    assert after == before, "to the last digit, costs and words too"
    _, elsewhere = score([RUBRIC_PART], [item(index=1)], journal=Journal(path))
    assert elsewhere.requests == 2, "another place of the run is another question"


def test_a_response_left_out_before_a_kill_is_left_out_again(tmp_path: Path) -> None:
    """Otherwise the resumed run would train on other responses than the run that was killed."""

    def down(server: ChatServer) -> None:
        server.fault = "down"

    exclude = RUBRIC_PART.model_copy(update={"on_missing": "exclude"})
    path = tmp_path / "rewards.jsonl"
    before, _ = score([exclude], [item()], prepare=down, journal=Journal(path))
    after, server = score([exclude], [item()], journal=Journal(path))
    assert after == before and after[0].total is None and server.requests == 0


def test_a_checkpoint_that_two_others_follow_lets_what_was_before_it_be_forgotten(tmp_path: Path) -> None:
    """The newest file may be incomplete when the run is killed, and workers score ahead of it."""
    path = tmp_path / "rewards.jsonl"
    journal = Journal(path)
    known = []
    for number in range(4):
        score([RUBRIC_PART], [item(index=number)], journal=journal)
        journal.checkpoint({"j": [number, "0"]})
        places = [f"train/1/0/{index}" for index in range(4)]
        known.append([entry.place[-1] for entry in Journal(path).at(places)])
    assert known == [["0"], ["0", "1"], ["1", "2"], ["2", "3"]]
    assert journal.at(places) == Journal(path).at(places)
    score([RUBRIC_PART], [item(index=9)], journal=journal)
    assert [entry.place for entry in Journal(path).at(["train/1/0/9"])] == ["train/1/0/9"]


def test_what_was_asked_since_the_checkpoint_that_a_run_goes_on_from_is_counted(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rewards.jsonl")
    for number in range(3):
        journal.checkpoint({"j": [number, "0"]})
        score([RUBRIC_PART], [item(index=number)], journal=journal)
    again = Journal(tmp_path / "rewards.jsonl")
    calls = {None: 6, 0: 6, 1: 4, 2: 2, 7: 6}
    for number, expected in calls.items():
        mark = None if number is None else {"j": [number, "0"]}
        assert again.used(mark)["rubric"].calls == expected


class Kept(Memory):
    """A verdict store on another server. It is away when a test says so, and has limits that people set."""

    def __init__(self, allowed: int | None = None) -> None:
        super().__init__()
        self.allowed, self.away = allowed, False

    def get(self, keys: Sequence[str]) -> Mapping[str, RewardAnswer]:
        if self.away:
            raise VerdictsAway("the store is away")
        return super().get(keys)

    def put(self, outcomes: Iterable[Outcome]) -> None:
        if self.away:
            raise VerdictsAway("the store is away")
        super().put(outcomes)

    def limit(self, budget: Budget) -> None:
        budget.tokens = self.allowed


def test_a_store_decides_what_is_asked_and_how_much_may_be_used() -> None:
    async def main() -> None:
        async with ChatServer(answer=literal) as server:
            store = Kept(allowed=1)
            asking = judge(server)
            asked = EngineJudge(asking.spec, asking.key, Target(server.url, "m", retries=0), Budget(), store)
            given = JudgeInput(
                example="e",
                conversation=(Message(role="user", content="Hi"),),
                responses={"r": "How kind\0"},
                criteria=CRITERIA[1:2],
            )
            ((answer,),) = await asked.ask([given])
            assert answer.away and "budget" in answer.problem and server.requests == 0
            store.allowed = 10**6  # a person has raised the limit
            ((answer,),) = await asked.ask([given])
            assert answer.parsed and answer.parsed["met"] and server.requests == 1
            assert "\0" not in json.dumps(server.bodies[0]).encode().decode("unicode_escape")
            store.away = True
            ((answer,),) = await asked.ask([given])
            assert answer.away and answer.problem == "the store is away" and server.requests == 1
            store.away = False
            ((answer,),) = await asked.ask([given])
            assert not answer.called and server.requests == 1, "what is stored is not asked"
            await asked.close()

    asyncio.run(main())
