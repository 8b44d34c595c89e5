"""A model that a run has trained becomes a row of the registry, once, with its own name, and can be used immediately."""

import io
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from tests.team import ApiClient
from trainer.config import ConfigInvalid
from webapp.core.problems import Conflict
from webapp.experiments.launch import services as launch_services
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Run
from webapp.inference.models import RegisteredModel
from webapp.inference.registry import services as registry

from ..conftest import Trainer

FILES = [
    {"path": "adapter_config.json", "bytes": 10, "digest": "a" * 64},
    {"path": "adapter_model.safetensors", "bytes": 90, "digest": "b" * 64},
]


def output(trainer, path="outputs/policy", step=4, digest="c" * 64, **changes):
    model = {"name": "policy", "role": "policy", "format": "peft", "base": "smollm2-135m-instruct", "files": FILES}
    facts = {"role": "model", "path": path, "bytes": 100, "digest": digest, "model": model | changes}
    return trainer.event("artifact", step, **facts)


def trained_models(run: Run) -> list[RegisteredModel]:
    return list(RegisteredModel.objects.filter(source="run", artifact__run=run).order_by("id"))


def test_the_model_is_named_after_its_run_and_knows_its_base(trainer, run, model, settings, api):
    model.facts = {"model_type": "llama", "vocab_size": 300, "weight_bytes": 5}
    model.save()
    trainer.post(output(trainer))
    (row,) = trained_models(run)
    assert row.name == f"{run.experiment.name}-run-1"
    assert (row.role, row.format, row.head, row.base, row.digest) == ("policy", "peft", "lm", model, "c" * 64)
    assert row.path == str(settings.VAR / "runs" / str(run.id) / "outputs/policy")
    assert row.facts == {"model_type": "llama", "vocab_size": 300, "weight_bytes": 90, "bytes": 100}
    found = api.get(f"/runs/{run.id}").json()["outputs"]
    assert found == [{"id": row.id, "name": row.name, "role": "policy", "format": "peft", "step": 4}]
    assert api.get("/runs").json()["items"][0]["outputs"] == found


def test_a_delivery_that_comes_twice_registers_once(trainer, run):
    event = output(trainer)
    for _ in range(3):
        assert trainer.post(event).status_code == 200
    assert len(trained_models(run)) == 1


def test_a_resumed_run_renews_its_row_and_keeps_the_name_given_to_it(trainer, run, team):
    trainer.post(output(trainer))
    (row,) = trained_models(run)
    registry.change_model(team.researcher, row, name="Our best")
    Run.objects.filter(id=run.id).update(state="failed")
    run.refresh_from_db()
    again = Trainer(lifecycle.resume(team.researcher, run))
    again.seq = trainer.seq
    again.post(output(again, digest="d" * 64))
    (renewed,) = trained_models(run)
    assert (renewed.id, renewed.name, renewed.digest) == (row.id, "Our best", "d" * 64)


def test_a_name_that_is_taken_gets_a_number(trainer, run, team):
    wanted = f"{run.experiment.name}-run-1"
    RegisteredModel.objects.create(workspace=team.workspace, name=wanted, source="hub", path="a/b")
    trainer.post(output(trainer))
    assert trained_models(run)[0].name == f"{wanted}-2"


def test_several_outputs_tell_each_other_apart(trainer, run):
    trainer.post(
        output(trainer),
        output(trainer, "outputs/policy-step-2", step=2),
        output(trainer, "outputs/judge", name="judge", role="judge"),
    )
    first = f"{run.experiment.name}-run-1"
    assert {row.name for row in trained_models(run)} == {first, f"{first}-step-2", f"{first}-judge"}


def test_a_long_name_of_an_experiment_is_cut_not_refused(trainer, run):
    run.experiment.name = "e" * 120
    run.experiment.save()
    trainer.post(output(trainer))
    name = trained_models(run)[0].name
    assert len(name) == 120 and name.endswith("e-run-1")


def test_a_run_on_an_adapter_is_told_what_to_lay_on_what(trainer, run, launch, settings):
    trainer.post(output(trainer))
    (row,) = trained_models(run)
    (settings.VAR / "runs" / str(run.id) / "outputs/policy").mkdir(parents=True)
    next_run = launch(model=row.name)
    process = Trainer(next_run)
    found = process.client.get(process.url()).json()
    assert found["models"]["base"] == {"path": "/models/smollm2", "adapters": [row.path], "head": "lm"}
    assert "teacher" not in found["models"]


def test_a_model_whose_folder_is_gone_starts_no_run(trainer, run, launch):
    trainer.post(output(trainer))
    (row,) = trained_models(run)
    with pytest.raises(ConfigInvalid) as caught:
        launch(model=row.name)
    assert "no folder" in str(caught.value) and row.path in str(caught.value)


def test_a_reward_model_starts_no_policy(trainer, run, launch):
    trainer.post(output(trainer, role="reward_model", head="scalar"))
    with pytest.raises(ConfigInvalid) as caught:
        launch(model=trained_models(run)[0].name)
    assert "scores texts and cannot write texts" in str(caught.value)


