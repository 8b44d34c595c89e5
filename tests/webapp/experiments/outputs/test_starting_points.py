"""Extending a run, and forking from a checkpoint: what continues, what does not change, and what is refused."""

import shutil

import pytest

from trainer.config import ConfigInvalid
from webapp.core.problems import Conflict
from webapp.experiments.launch import services as launch_services
from webapp.experiments.launch.checks import DatasetChoice
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Artifact, Run, RunSlot
from webapp.experiments.outputs import artifacts
from webapp.inference.models import RegisteredModel

from ..conftest import Trainer, make_version


@pytest.fixture
def done(run) -> Run:
    """A finished run of 4 steps with its checkpoints of steps 2 and 4. That of step 1 was removed."""
    for step in (1, 2, 4):
        path = f"checkpoints/step-{step:06d}"
        Artifact.objects.create(run=run, step=step, role="checkpoint", path=path, bytes=3, digest="d" * 64)
        if step > 1:
            folder = artifacts.folder(run.id) / path
            folder.mkdir(parents=True)
            (folder / "state.json").write_text(f"{step}")
    Run.objects.filter(id=run.id).update(state="finished", step=4, ended_at=run.created_at)
    return Run.objects.with_names().get(id=run.id)


@pytest.fixture
def trained(done) -> RegisteredModel:
    model = RegisteredModel.objects.create(workspace=done.experiment.workspace, name="ours", source="run", path="/o")
    Artifact.objects.create(
        run=done, step=4, role="model", path="outputs/policy", bytes=1, digest="d" * 64, registered=model
    )
    return model


def test_a_finished_run_goes_on_to_more_steps_as_a_new_attempt(done, team):
    extended = lifecycle.extend(team.researcher, done, 10)
    assert (extended.state, extended.attempt, extended.steps_total, extended.config["steps"]) == ("queued", 2, 10, 10)
    assert extended.ended_at is None
    told = Trainer(extended).client.get(f"/api/v1/ingest/runs/{done.id}").json()
    assert (told["resume"], told["forked"], told["config"]["steps"]) == (True, False, 10)


@pytest.mark.parametrize("steps", [0, 4])
def test_fewer_steps_are_refused_at_their_field(done, team, steps):
    with pytest.raises(ConfigInvalid) as refused:
        lifecycle.extend(team.researcher, done, steps)
    assert [problem.path for problem in refused.value.problems] == ["steps"]


@pytest.mark.parametrize("state", ["queued", "running", "stopping", "failed"])
def test_only_runs_that_ended_well_are_extended(done, team, state):
    Run.objects.filter(id=done.id).update(state=state)
    done.refresh_from_db()
    with pytest.raises(Conflict):
        lifecycle.extend(team.researcher, done, 10)


def test_a_finished_run_is_not_resumed_by_its_old_button(done, team):
    with pytest.raises(Conflict):
        lifecycle.resume(team.researcher, done)


def test_a_model_in_use_does_not_change_under_whoever_uses_it(done, trained, team, launch):
    other = launch()
    RunSlot.objects.create(run=other, role="teacher", path="objective.teacher", model=trained)
    with pytest.raises(Conflict, match="run 2 of Policy from rubrics uses the model"):
        lifecycle.extend(team.researcher, done, 10)


def test_without_a_checkpoint_there_is_nothing_to_go_on_from(run, team):
    Run.objects.filter(id=run.id).update(state="finished")
    run.refresh_from_db()
    with pytest.raises(Conflict, match="keeps no checkpoint"):
        lifecycle.extend(team.researcher, run, 10)


def test_two_tabs_extend_once(done, team):
    stale = Run.objects.with_names().get(id=done.id)
    assert lifecycle.extend(team.researcher, done, 10).attempt == 2
    assert lifecycle.extend(team.researcher, stale, 12).config["steps"] == 10


