"""A judge's verdicts as suggestions. They are asked before people see the tasks, and stored with their judge and the time at which people
saw them.
"""

import json

import pytest

from tests.team import ApiClient, browser
from tests.webapp.annotation.seed import make_project, pair
from tests.webapp.usage.usage_rows import usage_rows
from tests.webapp.weights.conftest import Process
from trainer.judges import calls
from trainer.judges.combine import PairVerdict
from webapp.annotation import kinds
from webapp.annotation.agreement import upkeep
from webapp.annotation.jobs import runner
from webapp.annotation.models import Answer, Job, Task
from webapp.annotation.projects import task_services
from webapp.annotation.tasks import task_factory
from webapp.annotation.work import queue, suggestions
from webapp.annotation.work.api import assignment_out
from webapp.annotation.work.submissions import Sent
from webapp.core.problems import Conflict, Invalid
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RegisteredModel
from webapp.judging.judges.services import create_judge, new_version
from webapp.judging.suggestions import services as suggesting
from webapp.judging.suggestions.services import ask_judge, strength_of
from webapp.weights.models import WeightsJob

from ..conftest import MET

pytestmark = pytest.mark.django_db
RUBRIC = {
    "criteria": [
        {"id": "c1", "text": "Is right", "points": 5},
        {"id": "c2", "text": "Is long", "points": 1, "verifier": {"name": "word_count", "args": {"min": 100}}},
    ]
}


def first_named_better(body):
    """Prefers the response that says "first", at either place."""
    text = body["messages"][-1]["content"]
    side = "A" if text.index("first answer") < text.index("second answer") else "B"
    return json.dumps({"reasons": ["It comes first."], "verdict": side})


@pytest.fixture
def pairwise(team, endpoint):
    spec = {"kind": "pairwise", "order": "both"}
    return create_judge(team.researcher, name="Both ways", spec=spec, endpoint=endpoint)


def suggested_by_judge(team, project, version, **options) -> Job:
    job = ask_judge(team.researcher, project, version, **options)
    runner.run(job.pk)
    job.refresh_from_db()
    return job


def view(seat):
    return assignment_out(seat, kinds.Settings.model_validate(seat.project.settings))["view"]["suggestion"]


@pytest.mark.parametrize(
    ("verdict", "strength", "expected"),
    [(-1, -1.0, -2), (1, 2.0, 3), (1, 0.5, 1), (0, 0.0, 0), (-1, -1.5, -3), (None, 1.0, None), (None, None, None)],
)
def test_how_strong_a_suggestion_is(verdict, strength, expected):
    assert strength_of(PairVerdict(verdict, verdict, verdict, True, strength, 2, 0)) == expected


def test_every_task_has_the_judges_view_before_it_is_shown(team, pairwise, chat_server):
    chat_server.answer = first_named_better
    project = make_project(team.researcher, 3, people=[team.annotator], settings={"suggestions": "before"})
    job = suggested_by_judge(team, project, pairwise)
    assert (job.state, job.done, job.total) == ("finished", 3, 3)
    assert job.result == {"tasks": 3, "judge": "Both ways v1"}
    assert chat_server.requests == 6  # both orders
    assert usage_rows() == [("project", project.pk, 6, team.researcher.user_id)]
    [seat] = queue.claim(team.annotator, project)
    assert view(seat) == {"verdict": "compared", "strength": -2 if seat.order == [0, 1] else 2}
    answer = queue.submit(team.annotator, seat, {"strength": -1})
    assert (answer.suggestion, answer.suggested_by) == ("before", "Both ways v1")


