"""Files of logged runs in object storage, and models that are made of them."""

import json
from pathlib import Path

import pytest

from tests.webapp.experiments.outputs.test_artifact_store import bucket as one_bucket  # noqa: F401 - a fixture
from tests.webapp.experiments.outputs.test_artifact_store import one_server  # noqa: F401 - a fixture
from trainer.contracts import ModelSource
from trainer.inference.models import make_tiny
from webapp.core.storage import artifact_store
from webapp.experiments.models import Artifact, Run
from webapp.inference.folders import stored
from webapp.inference.models import RegisteredModel
from webapp.tracking.models import FamilyVersion

from .rest_client import RestClient, error

pytestmark = pytest.mark.django_db
PIECE = 100_000


@pytest.fixture(autouse=True)
def place(settings, tmp_path):
    settings.VAR = tmp_path / "var"


@pytest.fixture
def bucket(one_bucket, monkeypatch):  # noqa: F811
    """The weights become four pieces. Each piece is a request or two, and there would be hundreds."""
    monkeypatch.setattr("trainer.contracts.storing.PIECE_BYTES", PIECE)
    return one_bucket


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    make_tiny(folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def version(rest_client: RestClient, source: str) -> dict[str, str]:
    """The tags of a new version that is made of these files."""
    answer = rest_client.post("model-versions/create", name="summaries", source=source)
    assert answer.status_code == 200, answer.content
    return {each["key"]: each["value"] for each in answer.json()["model_version"].get("tags", [])}


def test_a_version_in_object_storage_joins_the_registry(rest_client, bucket, tiny):
    run = rest_client.run(run_name="trains")
    for name, content in tiny.items():
        assert rest_client.send(run, f"final/{name}", content).status_code == 200
    rest_client.send(run, "final/.gitattributes", b"*.safetensors")
    rest_client.post("registered-models/create", name="summaries")
    tags = version(rest_client, f"runs:/{run}/final")
    model = RegisteredModel.objects.get()
    assert tags == {"touchstone.model": str(model.pk)} and (model.name, model.source) == ("summaries 1", "local")
    config = json.loads(tiny["config.json"])
    assert model.facts["model_type"] == config["model_type"]
    assert model.facts["weight_bytes"] == len(tiny["model.safetensors"])
    folder = Path(stored.local_source(ModelSource(path=model.path), model.workspace_id).path)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == tiny
    told = stored.links(model.workspace_id, [ModelSource(path=model.path)], model.path)
    assert {file.path for file in told.files} == tiny.keys() and all(file.urls for file in told.files)
    assert Artifact.objects.get(registered=model).run == Run.objects.get(), "so that its run is not deleted under it"

    rest_client.send(run, "final/chat_template.jinja", b"{{ messages }}")
    assert version(rest_client, f"runs:/{run}/final")["touchstone.model"] != str(model.pk)
    for name, template in (("summaries 1", tiny["chat_template.jinja"]), ("summaries 2", b"{{ messages }}")):
        found = RegisteredModel.objects.get(name=name)
        there = Path(stored.local_source(ModelSource(path=found.path), found.workspace_id).path)
        assert (there / "chat_template.jinja").read_bytes() == template, name


def test_a_version_of_a_part_or_of_an_odd_path_says_why_it_does_not_join(rest_client, bucket, tiny, settings):
    run = rest_client.run()
    rest_client.post("registered-models/create", name="summaries")
    for name, content in tiny.items():
        rest_client.send(run, f"my model/{name}", content)
        rest_client.send(run, f"half/{name}", content)
    assert "other letters" in version(rest_client, f"runs:/{run}/my model")["touchstone.not_loadable"]
    Artifact.objects.filter(path="files/half/config.json").update(files=[])
    assert "log the files again" in version(rest_client, f"runs:/{run}/half")["touchstone.not_loadable"]
    Artifact.objects.filter(path="files/half/config.json").delete()
    assert "config.json" in version(rest_client, f"runs:/{run}/half")["touchstone.not_loadable"]
    assert not RegisteredModel.objects.exists()


def test_a_version_is_not_made_while_the_storage_is_away(rest_client, bucket, tiny, monkeypatch):
    run = rest_client.run()
    rest_client.post("registered-models/create", name="summaries")
    for name, content in tiny.items():
        rest_client.send(run, f"final/{name}", content)

    def away(*_, **__):
        raise artifact_store.StoreAway("It does not answer.")

    monkeypatch.setattr(artifact_store, "read", away)
    answer = rest_client.post("model-versions/create", name="summaries", source=f"runs:/{run}/final")
    assert error(answer) == (503, "TEMPORARILY_UNAVAILABLE") and not FamilyVersion.objects.exists()
