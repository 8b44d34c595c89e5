"""Weights in the process of a job answer questions."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.trainer.judges.inputs import INPUT
from trainer.contracts import Criterion
from trainer.judges.budget import Budget
from trainer.judges.calls import Call, expand
from trainer.judges.local import LocalClient, LocalTarget, wording
from trainer.judges.spec import resolve
from trainer.weights.client import JobStopped, _lines
from trainer.weights.judge import LoadedChat, judged

CRITERIA = tuple(Criterion(id=f"c{n}", text=f"Says {n}.", points=1) for n in range(6))
YES_NO = resolve({"kind": "criterion"})
WORDS = resolve({"kind": "pointwise", "retries": 1, "sampling": {"max_tokens": 4}})


def calls(spec: Any, **changes: Any) -> list[Call]:
    return expand(spec, "v", type(INPUT)(**{**vars(INPUT), "criteria": CRITERIA, **changes}))


class Answers:
    """Replaces the weights. It keeps the questions that were asked together."""

    def __init__(self, text: str = '{"rating": 7, "explanation": "good"}') -> None:
        self.text, self.asked = text, list[int]()

    def answer(self, asked: Sequence[Any], look: Callable[[], None]) -> list[dict[str, Any]]:
        look()
        self.asked.append(len(asked))
        said = {"state": "done", "text": self.text, "finish_reason": "stop", "prompt_tokens": 7, "completion_tokens": 2}
        return [{"key": each.key, **said} for each in asked]


def ask_judge(answers: Any, spec: Any, given: list[Call], **options: Any) -> tuple[Any, str]:
    return asyncio.run(judged(spec, given, LoadedChat(answers, False, "", **options), None))


def test_what_waits_together_is_one_pass_and_what_cannot_be_read_is_asked_again() -> None:
    given = [call for n in range(5) for call in calls(WORDS, responses={"r": f"text {n}"})]
    answers = Answers()
    outcomes, halted = ask_judge(answers, WORDS, given)
    assert (answers.asked, halted) == ([5], "")
    assert [outcome.call.key for outcome in outcomes] == [call.key for call in given]
    answers = Answers("I cannot say.")
    outcomes, _ = ask_judge(answers, WORDS, given)
    assert answers.asked == [5, 5] and {outcome.state for outcome in outcomes} == {"missing"}
    assert outcomes[0].reply is not None and outcomes[0].reply.attempts == 2


def test_a_budget_ends_it_with_its_words_and_keeps_what_was_answered() -> None:
    given = [call for n in range(5) for call in calls(WORDS, responses={"r": f"text {n}"})]
    most = sum(len(message["content"].encode()) + 64 for message in given[0].request.messages) + 20
    outcomes, halted = ask_judge(Answers(), WORDS, given, budget=Budget(tokens=most))
    assert "The budget is used up" in halted and 0 < len(outcomes) < 5


def test_who_is_asked_to_stop_ends_in_the_middle() -> None:
    def look() -> None:
        raise JobStopped

    with pytest.raises(JobStopped):
        ask_judge(Answers(), WORDS, calls(WORDS), look=look)


def test_items_are_split_at_line_feeds_only() -> None:
    lines = [json.dumps({"key": text}, ensure_ascii=False) for text in ("a\u2028b", "c\x85d")]
    whole = "".join(f"{line}\n" for line in lines).encode()
    pieces = [whole[:9], whole[9:11], whole[11:]]
    assert [json.loads(line)["key"] for line in _lines(pieces)] == ["a\u2028b", "c\x85d"]


@pytest.mark.slow
def test_verdicts_are_those_of_the_child_process_that_trials_ask(tiny_dir: Path) -> None:
    from trainer.logit_judge.answering import Answering

    given, name = calls(YES_NO), wording(YES_NO)

    async def by_child() -> list[str]:
        target = LocalTarget([*fork_server.command(), "judge-local"], ".", str(tiny_dir), True, name)
        async with LocalClient(target) as local:
            replies = await asyncio.gather(*(local.chat(call.request) for call in given))
        return [reply.text for reply in replies]

    chat = LoadedChat(Answering(tiny_dir), True, name)
    outcomes, halted = asyncio.run(judged(YES_NO, given, chat, None))
    assert halted == "" and {outcome.state for outcome in outcomes} == {"done"}
    assert [outcome.raw for outcome in outcomes] == asyncio.run(by_child())
