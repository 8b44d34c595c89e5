"""Questions of a run to its judges. The server receives them over HTTP, a worker asks them, and the verdict store answers."""

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connections
from django.test import AsyncClient
from django.utils import timezone

from tests.webapp.inference.conftest import KEY, chat_server, endpoint  # noqa: F401  fixtures
from trainer.contracts import Criterion, JudgeQuestion, Message, QuestionReply
from trainer.judges.inputs import JudgeInput
from trainer.rewards import gateway
from webapp.core.problems import Conflict, Invalid
from webapp.experiments.ingest import api
from webapp.experiments.lifecycle import tokens
from webapp.experiments.models import Run, RunJudge, RunQuestion
from webapp.experiments.rewards import asking, questions
from webapp.inference.models import Endpoint
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Verdict

from ..conftest import Trainer

MET = json.dumps({"explanation": "It says so.", "met": True})
GRADER = "Strict v1"


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(asking, "LINGER_S", 0.05)
    monkeypatch.setattr(asking, "LOOK_S", 0.01)


@pytest.fixture
def grader(team, endpoint, chat_server):  # noqa: F811
    chat_server.answer = lambda body: MET
    return create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)


@pytest.fixture
def judged(launch, grader) -> Run:
    return start(launch)


def start(launch, **part) -> Run:
    part = {"kind": "rubric", "judge": GRADER, **part}
    run = launch(config={"steps": 2, "scaffold": None, "rewards": [part]})
    Run.objects.filter(pk=run.pk).update(state="running", ray_job_id="run-1", next_try_at=None)
    run.refresh_from_db()
    return run


def group(grader, step=1, responses=2, criteria=2) -> list[JudgeQuestion]:
    """The questions that a run sends about one group."""
    listed = tuple(Criterion(id=f"c{i}", text=f"Says {i}.", points=1) for i in range(criteria))
    inputs = [
        JudgeInput(
            example="e1",
            conversation=(Message(role="user", content="Where?"),),
            responses={"sample": f"Paris {n}."},
            criteria=listed,
            subject={"place": f"train/{step}/0/{n}"},
        )
        for n in range(responses)
    ]
    return list(gateway.questions(GRADER, grader.digest, inputs))


def ask_and_answer(run: Run, sent: list[JudgeQuestion]) -> list[QuestionReply]:
    """The work of the route and of the worker, one after the other."""
    taken = questions.take(run, sent)
    for judge in taken.judges:
        asking.answer(judge)
    return questions.ready(taken, taken.keys)


def test_a_judge_with_a_key_is_asked_by_the_server(judged, grader, chat_server):  # noqa: F811
    (reply,) = ask_and_answer(judged, group(grader))
    assert (len(reply.answers), reply.away, chat_server.requests) == (4, "", 4)
    for answer in reply.answers:
        assert (answer.state, answer.parsed["met"], answer.called) == ("done", True, True)
        assert answer.tokens > 0 and answer.raw == MET
    assert Verdict.objects.filter(version=grader, state="done").count() == 4
    about = {json.dumps(row.subject, sort_keys=True) for row in Verdict.objects.all()}
    assert any('"place": "train/1/0/1"' in each and f'"run": {judged.pk}' in each for each in about)
    row = RunJudge.objects.get(run=judged)
    assert (row.calls, row.failed, row.problem) == (4, 0, "") and row.tokens == sum(a.tokens for a in reply.answers)


def test_no_key_leaves_the_server(judged, grader):
    told = Trainer(judged).client.get(f"/api/v1/ingest/runs/{judged.pk}").content.decode()
    assert grader.digest in told and KEY not in told and grader.endpoint.url not in told


def test_asked_again_a_question_makes_no_call_and_is_answered_the_same(judged, grader, chat_server):  # noqa: F811
    first = ask_and_answer(judged, group(grader))
    assert ask_and_answer(judged, group(grader)) == first, (
        "what was paid for is told again: the run may have been killed"
    )
    (elsewhere,) = ask_and_answer(judged, group(grader, step=2))
    assert chat_server.requests == 4 and not any(answer.called for answer in elsewhere.answers)
    told = [(answer.key, answer.parsed, answer.raw) for answer in elsewhere.answers]
    assert told == [(answer.key, answer.parsed, answer.raw) for answer in first[0].answers]


