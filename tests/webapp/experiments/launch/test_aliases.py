"""Runs that begin with an alias. They get the model that the alias points at when they are launched, and keep it."""

import pytest

from trainer.config import ConfigInvalid
from webapp.core.models import AuditEntry
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.models import RunSlot
from webapp.inference.models import RegisteredModel
from webapp.inference.promotion import services

pytestmark = pytest.mark.django_db


@pytest.fixture
def champion(team):
    row = RegisteredModel.objects.create(workspace=team.workspace, name="trained", source="local", path="/models/t")
    services.move(team.researcher, "champion", row)
    return row


def test_a_run_begins_with_the_model_that_the_alias_points_at(team, launch, model, champion):
    run = launch(config={"steps": 4, "model": {"name": "@champion"}})
    services.move(team.researcher, "champion", model)
    run.refresh_from_db()
    assert run.model == champion and run.config["model"]["name"] == "trained"
    assert RunSlot.objects.get(run=run, role="base").model == champion
    assert AuditEntry.objects.get(action="run.launch").detail["aliases"] == {"model.name": "@champion"}


def test_the_model_beside_the_config_may_be_an_alias_too(launch, champion):
    assert launch(model="@champion").config["model"]["name"] == "trained"


def test_a_reward_may_be_an_alias(team, launch, model):
    row = RegisteredModel.objects.create(
        workspace=team.workspace, name="rm", source="local", path="/models/rm", head="scalar"
    )
    services.move(team.researcher, "taste", row)
    run = launch(config={"steps": 4, "rewards": [{"name": "r", "kind": "reward_model", "model": "@taste"}]})
    assert run.config["rewards"][0]["model"] == "rm"
    assert RunSlot.objects.get(run=run, path="rewards.0.model").model == row


def test_an_alias_that_is_not_there_is_said_at_its_field(launch, model):
    with pytest.raises(ConfigInvalid) as refused:
        launch(config={"steps": 4, "model": {"name": "@champion"}})
    (problem,) = refused.value.problems
    assert problem.path == "model.name" and "no model has the alias @champion" in problem.message


def test_an_alias_of_another_workspace_is_not_there(team, launch, model):
    theirs = RegisteredModel.objects.create(workspace=team.outsider.workspace, name="t", source="hub", path="o/t")
    services.move(team.outsider, "champion", theirs)
    with pytest.raises(ConfigInvalid):
        launch(config={"steps": 4, "model": {"name": "@champion"}})


def test_the_form_offers_aliases_before_models(team, model, champion):
    form = RunForm.blank(team.researcher, "policy")
    offered = next(each.options for each in form.group.every_input() if each.path == "model.name")
    assert ("@champion", "@champion · points at trained") in offered
    assert [value for value, _ in offered].index("@champion") < [value for value, _ in offered].index("trained")
