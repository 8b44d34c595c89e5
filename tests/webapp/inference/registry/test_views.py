import html
import json
import re

import pytest

from tests.pages import page_html
from webapp.inference.folders import tokenizers
from webapp.inference.models import RegisteredModel


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "hidden_size": 64}))
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 10)
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    return tmp_path


def post(client, path, **extra):
    return client.post("/models/new", {"name": "tiny", "source": "local", "path": str(path), **extra})


def test_a_whole_directory_is_registered_with_its_facts(as_researcher, folder):
    assert post(as_researcher, folder).status_code == 302
    model = RegisteredModel.objects.get()
    tokenizer = model.facts.pop("tokenizer")
    assert model.facts == {"architecture": "LlamaForCausalLM", "hidden_size": 64, "weight_bytes": 10}
    assert tokenizer == tokenizers.digest(folder)
    assert b"LlamaForCausalLM" in as_researcher.get("/models").content
    page = as_researcher.get(f"/models/{model.pk}").content.decode()
    shown = re.findall(r"<dt>([^<]+)</dt><dd>([^<]*)</dd>", page)
    assert ("Architecture", "LlamaForCausalLM") in shown and ("Width", "64") in shown
    assert "hidden_size" not in page and "weight_bytes" not in page
    assert any(name == "Weights" and value.startswith("10") for name, value in shown)


def test_a_fact_without_words_is_shown_by_its_name(team, as_researcher):
    facts = {"licence": "MIT", "vocab_size": 49152, "bytes": 2048, "own_note": 3}
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="a/b", facts=facts)
    page = as_researcher.get(f"/models/{model.pk}").content.decode()
    shown = re.findall(r"<dt>([^<]+)</dt><dd>([^<]*)</dd>", page)
    assert ("Vocabulary", "49,152 tokens") in shown and ("All files", "2.0\xa0KB") in shown
    assert ("Licence", "MIT") in shown and ("Own note", "3") in shown


@pytest.mark.parametrize("path", ["~nobody-here/model", "/" + "x" * 400, "relative", "/no/such/place"])
def test_a_path_that_no_directory_can_have_is_said_at_the_field(api, path):
    refused = api.post("/models", {"name": "m", "path": path})
    assert (refused.status_code, [field["path"] for field in refused.json()["error"]["fields"]]) == (422, ["path"])


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ("config.json", b"holds no config.json"),
        ("model.safetensors", b"safetensors"),
        ("tokenizer.json", b"holds no tokenizer"),
        ("tokenizer_config.json", b"holds no tokenizer_config.json"),
    ],
)
def test_what_a_directory_lacks_is_said_at_the_field(as_researcher, folder, lacking, words):
    (folder / lacking).unlink()
    answer = post(as_researcher, folder)
    assert answer.status_code == 422 and words in answer.content
    assert not RegisteredModel.objects.exists()


def test_a_tokenizer_without_a_chat_template_is_refused(as_researcher, folder):
    (folder / "tokenizer_config.json").write_text("{}")
    assert b"chat template" in post(as_researcher, folder).content


def test_hub_ids_are_checked_for_their_form(api):
    body = {"name": "hub", "source": "hub", "path": "owner/name"}
    assert api.post("/models", body).status_code == 201
    refused = api.post("/models", {**body, "name": "other", "path": "../etc"})
    assert refused.json()["error"]["fields"][0]["path"] == "path"
    assert api.post("/models", body).json()["error"]["fields"][0]["path"] == "name"


def test_an_unused_model_is_taken_off_the_list(api, team):
    made = api.post("/models", {"name": "hub", "source": "hub", "path": "owner/name"}).json()
    assert api.get(f"/models/{made['id']}").json()["name"] == "hub"
    assert api.delete(f"/models/{made['id']}").status_code == 204
    assert api.get(f"/models/{made['id']}").status_code == 404


def test_models_of_others_are_not_there(as_outsider, api):
    made = api.post("/models", {"name": "hub", "source": "hub", "path": "owner/name"}).json()
    assert as_outsider.get(f"/models/{made['id']}").status_code == 404


def test_the_form_says_how_one_gets_a_model(team, as_researcher, settings, tmp_path):
    """An installation without the demo has no model, and the form asked for the directory of one."""
    settings.MODEL_ROOTS = (tmp_path / "our models",)
    page = page_html(as_researcher.get("/models/new"))
    assert re.search(r"<details[^>]* open>\s*<summary>Ways to get a model", page)
    place = f"'{tmp_path}/our models/smollm2-135m-instruct'"
    assert f"hf download HuggingFaceTB/SmolLM2-135M-Instruct --local-dir {place}" in html.unescape(page)
    assert f"-m trainer models prepare --dir {place}" in html.unescape(page)
    RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="a/b")
    folded = page_html(as_researcher.get("/models/new"))
    assert "Ways to get a model" in folded and not re.search(r"<details[^>]* open>\s*<summary>Ways", folded)
