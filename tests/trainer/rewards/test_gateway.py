"""Judges that the server of the run asks, with a server that gives scripted answers."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from trainer.config.rewards.parts import JudgePart, RubricPart
from trainer.contracts import JudgeAnswer, JudgeGrant, JudgeQuestion, QuestionBatch, QuestionReply
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.spec import digest, resolve
from trainer.rewards import Services, gateway, scoring
from trainer.rewards.access import AccessInvalid, granted
from trainer.rewards.gateway import Gateway, GatewayJudge

from .judged import item

SPEC = resolve({"kind": "criterion"})
KEY = digest(SPEC, "1")
PART = RubricPart(judge="j", name="rubric")


def inputs_of(question: JudgeQuestion) -> list[JudgeInput]:
    return [
        JudgeInput(
            example=question.example,
            conversation=question.conversation,
            responses=each.responses,
            criteria=question.criteria,
            reference=question.reference,
        )
        for each in question.about
    ]


def met(question: JudgeQuestion, **changes: Any) -> QuestionReply:
    """A judge for which every criterion is met."""
    plain = {"state": "done", "parsed": {"explanation": "Yes.", "met": True}, "raw": "", "problem": "", "called": True}
    plain |= {"tokens": 10, "cost": 0.5, "latency_s": 0.1}
    keys = dict.fromkeys(call.key for given in inputs_of(question) for call in expand(SPEC, KEY, given))
    return QuestionReply(key=question.key, answers=tuple(JudgeAnswer(key=key, **plain | changes) for key in keys))


class Server:
    """`reply` answers a question; None leaves it out of this answer. `statuses` are used first, one for each request."""

    def __init__(self) -> None:
        self.reply: Callable[[JudgeQuestion], QuestionReply | None] = met
        self.statuses: list[int] = []
        self.batches: list[list[JudgeQuestion]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Authorization"] != "Bearer t":
                    return self.send_error(401)
                if outer.statuses:
                    return self.send_error(outer.statuses.pop(0))
                asked = QuestionBatch.model_validate_json(body).questions
                outer.batches.append(list(asked))
                self.send_response(200)
                self.end_headers()
                for reply in map(outer.reply, asked):
                    self.wfile.write(b"\n" + (reply.model_dump_json() + "\n" if reply else "").encode())
                return None

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/questions"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(gateway, "AGAIN_S", 0.01)
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()


def scored(server: Server, *groups: list[Any], parts: Any = (PART,), token: str = "t") -> list[list[Any]]:  # noqa: S107
    async def main() -> list[list[Any]]:
        judge = GatewayJudge(SPEC, KEY, Gateway(server.url, token, "j"))

        async def wait(reason: str) -> None:
            raise AssertionError(f"paused: {reason}")

        try:
            return await asyncio.gather(
                *(scoring.score(parts, group, Services(judges={"j": judge}), wait) for group in groups)
            )
        finally:
            await judge.close()

    return asyncio.run(main())


def test_a_group_is_one_question_and_a_step_one_request(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "GATHER_S", 0.5)  # also on a busy machine
    group = [item("Kind", 0), item("Rude", 1)]
    (first,) = scored(server, group)
    assert [composed.total for composed in first] == [2 / 3, 2 / 3], "by rule: short; by judge: kind and rude"
    usage = first[0].parts["rubric"].usage
    assert (usage.calls, usage.tokens, usage.cost) == (2, 20, 1.0)
    (batch,) = server.batches
    assert [(each.judge, len(each.about)) for each in batch] == [("j", 2)]
    assert [about.place for about in batch[0].about] == ["train/1/0/0", "train/1/0/1"]

    server.batches.clear()
    other = [replace(item("Else"), place="train/1/1/0")]
    scored(server, group, other)
    assert [len(batch) for batch in server.batches] == [2]


def test_the_key_of_a_question_tells_places_apart_and_stays(server: Server) -> None:
    for group in ([item("Kind", 0)], [item("Kind", 0)], [item("Kind", 1)]):
        scored(server, group)
    first, again, elsewhere = (batch[0].key for batch in server.batches)
    assert first == again != elsewhere


def test_two_parts_that_ask_the_same_pay_once(server: Server) -> None:
    parts = (PART, JudgePart(judge="j", name="again", protocol="criterion", shadow=True))
    both = RubricPart(judge="j", name="second", shadow=True)
    (found,) = scored(server, [item("Kind")], parts=(*parts, both))
    used = [found[0].parts[name].usage.calls for name in ("rubric", "again", "second")]
    assert sum(used) == 2 and sum(len(batch) for batch in server.batches) == 1


def test_what_is_not_answered_in_time_is_asked_for_again(server: Server) -> None:
    left = [None, None]

    def late(question: JudgeQuestion) -> QuestionReply | None:
        return left.pop() if left else met(question)

    server.reply, server.statuses = late, [503, 502]
    assert scored(server, [item("Kind")])[0][0].total is not None
    assert len({batch[0].key for batch in server.batches}) == 1 and len(server.batches) == 3


def test_a_judge_that_is_away_leaves_out_or_waits(server: Server) -> None:
    server.reply = lambda question: QuestionReply(key=question.key, answers=(), away="j cannot be asked: down.")
    excluded = PART.model_copy(update={"on_missing": "exclude"})
    (composed,) = scored(server, [item("Kind")], parts=(excluded,))[0]
    assert composed.total is None and "j cannot be asked" in composed.excluded
    with pytest.raises(BaseExceptionGroup) as paused:
        scored(server, [item("Kind")])
    assert "paused: rubric: j cannot be asked: down." in str(paused.value.exceptions)


def test_answers_in_part_are_no_reward(server: Server) -> None:
    def half(question: JudgeQuestion) -> QuestionReply:
        whole = met(question)
        return whole.model_copy(update={"answers": whole.answers[:1], "away": "the endpoint is down"})

    server.reply = half
    excluded = PART.model_copy(update={"on_missing": "exclude"})
    assert scored(server, [item("Kind")], parts=(excluded,))[0][0].total is None


@pytest.mark.parametrize(("status", "words"), [(409, "HTTP 409"), (422, "HTTP 422")])
def test_what_the_server_refuses_is_not_asked_for_ever(server: Server, status: int, words: str) -> None:
    server.statuses = [status]
    excluded = PART.model_copy(update={"on_missing": "exclude"})
    assert words in scored(server, [item("Kind")], parts=(excluded,))[0][0].excluded
    assert "HTTP 401" in scored(server, [item("Kind")], parts=(excluded,), token="other")[0][0].excluded


def test_a_server_that_stays_away_counts_as_the_judge(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PATIENCE_S", 0.1)
    server.statuses = [503] * 1000
    excluded = PART.model_copy(update={"on_missing": "exclude"})
    assert "does not answer" in scored(server, [item("Kind")], parts=(excluded,))[0][0].excluded


def test_a_nul_is_asked_about_as_its_sign(server: Server) -> None:
    assert scored(server, [item("Ki\0nd")])[0][0].total is not None
    assert json.dumps(server.batches[0][0].about[0].responses["sample"]) == '"Ki\\u2400nd"'


def test_large_questions_travel_apart(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MOST_BYTES", 2000)
    scored(server, *([item("Kind " * 100, index)] for index in range(4)))
    assert len(server.batches) > 1 and sum(len(batch) for batch in server.batches) == 4


def test_a_grant_makes_a_judge_of_the_server_and_budgets_stay_there(server: Server) -> None:
    grants = {
        "j": JudgeGrant(spec={"kind": "criterion"}, key=KEY),
        "here": JudgeGrant(spec={"kind": "criterion"}, key=KEY, local="/m"),
    }
    access = granted(grants, server.url, "tsr_1", "")
    assert access.judges["j"].target == Gateway(server.url, "tsr_1", "j") and "tsr_1" not in repr(access)
    parts = [PART.model_copy(update={"budget_tokens": 5}), RubricPart(judge="here", name="b", budget_tokens=7)]
    services = access.open(parts, {})
    assert services.budgets.keys() == {"here"} and isinstance(services.judges["j"], GatewayJudge)
    with pytest.raises(AccessInvalid, match="judge 'j'"):
        granted({"j": JudgeGrant(spec={"kind": "oracle"}, key=KEY)}, server.url, "t", "")