def test_grades_come_from_the_judge_and_from_verifiers(team, version, chat_server):
    chat_server.answer = lambda body: MET
    project = make_project(
        team.researcher, [pair("q1", rubric=RUBRIC)], kind="grading", people=[team.annotator],
        settings={"suggestions": "after"},
    )  # fmt: skip
    suggested_by_judge(team, project, version)
    assert chat_server.requests == 2  # one criterion of two responses: a program decides the other criterion
    [seat] = queue.claim(team.annotator, project)
    assert view(seat) is None
    content = {"grades": [{"criterion": "c1", "verdict": "met"}, {"criterion": "c2", "verdict": "met"}]}
    sent, _ = queue.submit_and_serve(team.annotator, seat.pk, Sent(content), 0)
    verdicts = {grade["criterion"]: grade["verdict"] for grade in sent.after["suggestion"]["grades"]}
    assert verdicts == {"c1": "met", "c2": "not_met"}
    assert (sent.answer.suggestion, sent.answer.suggested_by) == ("after", "Strict v1")
    told = ApiClient(team.reviewer).get(f"/projects/{project.pk}/suggestions").json()
    assert told["agreement"]["saw it after"]["value"] == 0.5 and told["agreement"]["saw it after"]["n"] == 2


def test_what_came_after_the_task_was_taken_is_not_slipped_in(team, pairwise, chat_server):
    chat_server.answer = first_named_better
    project = make_project(team.researcher, 2, people=[team.annotator], settings={"suggestions": "before"})
    [seat] = queue.claim(team.annotator, project)
    suggested_by_judge(team, project, pairwise)
    [again] = queue.claim(team.annotator, project)
    assert again.pk == seat.pk and view(again) is None
    assert queue.submit(team.annotator, again, {"strength": 1}).suggestion == "never"
    [second] = queue.claim(team.annotator, project)
    assert view(second) is not None


def test_a_verdict_that_cannot_be_read_is_no_suggestion(team, pairwise, chat_server):
    chat_server.answer = lambda body: "I like them all."
    project = make_project(team.researcher, 1)
    suggestions.keep(project, "another", 1, {Task.objects.get().pk: {"verdict": "compared", "strength": 1}})
    assert suggested_by_judge(team, project, pairwise).result["tasks"] == 0
    assert Task.objects.get().suggestion is None


def test_tasks_on_which_people_and_judge_disagree_come_first(team, pairwise, chat_server):
    chat_server.answer = first_named_better
    labelled = [
        pair(f"q{n}", preferences=[{"a": "ID-ONE", "b": "ID-TWO", "strength": strength, "rater": "R"}])
        for n, strength in enumerate((-2, 0, 3))
    ]
    project = make_project(team.researcher, [*labelled, pair("q3", preferences=[])], strategy="disagreement")
    suggested_by_judge(team, project, pairwise)
    order = Task.objects.order_by("rank").values_list("example__key", flat=True)
    assert list(order) == ["q2", "q1", "q0", "q3"]


def test_a_projects_own_answers_count_before_and_after_the_judge_is_asked(team, pairwise, chat_server):
    """The judge says -2 about all. Anna has said 3 about q2, and later says 3 about q3 and -2 about q1."""
    chat_server.answer = first_named_better
    people = [team.annotator, team.reviewer]
    bare = [pair(f"q{n}", preferences=[]) for n in range(4)]
    project = make_project(team.researcher, bare, strategy="disagreement", people=people)
    annas = {seat.task.example.content["key"]: seat for seat in queue.claim(team.annotator, project, hold=4)}

    def says(key, strength):
        seat = annas[key]
        queue.submit(team.annotator, seat, {"strength": strength if seat.order == [0, 1] else -strength})

    says("q2", 3)
    suggested_by_judge(team, project, pairwise)
    assert order_of_tasks() == ["q2", "q0", "q1", "q3"]
    assert [seat.task.example.content["key"] for seat in queue.claim(team.reviewer, project, hold=2)] == ["q2", "q0"]
    says("q3", 3)
    says("q1", -2)
    upkeep.take_up_lost()
    assert order_of_tasks() == ["q2", "q3", "q1", "q0"]
    held = [seat.task.example.content["key"] for seat in queue.claim(team.reviewer, project, hold=4)]
    assert held == ["q2", "q0", "q3", "q1"]


def order_of_tasks() -> list[str]:
    return list(Task.objects.order_by("rank").values_list("example__key", flat=True))


