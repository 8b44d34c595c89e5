"""The contents of a model directory, and how one is made."""

import json
import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from trainer.contracts import Message
from trainer.inference import models
from trainer.inference.chat import encode_prompt, with_addition


@pytest.fixture
def copy(tiny_dir: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_dir, tmp_path / "copy"))


def test_the_tiny_model_is_made_once_and_is_the_same_every_time(tiny_dir: Path, tmp_path: Path) -> None:
    assert models.make_tiny(tmp_path / "again")
    assert not models.make_tiny(tmp_path / "again")
    weights = "model.safetensors"
    assert (tmp_path / "again" / weights).read_bytes() == (tiny_dir / weights).read_bytes()


def test_a_conversion_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), models.complete_or_absent(tmp_path / "model") as target:
        (target / "config.json").write_text("{}")
        fail()
    assert list(tmp_path.iterdir()) == []


def test_another_architecture_scores_nothing_and_is_named_with_those_that_do(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    with pytest.raises(models.ModelInvalid, match="'gpt2' is not supported here; supported: llama"):
        models.load_scalar(copy)
    with pytest.raises(models.ModelInvalid, match="the weights do not fit config.json"):
        models.load_model(copy)


def test_an_architecture_that_transformers_does_not_have_is_refused_with_its_words(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"model_type": "nobody_knows"}))
    with pytest.raises(models.ModelInvalid, match="nobody_knows"):
        models.load_model(copy)


def test_a_model_without_a_chat_template_says_what_to_do(copy: Path) -> None:
    (copy / "chat_template.jinja").unlink()
    with pytest.raises(models.ModelInvalid, match="no chat template.*Use an instruct model"):
        models.load_tokenizer(copy)


def test_pickled_weights_are_not_looked_at(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(models.ModelInvalid, match="pickled weights are never loaded"):
        models.load_model(copy)


def test_weights_of_another_model_are_noticed(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(models.ModelInvalid, match="tensors are missing"):
        models.load_model(copy)


def test_a_hub_id_is_fetched_without_pickled_weights(tiny_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch(repo: str, allow_patterns: list[str]) -> str:
        asked.append((repo, allow_patterns))
        return str(tiny_dir)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert models.model_directory("owner/name") == tiny_dir
    assert models.model_directory(str(tiny_dir)) == tiny_dir
    ((repo, patterns),) = asked
    assert repo == "owner/name" and not any(fnmatch("pytorch_model.bin", pattern) for pattern in patterns)
    assert all(any(fnmatch(file.name, pattern) for pattern in patterns) for file in tiny_dir.iterdir())


def test_a_hub_that_does_not_answer_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(repo: str, allow_patterns: list[str]) -> str:
        raise LocalEntryNotFoundError("cannot reach the hub")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    with pytest.raises(models.ModelInvalid, match="owner/name: .*cannot reach the hub.*register a local directory"):
        models.model_directory("owner/name")


def test_prompts_end_where_the_assistant_speaks(tiny_dir: Path) -> None:
    tokenizer = models.load_tokenizer(tiny_dir)
    tokens = encode_prompt(tokenizer, [Message(role="user", content="Hi é")])
    assert tokenizer.decode(tokens) == "<|user|>Hi é<|end|><|assistant|>"


def test_an_addition_joins_the_last_user_message() -> None:
    messages = [Message(role="user", content="a"), Message(role="assistant", content="b")]
    assert with_addition(messages, "c")[0].content == "a\n\nc"
    with pytest.raises(ValueError, match="no user message"):
        with_addition(messages[1:], "c")
