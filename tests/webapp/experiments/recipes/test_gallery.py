"""The gallery: the data that each recipe finds in a dataset, its duration on this machine, and the offers of a dataset's page."""

from datetime import UTC, datetime

from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.pages import page_html
from webapp.datasets.models import Example
from webapp.datasets.versions import training_counts
from webapp.experiments.models import Artifact, MetricPoint, Run
from webapp.experiments.recipes import gallery
from webapp.experiments.runs import queries as runs_queries
from webapp.inference.models import RegisteredModel

from ..conftest import make_version

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def card(cards, name):
    return next(each for each in cards if each.recipe.name == name)


def timed(run: Run, *seconds: float) -> None:
    Run.objects.filter(pk=run.pk).update(first_metric_at=NOW)
    MetricPoint.objects.bulk_create(
        MetricPoint(run=run, key="perf/step_s", step=step, value=value, time=NOW) for step, value in enumerate(seconds)
    )


def test_what_a_version_can_train_comes_first_with_its_counts(team, as_researcher):
    version = make_version(team.owner, "Answers", train=4, heldout=1, rubrics=False, reference="Red.")
    cards = gallery.cards(team.workspace.id, version)
    assert cards[0].recipe.name == "sft" and cards[0].fit.ok and not card(cards, "policy").fit.ok
    seen = page_html(as_researcher.get("/runs/new", {"dataset": "Answers"}))
    assert seen.index('id="recipe-sft"') < seen.index('id="recipe-policy"')
    assert "prompts with a reference answer to train on" in seen
    assert "prompts whose every criterion has a verifier" in seen and "prompts with a criterion for a judge" in seen
    assert f"recipe=sft&amp;dataset={version.dataset_id}:1" in seen
    assert "Set up with other data" in seen and f"recipe=policy&amp;dataset={version.dataset_id}" not in seen
    told = as_researcher.get("/runs/new", {"recipe": "policy", "dataset": f"{version.dataset_id}:1"})
    assert set(told.context["form"].problems) == {"dataset"} and "1 problem to" in page_html(told)
    assert (
        as_researcher.get("/runs/new", {"recipe": "sft", "dataset": f"{version.dataset_id}:1"}).context["form"].problems
        == {}
    )


def test_without_any_data_it_says_what_to_do(as_researcher):
    seen = page_html(as_researcher.get("/runs/new"))
    assert "No dataset yet" in seen and "learns from" in seen and "not yet known" in seen


def test_the_pace_is_the_median_of_the_newest_runs_of_the_workspace(team, launch):
    for step_s in (2.0, 4.0, 90.0):
        timed(launch(), step_s, step_s, 500.0)
    pace = gallery.pace_by_recipe(team.workspace.id)["policy"]
    assert (pace.step_s, pace.runs, pace.total_s(10)) == (4.0, 3, 40.0)
    for _ in range(gallery.RUNS_TIMED):
        timed(launch(), 7.0)
    assert gallery.pace_by_recipe(team.workspace.id)["policy"].step_s == 7.0, "older runs do not count"
    assert gallery.pace_by_recipe(team.outsider.workspace_id) == {}


def test_a_large_version_is_counted_by_a_worker_while_the_page_stands(team, as_researcher, monkeypatch):
    monkeypatch.setattr(training_counts, "enqueue", lambda *args: None)
    version = make_version(team.owner)
    type(version).objects.filter(pk=version.pk).update(counts={"examples": training_counts.AT_ONCE + 1})
    assert "Counting what this dataset holds" in page_html(as_researcher.get("/runs/new"))
    menu = page_html(as_researcher.get(f"/runs/trainable?dataset={version.dataset_id}:1"))
    assert "in a minute" in menu and "nothing" not in menu


