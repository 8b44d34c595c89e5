"""Pairs of answers from the page on which models are tried become tasks, each once."""

import threading

import pytest
from django.db import connection

from tests.team import ApiClient, browser, make_team
from tests.webapp.experiments.conftest import make_version
from webapp.annotation.models import Project, Task
from webapp.annotation.projects.collecting import collecting
from webapp.annotation.publishing import services as publish
from webapp.annotation.work import queue
from webapp.datasets.models import Dataset, DatasetVersion, Example
from webapp.inference.models import RegisteredModel


@pytest.fixture
def models(team):
    return two_models(team)


def two_models(team):
    names = ("base", "tuned")
    return [
        RegisteredModel.objects.create(workspace=team.workspace, name=n, source="hub", path=f"o/{n}") for n in names
    ]


def pair(models, prompt="Name a colour.", a="Red.", b="Blue.", **more):
    sides = {"a": {"model": models[0].pk, "text": a}, "b": {"model": models[1].pk, "text": b}}
    return {"messages": [{"role": "user", "content": prompt}], **sides, **more}


def test_the_first_pair_sets_up_a_project_and_the_next_ones_join_it(api, models):
    first = api.post("/try/pairs", pair(models))
    assert first.status_code == 201, first.content
    told = first.json()
    assert (told["project_name"], told["tasks"], told["made"]) == ("Tried answers", 1, True)
    second = api.post("/try/pairs", pair(models, prompt="Name a fruit.")).json()
    assert (second["project"], second["tasks"]) == (told["project"], 2)
    project = Project.objects.get()
    assert (project.state, project.overlap, project.version.number, project.version.state) == ("open", 2, 2, "frozen")
    content = Task.objects.get(pk=second["task"]).example.content
    assert content["prompt"][0]["content"] == "Name a fruit."
    assert {one["origin"]: one["text"] for one in content["responses"]} == {"base": "Red.", "tuned": "Blue."}


def test_the_same_pair_is_one_task_whoever_sends_it_and_whichever_stood_left(team, api, models):
    made = api.post("/try/pairs", pair(models, a="Red.", b="Blue.")).json()
    turned = pair(models[::-1], a="Blue.", b="Red.")
    turned["a"]["sampling"] = {"seed": 9}
    again = ApiClient(team.owner).post("/try/pairs", turned)
    assert again.status_code == 200 and again.json() == {**made, "made": False}
    assert Task.objects.count() == 1 and DatasetVersion.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_the_same_moment_make_one_project_and_one_task():
    team = make_team()
    models, api = two_models(team), ApiClient(team.researcher)
    barrier, codes = threading.Barrier(2), []

    def click():
        barrier.wait()
        codes.append(api.post("/try/pairs", pair(models)).status_code)
        connection.close()

    threads = [threading.Thread(target=click) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join(30) for thread in threads]
    assert sorted(codes) == [200, 201]
    assert (Project.objects.count(), Task.objects.count(), Dataset.objects.count()) == (1, 1, 1)


def test_the_pair_stays_on_the_side_of_its_prompt(team, api, models, version):
    held = Example.objects.get(dataset=version.dataset, key="e3")
    told = api.post("/try/pairs", pair(models, prompt="Prompt 3 ü", example=held.pk)).json()
    assert Task.objects.get(pk=told["task"]).example.split == "heldout"


def test_people_work_on_the_pairs_and_what_they_say_is_published(team, api, models):
    for i in range(2):
        api.post("/try/pairs", pair(models, prompt=f"Question {i}"))
    (project,) = collecting(team.workspace.pk)
    for membership in (team.owner, team.reviewer):
        for _ in range(2):
            (seat,) = queue.claim(membership, project)
            queue.submit(membership, seat, {"verdict": "compared", "strength": 2})
    made = publish.publish(team.researcher, project, publish.Choice(what="answers"))
    assert made.version.counts["preferences"] == 4


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"b": {"model": 10**6, "text": "Blue."}}, "b.model"),
        ({"project": 10**6}, "project"),
        ({"example": 10**6}, "example"),
        ({"messages": []}, "messages"),
    ],
)
def test_what_cannot_be_compared_is_refused_at_its_field_and_leaves_nothing(api, models, change, field):
    answer = api.post("/try/pairs", {**pair(models), **change})
    assert answer.status_code == 422 and field in [each["path"] for each in answer.json()["error"]["fields"]]
    assert not Project.objects.exists() and not Dataset.objects.exists()


def test_equal_answers_and_names_that_are_taken_are_refused(team, api, models):
    same = api.post("/try/pairs", pair(models, a="Red.", b="Red.")).json()["error"]
    assert same["fields"][0]["path"] == "b.text"
    Dataset.objects.create(workspace=team.workspace, name="Mine")
    taken = api.post("/try/pairs", pair(models, new_project="Mine")).json()["error"]
    assert [each["path"] for each in taken["fields"]] == ["new_project"] and not Project.objects.exists()


def test_another_workspace_sees_nothing_of_it(team, api, models):
    other = ApiClient(team.outsider).post("/try/pairs", pair(models))
    assert other.status_code == 422 and not Project.objects.exists()
    assert browser(team.reviewer).get("/try").status_code == 403
    assert ApiClient(team.reviewer).post("/try/pairs", pair(models)).status_code == 403


def test_the_page_asks_what_writes_text_scores_by_what_scores_and_says_so_where_nothing_writes(team, models):
    client = browser(team.researcher)
    RegisteredModel.objects.create(workspace=team.workspace, name="scorer", source="hub", path="o/s", head="scalar")
    offered = client.get("/try").context["offered"]
    writers, scorers = ([row["name"] for row in offered[key]] for key in ("models", "reward_models"))
    assert "base" in writers and "scorer" not in writers and scorers == ["scorer"]
    RegisteredModel.objects.all().delete()
    assert "No model that writes text yet" in client.get("/try").content.decode()


def test_the_rubric_of_a_prompt_scores_an_answer(team, api, version):
    row = Example.objects.get(dataset=version.dataset, key="e0")
    good, bad = (api.post("/try/scores", {"example": row.pk, "text": text}).json() for text in ("red", "blue"))
    assert (good["score"], bad["score"], good["missing"]) == (1.0, 0.0, 0)
    assert good["criteria"][0]["met"] is True and good["criteria"][0]["text"] == "Names a colour"
    assert ApiClient(team.outsider).post("/try/scores", {"example": row.pk, "text": "red"}).status_code == 404


def test_a_prompt_without_a_rubric_gives_no_score(team, api):
    bare = make_version(team.owner, name="bare", rubrics=False).members.first().example
    answer = api.post("/try/scores", {"example": bare.pk, "text": "red"})
    assert answer.status_code == 422 and answer.json()["error"]["fields"][0]["path"] == "example"
