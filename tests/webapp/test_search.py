"""The command palette's search: its results, the people who see them, and its cost."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.webapp.experiments.conftest import launch, make_version, model, version  # noqa: F401 - fixtures
from webapp.datasets.models import Dataset
from webapp.experiments.models import Run
from webapp.judging.models import Judge

pytestmark = pytest.mark.django_db


def search_results(client, query: str = "") -> list[tuple[str, str]]:
    response = client.get("/search.json", {"q": query})
    assert response.status_code == 200
    return [(item["kind"], item["url"]) for item in response.json()["items"]]


def test_every_word_counts_across_the_names_of_run_and_experiment(as_researcher, launch):  # noqa: F811
    run, other = launch(), launch()
    Run.objects.filter(id=run.id).update(name="Warmer start")
    assert search_results(as_researcher, f"warm {run.experiment.name[:4]}") == [("run", f"/runs/{run.id}")]
    assert search_results(as_researcher, f"run {other.number}") == [("run", f"/runs/{other.id}")]


def test_datasets_and_models_are_found_by_a_part_of_their_name(as_researcher, version, model):  # noqa: F811
    assert search_results(as_researcher, version.dataset.name[1:].upper()) == [
        ("dataset", f"/datasets/{version.dataset_id}")
    ]
    assert ("model", f"/models/{model.id}") in search_results(as_researcher, model.name[2:6])


def test_judges_are_found_until_they_are_archived(as_researcher, team):
    judge = Judge.objects.create(workspace=team.workspace, name="Strict reader", kind="criterion")
    assert search_results(as_researcher, "read") == [("judge", f"/judges/{judge.pk}")]
    Judge.objects.update(archived_at=timezone.now())
    assert search_results(as_researcher, "read") == []


def test_characters_with_a_meaning_in_patterns_stand_for_themselves(as_researcher, team):
    Dataset.objects.create(workspace=team.workspace, name="exactly 100% human")
    assert len(search_results(as_researcher, "100%")) == 1
    assert search_results(as_researcher, "ex_ctly") == search_results(as_researcher, "\\") == []


def test_without_words_the_newest_come_first(as_researcher, launch):  # noqa: F811
    older, newer = launch(), launch()
    assert search_results(as_researcher)[:2] == [("run", f"/runs/{newer.id}"), ("run", f"/runs/{older.id}")]


def test_annotators_and_other_workspaces_find_nothing(as_annotator, as_outsider, launch):  # noqa: F811
    launch()
    assert search_results(as_annotator) == search_results(as_outsider) == []


def test_strangers_are_sent_to_the_door(client):
    assert client.get("/search.json").status_code == 302


def test_the_cost_does_not_grow_with_the_rows(as_researcher, launch):  # noqa: F811
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            search_results(as_researcher)
        return len(queries)

    launch()
    before = cost()
    launch()
    launch()
    assert cost() == before