def test_questions_that_wait_together_share_their_calls(judged, grader, chat_server):  # noqa: F811
    replies = ask_and_answer(judged, [*group(grader, step=1), *group(grader, step=2)])
    assert chat_server.requests == 4
    assert sorted(sum(answer.called for answer in reply.answers) for reply in replies) == [0, 4]


def test_an_endpoint_that_is_down_is_told_with_what_to_do_and_asked_again(judged, grader, chat_server):  # noqa: F811
    chat_server.fault = "error"
    (reply,) = ask_and_answer(judged, group(grader))
    assert "Strict v1 cannot be asked" in reply.away and "asks again until the judge answers" in reply.away
    assert reply.answers == () and RunJudge.objects.get(run=judged).problem == reply.away
    chat_server.fault = None
    (reply,) = ask_and_answer(judged, group(grader))
    assert (reply.away, len(reply.answers)) == ("", 4) and all(answer.called for answer in reply.answers)
    row = RunJudge.objects.get(run=judged)
    assert (row.calls, row.failed, row.problem) == (4, 4, "")


def test_what_was_answered_before_the_endpoint_went_away_is_not_asked_again(judged, grader, chat_server):  # noqa: F811
    chat_server.faults.extend(["", "", "error", "error"])
    (reply,) = ask_and_answer(judged, group(grader))
    assert reply.away and len(reply.answers) == 2
    (reply,) = ask_and_answer(judged, group(grader))
    assert (reply.away, chat_server.requests) == ("", 6)
    assert all(answer.called for answer in reply.answers), "the question has paid for all of them"


def test_a_call_that_nobody_can_answer_is_an_answer(judged, grader, chat_server):  # noqa: F811
    chat_server.faults.append("context_overflow")
    (reply,) = ask_and_answer(judged, group(grader, responses=1))
    assert reply.away == "" and sorted(answer.state for answer in reply.answers) == ["done", "failed"]


def test_a_budget_that_is_used_up_waits_until_it_is_raised(launch, grader, chat_server):  # noqa: F811
    run = start(launch, budget_tokens=10)
    (reply,) = ask_and_answer(run, group(grader))
    assert "The budget is used up" in reply.away and "Raise its budget on the run's page" in reply.away
    assert chat_server.requests == 0
    RunJudge.objects.filter(run=run).update(budget_tokens=100_000)
    (reply,) = ask_and_answer(run, group(grader))
    assert reply.away == "" and RunJudge.objects.get(run=run).tokens > 10


def test_what_a_killed_worker_had_spent_counts(launch, grader, endpoint, chat_server):  # noqa: F811
    Endpoint.objects.filter(pk=endpoint.pk).update(price_prompt=Decimal(1), price_completion=Decimal(1))
    run = start(launch, budget_money=5)
    ask_and_answer(run, group(grader, responses=1))
    row = RunJudge.objects.get(run=run)
    assert row.budget_money == 5 and 0 < row.money < Decimal("0.01")
    RunJudge.objects.filter(run=run).update(money=5)
    (reply,) = ask_and_answer(run, group(grader, step=2, responses=3))
    assert "The budget is used up" in reply.away and len(reply.answers) == 2


def test_the_questions_of_a_run_that_ends_stop(judged, grader, chat_server):  # noqa: F811
    taken = questions.take(judged, group(grader))
    Run.objects.filter(pk=judged.pk).update(state="stopping")
    asking.answer(*taken.judges)
    assert chat_server.requests == 0 and RunQuestion.objects.get().state == "away"
    judged.refresh_from_db()
    with pytest.raises(Conflict):
        questions.take(judged, group(grader))


def test_a_judge_of_another_run_cannot_be_asked(launch, grader, run):
    Run.objects.filter(pk=run.pk).update(state="running")
    run.refresh_from_db()
    with pytest.raises(Invalid, match="This run has no such judge"):
        questions.take(run, group(grader))
    assert not RunQuestion.objects.exists()


def test_an_endpoint_that_is_archived_meanwhile_is_said(judged, grader, endpoint):  # noqa: F811
    Endpoint.objects.filter(pk=endpoint.pk).update(archived_at=timezone.now())
    (reply,) = ask_and_answer(judged, group(grader))
    assert "archived" in reply.away


def test_one_worker_asks_and_a_lost_one_is_replaced(judged, grader, monkeypatch):
    sent: list[tuple] = []
    monkeypatch.setattr(questions, "enqueue", lambda *task: sent.append(task))
    for seen, expected in ((None, 1), (timezone.now(), 1), (timezone.now() - timedelta(minutes=1), 2)):
        RunJudge.objects.filter(run=judged).update(seen_at=seen)
        taken = questions.take(judged, group(grader))
        assert len(sent) == expected
    assert sent[0] == ("workers.questions.answer", *taken.judges)