def test_a_fork_from_a_checkpoint_has_its_files_and_goes_on_with_changes(done, team):
    forked = launch_services.fork(team.researcher, done, overrides={"optim": {"lr": 0.001}, "steps": 6}, start_step=2)
    assert (forked.forked_from, forked.start_step, forked.step, forked.attempt) == (done, 2, 2, 1)
    file = artifacts.folder(forked.id) / "checkpoints/step-000002/state.json"
    assert file.read_text() == "2"
    source = artifacts.folder(done.id) / "checkpoints/step-000002/state.json"
    source.unlink()  # its checkpoint was removed
    assert file.read_text() == "2"
    told = Trainer(forked).client.get(f"/api/v1/ingest/runs/{forked.id}").json()
    assert (told["resume"], told["forked"]) == (True, True)


@pytest.mark.parametrize(
    ("overrides", "field"),
    [({"steps": 2}, "steps"), ({"model": {"lora": None}}, "model.lora"), ({"model": {"name": "other"}}, "model.name")],
)
def test_what_the_weights_rest_on_stays(done, team, overrides, field):
    RegisteredModel.objects.create(workspace=team.workspace, name="other", source="local", path="/o")
    with pytest.raises(ConfigInvalid) as refused:
        launch_services.fork(team.researcher, done, overrides=overrides, start_step=2)
    assert [problem.path for problem in refused.value.problems] == [field]


def test_other_data_is_refused(done, team):
    make_version(team.owner, name="other", digest="e" * 64)
    with pytest.raises(ConfigInvalid) as refused:
        launch_services.fork(team.researcher, done, overrides={}, start_step=2, dataset=DatasetChoice(name="other"))
    assert [problem.path for problem in refused.value.problems] == ["dataset"]


def test_a_checkpoint_that_is_gone_is_said_with_those_that_are_kept(done, team):
    with pytest.raises(Conflict, match=r"keeps no checkpoint of step 1; it keeps those of 4, 2\."):
        launch_services.fork(team.researcher, done, overrides={"steps": 9}, start_step=1)
    assert Run.objects.count() == 1


def test_a_fork_whose_files_cannot_be_taken_over_leaves_nothing_behind(done, team, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(Conflict, match="No space left"):
        launch_services.fork(team.researcher, done, overrides={"steps": 9}, start_step=2)
    assert Run.objects.count() == 1


def test_pages_offer_what_is_kept(done, as_researcher):
    shown = as_researcher.get(f"/runs/{done.id}/lineage").content.decode()
    assert f"/runs/{done.id}/fork?step=4" in shown and "step=1" not in shown
    assert "1 earlier one gave way" in shown
    form = as_researcher.get(f"/runs/{done.id}/fork?step=4").context["form"]
    assert (form.start_step, form.raw["steps"]) == (4, 8)
    assert as_researcher.get(f"/runs/{done.id}/fork?step=2").context["form"].raw["steps"] == 4
    assert as_researcher.get(f"/runs/{done.id}/fork?step=1").context["form"].start_step == 0
    assert as_researcher.post(f"/runs/{done.id}/extend", {"steps": "x"}).status_code == 302
    as_researcher.post(f"/runs/{done.id}/extend", {"steps": "9"})
    done.refresh_from_db()
    assert (done.state, done.steps_total) == ("queued", 9)


def test_the_api_extends_and_forks(done, api):
    forked = api.post(f"/runs/{done.id}/fork", {"config": {"steps": 9}, "start_step": 4}).json()
    assert (forked["start_step"], forked["forked_from"], forked["progress"]["step"]) == (4, done.id, 4)
    assert api.post(f"/runs/{done.id}/fork", {"config": {"steps": 9}, "start_step": 3}).status_code == 409
    assert api.post(f"/runs/{done.id}/extend", {"steps": 4}).status_code == 422
    assert api.post(f"/runs/{done.id}/extend", {"steps": 12}).json()["progress"]["steps_total"] == 12
