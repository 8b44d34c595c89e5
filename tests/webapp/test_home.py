"""The first page: who sees what on it, and what it proposes. Its cost does not grow."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.webapp.experiments.conftest import launch, make_version, model, version  # noqa: F401 - fixtures
from webapp.accounts.tokens.services import create_token
from webapp.datasets.models import Dataset
from webapp.experiments.models import Run
from webapp.tracking import services as tracking

pytestmark = pytest.mark.django_db


def steps(client) -> list[str]:
    return [step.title for step in client.get("/").context["steps"]]


def test_an_empty_workspace_leads_to_its_first_dataset_and_model(as_researcher):
    assert steps(as_researcher)[:2] == ["Import a dataset", "Register a model"]


def test_who_comes_before_the_demo_is_there_is_told_that_it_comes(team, as_owner, version):  # noqa: F811
    comes = "The demo’s run starts by itself"
    assert comes not in as_owner.get("/").content.decode(), "nobody prepares anything for other people"
    type(team.owner.user).objects.filter(pk=team.owner.user_id).update(email="demo@localhost")
    page = as_owner.get("/").content.decode()
    assert comes in page and "No runs yet" not in page and "Register a model" not in steps(as_owner)
    type(team.workspace).objects.filter(pk=team.workspace.pk).update(created_at=timezone.now() - timedelta(minutes=11))
    assert "No runs yet" in as_owner.get("/").content.decode(), "it did not come"


def test_with_data_and_a_model_the_first_run_comes_first(as_researcher, version, model):  # noqa: F811
    assert steps(as_researcher)[0] == "Start the first run"


def test_a_finished_run_leads_to_its_rollouts_and_to_the_next_run(as_researcher, launch):  # noqa: F811
    run = launch()
    Run.objects.filter(id=run.id).update(state="finished")
    proposed = as_researcher.get("/").context["steps"]
    assert [step.href for step in proposed[:2]] == [f"/runs/{run.id}/rollouts", f"/runs/{run.id}/fork"]


def test_a_run_of_another_program_is_not_proposed_because_it_has_no_rollouts(team, as_researcher, launch):  # noqa: F811
    run = launch()
    Run.objects.filter(id=run.id).update(state="finished")
    begun = tracking.begin(team.researcher, tracking.experiment(team.researcher, "elsewhere"), "mlflow")
    Run.objects.filter(id=begun.run_id).update(state="finished")
    hrefs = [step.href for step in as_researcher.get("/").context["steps"]]
    assert f"/runs/{run.id}/rollouts" in hrefs and not any(f"/runs/{begun.run_id}/" in href for href in hrefs)


def test_running_runs_come_before_queued_and_ended_ones(as_researcher, launch):  # noqa: F811
    running, queued, ended = launch(), launch(), launch()
    Run.objects.filter(id=running.id).update(state="running")
    Run.objects.filter(id=ended.id).update(state="stopped")
    context = as_researcher.get("/").context
    assert [row.run.id for row in context["active"]] == [running.id, queued.id]
    assert [row.run.id for row in context["recent"]] == [ended.id]


def test_proposals_follow_the_role(team, as_researcher, as_outsider, client):
    client.force_login(team.reviewer.user, backend="django.contrib.auth.backends.ModelBackend")
    assert steps(client) == ["Create an API token"]
    create_token(team.reviewer, "mine", "read")
    assert steps(client) == []
    assert "Invite someone" in steps(as_outsider)  # alone in their own workspace
    assert "Invite someone" not in steps(as_researcher)


def test_annotators_see_no_runs_and_no_datasets(as_annotator, launch):  # noqa: F811
    page = as_annotator.get("/")
    assert page.status_code == 200
    assert b"/runs" not in page.content and b"/datasets" not in page.content


def test_the_queries_do_not_grow_with_the_rows(as_researcher, team, launch):  # noqa: F811
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            as_researcher.get("/")
        return len(seen)

    Run.objects.filter(id=launch().id).update(state="finished")
    launch()
    few = queries()
    for number in range(5):
        Dataset.objects.create(workspace=team.workspace, name=f"more {number}")
        make_version(team.owner, name=f"data {number}")
        launch()
        Run.objects.filter(id=launch().id).update(state="finished")
    assert queries() == few


def test_a_page_that_does_not_exist_is_drawn_like_the_others(as_researcher):
    answer = as_researcher.get("/nowhere")
    assert answer.status_code == 404
    assert b"Nothing here" in answer.content and b"css/components" in answer.content


def test_somebody_signed_in_goes_on_from_a_page_that_is_not_there_or_closed(as_researcher, as_annotator, client):
    for answer, status in (
        (as_researcher.get("/nowhere"), 404),
        (as_researcher.get("/runs/999999999"), 404),
        (as_annotator.get("/costs"), 403),
    ):
        page = answer.content.decode()
        assert answer.status_code == status and 'class="rail"' in page and 'class="rail-item" href="/"' in page
        assert ('href="/datasets"' in page) == (status == 404)  # an annotator's navigation stays an annotator's
    stranger = client.get("/nowhere").content.decode()
    assert "Nothing here" in stranger and 'class="rail"' not in stranger


def test_a_slash_at_the_end_of_an_address_leads_to_the_page_without_it(client, team, as_researcher):
    led = as_researcher.get("/runs/compare/?q=tag:a&band=range")
    assert (led.status_code, led["Location"]) == (302, "/runs/compare?q=tag:a&band=range")
    assert client.get("/datasets/")["Location"] == "/datasets"
    for other in ("/nowhere/", "//evil.example/", "//datasets/", "/datasets/0/versions/0/nowhere/"):
        assert as_researcher.get("/", PATH_INFO=other).status_code == 404
    assert as_researcher.post("/datasets/").status_code == 404
