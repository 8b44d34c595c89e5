"""Models that programs log and register: their files are files of runs, and those that can be loaded join the registry."""

import json
from copy import copy
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import browser
from trainer.inference.models import make_tiny
from webapp.core.database import migration_states
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Artifact, Run
from webapp.inference.models import RegisteredModel
from webapp.inference.promotion import services as promotion
from webapp.tracking import access, families, services
from webapp.tracking.models import FamilyVersion, LoggedRun, SavedModel

from .rest_client import ARTIFACTS, RestClient, error

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def place(settings, tmp_path):
    settings.VAR = tmp_path / "var"


def logged(rest_client: RestClient, run: str, name: str = "net", **files: bytes) -> dict:
    """A model with these files, as the client logs it."""
    model = rest_client.post("logged-models", source_run_id=run, name=name, model_type="policy").json()["model"]
    upload_files(rest_client, model, **(files or {"MLmodel": b"flavors: {}"}))
    return model["info"]


def upload_files(rest_client: RestClient, model: dict, **files: bytes) -> None:
    root = model["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    for path, content in files.items():
        assert rest_client.client.put(f"{ARTIFACTS}/{root}/{path}", content).status_code == 200


def test_the_files_of_a_model_are_files_of_its_run(team, rest_client):
    run = rest_client.run(run_name="trains")
    model = logged(rest_client, run, MLmodel=b"flavors: {}", weights=b"w")
    key, root = model["model_id"], model["artifact_uri"].removeprefix("mlflow-artifacts:/")
    assert (model["status"], model["source_run_id"], model["model_type"]) == ("LOGGED_MODEL_PENDING", run, "policy")
    assert set(Artifact.objects.values_list("path", flat=True)) == {
        f"files/models/{key}/{name}" for name in ("MLmodel", "weights")
    }
    listed = rest_client.client.get(ARTIFACTS, {"path": root}).json()["files"]
    assert [each["path"] for each in listed] == ["MLmodel", "weights"]
    assert b"".join(rest_client.client.get(f"{ARTIFACTS}/{root}/weights")) == b"w"
    assert (
        f"models/{key}/weights" in browser(team.reviewer).get(f"/runs/{Run.objects.get().pk}/lineage").content.decode()
    )

    ready = rest_client.ask("patch", f"logged-models/{key}", {"status": "LOGGED_MODEL_READY"}).json()["model"]["info"]
    assert ready["status"] == "LOGGED_MODEL_READY"
    rest_client.post("runs/outputs", run_id=run, models=[{"model_id": key, "step": 40}])
    assert rest_client.get_run(run)["outputs"]["model_outputs"] == [{"model_id": key, "step": 40}]
    other = rest_client.run()
    assert error(rest_client.post("runs/outputs", run_id=other, models=[{"model_id": key}])) == (
        400,
        "INVALID_PARAMETER_VALUE",
    )


def test_a_model_without_a_run_gets_one(rest_client):
    rest_client.post("logged-models", experiment_id="0", name="alone")
    run = Run.objects.get()
    assert (str(run), run.state) == ("alone", "finished") and SavedModel.objects.get().row.run == run


def test_models_are_found_described_and_deleted(rest_client):
    run = rest_client.run()
    first, second = (logged(rest_client, run, name)["model_id"] for name in ("one", "two"))
    experiment = rest_client.get_run(run)["info"]["experiment_id"]

    def found(text: str = "", **more) -> list[str]:
        answer = rest_client.post("logged-models/search", experiment_ids=[experiment], filter=text, **more).json()
        return [each["info"]["model_id"] for each in answer["models"]]

    assert found() == [second, first] and found("name = 'one'") == [first]
    assert found(order_by=[{"field_name": "name", "ascending": True}], max_results=1) == [first]
    rest_client.post(f"logged-models/{first}/params", params=[{"key": "depth", "value": "2"}])
    tagged = rest_client.ask("patch", f"logged-models/{first}/tags", {"tags": [{"key": "team", "value": "red"}]})
    assert tagged.json()["model"]["info"]["tags"] == [{"key": "team", "value": "red"}]
    assert found("params.depth = '2' AND tags.team = 'red'") == [first]
    assert rest_client.ask("delete", f"logged-models/{first}/tags/team", {}).status_code == 200
    assert error(rest_client.ask("delete", f"logged-models/{first}/tags/team", {})) == (404, "RESOURCE_DOES_NOT_EXIST")
    wrong = rest_client.post("logged-models/search", filter="attributes.loss < 1")
    assert error(wrong)[0] == 400 and "models have no attributes 'loss'" in wrong.json()["message"]

    assert rest_client.ask("delete", f"logged-models/{first}", {}).status_code == 200
    assert found() == [second] and error(rest_client.get(f"logged-models/{first}")) == (404, "RESOURCE_DOES_NOT_EXIST")
    assert rest_client.get(f"logged-models/{first}", allow_deleted="true").status_code == 200
    assert Artifact.objects.count() == 2, "its files stay files of the run"
    rest_client.post("runs/delete", run_id=run)
    assert found() == []


def value(key: str, number, model: str, step: int = 0, at: int = 1_000, dataset: str = "") -> dict:
    named = {"dataset_name": dataset, "dataset_digest": f"{dataset}-1"} if dataset else {}
    return {"key": key, "value": number, "timestamp": at, "step": step, "model_id": model, **named}


def test_metrics_of_a_model_are_kept_with_it_and_with_the_run_that_measured(rest_client):
    trains, judges = rest_client.run(run_name="trains"), rest_client.run(run_name="judges")
    model = logged(rest_client, trains)["model_id"]
    for step in range(2):
        rest_client.post("runs/log-metric", run_id=trains, **value("loss", 2.0 - step, model, step, at=1_000 + step))
    rest_client.post("runs/log-metric", run_id=trains, **value("loss", 9.0, model, step=0, at=5_000))  # it comes late
    measured = [
        value("score", 0.5, model, dataset="seen"),
        value("score", 0.25, model, dataset="new"),
        value("odd", "NaN", model),
    ]
    assert rest_client.post("runs/log-batch", run_id=judges, metrics=measured).status_code == 200
    told = rest_client.get(f"logged-models/{model}").json()["model"]["data"]["metrics"]
    assert sorted(
        (each["key"], each["value"], each["step"], each["run_id"], each.get("dataset_name", ""), each["model_id"]) for each in told
    ) == [
        ("loss", 1.0, 1, trains, "", model), ("odd", "NaN", 0, judges, "", model), ("score", 0.25, 0, judges, "new", model),
        ("score", 0.5, 0, judges, "seen", model),
    ]  # fmt: skip
    assert [each["value"] for each in rest_client.get_run(trains)["data"]["metrics"]] == [1.0]
    history = rest_client.get("metrics/get-history", run_id=trains, metric_key="loss").json()["metrics"]
    assert [each["value"] for each in history] == [9.0, 1.0], "the run has all of them"


def test_a_value_of_a_model_that_is_not_there_is_refused_with_its_batch(rest_client, team):
    run = rest_client.run()
    for model in ("m-" + "0" * 32, logged(RestClient(team.outsider), RestClient(team.outsider).run())["model_id"]):
        answer = rest_client.post("runs/log-batch", run_id=run, metrics=[value("loss", 1.0, model)])
        assert error(answer) == (404, "RESOURCE_DOES_NOT_EXIST")
    assert rest_client.get_run(run)["data"]["metrics"] == []


def test_models_are_found_and_sorted_by_their_metrics(rest_client, django_assert_max_num_queries):
    run = rest_client.run()
    experiment = rest_client.get_run(run)["info"]["experiment_id"]
    names = {name: logged(rest_client, run, name)["model_id"] for name in ("low", "high", "none", "odd")}
    numbers = {"low": (0.1, 0.9), "high": (0.8, 0.2), "odd": ("NaN", "NaN")}
    for name, (seen, new) in numbers.items():
        both = [
            value("score", seen, names[name], dataset="seen"),
            value("score", new, names[name], dataset="new", at=2_000),
        ]
        rest_client.post("runs/log-batch", run_id=run, metrics=both)

    def found(text: str = "", **more) -> list[str]:
        answer = rest_client.post("logged-models/search", experiment_ids=[experiment], filter=text, **more)
        assert answer.status_code == 200, answer.content
        return [each["info"]["name"] for each in answer.json()["models"]]

    seen = [{"dataset_name": "seen"}]
    assert found("metrics.score > 0.5") == ["high", "low"], "one of the values is enough"
    assert found("metrics.score > 0.5 AND name != 'low'", datasets=seen) == ["high"]
    assert found("metrics.score > 0", datasets=[{"dataset_name": "seen", "dataset_digest": "other"}]) == []
    assert found(datasets=seen) == ["odd", "high", "low"]
    assert found("metrics.score IS NULL") == ["none"] and "none" not in found("metrics.score IS NOT NULL")
    by = {"field_name": "metrics.score", "ascending": True}
    assert found("metrics.score < 1", order_by=[by]) == ["high", "low"], "the newest value is that on new data"
    assert found("metrics.score < 1", order_by=[{**by, "dataset_name": "seen"}]) == ["low", "high"]
    assert found("metrics.score < 1", order_by=[{**by, "ascending": False}]) == ["low", "high"]
    for wrong in ("metrics.score = 'x'", "metrics.score IN ('x')", "metrics.score LIKE 'x'"):
        assert error(rest_client.post("logged-models/search", filter=wrong))[0] == 400
    with django_assert_max_num_queries(14):
        found()


def test_a_registered_model_has_versions_aliases_and_stages(rest_client):
    run = rest_client.run()
    model = logged(rest_client, run)["model_id"]
    assert rest_client.post("registered-models/create", name="summaries").status_code == 200
    assert error(rest_client.post("registered-models/create", name="summaries")) == (400, "RESOURCE_ALREADY_EXISTS")
    for wrong in ("a/b", "a:b", " a", "x" * 251):
        assert error(rest_client.post("registered-models/create", name=wrong)) == (400, "INVALID_PARAMETER_VALUE"), (
            wrong
        )
    rest_client.send(run, "plain/weights.bin", b"w")
    experiment = rest_client.get_run(run)["info"]["experiment_id"]
    made = [
        rest_client.post("model-versions/create", name="summaries", source=source).json()["model_version"]
        for source in (
            f"models:/{model}",
            f"runs:/{run}/plain",
            f"mlflow-artifacts:/{experiment}/{run}/artifacts/plain",
        )
    ]
    assert [(each["version"], each["status"]) for each in made] == [("1", "READY"), ("2", "READY"), ("3", "READY")]
    assert made[0]["model_id"] == model and made[1]["run_id"] == run
    rest_client.post("registered-models/alias", name="summaries", alias="best", version="2")
    found = rest_client.get("registered-models/alias", name="summaries", alias="best").json()["model_version"]
    assert (found["version"], found["aliases"]) == ("2", ["best"])
    place = rest_client.get("model-versions/get-download-uri", name="summaries", version="1").json()["artifact_uri"]
    assert place == f"mlflow-artifacts:/{experiment}/models/{model}/artifacts"
    for version in ("1", "2"):
        body = {"name": "summaries", "version": version, "stage": "production", "archive_existing_versions": True}
        rest_client.post("model-versions/transition-stage", **body)
    newest = rest_client.post(
        "registered-models/get-latest-versions", name="summaries", stages=["Production", "archived"]
    ).json()
    assert {each["current_stage"]: each["version"] for each in newest["model_versions"]} == {
        "Production": "2",
        "Archived": "1",
    }
    asked = rest_client.get(
        "model-versions/search", filter=f"name = 'summaries' AND run_id = '{run}'", order_by=["version_number ASC"]
    )
    assert [each["version"] for each in asked.json()["model_versions"]] == ["1", "2", "3"]
    assert (
        len(
            rest_client.get("registered-models/search", filter="tag.`mlflow.prompt.is_prompt` != 'true'").json()[
                "registered_models"
            ]
        )
        == 1
    )
    for wrong in ("version_number < 1e999", "version_number = 1.5"):
        assert rest_client.get("model-versions/search", filter=wrong).status_code == 400
    above = rest_client.get("model-versions/search", filter="version_number > 2").json()["model_versions"]
    assert [each["version"] for each in above] == ["3"]
    rest_client.ask("delete", "model-versions/delete", {"name": "summaries", "version": "2"})
    assert error(rest_client.get("registered-models/alias", name="summaries", alias="best")) == (
        404,
        "RESOURCE_DOES_NOT_EXIST",
    )
    fourth = rest_client.post("model-versions/create", name="summaries", source="models:/summaries/1").json()[
        "model_version"
    ]
    assert fourth["version"] == "4" and FamilyVersion.objects.get(number=4).saved.key == model


@pytest.mark.parametrize(
    "source", ["s3://bucket/model", "/etc/passwd", "file:///etc", "models:/nothing", "https://x.test/m"]
)
def test_a_version_is_made_of_files_of_a_run_here(rest_client, source):
    rest_client.post("registered-models/create", name="summaries")
    answer = rest_client.post("model-versions/create", name="summaries", source=source)
    assert error(answer) == (400, "INVALID_PARAMETER_VALUE") and "log the model first" in answer.json()["message"]


def test_a_version_needs_files(rest_client):
    rest_client.post("registered-models/create", name="summaries")
    answer = rest_client.post("model-versions/create", name="summaries", source=f"runs:/{rest_client.run()}/nowhere")
    assert error(answer)[0] == 400 and "the run has no files below nowhere" in answer.json()["message"]
    assert not FamilyVersion.objects.exists()


def test_a_folder_that_runs_can_load_joins_the_registry(team, rest_client, tmp_path):
    """Safetensors, JSON and a tokenizer. It is a model like any other, with the run before it in its lineage."""
    make_tiny(tmp_path / "tiny")
    run = rest_client.run(run_name="trains")
    for file in (tmp_path / "tiny").iterdir():
        assert rest_client.send(run, f"final/{file.name}", file.read_bytes()).status_code == 200
    rest_client.post("registered-models/create", name="summaries")
    version = rest_client.post("model-versions/create", name="summaries", source=f"runs:/{run}/final").json()[
        "model_version"
    ]
    model = RegisteredModel.objects.get()
    assert (model.name, model.source) == ("summaries 1", "local") and model.facts
    assert {each["key"]: each["value"] for each in version["tags"]} == {"touchstone.model": str(model.pk)}
    page = browser(team.reviewer)
    told = page.get(f"/api/v1/runs/{Run.objects.get().pk}").json()
    assert [(each["id"], each["name"]) for each in told["outputs"]] == [(model.pk, "summaries 1")]
    assert (Path(model.path) / "config.json").is_file() and model.path.endswith("/files/final")


def loadable_version(rest_client: RestClient, folder: Path) -> tuple[str, RegisteredModel]:
    """The key of a run with a folder that runs can load, and the model of the registry that a version of it became."""
    make_tiny(folder)
    run = rest_client.run()
    for file in folder.iterdir():
        assert rest_client.send(run, f"final/{file.name}", file.read_bytes()).status_code == 200
    rest_client.post("registered-models/create", name="summaries")
    assert rest_client.post("model-versions/create", name="summaries", source=f"runs:/{run}/final").status_code == 200
    return run, RegisteredModel.objects.get()


def test_a_deleted_run_is_kept_while_the_registry_has_a_model_of_its_files(rest_client, tmp_path):
    run, model = loadable_version(rest_client, tmp_path / "tiny")
    rest_client.post("runs/delete", run_id=run)
    LoggedRun.objects.update(deleted_at=timezone.now() - timedelta(days=31))
    assert services.erase_deleted() == 0
    assert LoggedRun.objects.filter(key=run).exists() and (Path(model.path) / "config.json").is_file()
    model.delete()
    assert services.erase_deleted() == 1 and not Run.objects.exists()


def test_each_version_of_one_folder_keeps_its_run(team, rest_client, tmp_path):
    run, first = loadable_version(rest_client, tmp_path / "tiny")
    files = len(list((tmp_path / "tiny").iterdir()))
    for _ in range(files):
        rest_client.post("model-versions/create", name="summaries", source=f"runs:/{run}/final")
    row = Run.objects.get()
    assert set(RegisteredModel.objects.values_list("artifact__run", flat=True)) == {row.pk}
    assert RegisteredModel.objects.count() == files, "a version more than there are files"
    assert "log the folder again" in FamilyVersion.objects.order_by("number").last().why_not
    promotion.move(team.researcher, "champion", first)
    Run.objects.update(state="finished")
    with pytest.raises(Conflict, match="summaries 1"):
        lifecycle.delete(team.researcher, Run.objects.with_names().get())


@pytest.mark.parametrize("runs", [1, 2])
def test_a_migration_restores_the_links_that_a_later_version_took_over(team, rest_client, tmp_path, runs):
    """The links of before: the newest version has that of `config.json`. A model that versions of two runs name gets none."""
    run, first = loadable_version(rest_client, tmp_path / "tiny")
    rest_client.post("model-versions/create", name="summaries", source=f"runs:/{run}/final")
    second = RegisteredModel.objects.exclude(pk=first.pk).get()
    Artifact.objects.filter(registered__isnull=False).update(registered=None)
    Artifact.objects.filter(path="files/final/config.json").update(registered=second)
    if runs == 2:
        other = LoggedRun.objects.get(key=rest_client.run())
        version = FamilyVersion.objects.get(model=first)
        FamilyVersion.objects.create(family=version.family, number=9, row=other, source="", model=first)
    at_migration("0072_named_rows_of_sweeps")
    at_migration("0073_runs_of_registered_models")
    row = LoggedRun.objects.get(key=run).run_id
    assert Artifact.objects.get(registered=second).path == "files/final/config.json", "it stays"
    assert list(Artifact.objects.filter(registered=first).values_list("run", flat=True)) == ([row] if runs == 1 else [])


def at_migration(name: str) -> None:
    with migration_states.fast():
        MigrationExecutor(connection).migrate([("experiments", name)])


def test_a_pickle_is_kept_and_never_loaded(rest_client):
    model = logged(rest_client, rest_client.run(), "net", **{"model.pkl": b"cos\nsystem\n(S'touch /tmp/loaded'\ntR."})[
        "model_id"
    ]
    rest_client.post("registered-models/create", name="summaries")
    version = rest_client.post("model-versions/create", name="summaries", source=f"models:/{model}").json()[
        "model_version"
    ]
    assert not RegisteredModel.objects.exists()
    [tag] = version["tags"]
    assert tag["key"] == "touchstone.not_loadable" and "config.json" in tag["value"]


def test_datasets_and_notes_of_older_clients_become_tags(rest_client):
    run = rest_client.run()
    told = {"name": "prompts", "digest": "abc1", "source_type": "local"}
    assert rest_client.post("runs/log-inputs", run_id=run, datasets=[{"dataset": told}]).status_code == 200
    for number in range(3):
        assert (
            rest_client.post(
                "runs/log-model", run_id=run, model_json=f'{{"n": {number}, "x": "{"y" * 3_000}"}}'
            ).status_code
            == 200
        )
    tags = {each["key"]: each["value"] for each in rest_client.get_run(run)["data"]["tags"]}
    assert tags["dataset.prompts"] == "abc1 local"
    assert '"n": 2' in tags["mlflow.log-model.history"] and '"n": 0' not in tags["mlflow.log-model.history"]


def test_a_note_that_comes_while_another_is_written_down_keeps_it(rest_client, monkeypatch):
    run = rest_client.run()
    seen = LoggedRun.objects.select_related("run").get()
    monkeypatch.setattr(access, "logged_write", lambda *_: copy(seen))  # both read the run before either wrote
    for number in range(2):
        assert rest_client.post("runs/log-model", run_id=run, model_json=f'{{"n": {number}}}').status_code == 200
    tags = {each["key"]: each["value"] for each in rest_client.get_run(run)["data"]["tags"]}
    assert json.loads(tags["mlflow.log-model.history"]) == [{"n": 0}, {"n": 1}]


def test_a_list_of_registered_models_takes_as_many_queries_for_many(rest_client, django_assert_max_num_queries):
    run = rest_client.run()
    rest_client.send(run, "plain/weights.bin", b"w")
    for name in ("a", "b", "c", "d", "e", "f", "g", "h"):
        rest_client.post("registered-models/create", name=name)
        rest_client.post("model-versions/create", name=name, source=f"runs:/{run}/plain")
    rest_client.post("model-versions/create", name="c", source=f"runs:/{run}/plain")
    with django_assert_max_num_queries(12):
        found = rest_client.get("registered-models/search").json()["registered_models"]
    newest = {each["name"]: [version["version"] for version in each["latest_versions"]] for each in found}
    assert len(newest) == 8 and (newest["b"], newest["c"]) == (["1"], ["2"])


@pytest.mark.django_db(transaction=True)
def test_two_versions_that_move_to_production_at_once_leave_one_there(team, rest_client):
    run = rest_client.run()
    rest_client.send(run, "plain/weights.bin", b"w")
    rest_client.post("registered-models/create", name="net")
    for _ in range(4):
        rest_client.post("model-versions/create", name="net", source=f"runs:/{run}/plain")

    def move(number):
        found = families.version(team.researcher, "net", str(number), write=True)
        families.move(team.researcher, found, "Production", alone=True)

    concurrently([partial(move, number) for number in range(1, 5)])
    assert FamilyVersion.objects.filter(stage="Production").count() == 1
    assert AuditEntry.objects.filter(action="model_family.stage").count() == 4
