"""Models from elsewhere: the contents of a directory are recognised, also for reward models and adapters."""

import json
import struct

import pytest

from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from webapp.core.problems import Invalid
from webapp.inference import queries
from webapp.inference.folders import inspection
from webapp.inference.models import RegisteredModel
from webapp.inference.registry import services, uses

pytestmark = pytest.mark.django_db

PLACE = "model.layers.0.self_attn.q_proj"
SCALAR = {"architectures": ["LlamaForSequenceClassification"], "model_type": "llama", "id2label": {"0": "LABEL_0"}}


def weights(file, shapes: dict[str, list[int]]) -> None:
    """A safetensors file with a whole header and without its tensors."""
    told = {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    header = json.dumps(told).encode()
    file.write_bytes(struct.pack("<Q", len(header)) + header)


@pytest.fixture
def folder(tmp_path):
    """A reward model as `AutoModelForSequenceClassification` saves it."""
    found = tmp_path / "reward"
    found.mkdir()
    (found / "config.json").write_text(json.dumps(SCALAR))
    weights(found / "model.safetensors", {f"{PLACE}.weight": [8, 6], "score.weight": [1, 6]})
    (found / "tokenizer.json").write_text("{}")
    (found / "chat_template.jinja").write_text("{{ messages }}")
    return found


@pytest.fixture
def adapter(tmp_path):
    found = tmp_path / "adapter"
    found.mkdir()
    (found / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "task_type": "CAUSAL_LM"}))
    laid = f"base_model.model.{PLACE}"
    weights(found / "adapter_model.safetensors", {f"{laid}.lora_A.weight": [4, 6], f"{laid}.lora_B.weight": [8, 4]})
    return found


@pytest.fixture
def base(api, folder):
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    return register(api, folder, name="base")


def register(api, path, **more) -> RegisteredModel:
    answer = api.post("/models", {"name": "theirs", "path": str(path), **more})
    assert answer.status_code == 201, answer.content
    return RegisteredModel.objects.get(pk=answer.json()["id"])


def refused(api, path, **more) -> tuple[str, str]:
    answer = api.post("/models", {"name": "theirs", "path": str(path), **more})
    assert answer.status_code == 422
    (field,) = answer.json()["error"]["fields"]
    return field["path"], field["message"]


def test_a_reward_model_from_elsewhere_is_a_reward_and_nothing_that_writes(api, folder, team, launch, version):  # noqa: F811
    row = register(api, folder)
    assert row.head == "scalar" and row in queries.usable(team.workspace.id, "scalar")
    assert {"Reward", "Benchmark", "Scorer"} <= {use.title for use in uses.uses_of(row)}
    assert row not in queries.usable(team.workspace.id)
    run = launch(config={"scaffold": None, "rewards": [{"kind": "reward_model", "model": "theirs"}]})
    assert run.slots.get(role="reward_model").model == row


@pytest.mark.parametrize(
    ("labels", "words"),
    [(None, "gives 2 numbers for a text"), ({"0": "a", "1": "b", "2": "c"}, "gives 3 numbers for a text")],
)
def test_a_classifier_is_no_reward_model(api, folder, labels, words):
    config = SCALAR | ({"id2label": labels} if labels else {})
    if labels is None:
        del config["id2label"]
    (folder / "config.json").write_text(json.dumps(config))
    path, message = refused(api, folder)
    assert path == "path" and words in message


def test_a_head_that_was_not_saved_is_missed(api, folder):
    weights(folder / "model.safetensors", {f"{PLACE}.weight": [8, 6]})
    assert refused(api, folder) == (
        "path",
        "its weights lack score.weight, the head that scores; it was saved without it",
    )
    (folder / "model.safetensors").write_bytes(b"\xff" * 20)
    assert "model.safetensors cannot be read as safetensors" in refused(api, folder)[1]


def test_what_a_hub_id_gives_is_said_by_whoever_registers_it(api, folder):
    hub = {"source": "hub"}
    assert register(api, "owner/reward", **hub, head="scalar").head == "scalar"
    assert register(api, "owner/chat", **hub, name="chat").head == "lm"
    assert refused(api, folder, name="third", head="lm")[0] == "head", "a directory knows better"


def test_an_adapter_is_laid_on_the_base_that_is_named(api, as_researcher, adapter, base):
    answer = as_researcher.post(
        "/models/new", {"name": "tuned", "source": "local", "path": str(adapter), "base": base.pk}
    )
    assert answer.status_code == 302
    row = RegisteredModel.objects.get(name="tuned")
    assert (row.format, row.head, row.base, row.facts["model_type"]) == ("peft", "lm", base, "llama")
    assert queries.source(row).adapters == (str(adapter),) and queries.source(row).path == base.path
    page = as_researcher.get(f"/models/{row.pk}").content.decode()
    assert "its base" in page and "Adapter" in page


