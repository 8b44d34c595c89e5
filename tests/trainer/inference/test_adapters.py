"""Adapters are merged in their order, with the same result as stock peft. Adapters of another base model are refused."""

import json
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from trainer.contracts import ModelSource
from trainer.inference.adapters import load_merged, whole_directory
from trainer.inference.models import ModelInvalid, make_tiny


def adapter(base: Path, folder: Path, seed: int) -> Path:
    """A LoRA adapter with random weights on both sides, which therefore changes the output of the model."""
    torch.manual_seed(seed)
    config = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def first(tiny_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return adapter(tiny_dir, tmp_path_factory.mktemp("adapters") / "first", 1)


def logits(model) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.arange(20)[None]).logits


def test_merging_gives_what_stock_peft_computes(tiny_dir: Path, first: Path, tmp_path: Path) -> None:
    kept = whole_directory(ModelSource(path=str(tiny_dir), adapters=(str(first),)), tmp_path / "merged")
    stock = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny_dir), first)
    ours = AutoModelForCausalLM.from_pretrained(kept)
    torch.testing.assert_close(logits(ours), logits(stock), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(logits(ours), logits(AutoModelForCausalLM.from_pretrained(tiny_dir)), atol=1e-2)
    assert AutoTokenizer.from_pretrained(kept).chat_template == AutoTokenizer.from_pretrained(tiny_dir).chat_template


def test_a_second_adapter_lies_on_the_first(tiny_dir: Path, first: Path, tmp_path: Path) -> None:
    once = whole_directory(ModelSource(path=str(tiny_dir), adapters=(str(first),)), tmp_path / "once")
    second = adapter(once, tmp_path / "second", 2)
    both = load_merged(tiny_dir, [first, second])
    stock = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(once), second)
    torch.testing.assert_close(logits(both), logits(stock), atol=1e-5, rtol=1e-5)


def test_a_whole_model_is_used_where_it_lies(tiny_dir: Path, tmp_path: Path) -> None:
    assert whole_directory(ModelSource(path=str(tiny_dir)), tmp_path / "merged") == tiny_dir
    assert not (tmp_path / "merged").exists()


def test_merging_is_done_once(tiny_dir: Path, first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ModelSource(path=str(tiny_dir), adapters=(str(first),))
    kept = whole_directory(source, tmp_path / "merged")
    monkeypatch.setattr("trainer.inference.adapters.load_merged", lambda *_: pytest.fail("merged twice"))
    assert whole_directory(source, tmp_path / "merged") == kept


def test_an_adapter_of_another_base_is_refused(tiny_dir: Path, first: Path, tmp_path: Path) -> None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(tiny_dir)
    config.hidden_size, config.num_hidden_layers = 32, 1
    make_tiny(tmp_path / "other")
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "other")
    with pytest.raises(ModelInvalid, match="another base model"):
        load_merged(tmp_path / "other", [first])


def test_an_adapter_with_layers_that_the_base_lacks_is_refused(tiny_dir: Path, first: Path, tmp_path: Path) -> None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(tiny_dir)
    config.num_hidden_layers = 1
    make_tiny(tmp_path / "short")
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "short")
    with pytest.raises(ModelInvalid, match="have no place"):
        load_merged(tmp_path / "short", [first])


@pytest.mark.parametrize(
    ("config", "problem"),
    [("{", "cannot be read"), ("[]", "cannot be read"), ('{"peft_type": "IA3"}', "only LORA")],
)
def test_a_folder_that_is_no_adapter_is_refused(tiny_dir: Path, tmp_path: Path, config: str, problem: str) -> None:
    (tmp_path / "adapter_config.json").write_text(config)
    with pytest.raises(ModelInvalid, match=problem):
        load_merged(tiny_dir, [tmp_path])


def test_pickled_adapters_are_never_loaded(tiny_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    (tmp_path / "adapter_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelInvalid, match="never loaded"):
        load_merged(tiny_dir, [tmp_path])
