"""Every recipe from the form to the page. The web side needs only the declaration of a recipe."""

import pytest

from trainer.config import RECIPES
from trainer.contracts import Preference, Response
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.models import Run
from webapp.experiments.recipes import gallery

from ..conftest import Trainer, make_version
from .test_forms import form_fields

ANSWERS = (Response(id="a", text="Red."), Response(id="b", text="Seven."))


@pytest.fixture
def version(team):
    """Examples of every kind that a recipe can learn from."""
    judged = (Preference(a="a", b="b", strength=-2, rater="r"),)
    rewards = {"rewards": {"a": 1.0, "b": 0.0}}
    return make_version(team.owner, "everything", reference="Red.", responses=ANSWERS, preferences=judged, meta=rewards)


@pytest.fixture(params=RECIPES.values(), ids=list(RECIPES))
def recipe(request):
    return request.param


def test_from_form_to_launch_to_ingest_to_page(recipe, version, model, team, as_researcher):
    card = next(each for each in gallery.cards(team.workspace.id, version) if each.recipe.name == recipe.name)
    assert card.fit.ok and card.fit.held_out
    form = RunForm.blank(team.researcher, recipe.name)
    assert form.dataset == f"{version.dataset_id}:1" and form.check(), form.problems
    post = form_fields(form.group) | {"recipe": recipe.name, "dataset": form.dataset, "action": "launch"}
    answer = as_researcher.post("/runs/new", post)
    assert answer.status_code == 302, answer.context["form"].problems
    run = Run.objects.get()
    Run.objects.filter(id=run.id).update(state="starting", ray_job_id=f"run-{run.id}-1", next_try_at=None)
    trainer = Trainer(run)
    values = {each.key: 0.25 for each in recipe.metrics if not each.is_pattern}
    sample = trainer.rollout(example_key="e0")
    for step in (1, 2):
        trainer.post(trainer.metrics(step, **values), trainer.event("rollouts", step, rollouts=[sample]))
    trainer.post(trainer.event("state", state="finished"))
    run.refresh_from_db()
    assert run.state == "finished" and run.summary[recipe.headline] == 0.25
    for tab in ("", "/rollouts", "/log", "/config", "/lineage"):
        shown = as_researcher.get(f"/runs/{run.id}{tab}").content.decode()
        assert recipe.metric(recipe.headline).label in shown
    assert recipe.metric(recipe.headline).label in as_researcher.get("/experiments").content.decode()
    assert as_researcher.get(f"/runs/{run.id}/fork").status_code == 200


def test_by_api(recipe, version, model, api):
    answer = api.post("/runs", {"recipe": recipe.name, "config": dict(recipe.example), "dataset": "everything"})
    assert answer.status_code == 201, answer.content
    assert answer.json()["result"]["metric"] == recipe.headline
    assert api.get(f"/recipes/{recipe.name}/metrics").json()["headline"] == recipe.headline