def test_an_adapter_of_another_base_is_refused_before_anything_loads_it(api, adapter, base):
    assert refused(api, adapter) == (
        "base",
        "the directory holds an adapter: choose the model that it was trained on",
    )
    laid = f"base_model.model.{PLACE}"
    weights(adapter / "adapter_model.safetensors", {f"{laid}.lora_A.weight": [4, 7], f"{laid}.lora_B.weight": [8, 4]})
    assert refused(api, adapter, base=base.pk) == (
        "base",
        f"the adapter was trained on another model than base: {PLACE}.weight is 8 x 6 there, and it has 7 in that place",
    )
    weights(adapter / "adapter_model.safetensors", {f"{laid}.lora_A.weight": [4], f"{laid}.lora_B.weight": []})
    assert "lora_A.weight is not a matrix" in refused(api, adapter, base=base.pk)[1]
    weights(adapter / "adapter_model.safetensors", {f"{laid.replace('.0.', '.9.')}.lora_A.weight": [4, 6]})
    assert "that has no model.layers.9." in refused(api, adapter, base=base.pk)[1]
    assert RegisteredModel.objects.count() == 1


def test_only_an_adapter_has_a_base(api, folder, base, team):
    assert refused(api, folder, base=base.pk)[0] == "base"
    assert refused(api, "owner/name", source="hub", base=base.pk)[0] == "base"
    theirs = RegisteredModel.objects.create(workspace=team.outsider.workspace, name="theirs", source="hub", path="o/m")
    assert refused(api, folder, base=theirs.pk) == ("base", "this workspace has no such model")


def test_other_adapters_cannot_be_used(api, adapter, base):
    (adapter / "adapter_config.json").write_text(json.dumps({"peft_type": "PREFIX_TUNING"}))
    assert refused(api, adapter, base=base.pk) == (
        "path",
        "holds an adapter of type 'PREFIX_TUNING'; only LORA can be used",
    )


def test_what_stock_libraries_save_scores_here_as_it_does_there(team, tmp_path):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForSequenceClassification

    from trainer.inference.adapters import whole_directory
    from trainer.inference.models import load_tokenizer, make_tiny
    from trainer.inference.reward_models import RewardModel

    make_tiny(tmp_path / "tiny")
    torch.manual_seed(0)
    tokenizer = load_tokenizer(tmp_path / "tiny")
    whole = AutoModelForSequenceClassification.from_pretrained(tmp_path / "tiny", num_labels=1)
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
        return_tensors="pt",
        return_dict=True,
    )
    expected = []
    with torch.no_grad():
        expected.append(float(whole(**text).logits))
        whole.save_pretrained(tmp_path / "whole")
        tokenizer.save_pretrained(tmp_path / "whole")
        lora = LoraConfig(
            r=4, target_modules=["q_proj"], init_lora_weights=False, task_type="SEQ_CLS", modules_to_save=["score"]
        )
        laid = get_peft_model(whole, lora)
        expected.append(float(laid(**text).logits))
        laid.save_pretrained(tmp_path / "laid")
    tiny = services.register(team.owner, name="tiny", source="local", path=str(tmp_path / "tiny"))
    rows = [
        services.register(team.owner, name="whole", source="local", path=str(tmp_path / "whole")),
        services.register(team.owner, name="laid", source="local", path=str(tmp_path / "laid"), base=tiny.pk),
    ]
    assert [tiny.head, *(row.head for row in rows)] == ["lm", "scalar", "scalar"]
    with pytest.raises(Invalid):
        inspection.inspect(tmp_path / "laid")
    from trainer.contracts import Message

    for row, score in zip(rows, expected, strict=True):
        loaded = RewardModel(whole_directory(queries.source(row), tmp_path / f"kept-{row.name}"))
        assert loaded.scores([Message(role="user", content="Hi")], ["Hello."]) == [pytest.approx(score, abs=1e-5)]


@pytest.mark.django_db
def test_a_new_name_and_a_new_description_at_once_do_not_undo_each_other(team, model):  # noqa: F811
    theirs, mine = (RegisteredModel.objects.get(pk=model.pk) for _ in range(2))
    services.change_model(team.owner, theirs, name="renamed")
    services.change_model(team.researcher, mine, description="Better at logic.")
    model.refresh_from_db()
    assert (model.name, model.description) == ("renamed", "Better at logic.")
