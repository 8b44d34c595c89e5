"""Answers that a person tried are scored: by a rubric immediately, by a judge or a reward model through a worker."""

import json

import pytest

from tests.team import ApiClient
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from tests.webapp.usage.usage_rows import usage_rows
from webapp.datasets.models import Example
from webapp.inference.models import RegisteredModel
from webapp.inference.serving import process
from webapp.judging.judges.services import create_judge
from webapp.judging.models import JudgeVersion, Verdict
from webapp.playground import asking
from webapp.playground.models import TriedScore

PROMPT = [{"role": "user", "content": "Name a colour."}]
OWN = [{"text": "Says why", "points": 2}, {"text": "Is rude", "points": -1}]


@pytest.fixture
def judge(team, endpoint):  # noqa: F811
    def _judge(kind: str) -> JudgeVersion:
        spec = {"kind": kind, "retries": 0}
        return create_judge(team.researcher, name=kind, spec=spec, endpoint=endpoint)

    return _judge


@pytest.fixture
def scored(api):
    """`scored(body)`: the answer of the API after a worker has worked."""

    def _scored(**body):
        answer = api.post("/try/scores", {"text": "red", **body})
        assert answer.status_code == 202, answer.content
        asking.score(answer.json()["id"])
        return api.get(f"/try/scores/{answer.json()['id']}").json()

    return _scored


def test_a_judge_decides_criteria_of_ones_own_with_its_words(team, chat_server, judge, scored):  # noqa: F811
    chat_server.answer = lambda body: json.dumps(
        {"explanation": "It gives a reason.", "met": "Says why" in body["messages"][-1]["content"]}
    )
    found = scored(judge=judge("criterion").pk, messages=PROMPT, criteria=OWN)
    assert (found["state"], found["score"], found["by"], found["scale"]) == ("finished", 1.0, "criterion v1", "rubric")
    assert [each["met"] for each in found["criteria"]] == [True, False]
    assert found["criteria"][0]["note"] == "It gives a reason."
    assert Verdict.objects.filter(pk__in=found["verdicts"], state="done").count() == 2
    asked = chat_server.requests
    scored(judge=JudgeVersion.objects.get().pk, messages=PROMPT, criteria=OWN)
    assert chat_server.requests == asked, "what is in the store is not asked again"
    assert usage_rows() == [("tried", found["id"], 2, team.researcher.user_id)]


def test_verifiers_decide_what_they_can_before_the_judge_is_asked(team, chat_server, judge, scored, version):  # noqa: F811
    row = Example.objects.get(dataset=version.dataset, key="e0")
    found = scored(judge=judge("checklist").pk, example=row.pk)
    assert (found["score"], chat_server.requests) == (1.0, 0)


@pytest.mark.parametrize(
    ("kind", "said", "score", "words"),
    [
        ("pointwise", {"explanation": "Short and right.", "rating": 10}, 1.0, "Short and right."),
        ("likert", {"ratings": [{"number": 1, "explanation": "", "rating": 10}]}, 1.0, ""),
    ],
)
def test_ratings_become_a_score_from_0_to_1(chat_server, judge, scored, kind, said, score, words):  # noqa: F811
    chat_server.answer = lambda body: json.dumps(said)
    found = scored(judge=judge(kind).pk, messages=PROMPT, criteria=OWN[:1])
    assert (found["score"], found["scale"], found["words"]) == (score, "rating", words)


def test_a_judge_that_fails_says_so_in_words(chat_server, judge, scored):  # noqa: F811
    chat_server.fault = "context_overflow"
    found = scored(judge=judge("pointwise").pk, messages=PROMPT)
    assert (found["state"], found["score"]) == ("failed", None) and "context_overflow" in found["problem"]
    chat_server.fault, chat_server.answer = None, lambda body: "I will not say"
    unread = scored(judge=JudgeVersion.objects.get().pk, messages=[{"role": "user", "content": "Other"}])
    assert unread["state"] == "failed" and unread["problem"]


def test_the_budget_holds(chat_server, judge, scored):  # noqa: F811
    found = scored(judge=judge("pointwise").pk, messages=PROMPT, tokens=10)
    assert found["state"] == "failed" and "The budget is used up" in found["problem"] and chat_server.requests == 0


def test_a_reward_model_scores_in_a_process_of_its_own(team, scored, monkeypatch):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="r", source="hub", path="o/r", head="scalar")

    async def answers(source, digest, request, workspace_id):
        assert (source.head, request["op"], request["answers"]) == ("scalar", "score", ["red"])
        assert workspace_id == team.workspace.pk
        yield {"event": "loading"}
        yield said

    monkeypatch.setattr(process, "answers", answers)
    said = {"event": "done", "scores": [1.25], "problems": [""]}
    found = scored(reward_model=model.pk, messages=PROMPT)
    assert (found["score"], found["scale"], found["by"]) == (1.25, "reward", "r")
    said = {"event": "error", "code": "failed", "message": "The model cannot be loaded: no config.json"}
    assert scored(reward_model=model.pk, messages=PROMPT)["problem"] == said["message"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"judge": 10**6}, "judge"),
        ({"judge": "pairwise"}, "judge"),
        ({"judge": "criterion"}, "criteria"),
        ({"judge": "criterion", "criteria": [{"text": "x", "points": -1}]}, "criteria"),
        ({"judge": "pointwise", "messages": []}, "messages"),
        ({"reward_model": 10**6}, "reward_model"),
        ({"reward_model": "LM"}, "reward_model"),
        ({"judge": "pointwise", "tokens": 0}, "tokens"),
    ],
)
def test_what_cannot_score_is_refused_at_its_field(team, api, judge, change, field):
    writer = RegisteredModel.objects.create(workspace=team.workspace, name="w", source="hub", path="o/w")
    if isinstance(change.get("judge"), str):
        change = {**change, "judge": judge(change["judge"]).pk}
    if change.get("reward_model") == "LM":
        change = {"reward_model": writer.pk}
    answer = api.post("/try/scores", {"text": "red", "messages": PROMPT, **change})
    assert answer.status_code == 422, answer.content
    assert field in [each["path"] for each in answer.json()["error"]["fields"]] and not TriedScore.objects.exists()


def test_another_workspace_reads_no_score_of_ours(team, api, judge):
    made = api.post("/try/scores", {"text": "red", "messages": PROMPT, "judge": judge("pointwise").pk}).json()
    assert ApiClient(team.outsider).get(f"/try/scores/{made['id']}").status_code == 404
    theirs = {"text": "red", "messages": PROMPT, "judge": JudgeVersion.objects.get().pk}
    assert ApiClient(team.outsider).post("/try/scores", theirs).status_code == 422
    assert ApiClient(team.reviewer).get(f"/try/scores/{made['id']}").status_code == 200
    assert ApiClient(team.annotator).get(f"/try/scores/{made['id']}").status_code == 403
    assert ApiClient(team.reviewer).post("/try/scores", theirs).status_code == 403
