"""Downloads over a connection that breaks: they go on where they stopped, and the file is complete or absent."""

import hashlib
import io
import os
import tarfile

import pytest
from touchstone.downloads import digests
from touchstone.http import ApiError, Away

from tests.webapp.experiments.conftest import make_model, make_version
from trainer.files import digest_of
from trainer.outputs import folder_digest, list_files
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launching
from webapp.experiments.models import Artifact
from webapp.experiments.outputs import artifacts

pytestmark = pytest.mark.django_db
SIZE = 5_000


@pytest.fixture
def artifact(team, settings, tmp_path):
    """A folder of a run, as a model is: two files, and their digest."""
    settings.VAR = tmp_path / "var"
    make_model(team)
    data = checks.DatasetChoice(id=make_version(team.owner).dataset_id)
    run = launching.launch(team.researcher, recipe="policy", config={"steps": 4}, dataset=data, name="first")
    folder = artifacts.folder(run.pk) / "outputs" / "policy"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(range(250)) * (SIZE // 250))
    digest = folder_digest(list_files(folder))
    return Artifact.objects.create(run=run, step=4, role="model", path="outputs/policy", bytes=SIZE, digest=digest)


@pytest.fixture
def address(artifact):
    return f"/api/v1/runs/{artifact.run_id}/artifacts/{artifact.pk}/download"


@pytest.fixture
def whole(remote, address):
    out = io.BytesIO()
    remote.save(address, out)
    return out.getvalue()


def breaks(wire, *sizes: int) -> None:
    """Each of the next answers breaks after so many bytes."""
    left = list(sizes)
    wire.ranges.clear()
    wire.cut = lambda request: left.pop(0) if left else None


def test_a_download_goes_on_after_each_break(remote, wire, artifact, address, whole, tmp_path):
    breaks(wire, 700, 0, 2_000)
    to = tmp_path / "policy.tar"
    remote.fetch(address, to, artifact.digest)
    assert to.read_bytes() == whole and len(whole) > SIZE
    assert wire.ranges == ["", "bytes=700-", "bytes=700-", "bytes=2700-"]
    assert [path.name for path in tmp_path.glob("policy*")] == ["policy.tar"]


def test_a_later_call_goes_on_with_what_an_earlier_one_left(remote, wire, artifact, address, whole, tmp_path):
    to = tmp_path / "policy.tar"
    breaks(wire, 900, *[0] * remote.tries)
    with pytest.raises(Away, match="does not answer"):
        remote.fetch(address, to)
    assert not to.exists() and (tmp_path / "policy.tar.partial").stat().st_size == 900
    breaks(wire)
    remote.fetch(address, to, artifact.digest)
    assert to.read_bytes() == whole and wire.ranges == ["bytes=900-"]


def test_what_was_complete_when_its_program_ended_is_fetched_again(remote, wire, address, whole, tmp_path):
    to = tmp_path / "policy.tar"
    breaks(wire, len(whole))
    remote.fetch(address, to)
    assert to.read_bytes() == whole and wire.ranges == ["", f"bytes={len(whole)}-", ""]


def test_other_content_begins_again(remote, wire, artifact, address, tmp_path):
    to = tmp_path / "policy.tar"
    breaks(wire, 900, *[0] * remote.tries)
    with pytest.raises(Away):
        remote.fetch(address, to)
    changed = artifacts.folder(artifact.run_id) / "outputs" / "policy" / "model.safetensors"
    changed.write_bytes(b"other")
    breaks(wire)
    remote.fetch(address, to)
    with tarfile.open(to) as archive:
        [weights] = [name for name in archive.getnames() if name.endswith("safetensors")]
        assert archive.extractfile(weights).read() == b"other"
    with pytest.raises(ValueError, match="another digest than the file on the server"):
        remote.fetch(address, tmp_path / "again.tar", artifact.digest)
    assert not list(tmp_path.glob("again*"))


def test_a_stream_goes_on_and_a_refusal_leaves_nothing(remote, wire, address, whole, tmp_path):
    out = io.BytesIO()
    breaks(wire, 700, 300)
    remote.save(address, out)
    assert out.getvalue() == whole and wire.ranges == ["", "bytes=700-", "bytes=1000-"]
    with pytest.raises(ApiError):
        remote.fetch("/api/v1/runs/999/artifacts/1/download", tmp_path / "none.tar")
    assert not list(tmp_path.glob("none*"))


def test_the_digest_of_a_file_is_that_of_the_server(tmp_path):
    path = tmp_path / "rows.json"
    path.write_bytes(b"[1]")
    assert digests(path, "application/octet-stream") == {digest_of(path), hashlib.sha256(b"[1]").hexdigest()}


def test_a_download_to_a_device_leaves_the_device(remote, address, tmp_path):
    """As root, a file that takes its name would replace it."""
    read, written = os.pipe()
    place = tmp_path / "pipe"
    place.symlink_to(f"/proc/self/fd/{written}")
    remote.fetch(address, place)
    os.close(written)
    with open(read, "rb") as content:
        assert len(content.read()) > SIZE
    assert place.is_symlink() and [path.name for path in tmp_path.glob("pipe*")] == ["pipe"]
    with pytest.raises(IsADirectoryError):
        remote.fetch(address, tmp_path)