def test_graded_answers_count_criterion_by_criterion():
    judged = {"grades": [{"criterion": "c1", "verdict": "met"}, {"criterion": "c2", "verdict": "not_met"}]}
    anna = {"grades": [{"criterion": "c1", "verdict": "met"}, {"criterion": "c2", "verdict": "met"}]}
    unsure = {"grades": [{"criterion": "c1", "verdict": "cannot_assess"}, {"criterion": "c2", "verdict": "not_met"}]}

    def odds(*answers):
        return task_factory.at_odds("grading", {"response": "r0"}, judged, {}, answers)

    assert odds() is None and odds(anna) == 0.5
    assert odds(anna, unsure) == 0  # on c2 people are split one to one


def test_gold_tasks_have_one_as_well(team, pairwise, chat_server):
    chat_server.answer = first_named_better
    project = make_project(team.researcher, 2)
    task_services.set_gold(team.researcher, Task.objects.first(), {"strength": 1})
    suggested_by_judge(team, project, pairwise)
    assert Task.objects.filter(suggestion__isnull=True).count() == 0


def test_a_limit_ends_it_and_asking_again_goes_on(team, pairwise, chat_server):
    chat_server.answer = first_named_better
    project = make_project(team.researcher, 3)
    job = suggested_by_judge(team, project, pairwise, tokens=1)
    assert job.state == "failed" and "Stopped early" in job.problem and chat_server.requests == 0
    assert suggested_by_judge(team, project, pairwise).result["tasks"] == 3
    before = chat_server.requests
    assert suggested_by_judge(team, project, pairwise).result == {}  # every task has a suggestion
    assert chat_server.requests == before


def test_somebody_stops_it(team, pairwise, chat_server):
    project = make_project(team.researcher, 3)
    job = ask_judge(team.researcher, project, pairwise)
    runner.stop(project, Job.Kind.SUGGEST)
    runner.run(job.pk)
    job.refresh_from_db()
    assert job.state == "failed" and "stopped" in job.problem


def test_what_a_judge_says_is_not_taken_away_while_it_may_say_more(team, pairwise, chat_server):
    chat_server.answer = first_named_better
    project = make_project(team.researcher, 2)
    suggested_by_judge(team, project, pairwise)
    job = ask_judge(team.researcher, project, pairwise)
    refused = ApiClient(team.researcher).delete(f"/projects/{project.pk}/suggestions")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "suggesting")
    assert Task.objects.filter(suggestion__isnull=False).count() == 2
    runner.run(job.pk)  # finds that it must stop
    assert ApiClient(team.researcher).delete(f"/projects/{project.pk}/suggestions").json() == {"removed": 2}
    assert Task.objects.filter(suggestion__isnull=False).count() == 0


def test_what_cannot_be_is_refused(team, version, pairwise):
    project = make_project(team.researcher, 1)
    with pytest.raises(Invalid) as caught:
        ask_judge(team.researcher, project, version)
    assert "judge" in caught.value.fields
    ask_judge(team.researcher, project, pairwise)
    with pytest.raises(Conflict):
        ask_judge(team.researcher, project, pairwise)
    with pytest.raises(Conflict):
        ask_judge(team.researcher, make_project(team.researcher, 1, kind="rubric"), pairwise)


def test_the_page_asks_shows_and_takes_away(team, pairwise, chat_server, eager, django_capture_on_commit_callbacks):
    chat_server.answer = first_named_better
    project = make_project(team.researcher, 2, people=[team.annotator])
    url, client = f"/projects/{project.pk}/suggestions", browser(team.researcher)
    assert "No judge has been asked" in client.get(url).content.decode()
    assert client.post(url, {"action": "ask", "judge": "0", "tokens": ""}).status_code == 422
    refused = client.post(url, {"action": "ask", "judge": pairwise.pk, "tokens": "many"})
    assert (
        refused.status_code == 422
        and refused.content.decode().count("Enter a whole number of tokens, or leave it empty.") == 1
    )
    assert 'aria-describedby="s-tokens-error"' in refused.content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(url, {"action": "ask", "judge": pairwise.pk}).status_code == 302
    [seat] = queue.claim(team.annotator, project)
    queue.submit(team.annotator, seat, {"strength": -3 if seat.order == [0, 1] else 3})
    assert Answer.objects.get().suggestion == "never"
    page = client.get(url).content.decode()
    assert "2 of 2 tasks" in page and "Both ways v1" in page and "never saw it" in page
    client.post(url, {"action": "remove"})
    assert Task.objects.filter(suggestion__isnull=True).count() == 2


