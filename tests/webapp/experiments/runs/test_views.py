"""Pages of runs: who may see them, their cost, and buttons that are pressed twice."""

import html
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.e2e.seed import seed_run
from tests.webapp.experiments.conftest import keep_checkpoint, make_version, run_launcher
from webapp.datasets.models import DatasetVersion
from webapp.experiments.models import LogLine, Point, Run
from webapp.inference.models import RegisteredModel

TABS = ("", "/rollouts", "/log", "/config", "/lineage", "/history")


@pytest.fixture
def page(team, as_researcher):
    return as_researcher


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_a_run_opens_for_its_workspace_and_is_not_there_for_another(run, page, as_outsider, tab):
    assert page.get(f"/runs/{run.id}{tab}").status_code == 200
    assert as_outsider.get(f"/runs/{run.id}{tab}").status_code == 404


def test_annotators_must_not_see_what_models_answer(run, as_annotator):
    for path in ("/experiments", f"/runs/{run.id}", f"/runs/compare?ids={run.id},{run.id}"):
        assert as_annotator.get(path).status_code == 403


def test_strangers_are_sent_to_sign_in(run, client):
    answer = client.get(f"/runs/{run.id}")
    assert answer.status_code == 302 and answer["Location"].startswith("/sign-in")
    part = client.get("/experiments/line", headers={"HX-Request": "true"})
    assert part.status_code == 401 and "HX-Redirect" not in part  # the page says so, and keeps what was typed in it


def test_an_unknown_tab_is_not_there(run, page):
    assert page.get(f"/runs/{run.id}/secrets").status_code == 404


@pytest.mark.parametrize("action", ["stop", "resume", "rename", "delete", "fork"])
def test_only_researchers_of_the_workspace_act(run, team, as_outsider, as_annotator, action):
    assert as_outsider.post(f"/runs/{run.id}/{action}").status_code == 404
    assert as_annotator.post(f"/runs/{run.id}/{action}").status_code == 403
    run.refresh_from_db()
    assert run.state == "queued"


@pytest.mark.parametrize("action", ["stop", "resume", "rename", "delete"])
def test_actions_are_never_links(run, page, action):
    assert page.get(f"/runs/{run.id}/{action}").status_code == 405


def test_the_list_costs_the_same_whatever_the_number_of_runs(launch, page):
    seed_run(launch(), steps=3)
    page.get("/experiments")
    with CaptureQueriesContext(
        connection,
    ) as few:
        assert page.get("/experiments").status_code == 200
    for _ in range(5):
        seed_run(launch(), steps=3)
    with CaptureQueriesContext(connection) as many:
        page.get("/experiments")
    assert len(many) == len(few)


def test_the_list_shows_the_gain_and_filters_by_state_and_words(launch, page):
    seed_run(launch(name="kestrel"), steps=20, state="finished")
    launch(name="osprey")
    shown = page.get("/experiments?state=finished").content.decode()
    assert "kestrel" in shown and "osprey" not in shown and "0.312" in shown
    shown = page.get("/experiments?q=OSP").content.decode()
    assert "osprey" in shown and "kestrel" not in shown
    assert "No run matches" in page.get("/experiments?experiment=abc").content.decode()


def test_an_empty_list_says_what_to_do(page):
    assert "No runs yet" in page.get("/experiments").content.decode()


def test_stopping_twice_stops_once(run, page):
    for _ in range(2):
        assert page.post(f"/runs/{run.id}/stop").status_code == 302
    run.refresh_from_db()
    assert run.state == "stopped"


def test_resuming_twice_is_one_attempt(run, page):
    page.post(f"/runs/{run.id}/stop")
    for _ in range(2):
        page.post(f"/runs/{run.id}/resume")
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("queued", 2)


def test_a_failed_run_shows_why_and_its_last_words(run, page):
    LogLine.objects.create(run=run, time=run.created_at, level="error", message="FloatingPointError: <nan>")
    Run.objects.filter(id=run.id).update(state="failed", state_reason="the loss is not finite", step=3)
    shown = page.get(f"/runs/{run.id}").content.decode()
    assert "failed at step 3" in shown and "the loss is not finite" in shown
    assert "FloatingPointError: &lt;nan&gt;" in shown
    assert "Resume begins again at the first step, because there is no checkpoint" in shown
    keep_checkpoint(run)
    assert "Resume continues from the last checkpoint" in page.get(f"/runs/{run.id}").content.decode()


def test_a_run_that_is_over_can_be_deleted_and_a_live_one_cannot(run, page):
    Run.objects.filter(id=run.id).update(state="running")
    page.post(f"/runs/{run.id}/delete")
    assert Run.objects.filter(id=run.id).exists()
    Run.objects.filter(id=run.id).update(state="finished")
    assert page.post(f"/runs/{run.id}/delete")["Location"] == "/experiments"
    assert not Run.objects.filter(id=run.id).exists()


def test_an_empty_name_falls_back_to_the_number(run, page):
    page.post(f"/runs/{run.id}/rename", {"name": "best so far"})
    assert "best so far" in page.get(f"/runs/{run.id}").content.decode()
    page.post(f"/runs/{run.id}/rename", {"name": " "})
    assert "run 1" in page.get(f"/runs/{run.id}").content.decode()


def test_the_config_tab_marks_what_differs_from_the_default(run, page):
    shown = page.get(f"/runs/{run.id}/config").content.decode()
    row = shown[shown.index("<code>steps</code>") : shown.index("</tr>", shown.index("<code>steps</code>"))]
    assert "changed" in row and "40" in row


