"""Rollouts are sent to annotation: as examples of a project or of a new one, once, with links between their place in the run and the
project.
"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.concurrency import concurrently
from tests.team import ApiClient, browser, make_team
from tests.webapp.annotation.answers import annotators, answer, make_project
from tests.webapp.experiments.conftest import Trainer, make_version
from trainer.contracts import Example as Record
from webapp.annotation.models import Project, Task
from webapp.annotation.projects import services as projects
from webapp.annotation.projects import task_services
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.datasets.models import DatasetVersion, Example
from webapp.datasets.versions import services as datasets
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch
from webapp.experiments.models import Rollout, Run
from webapp.experiments.rollouts import queries, sending, sent_to_annotation
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.django_db
TURNS = [
    {"author": "policy", "text": "I look at the shelf.", "tokens": 6},
    {"author": "env", "text": "The shelf is empty.", "tokens": 5},
    {"author": "policy", "text": "Then I buy one.", "tokens": 5},
]


@pytest.fixture
def sampled(run, trainer):
    """Two prompts with three responses each at step 3. The responses to the first prompt have different rewards."""
    rows = [
        trainer.rollout(index, example_key=f"e{group}", group=group, response=f"answer {group} {index}", reward=reward)
        for group in (0, 1)
        for index, reward in enumerate((0.2, 0.9, 0.5))
    ]
    assert trainer.post(trainer.event("rollouts", 3, rollouts=rows)).status_code == 200
    return run


@pytest.fixture
def pairs(team) -> Project:
    return make_project(team, "pairwise", n=1)


def post(team, run, member=None, **body):
    return ApiClient(member or team.researcher).post(f"/runs/{run.pk}/rollouts/annotate", body)


def group(number: int = 0, *index: int) -> dict:
    return {"step": 3, "group": number, "index": list(index)}


def test_a_pair_of_a_group_becomes_a_task_that_says_where_it_comes_from(team, sampled, pairs):
    reply = post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group()])
    assert reply.status_code == 201, reply.content
    assert (reply.json()["new"], reply.json()["before"], reply.json()["left_out"]) == (1, 0, {})
    task = Task.objects.filter(project=pairs).order_by("-id")[0]
    content = task.example.content
    assert [each["text"] for each in content["responses"]] == ["answer 0 0", "answer 0 1"]  # lowest and highest reward
    assert content["prompt"][0]["content"] == "Prompt 0 ü"
    place = {"run": sampled.pk, "step": 3, "phase": "train", "group": 0}
    assert content["meta"]["rollouts"] == [place | {"index": 0}, place | {"index": 1}]
    assert "0.9" not in task.example.canonical and task.subject == {"a": "response-1", "b": "response-2"}
    assert Project.objects.get(pk=pairs.pk).tasks_total == 2
    entry = AuditEntry.objects.get(action="run.rollouts_sent")
    assert entry.detail == {"count": 1, "project": pairs.pk} and entry.actor_id == team.researcher.user_id


def test_sent_twice_it_is_sent_once(team, sampled, pairs):
    first = post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group(0, 1, 2)])
    second = post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group(0, 2, 1)])
    assert (first.status_code, second.status_code) == (201, 200)
    assert (second.json()["new"], second.json()["before"]) == (0, 1)
    assert Task.objects.filter(project=pairs).count() == 2
    assert AuditEntry.objects.filter(action="run.rollouts_sent").count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_clicks_in_one_moment_send_once():
    team = make_team()
    version = make_version(team.owner)
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/m")
    choice = checks.DatasetChoice(id=version.dataset_id)
    run = launch.launch(team.researcher, recipe="policy", config={"steps": 4}, dataset=choice)
    Run.objects.filter(pk=run.pk).update(state="starting")
    trainer = Trainer(run)
    trainer.post(trainer.event("rollouts", 3, rollouts=[trainer.rollout(i, response=f"a{i}") for i in range(2)]))
    project = make_project(team, "pairwise", n=1)
    body = {"kind": "pairwise", "project": project.pk, "groups": [group()]}
    replies = concurrently([lambda: post(team, run, **body).status_code] * 4)
    assert sorted(replies) == [200, 200, 200, 201]
    assert Task.objects.filter(project=project).count() == 2


def test_one_response_is_paired_with_the_one_whose_reward_is_furthest(team, sampled, pairs):
    post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group(0, 2)])
    content = Task.objects.filter(project=pairs).order_by("-id")[0].example.content
    assert [each["text"] for each in content["responses"]] == ["answer 0 1", "answer 0 2"]


def test_a_filtered_list_sends_the_chosen_number(team, sampled):
    rubric = {"criteria": [{"id": "c1", "text": "Names a colour", "points": 3}]}
    project = make_project(team, "grading", n=1, rubric=rubric)
    body = {"kind": "grading", "project": project.pk, "filters": {"step": 3}, "sort": "-reward", "most": 2}
    assert post(team, sampled, **body).json()["new"] == 2
    made = Example.objects.filter(source="rollout").order_by("id")
    assert [each.content["responses"][0]["text"] for each in made] == ["answer 1 1", "answer 0 1"]
    assert {each.content["rubric"]["criteria"][0]["text"] for each in made} == {"Names a colour"}
    assert all("verdict" not in each.canonical for each in made)


def test_a_search_sends_the_chosen_number_though_its_pages_are_short(team, run, trainer, monkeypatch):
    """Words in another order than that of the phrase fill the pages."""
    texts = ["red fox" if index % 3 else "fox red" for index in range(12)]
    rows = [trainer.rollout(index, response=text) for index, text in enumerate(texts)]
    trainer.post(trainer.event("rollouts", 3, rollouts=rows))
    monkeypatch.setattr(queries, "MAX_LOOKS", 1)
    body = {"kind": "rating", "dataset": "foxes", "filters": {"text": '"red fox"'}}
    assert post(team, run, **body, most=7).json()["new"] == 7
    monkeypatch.setattr(sending, "MOST_PAGES", 1)
    refused = post(team, run, **body, most=8)
    assert refused.status_code == 422 and "search in one step" in refused.content.decode()


def test_an_episode_becomes_the_steps_of_a_trace(team, sampled, trainer, run):
    trainer.post(trainer.event("rollouts", 4, rollouts=[trainer.rollout(0, turns=TURNS, response="Then I buy one.")]))
    reply = post(team, run, kind="trace_steps", dataset="episodes", groups=[{"step": 4, "group": 0}])
    assert reply.status_code == 201, reply.content
    content = Example.objects.get(source="rollout").content
    steps = content["responses"][0]["steps"]
    assert [(each.get("role", "assistant"), each["text"]) for each in steps][:2] == [
        ("assistant", "I look at the shelf."),
        ("user", "The shelf is empty."),
    ]
    assert "[3] says\nThen I buy one." in content["responses"][0]["text"]
    refused = post(team, run, kind="trace_steps", dataset="none", groups=[group()])
    assert refused.status_code == 422 and "it is not an episode with turns" in refused.content.decode()


def test_a_new_project_is_set_up_with_the_dataset_and_asks_about_it(
    team, sampled, eager, django_capture_on_commit_callbacks
):
    reply = post(team, sampled, kind="rating", dataset="odd ones", groups=[group(0, 1), group(1, 0, 2)]).json()
    version = DatasetVersion.objects.get(pk=reply["version"])
    assert (version.dataset.name, version.counts["examples"], reply["new"]) == ("odd ones", 3, 3)
    again = post(team, sampled, kind="rating", dataset="odd ones", groups=[group(0, 1)])
    assert (again.status_code, again.json()["version"]) == (200, version.pk)
    scales = {"scales": [{"name": "Helpfulness", "low": 1, "high": 5}]}
    made = projects.create(team.researcher, name="odd", kind="rating", dataset=version, settings=scales)
    task_services.make(made.pk)
    assert Task.objects.filter(project=made).count() == 3
    shown = ApiClient(team.reviewer).get(f"/runs/{sampled.pk}/rollouts/sent?step=3").json()["items"]
    assert sorted((each["rollouts"][0]["group"], each["rollouts"][0]["index"]) for each in shown) == [
        (0, 1),
        (1, 0),
        (1, 2),
    ]
    assert {each["tasks"][0]["project"] for each in shown} == {made.pk}


def test_the_run_says_where_its_responses_went_and_what_people_answered(team, sampled, pairs):
    post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group(0, 0, 1)])
    task = Task.objects.filter(project=pairs).order_by("-id")[0]
    said = {"verdict": "compared", "strength": 2, "reasons": [], "dimensions": {}, "note": "by Anna"}
    answer(task, annotators(team, pairs, 1)[0], said)
    client = ApiClient(team.reviewer)
    (found,) = client.get(f"/runs/{sampled.pk}/rollouts/sent?step=3").json()["items"]
    assert [each["index"] for each in found["rollouts"]] == [0, 1]
    (told,) = found["tasks"]
    assert (told["project"], told["done"], told["wanted"], len(told["answers"])) == (pairs.pk, 1, 2, 1)
    assert "response-2" in told["answers"][0] and "Anna" not in str(found)
    assert client.get(f"/runs/{sampled.pk}/rollouts/sent?step=2").json()["items"] == []
    assert client.get(f"/runs/{sampled.pk}/rollouts/sent").json()["items"][0]["example"] == found["example"]


def test_what_was_sent_costs_as_many_queries_as_six_times_as_much(team, sampled, django_assert_num_queries):
    run = Run.objects.with_names().get(pk=sampled.pk)
    project = make_project(team, "rating", n=1, scales=[{"name": "Help", "low": 1, "high": 5}])
    post(team, sampled, kind="rating", project=project.pk, groups=[group(0, 0)])
    with CaptureQueriesContext(connection) as one:
        assert len(sent_to_annotation.sent(run, "train", 3)) == 1
    queries = len(one)
    post(team, sampled, kind="rating", project=project.pk, groups=[group(0), group(1)])
    with django_assert_num_queries(queries):
        assert len(sent_to_annotation.sent(run, "train", 3)) == 6


def test_lineage_leads_from_the_run_to_the_project_and_back(team, sampled, pairs):
    post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group()])
    client = ApiClient(team.reviewer)
    down = client.get(f"/lineage/run/{sampled.pk}/rows?of=project&way=down").json()["items"]
    assert [each["id"] for each in down] == [pairs.pk]
    version = Project.objects.get(pk=pairs.pk).version
    up = client.get(f"/lineage/version/{version.pk}/rows?of=run&way=up").json()["items"]
    assert [each["id"] for each in up] == [sampled.pk]
    assert (
        "Sent to annotation from"
        in browser(team.reviewer).get(f"/datasets/{version.dataset_id}/versions").content.decode()
    )
    made = Example.objects.get(source="rollout")
    page = browser(team.reviewer).get(f"/examples/{made.pk}").content.decode()
    assert f"/runs/{sampled.pk}/rollouts?step=3&amp;phase=train&amp;group=0" in page
    assert "step 3, prompt 1, response 2" in page


@pytest.mark.parametrize(
    "meta", [{}, {"rollouts": "x"}, {"rollouts": [{"run": "7"}]}, {"rollouts": [{"run": 1, "step": 1}]}]
)
def test_what_a_file_says_of_rollouts_breaks_no_page(team, sampled, meta):
    record = Record(key="odd", prompt=({"role": "user", "content": "p"},), source="rollout", meta=meta)
    datasets.new_version(
        team.researcher, datasets.create_dataset(team.researcher, "odd"), [record], None, {"from": "test"}
    )
    example = Example.objects.get(key="odd")
    assert browser(team.reviewer).get(f"/examples/{example.pk}").status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "pairwise", "groups": [{"step": 9, "group": 0}]}, "groups"),
        ({"kind": "grading", "groups": [{"step": 3, "group": 0}]}, "project"),
        ({"kind": "pairwise", "filters": {"step": 9}}, "filters"),
        ({"kind": "rubric", "groups": [{"step": 3, "group": 0}]}, "kind"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_nothing_is_made(team, sampled, pairs, body, field):
    before = DatasetVersion.objects.count()
    reply = post(team, sampled, project=pairs.pk, **body)
    assert reply.status_code == 422 and field in reply.content.decode()
    assert DatasetVersion.objects.count() == before


def test_a_project_that_takes_no_more_says_why(team, sampled, pairs):
    projects.set_state(team.researcher, pairs, Project.State.CLOSED)
    reply = post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group()])
    assert reply.status_code == 422 and "is closed" in reply.content.decode()


def test_two_responses_with_one_text_are_no_pair(team, sampled, pairs):
    Rollout.objects.filter(run=sampled, group=1).update(content={**Rollout.objects.filter(group=1)[0].content})
    reply = post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group(0), group(1, 0, 1)])
    assert reply.json()["new"] == 1
    assert reply.json()["left_out"] == {"its responses have the same text": 1}


def test_a_run_of_questions_about_pairs_sends_the_question_itself(team, sampled, pairs):
    Run.objects.filter(pk=sampled.pk).update(recipe="judge")
    post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group()])
    assert Task.objects.filter(project=pairs).order_by("-id")[0].example.content["prompt"][0]["content"] == "p"


@pytest.mark.parametrize(("who", "status"), [("reviewer", 403), ("annotator", 403), ("outsider", 404)])
def test_only_researchers_of_the_workspace_send(team, sampled, pairs, who, status):
    reply = post(team, sampled, getattr(team, who), kind="pairwise", project=pairs.pk, groups=[group()])
    assert reply.status_code == status and Task.objects.filter(project=pairs).count() == 1


def test_no_project_of_another_workspace_gets_them(team, sampled, pairs):
    Project.objects.filter(pk=pairs.pk).update(workspace=team.outsider.workspace)
    reply = post(team, sampled, kind="pairwise", project=pairs.pk, groups=[group()])
    assert reply.status_code == 422 and Task.objects.filter(project=pairs).count() == 1


# ---- the page ----


def test_the_page_sends_to_a_project_and_comes_back_to_the_step(team, sampled, pairs, as_researcher):
    address = f"/runs/{sampled.pk}/rollouts/annotate"
    page = as_researcher.get(f"{address}?step=3&phase=train&group=0").content.decode()
    assert "pairwise project" in page and "Not possible: it is not an episode with turns (3 responses)" in page
    form = {"step": "3", "phase": "train", "group": "0", "to": str(pairs.pk)}
    reply = as_researcher.post(address, form)
    assert reply.status_code == 302 and reply.url == f"/runs/{sampled.pk}/rollouts?step=3&phase=train"
    assert Task.objects.filter(project=pairs).count() == 2
    again = as_researcher.post(address, form, follow=True).content.decode()
    assert "had them already" in again and Task.objects.filter(project=pairs).count() == 2


def test_the_page_opens_the_form_of_a_new_project_with_the_kind(team, sampled, as_researcher):
    form = {"step": "3", "most": "4", "to": "new", "kind": "best_worst", "name": "from the list"}
    reply = as_researcher.post(f"/runs/{sampled.pk}/rollouts/annotate", form)
    version = DatasetVersion.objects.get(dataset__name="from the list")
    assert reply.status_code == 302 and reply.url == f"/projects/new?version={version.pk}&kind=best_worst"
    # one response of the last group, so all of the group
    assert version.counts["examples"] == 2 and version.counts["responses"] == 4 + 2
    assert 'value="best_worst" checked' in as_researcher.get(reply.url).content.decode()


@pytest.mark.parametrize(
    "query", ["step=3&group=x", "step=3&group=77", "most=0", "most=9999", "step=x", "low=a&part=b", ""]
)
def test_an_address_that_names_nothing_says_so(team, sampled, as_researcher, query):
    reply = as_researcher.get(f"/runs/{sampled.pk}/rollouts/annotate?{query}")
    assert reply.status_code == (200 if not query else 422)


def test_the_page_is_closed_to_those_who_may_not_send(team, sampled, client):
    for member, status in ((team.reviewer, 403), (team.annotator, 403), (team.outsider, 404)):
        client.force_login(member.user)
        assert client.get(f"/runs/{sampled.pk}/rollouts/annotate?step=3&group=0").status_code == status


def test_no_more_than_the_limit_goes_at_once(sampled, monkeypatch):
    monkeypatch.setattr(sending, "MOST", 2)
    with pytest.raises(Invalid):
        sending.named(sampled, [sending.ChosenGroup(3, "train", 0)])