def test_the_menu_of_a_dataset_offers_exactly_what_it_can_train(team, as_researcher, as_annotator, as_outsider):
    version = make_version(team.owner)
    address = f"/runs/trainable?dataset={version.dataset_id}:1"
    menu = page_html(as_researcher.get(address))
    assert "Policy from rubrics" in menu and "3 prompts whose every criterion has a verifier, 2 held out" in menu
    assert "Supervised fine-tuning" not in menu
    assert as_annotator.get(address).status_code == 403
    assert as_outsider.get(address).status_code == 404
    assert as_researcher.get("/runs/trainable?dataset=x").status_code == 404


def test_a_version_tells_what_it_has_trained_down_to_the_models(
    team, launch, version, model, as_researcher, as_annotator, as_outsider, django_assert_num_queries
):
    address = f"/runs/trained?dataset={version.dataset_id}:1"
    assert as_researcher.get(address).content.strip() == b""
    first = launch()
    left = RegisteredModel.objects.create(workspace=team.workspace, name="left", source="run", path="/p", base=model)
    Artifact.objects.create(
        run=first, step=3, role="model", path="outputs/policy", bytes=1, digest="d", registered=left
    )
    Artifact.objects.create(run=first, step=2, role="checkpoint", path="checkpoints/2", bytes=1, digest="d")
    seen = page_html(as_researcher.get(address))
    assert f'href="/runs/{first.pk}"' in seen and f'href="/models/{left.pk}">left</a>' in seen
    assert seen.count("/models/") == 1 and "All runs on" not in seen
    for _ in range(5):
        launch()
    with django_assert_num_queries(2):
        runs, more = runs_queries.trained_by(version)
    assert more and [run.pk for run in runs] == sorted((run.pk for run in runs), reverse=True) and first not in runs
    assert "All runs on" in page_html(as_researcher.get(address))
    assert (as_annotator.get(address).status_code, as_outsider.get(address).status_code) == (403, 404)


def test_leaks_are_told_before_anything_is_set_up(team, as_researcher):
    version = make_version(team.owner)
    assert "held-out result will look better" not in page_html(as_researcher.get("/runs/new"))
    trained, *_, held = Example.objects.filter(dataset=version.dataset).order_by("id")
    other = make_version(team.owner, "leaky")
    Example.objects.filter(dataset=other.dataset, key=held.key).update(prompt_hash=trained.prompt_hash)
    seen = page_html(as_researcher.get("/runs/new", {"dataset": "leaky"}))
    assert "<strong>1 held-out example of leaky v1</strong> has its prompt" in seen


def test_another_workspaces_dataset_is_not_chosen(team, as_outsider):
    version = make_version(team.owner)
    for named in ("demo", f"{version.dataset_id}:1"):
        assert as_outsider.get("/runs/new", {"dataset": named}).context["version"] is None


def test_the_page_costs_the_same_whatever_there_is(team, launch, as_researcher):
    timed(launch(), 2.0)
    as_researcher.get("/runs/new?dataset=demo")
    with CaptureQueriesContext(connection) as few:
        as_researcher.get("/runs/new?dataset=demo")
    for n in range(4):
        training_counts.count_now(make_version(team.owner, f"more {n}"))
        timed(launch(), 2.0)
    with CaptureQueriesContext(connection) as many:
        as_researcher.get("/runs/new?dataset=demo")
    assert len(many) == len(few)


def test_the_api_says_what_a_dataset_holds_for_each_recipe(team, api, launch):
    version = make_version(team.owner, "more")
    timed(launch(), 2.0)
    for named in ("more", version.dataset_id, f"{version.dataset_id}:1"):
        found = {item["recipe"]: item for item in api.get(f"/recipes/fit?dataset={named}").json()["items"]}
        assert (found["policy"]["fits"], found["sft"]["fits"]) == (True, False)
        held = [(need["count"], need["train"], need["heldout"], need["left_out"]) for need in found["policy"]["needs"]]
        assert held == [("verified", 3, 2, []), ("unjudged", 0, 0, [])]
        assert (found["policy"]["step_s"], found["sft"]["step_s"]) == (2.0, None)
    assert api.get("/recipes/fit?dataset=gone").status_code == 404
    assert api.get("/recipes/fit").status_code == 422
