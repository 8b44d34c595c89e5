"""Presets on the form of a run: they fill fields, say which, can be undone, and are accepted with the model of the workspace."""

import json

import pytest

from tests.pages import page_html
from trainer.config import RECIPES
from trainer.contracts import Preference, Reason
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.models import Run

from ..conftest import make_version
from .test_every_recipe import ANSWERS
from .test_forms import form_fields

PRESETS = [(recipe, preset) for recipe in RECIPES.values() for preset in recipe.presets]


@pytest.fixture
def version(team):
    """Examples of every kind that a preset learns from: rubrics, rewards, and pairs with the reasons of people."""
    reasons = tuple(Reason(text=text) for text in ("It is a colour.", "It is short.", "It answers."))
    judged = (Preference(a="a", b="b", strength=-2, rater="r", reasons=reasons),)
    rewards = {"rewards": {"a": 1.0, "b": 0.0}}
    return make_version(team.owner, "everything", reference="Red.", responses=ANSWERS, preferences=judged, meta=rewards)


def press(team, form, action, **changed):
    post = form_fields(form.group, **changed) | {
        "recipe": form.recipe,
        "dataset": form.dataset,
        "filled": form.filled_json,
    }
    return RunForm.posted(team.researcher, post | {"action": action})


@pytest.mark.parametrize(("recipe", "preset"), PRESETS, ids=[f"{recipe.name}-{each.name}" for recipe, each in PRESETS])
def test_the_model_of_the_workspace_can_be_trained_with_each(team, version, model, recipe, preset):
    form = press(team, RunForm.blank(team.researcher, recipe.name), f"preset:{preset.name}")
    assert form.raw["model"]["name"] == model.name
    made = form.launch()
    assert made is not None, form.problems
    assert Run.objects.get().config == made.config


def test_it_says_what_it_has_changed_marks_it_and_takes_it_back(team, version, model):
    blank = RunForm.blank(team.researcher)
    form = press(team, blank, "preset:icepop", steps="7")
    assert form.preset.title == "As in the paper: GLM-5"
    assert len(form.filled_labels) == 4 and "Group size" in form.filled_labels
    assert [preset.name for preset, taken in form.presets if taken] == ["icepop"]
    changed = {each.path for each in form.group.every_input() if each.changed}
    assert {"steps", "rollout.group_size", "objective.name"} <= changed
    later = press(team, form, "", optim__lr="0.001")
    assert later.preset == form.preset, "it can still be undone"
    undone = press(team, later, "undo")
    assert undone.preset is None and undone.filled_json == ""
    assert undone.raw == blank.raw | {"steps": 7, "optim": blank.raw["optim"] | {"lr": 0.001}}
    assert not press(team, blank, "preset:ruscarl").filled_labels, "these are the defaults"
    assert press(team, blank, "preset:none such").raw == blank.raw


@pytest.mark.parametrize(
    "sent", ["{", "[]", '{"values": 1}', json.dumps({"values": {"steps.x": 1, "a": 2}}), "x" * 30_000]
)
def test_what_no_page_sends_undoes_nothing(team, version, model, sent):
    blank = RunForm.blank(team.researcher)
    post = form_fields(blank.group) | {"recipe": "policy", "dataset": blank.dataset, "filled": sent, "action": "undo"}
    assert RunForm.posted(team.researcher, post).raw | blank.raw == RunForm.posted(team.researcher, post).raw


def test_page_api_and_form_have_the_same(team, version, model, as_researcher, api):
    seen = page_html(as_researcher.get("/runs/new?recipe=judge"))
    told = api.get("/recipes/judge").json()["presets"]
    assert [each["name"] for each in told] == [preset.name for preset in RECIPES["judge"].presets]
    assert all(each["title"] in seen for each in told)
    listed = {each["name"]: each["presets"] for each in api.get("/recipes").json()["items"]}
    assert listed["judge"] == told
    for each in told:
        assert api.post("/recipes/judge/check", {"config": each["config"]}).status_code == 200
    assert api.get("/recipes/none").status_code == 404
