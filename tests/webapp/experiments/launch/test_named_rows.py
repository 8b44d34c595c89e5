"""What is launched later, or again, has the models and judges that were chosen, also if they were renamed and others got their names."""

import pytest

from trainer.config import ConfigInvalid
from webapp.experiments.launch import named_rows
from webapp.experiments.launch import services as launching
from webapp.experiments.launch.forms import RunForm
from webapp.inference.models import RegisteredModel
from webapp.judging.judges.services import rename

from ..conftest import swap_names
from .test_bad_input import grader  # noqa: F401


def test_a_fork_has_the_model_of_its_run(team, run, model):
    other = swap_names(model)
    forked = launching.fork(team.researcher, run, overrides={"steps": 5})
    assert forked.model == model and forked.config["model"]["name"] == "older"
    assert launching.fork(team.researcher, run, overrides={"model": {"name": other.name}}).model == other


def test_the_form_of_a_fork_shows_the_name_of_today_and_marks_nothing(team, run, model):
    swap_names(model)
    form = RunForm.of_run(team.researcher, run)
    named = next(each for each in form.group.every_input() if each.path == "model.name")
    assert named.value == "older" and not named.changed


def test_a_judge_that_was_renamed_is_found(team, launch, grader):  # noqa: F811
    judged = {"steps": 4, "rewards": [{"name": "r", "kind": "rubric", "judge": str(grader)}]}
    run = launch(config=judged)
    rename(team.researcher, grader.judge, "Strict grader")
    assert named_rows.config_today(run)["rewards"][0]["judge"] == "Strict grader v2"
    assert run.config["rewards"][0]["judge"] != "Strict grader v2"


def test_a_row_that_was_deleted_is_refused_at_its_field(team, run):
    rows = {"model": {run.config["model"]["name"]: 10**9}}
    with pytest.raises(ConfigInvalid) as refused:
        named_rows.renamed(team.workspace.pk, run.recipe, run.config, rows)
    [problem] = refused.value.problems
    assert problem.path == "model.name" and "was deleted" in problem.message


def test_a_row_of_another_workspace_is_never_named(team, run):
    theirs = RegisteredModel.objects.create(workspace=team.outsider.workspace, name="secret", source="hub", path="o/t")
    with pytest.raises(ConfigInvalid):
        named_rows.renamed(
            team.workspace.pk, run.recipe, run.config, {"model": {run.config["model"]["name"]: theirs.pk}}
        )