def test_old_questions_are_forgotten_and_their_verdicts_kept(judged, grader):
    ask_and_answer(judged, group(grader))
    RunQuestion.objects.update(created_at=timezone.now() - timedelta(days=3))
    asking.forget_old()
    assert not RunQuestion.objects.exists() and Verdict.objects.count() == 4


def test_malformed_questions_are_refused_at_their_fields(judged, grader):
    trainer = Trainer(judged)
    for body in ({"questions": []}, {"questions": [{"key": "x", "judge": GRADER}]}, {"asked": 1}):
        answer = trainer.client.post(trainer.url("/questions"), body, content_type="application/json")
        assert answer.status_code == 422, answer.content
    unknown = group(grader)[0].model_copy(update={"judge": "Nobody v1"}).model_dump(mode="json")
    answer = trainer.client.post(trainer.url("/questions"), {"questions": [unknown]}, content_type="application/json")
    assert answer.status_code == 422 and "Nobody v1" in answer.content.decode()


@pytest.fixture
def worker(monkeypatch) -> Iterator[list[threading.Thread]]:
    """Runs queued tasks in a separate thread, like Celery's workers. Returns the threads that were started."""
    threads: list[threading.Thread] = []

    def work(judge: int) -> None:
        try:
            asking.answer(judge)
        finally:
            connections.close_all()

    def enqueue(name: str, judge: int) -> None:
        threads.append(threading.Thread(target=work, args=(judge,)))
        threads[-1].start()

    monkeypatch.setattr(questions, "enqueue", enqueue)
    yield threads
    for thread in threads:
        thread.join(30)


@pytest.mark.django_db(transaction=True)
async def test_the_route_answers_line_by_line(team, worker, chat_server, settings, monkeypatch):  # noqa: F811
    from channels.db import database_sync_to_async

    from webapp.inference.endpoints import services as endpoints

    from ..conftest import make_version

    chat_server.answer = lambda body: MET

    def prepare():
        from webapp.experiments.launch import checks
        from webapp.experiments.launch import services as launch_services
        from webapp.inference.models import RegisteredModel

        version = make_version(team.owner)
        RegisteredModel.objects.create(
            workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/m"
        )
        made = endpoints.create_endpoint(
            team.researcher, "chat", name="judge", url=chat_server.url, model="tiny", secret=KEY, retries=0
        )
        grader = create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=made)
        choice = checks.DatasetChoice(id=version.dataset_id)
        run = start(lambda **k: launch_services.launch(team.owner, recipe="policy", dataset=choice, **k))
        return run, group(grader), group(grader, step=2, responses=3)

    run, first, second = await database_sync_to_async(prepare)()
    body = json.dumps({"questions": [each.model_dump(mode="json") for each in (*first, *second)]})
    headers = {"authorization": f"Bearer {tokens.run_token(run)}"}
    url = f"/api/v1/ingest/runs/{run.pk}/questions"
    try:
        answer = await AsyncClient().post(url, body, content_type="application/json", headers=headers)
        assert answer.status_code == 200
        text = b"".join([chunk async for chunk in answer.streaming_content]).decode()  # type: ignore[attr-defined]
        replies = [QuestionReply.model_validate_json(line) for line in text.split("\n") if line]
        assert {reply.key for reply in replies} == {first[0].key, second[0].key}
        assert sorted(len(reply.answers) for reply in replies) == [4, 6] and chat_server.requests == 6
        monkeypatch.setattr(api, "LONGEST_ANSWER_S", 0.2)
        monkeypatch.setattr(questions, "enqueue", lambda *task: None)
        for thread in worker:  # it would look for more questions for a while, and answer these
            await asyncio.to_thread(thread.join, 30)
        third = json.dumps({"questions": [first[0].model_copy(update={"key": "a" * 64}).model_dump(mode="json")]})
        answer = await AsyncClient().post(url, third, content_type="application/json", headers=headers)
        waited = b"".join([chunk async for chunk in answer.streaming_content])  # type: ignore[attr-defined]
        assert waited.strip() == b"", "what is not answered in time is asked for again"
    finally:
        await database_sync_to_async(connections.close_all)()