def test_lineage_shows_parent_and_fork_with_what_changed(launch, page):
    first = launch()
    second = launch(config={"steps": 4, "optim": {"lr": 0.001}}, forked_from=first)
    for run, other in ((first, second), (second, first)):
        shown = page.get(f"/runs/{run.id}/lineage").content.decode()
        assert f'href="/runs/{other.id}"' in shown and "optim.lr" in shown


def test_comparing_shows_only_runs_of_the_workspace(launch, page, as_outsider):
    a, b = launch(), launch(config={"steps": 9})
    assert "Compare 2 runs" in page.get(f"/runs/compare?ids={a.id}&ids={b.id}").content.decode()
    assert as_outsider.get(f"/runs/compare?ids={a.id},{b.id}").url == "/experiments"
    assert page.get("/runs/compare?ids=x,y").status_code == 404
    assert page.get(f"/runs/compare?ids={a.id}").status_code == 302


def test_comparing_says_what_was_measured_otherwise(launch, api):
    runs = [launch(), launch(), launch(config={"steps": 9, "evaluation": {"samples": 2, "temperature": 0.8}}), launch()]
    for run, score in zip(runs, (0.5, 0.6, 0.4, None), strict=True):
        summary = {} if score is None else {"eval/rubric_score": score, "eval/rubric_score_se": 0.05}
        Run.objects.filter(pk=run.pk).update(summary=summary)
    ids = ",".join(str(run.pk) for run in runs)
    why = f"evaluation.samples 2, where {runs[0]} has 1, and 1 more"
    for path in ("/runs/compare", "/runs/table/compare"):
        assert api.get(path, ids=ids).json()["unlike"] == {str(runs[2].pk): why}


def test_settings_that_come_to_the_same_compare(launch, api):
    """There are two held-out prompts, so a limit of 40 and a limit of 50 choose the same two."""
    runs = [launch(), launch(config={"steps": 9, "evaluation": {"max_examples": 50, "every": 3}})]
    for run in runs:
        Run.objects.filter(pk=run.pk).update(summary={"eval/rubric_score": 0.5})
    DatasetVersion.objects.update(counts={"examples": 5, "train": 3, "heldout": 2})
    assert api.get("/runs/table/compare", ids=f"{runs[0].pk},{runs[1].pk}").json()["unlike"] == {}


def test_the_page_of_a_run_leads_to_its_comparison_with_its_experiment_and_its_parent(launch, page):
    parent = launch(experiment="One & the other's")
    assert "runs/compare" not in page.get(f"/runs/{parent.id}").content.decode(), "with nothing"
    run = launch(config={"steps": 4}, experiment="One & the other's", forked_from=parent)
    shown = page.get(f"/runs/{run.id}").content.decode()
    beside = f"/runs/compare?ids={parent.id},{run.id}&amp;baseline={parent.id}"
    assert beside in shown and "baseline=" not in page.get(f"/runs/{parent.id}").content.decode()
    (whole,) = re.findall(r'<a href="([^"]+)" title="With all runs of its experiment"', shown)
    for address in (beside, whole):
        assert "Compare 2 runs" in page.get(html.unescape(address)).content.decode()


def test_pages_carry_no_inline_script_or_style(launch, page):
    run = seed_run(launch(), steps=3)
    assert Point.objects.filter(run=run).exists()
    for path in (
        "/experiments",
        "/runs/new",
        f"/runs/{run.id}/fork",
        f"/runs/compare?ids={run.id},{launch().id}",
        *(f"/runs/{run.id}{t}" for t in TABS),
    ):
        shown = page.get(path).content.decode()
        assert " style=" not in shown and "<style" not in shown and " onclick=" not in shown, path


def test_the_new_run_form_takes_the_dataset_that_one_came_from(team, page, version, model):
    newest = make_version(team.owner, name="zebras & co")

    def proposed(**query) -> str:
        return page.get("/runs/new", {"recipe": "policy", **query}).context["form"].dataset

    assert proposed() == f"{newest.dataset_id}:1", "the newest that fits"
    for named in ("demo", f"{version.dataset_id}:1"):
        assert proposed(dataset=named) == f"{version.dataset_id}:1"
    assert proposed(dataset="gone") == proposed(dataset="9:0") == f"{newest.dataset_id}:1"


@pytest.mark.parametrize("rubrics", [True, False])
def test_a_run_shows_the_result_that_it_will_measure(team, as_researcher, model, rubrics):
    """A run with a reward model, on prompts without rubrics, began with an empty chart of rubric scores, which stayed empty."""
    RegisteredModel.objects.create(workspace=team.workspace, name="rm", source="hub", path="o/rm", head="scalar")
    reward = {"kind": "reward_model", "name": "rm", "model": "rm"}
    config = {"steps": 4, "scaffold": None, "rewards": [{"kind": "rubric", "name": "rubric"} if rubrics else reward]}
    run = run_launcher(team, make_version(team.owner, "Prompts", rubrics=rubrics))(config=config)
    page = as_researcher.get(f"/runs/{run.id}")
    key, title = ("eval/rubric_score", "Held-out rubric score") if rubrics else ("eval/reward", "Held-out reward")
    shown = page.context["recipe_metrics"]
    outcome = [each["key"] for each in shown["metrics"] if each["group"] == "outcome" and not each["optional"]]
    assert shown["headline"] == outcome[0] == key
    assert f'data-bind="result-title">{title}</span>' in page.content.decode()
    assert page.context["data"]["result"]["title"] == title  # the script of the page shows this one
