"""The stress test of a submitted rubric with a judge. The judge decides the criteria without a verifier, and the author sees its verdicts."""

import json

import pytest
from django.core.cache import cache

from tests.team import ApiClient, browser
from tests.webapp.annotation.seed import make_project, pair
from tests.webapp.usage.usage_rows import usage_rows
from webapp.annotation.models import Answer
from webapp.annotation.projects import services as projects
from webapp.core.problems import Invalid
from webapp.inference.endpoints import services as endpoints
from webapp.judging.judges import services as judges
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Verdict
from webapp.judging.stress_tests import services as stressing

pytestmark = pytest.mark.django_db
RUBRIC = {
    "criteria": [
        {"id": "c1", "text": "Comes first.", "points": 3},
        {"id": "c2", "text": "Is an answer.", "points": 1},
        {"id": "c3", "text": "Is long.", "points": 1, "verifier": {"name": "word_count", "args": {"min": 100}}},
    ]
}


@pytest.fixture
def judged(team, version, chat_server):
    """A project whose judge says that the first answer comes first, and that both are answers."""

    def said(body):
        prompt = body["messages"][-1]["content"]
        met = "first answer" in prompt if "Comes first." in prompt else True
        return json.dumps({"explanation": "It says so.", "met": met})

    chat_server.answer = said
    return make_project(
        team.researcher, [pair()], kind="rubric", settings={"stress_judge": version.pk}, people=[team.annotator]
    )


def submitted(team, project, rubric=RUBRIC) -> tuple[ApiClient, dict]:
    script = ApiClient(team.annotator)
    seat = script.post(f"/projects/{project.pk}/claim", {"hold": 1}).json()["items"][0]["id"]
    return script, script.post(f"/assignments/{seat}/submit", {"content": {"rubric": rubric}, "hold": 1}).json()[
        "stress"
    ]


def powers(report) -> list[str]:
    return [criterion["power"] for criterion in report["criteria"]]


def test_a_message_that_was_lost_is_sent_again_when_the_author_looks(team, judged, monkeypatch):
    sent = []
    monkeypatch.setattr(stressing, "enqueue", lambda name, answer: sent.append((name, answer)))
    script, at_once = submitted(team, judged)
    look, answer = f"/assignments/{at_once['assignment']}/stress", Answer.objects.get().pk
    assert script.get(look).json()["judging"] and sent == [("workers.judging.stress", answer)], "it may be on its way"
    cache.delete(stressing._sent(answer))  # as if half a minute had passed
    for _ in range(2):
        assert script.get(look).json()["judging"]
    assert len(sent) == 2
    monkeypatch.setattr(stressing, "_ask", lambda answer: cache.delete(stressing._sent(answer.pk)) or script.get(look))
    stressing.stress(answer)
    assert len(sent) == 2, "a worker has begun"
    assert not script.get(look).json()["judging"]


def test_principles_are_decided_once_the_judge_has_answered(team, judged):
    script, at_once = submitted(team, judged)
    assert at_once["judging"] and powers(at_once) == ["unknown", "unknown", "none_meets"] and at_once["unverified"] == 2
    stressing.stress(Answer.objects.get().pk)
    report = script.get(f"/assignments/{at_once['assignment']}/stress").json()
    assert not report["judging"] and powers(report) == ["discriminates", "all_meet", "none_meets"]
    assert report["unverified"] == 0
    # 3 + 1 of 5 points for the first answer, 1 of 5 for the other
    assert sorted(response["score"] for response in report["responses"]) == [pytest.approx(0.2), pytest.approx(0.8)]
    assert Verdict.objects.count() == 4, "two criteria on two responses; the program's was not asked about"
    assert usage_rows() == [("project", judged.pk, 4, judged.created_by_id)]


def test_its_author_learns_no_judge(team, judged, version):
    script, at_once = submitted(team, judged)
    stressing.stress(Answer.objects.get().pk)
    told = script.get(f"/assignments/{at_once['assignment']}/stress").content.decode()
    page = browser(team.annotator).get(f"/projects/{judged.pk}/work").content.decode()
    assert version.judge.name not in told + page and "stress_judge" not in told + page


def test_submitted_again_it_asks_what_is_new(team, judged):
    script, report = submitted(team, judged)
    stressing.stress(Answer.objects.get().pk)
    seat = report["assignment"]
    script.post(f"/assignments/{seat}/reopen")
    more = {"criteria": [*RUBRIC["criteria"], {"id": "c4", "text": "Is kind.", "points": 1}]}
    again = script.post(f"/assignments/{seat}/submit", {"content": {"rubric": more}, "hold": 1}).json()["stress"]
    assert powers(again) == ["discriminates", "all_meet", "none_meets", "unknown"] and again["judging"]
    stressing.stress(Answer.objects.get(current=True).pk)
    assert Verdict.objects.count() == 6


def test_an_endpoint_that_is_down_leaves_them_open_and_is_not_waited_for(team, judged, endpoint):
    endpoints.change_endpoint(team.researcher, endpoint, url="http://127.0.0.1:9/v1", secret="", retries=0)
    script, at_once = submitted(team, judged)
    stressing.stress(Answer.objects.get().pk)
    report = script.get(f"/assignments/{at_once['assignment']}/stress").json()
    assert not report["judging"] and powers(report)[:2] == ["unknown", "unknown"]
    notes = {verdict["note"] for verdict in report["criteria"][0]["verdicts"].values() if verdict["met"] is None}
    assert notes == {"the judge has given no verdict"}, "what the server said may name it, or its model"


def test_without_a_judge_nobody_is_asked(team):
    project = make_project(team.researcher, [pair()], kind="rubric", people=[team.annotator])
    script, report = submitted(team, project)
    assert not report["judging"] and report["unverified"] == 2
    assert script.get(f"/assignments/{report['assignment']}/stress").json() == report


def test_others_and_other_tasks_have_none(team, judged):
    _, report = submitted(team, judged)
    for who in (team.researcher, team.outsider):
        assert ApiClient(who).get(f"/assignments/{report['assignment']}/stress").status_code == 404
    pairs = make_project(team.researcher, 1, people=[team.annotator])
    script = ApiClient(team.annotator)
    seat = script.post(f"/projects/{pairs.pk}/claim", {"hold": 1}).json()["items"][0]["id"]
    assert script.get(f"/assignments/{seat}/stress").status_code == 404


def test_a_project_takes_a_judge_of_its_workspace_that_decides_criteria(team, judged, endpoint):
    comparing = create_judge(team.researcher, name="Pairs", spec={"kind": "pairwise"}, endpoint=endpoint)
    for wrong, words in ((comparing.pk, "of kind pairwise"), (10**6, "no such judge")):
        with pytest.raises(Invalid) as refused:
            projects.update(team.researcher, judged, settings={"stress_judge": wrong})
        assert words in refused.value.fields["settings.stress_judge"]


def test_the_settings_page_offers_judges_and_keeps_the_one_chosen(team, judged, version):
    page = browser(team.researcher).get(f"/projects/{judged.pk}/settings").content.decode()
    assert f'<option value="{version.pk}" selected>{version} ·' in page
    judges.archive(team.researcher, version.judge)
    projects.update(team.researcher, judged, settings={"lease_minutes": 20})
    judged.refresh_from_db()
    assert judged.settings["stress_judge"] == version.pk and judged.settings["lease_minutes"] == 20
    assert "not offered any more" in browser(team.researcher).get(f"/projects/{judged.pk}/settings").content.decode()