def test_a_run_goes_with_its_models_unless_something_rests_on_them(trainer, run, launch, team, settings):
    trainer.post(output(trainer), trainer.event("state", state="finished"))
    (row,) = trained_models(run)
    (settings.VAR / "runs" / str(run.id) / "outputs/policy").mkdir(parents=True)
    child = launch(model=row.name)
    run.refresh_from_db()
    with pytest.raises(Conflict, match=f"{row.name}, which this run has trained, is in use"):
        lifecycle.delete(team.researcher, run)
    assert Run.objects.filter(id=run.id).exists() and RegisteredModel.objects.filter(id=row.id).exists()
    child.delete()
    lifecycle.delete(team.researcher, run)
    assert not RegisteredModel.objects.filter(id=row.id).exists()


def test_the_list_of_runs_costs_the_same_however_many_have_outputs(
    trainer, run, launch, api, django_assert_num_queries
):
    trainer.post(output(trainer))
    api.get("/runs")
    with django_assert_num_queries(4):
        api.get("/runs")
    for _ in range(3):
        other = launch()
        Run.objects.filter(id=other.id).update(state="starting")
        process = Trainer(other)
        process.post(output(process))
    with django_assert_num_queries(4):
        found = api.get("/runs").json()["items"]
    assert [len(item["outputs"]) for item in found] == [1, 1, 1, 1]


def test_two_runs_that_end_at_once_get_two_names(transactional_db):
    from tests.team import make_team
    from webapp.experiments.launch import checks

    from ..conftest import make_version

    owner = make_team().owner
    version = make_version(owner)
    RegisteredModel.objects.create(workspace=owner.workspace, name="smollm2-135m-instruct", source="local", path="/m")
    choice = checks.DatasetChoice(id=version.dataset_id)
    names = ["x" * 119 + last for last in "ab"]  # the names are shortened, and both models get the same one
    runs = [
        launch_services.launch(owner, recipe="policy", config={}, dataset=choice, experiment=name) for name in names
    ]
    Run.objects.all().update(state="starting")
    processes = [Trainer(run) for run in runs]

    def post(process: Trainer) -> int:
        try:
            return process.post(output(process)).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(post, processes)) == [200, 200]
    found = sorted(RegisteredModel.objects.filter(source="run").values_list("name", flat=True))
    assert found == ["x" * 112 + "-run-1-2", "x" * 114 + "-run-1"]


def checkpoint(trainer, step, settings, there=True):
    path = f"checkpoints/step-{step:06d}"
    if there:
        folder = settings.VAR / "runs" / str(trainer.run_id) / path
        folder.mkdir(parents=True)
        (folder / "state.json").write_text(f'{{"step": {step}}}')
    return trainer.event("artifact", step, role="checkpoint", path=path, bytes=9, digest="e" * 64)


def test_the_list_says_which_checkpoints_are_gone(trainer, run, api, settings):
    trainer.post(checkpoint(trainer, 2, settings, there=False), checkpoint(trainer, 4, settings), output(trainer))
    items = {item["path"]: item for item in api.get(f"/runs/{run.id}/artifacts").json()["items"]}
    assert [items[path]["present"] for path in sorted(items)] == [False, True, False]
    gone = items["checkpoints/step-000002"]
    assert gone["download"] is None
    assert api.get(f"/runs/{run.id}/artifacts/{gone['id']}/download").status_code == 410
    assert items["outputs/policy"]["model"]["name"] == trained_models(run)[0].name


def test_a_download_that_broke_off_goes_on(trainer, run, api, settings):
    trainer.post(checkpoint(trainer, 4, settings))
    (item,) = api.get(f"/runs/{run.id}/artifacts").json()["items"]
    first = api.client.get(item["download"])
    content = b"".join(first.streaming_content)
    assert first["Content-Disposition"] == 'attachment; filename="Policy-from-rubrics-run-1-step-000004.tar"'
    rest = api.client.get(item["download"], headers={"Range": "bytes=600-", "If-Range": first["ETag"]})
    assert rest.status_code == 206
    assert content[:600] + b"".join(rest.streaming_content) == content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        (name,) = tar.getnames()
        assert json.loads(tar.extractfile(name).read()) == {"step": 4}


def test_an_artifact_cannot_lie_outside_its_run(trainer, run, api, settings):
    for path in ("../../secret_key", "/etc/passwd", "a/../../b", ".hidden"):
        answer = trainer.post(trainer.event("artifact", 1, role="checkpoint", path=path, bytes=1, digest=""))
        assert answer.status_code == 422, path
        trainer.seq -= 1
    (settings.VAR / "runs" / str(run.id)).mkdir(parents=True)
    (settings.VAR / "secret").write_text("key")
    (settings.VAR / "runs" / str(run.id) / "link").symlink_to(settings.VAR / "secret")
    trainer.post(trainer.event("artifact", 1, role="offending_batch", path="link", bytes=1, digest=""))
    (item,) = api.get(f"/runs/{run.id}/artifacts").json()["items"]
    assert api.get(f"/runs/{run.id}/artifacts/{item['id']}/download").status_code == 410


def test_an_artifact_belongs_to_its_run_and_its_workspace(trainer, run, launch, team, api, settings):
    trainer.post(checkpoint(trainer, 4, settings))
    (item,) = api.get(f"/runs/{run.id}/artifacts").json()["items"]
    other = launch()
    assert api.get(f"/runs/{other.id}/artifacts/{item['id']}/download").status_code == 404
    assert ApiClient(team.outsider).client.get(item["download"]).status_code == 404
    assert ApiClient(team.annotator).client.get(item["download"]).status_code == 403
    assert ApiClient(team.reviewer).client.get(item["download"]).status_code == 200
