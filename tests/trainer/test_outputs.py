"""A trained model is written as a complete folder with a description, or not at all."""

import hashlib
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from trainer.contracts import ArtifactData, ModelFile
from trainer.outputs import About, OutputInvalid, folder_digest, licence_of, write_output


def about(**changes: object) -> About:
    known = {"name": "policy", "role": "policy", "recipe": "policy", "step": 3, "base": "tiny"}
    return About(**{**known, **changes})  # type: ignore[arg-type]


def whole_model(folder: Path) -> None:
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").write_bytes(b"weights")


def adapter(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(b"adapter")


def test_the_artifact_names_every_file_with_its_digest(tmp_path: Path) -> None:
    artifact = write_output(tmp_path, "policy", whole_model, about())
    folder = tmp_path / "outputs" / "policy"
    assert artifact.role == "model" and artifact.path == "outputs/policy"
    assert artifact.model is not None and artifact.model.format == "hf" and artifact.model.head == "lm"
    found = {file.path: file for file in artifact.model.files}
    assert set(found) == {"README.md", "config.json", "model.safetensors"}
    assert found["model.safetensors"].digest == hashlib.sha256(b"weights").hexdigest()
    assert artifact.bytes == sum(path.stat().st_size for path in folder.iterdir())
    lines = "".join(f"{found[name].digest}  {name}\n" for name in sorted(found))
    assert artifact.digest == hashlib.sha256(lines.encode()).hexdigest() == folder_digest(artifact.model.files)


def test_an_adapter_is_told_from_its_files(tmp_path: Path) -> None:
    known = about(name="reward", role="reward_model", head="scalar")
    artifact = write_output(tmp_path, "reward", adapter, known)
    assert artifact.model is not None and (artifact.model.format, artifact.model.head) == ("peft", "scalar")
    assert "num_labels=1" in (tmp_path / "outputs" / "reward" / "README.md").read_text()


def test_a_folder_without_a_model_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutputInvalid, match="no model here"):
        write_output(tmp_path, "policy", lambda folder: None, about())
    assert list((tmp_path / "outputs").iterdir()) == []


def test_a_full_disk_leaves_the_earlier_folder_as_it_was(tmp_path: Path) -> None:
    first = write_output(tmp_path, "policy", whole_model, about())

    def fill(folder: Path) -> None:
        whole_model(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_output(tmp_path, "policy", fill, about())
    assert [path.name for path in (tmp_path / "outputs").iterdir()] == ["policy"]
    assert write_output(tmp_path, "policy", whole_model, about()).digest == first.digest


def test_the_card_says_what_is_known_and_what_is_not(tmp_path: Path) -> None:
    known = about(base="a|b", config={"steps": 3}, metrics={"eval/loss": 0.123456789}, data_digest="d" * 64)
    write_output(tmp_path, "policy", adapter, known)
    text = (tmp_path / "outputs" / "policy" / "README.md").read_text()
    header = yaml.safe_load(text.split("---")[1])
    assert header["base_model"] == "a|b" and header["library_name"] == "peft" and "license" not in header
    assert "| eval/loss | 0.123457 |" in text and '"steps": 3' in text and "d" * 64 in text
    assert "digest of the base weights | not taken" in text
    assert "the base model does not state one" in text


def test_the_licence_of_the_base_is_passed_on(tmp_path: Path) -> None:
    assert licence_of(tmp_path) == ""
    (tmp_path / "README.md").write_text("---\nlicense: apache-2.0\n---\n# license: none\n")
    write_output(tmp_path, "policy", whole_model, about(licence=licence_of(tmp_path)))
    assert licence_of(tmp_path / "outputs" / "policy") == "apache-2.0"


@pytest.mark.parametrize("path", ["../x", "/x", "a/../x", ".git/config", "a//b", ""])
def test_a_file_cannot_lie_outside_its_folder(path: str) -> None:
    with pytest.raises(ValidationError):
        ModelFile(path=path, bytes=0, digest="0" * 64)


def test_only_models_say_what_model_they_are(tmp_path: Path) -> None:
    artifact = write_output(tmp_path, "policy", whole_model, about())
    with pytest.raises(ValidationError):
        ArtifactData(role="checkpoint", path="x", bytes=0, digest="", model=artifact.model)
    with pytest.raises(ValidationError):
        ArtifactData(role="model", path="x", bytes=0, digest="")
