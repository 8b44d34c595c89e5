"""A person who registers a model learns nothing about the server's disk, and opens no weights outside the allowed folders."""

import json
from pathlib import Path

import pytest

from tests.team import ApiClient

pytestmark = pytest.mark.django_db


@pytest.fixture
def roots(tmp_path, settings) -> Path:
    settings.MODEL_ROOTS = (tmp_path / "models",)
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def weights(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 4}))
    (folder / "model.safetensors").write_bytes(b"1234")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


def register(who, path: Path):
    return ApiClient(who).post("/models", {"name": "m", "source": "local", "path": str(path)})


def refusal(who, path: Path) -> str:
    answer = register(who, path)
    assert answer.status_code == 422
    [field] = answer.json()["error"]["fields"]
    assert field["path"] == "path"
    return field["message"]


def test_what_is_absent_and_what_is_forbidden_are_refused_in_the_same_words(team, roots, tmp_path):
    """In an earlier version, the answer showed whether a path existed, whether it was a directory and what it contained."""
    elsewhere = weights(tmp_path / "private" / "model")
    (tmp_path / "file").write_text("x")
    tried = [elsewhere, tmp_path / "private", tmp_path / "nothing", tmp_path / "file", roots / "nothing", Path("/root")]
    tried += [roots / ".." / "private" / "model", Path("/proc/1/root"), Path("relative")]
    assert len({refusal(team.researcher, path) for path in tried}) == 1


def test_a_link_does_not_lead_out(team, roots, tmp_path):
    elsewhere = weights(tmp_path / "private" / "model")
    (roots / "linked").symlink_to(elsewhere)
    mixed = weights(roots / "mixed")
    (mixed / "model.safetensors").unlink()
    (mixed / "model.safetensors").symlink_to(elsewhere / "model.safetensors")
    absent = refusal(team.researcher, roots / "nothing")
    assert refusal(team.researcher, roots / "linked") == refusal(team.researcher, mixed) == absent


def test_a_directory_of_the_roots_is_registered_and_one_that_lacks_something_says_what(team, roots):
    assert register(team.researcher, weights(roots / "good")).status_code == 201
    bad = weights(roots / "bad")
    (bad / "config.json").unlink()
    assert refusal(team.researcher, bad) == "holds no config.json"


def test_an_administrator_names_any_directory(team, roots, tmp_path):
    """The person who starts an installation is an administrator. Their first model may be in any folder."""
    assert register(team.owner, weights(tmp_path / "private" / "model")).status_code == 201
