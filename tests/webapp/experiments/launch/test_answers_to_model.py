"""One click from people's comparisons to a reward model."""

import pytest
from django.contrib.messages import get_messages

from tests.team import browser
from tests.webapp.annotation.answers import annotators, answer, make_project, preference
from tests.webapp.experiments.conftest import model  # noqa: F401 - a fixture
from webapp.experiments.launch import answers_to_model
from webapp.experiments.models import Run
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.django_db


def compared(team, answers: int):
    project = make_project(team, n=max(answers, 1), overlap=1)
    (one,) = annotators(team, project, 1)
    for task in project.tasks.order_by("rank")[:answers]:
        answer(task, one, preference(2))
    return project


@pytest.fixture
def project(team):
    return compared(team, 8)


def page_messages(response) -> str:
    return " ".join(message.message for message in get_messages(response.wsgi_request))


def test_a_click_publishes_the_answers_and_launches_a_reward_model(team, as_researcher, project, model):  # noqa: F811
    response = as_researcher.post(f"/projects/{project.pk}/train")
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.pk}"
    assert (run.recipe, run.state, run.model.name) == ("reward_model", "queued", model.name)
    assert run.dataset_version.counts["preferences"] == 8
    assert run.experiment.name == project.name and "8 answers" in run.name
    assert as_researcher.post(f"/projects/{project.pk}/train")["Location"] == f"/runs/{run.pk}"
    assert Run.objects.count() == 1, "the second click gets the run of the first"


def test_more_answers_make_another_run(team, as_researcher, model):  # noqa: F811
    project = compared(team, 8)
    as_researcher.post(f"/projects/{project.pk}/train")
    (one,) = annotators(team, project, 1)
    first = project.tasks.order_by("rank").first()
    answer(first, one, preference(-3))
    as_researcher.post(f"/projects/{project.pk}/train")
    assert Run.objects.count() == 2


def test_home_proposes_it_where_there_are_enough_answers(team, as_researcher, project, model):  # noqa: F811
    page = as_researcher.get("/")
    assert "Train a reward model on 8 answers" in [step.title for step in page.context["steps"]]
    assert f'action="/projects/{project.pk}/train"'.encode() in page.content


def test_too_few_answers_are_not_enough(team, as_researcher, model):  # noqa: F811
    project = compared(team, 7)
    assert answers_to_model.ready(team.workspace.pk) == []
    response = as_researcher.post(f"/projects/{project.pk}/train")
    assert "8 answers or more" in page_messages(response) and not Run.objects.exists()
    assert not project.publications.exists()


def test_without_a_model_it_says_what_is_missing(team, as_researcher, project):
    RegisteredModel.objects.create(workspace=team.workspace, name="trained", source="run", path="/x")
    assert "no model that a run could begin with" in page_messages(as_researcher.post(f"/projects/{project.pk}/train"))
    assert not Run.objects.exists()


def test_only_researchers_of_the_workspace_may(team, project, model):  # noqa: F811
    for membership, status in ((team.reviewer, 403), (team.annotator, 403), (team.outsider, 404)):
        assert browser(membership).post(f"/projects/{project.pk}/train").status_code == status
    assert not Run.objects.exists()