def test_a_project_whose_tasks_no_judge_answers_says_so(team, pairwise):
    project = make_project(team.researcher, 1, kind="rubric")
    page = browser(team.researcher).get(f"/projects/{project.pk}/suggestions").content.decode()
    assert "No kind of judge answers the tasks of this kind of project." in page and "judge of kind" not in page


def test_the_roles(team, pairwise):
    project = make_project(team.researcher, 1, people=[team.annotator])
    body = {"judge": pairwise.judge_id, "number": 1}
    for who, read, write in (
        (team.annotator, 403, 403), (team.outsider, 404, 404), (team.reviewer, 200, 403), (team.researcher, 200, 202)
    ):  # fmt: skip
        api, path = ApiClient(who), f"/projects/{project.pk}/suggestions"
        assert api.get(path).status_code == read
        assert browser(who).get(path).status_code == read
        assert browser(who).post(path, {"action": "remove"}).status_code == (302 if write == 202 else write)
        assert api.delete(path).status_code == (200 if write == 202 else write)
        assert api.post(path, body).status_code == write


def test_local_weights_are_asked_by_a_job_of_the_cluster_and_no_worker_waits(team, settings, monkeypatch):
    settings.JUDGE_COMMAND = ["/nowhere/python"]
    monkeypatch.setattr(suggesting, "AT_A_TIME", 2)
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="a/b")
    endpoint = endpoints.create_endpoint(team.researcher, "local", name="l", registered_model=model.pk)
    spec = {"kind": "pairwise", "order": "given"}
    judge = create_judge(team.researcher, name="Here", spec=spec, endpoint=endpoint)
    project = make_project(team.researcher, 3)
    job = ask_judge(team.researcher, project, judge)
    answered = 0
    while (delay := runner.run(job.pk)) is not None:
        assert delay == runner.LOOK_AGAIN_S and runner.run(job.pk) == delay, "it waits"
        answered += answer(WeightsJob.objects.get(state="queued"), judge)
    job.refresh_from_db()
    assert (job.state, job.done, job.total, answered) == ("finished", 3, 3, 3), job.problem
    assert WeightsJob.objects.count() == 2 and job.result["tasks"] == 3
    assert not Task.objects.filter(suggestion__isnull=True).exists()
    assert usage_rows() == [("project", project.pk, 3, team.researcher.user_id)]

    other = new_version(team.researcher, judge.judge, spec={**spec, "order": "swapped"}, endpoint=endpoint)
    again = ask_judge(team.researcher, project, other)
    assert runner.run(again.pk) == runner.LOOK_AGAIN_S
    runner.stop(again.project, Job.Kind.SUGGEST)
    assert runner.run(again.pk) is None
    again.refresh_from_db()
    assert again.state == "failed" and "stopped" in again.problem
    assert WeightsJob.objects.order_by("-id")[0].state == "stopped"


def answer(job: WeightsJob, judge) -> int:
    """The cluster's process prefers the first of each pair, and ends."""
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id="x", next_try_at=None)
    job.refresh_from_db()
    process, raw = Process(job), json.dumps({"reasons": ["It is first."], "verdict": "A"})
    items = [json.loads(line) for line in b"".join(process.get("/items")).decode().split("\n") if line]
    said = {"state": "done", "raw": raw, "problem": "", "prompt_tokens": 1, "completion_tokens": 1}
    found = [{**item, **said, "parsed": calls.read(judge.resolved, item["subject"], raw).parsed} for item in items]
    assert process.post(1, *found).status_code == process.post(state="finished").status_code == 200
    return len(items)
