"""An archive that is not stored on disk. Stock tar reads it, and any range of it equals that part of the whole."""

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from django.test import RequestFactory

from webapp.core.storage import archive


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    (made / "sub").mkdir(parents=True)
    (made / "empty").write_bytes(b"")
    (made / "even").write_bytes(b"x" * 512)
    (made / "large").write_bytes(os.urandom(3 * archive.PIECE + 17))
    (made / "sub" / ("n" * 150 + ".json")).write_text("{}")
    return made


def whole(download: archive.Download) -> bytes:
    return b"".join(download.read(0, download.length))


def test_tar_reads_it(folder):
    download = archive.of_folder(folder, "our-model")
    content = whole(download)
    assert len(content) == download.length and download.name == "our-model.tar"
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        names = tar.getnames()
        assert names == sorted(names) and len(names) == 4
        for name in names:
            path = folder / name.removeprefix("our-model/")
            assert tar.extractfile(name).read() == path.read_bytes()


def test_the_bytes_follow_from_the_contents_alone(folder, tmp_path):
    first = whole(archive.of_folder(folder, "m"))
    os.utime(folder / "even", (1, 1))
    (folder / "even").chmod(0o600)
    assert whole(archive.of_folder(folder, "m")) == first


@pytest.mark.parametrize("step", [1, 511, 512, 100_003])
def test_any_range_is_that_part_of_the_whole(folder, step):
    download = archive.of_folder(folder, "m")
    content = whole(download)
    for first in range(0, len(content), len(content) // 37):
        assert b"".join(download.read(first, first + step)) == content[first : first + step]


def test_memory_stays_flat(folder):
    assert max(map(len, archive.of_folder(folder, "m").read(0, 10**9))) <= archive.PIECE


def test_links_do_not_lead_out(folder, tmp_path):
    (tmp_path / "secret").write_text("nobody's business")  # the other ranges are random
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    assert b"nobody's business" not in whole(archive.of_folder(folder, "m"))
    with pytest.raises(archive.Gone):
        archive.of_path(folder / "link", "m")


def test_what_is_gone_says_so(folder, tmp_path):
    with pytest.raises(archive.Gone):
        archive.of_path(tmp_path / "nothing", "m")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(archive.Gone):
        archive.of_path(tmp_path / "hollow", "m")


def test_a_file_that_shrinks_breaks_the_download_instead_of_lying(folder):
    download = archive.of_folder(folder, "m")
    (folder / "large").write_bytes(b"short")
    with pytest.raises(archive.Gone):
        whole(download)


def get_download(download, **headers):
    response: Any = archive.respond(RequestFactory().get("/", headers=headers), download)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return response, content


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [("bytes=0-0", 0, 1), ("bytes=5-", 5, None), ("bytes=-7", -7, None), ("bytes=100-99999999999999", 100, None)],
)
def test_a_range_is_answered_with_206(folder, wanted, first, last):
    download = archive.of_folder(folder, "m")
    content = whole(download)
    response, part = get_download(download, Range=wanted)
    assert response.status_code == 206 and part == content[first:last]
    start = first % len(content)
    assert response["Content-Range"] == f"bytes {start}-{start + len(part) - 1}/{len(content)}"
    assert response["Content-Length"] == str(len(part))


@pytest.mark.parametrize("wanted", ["bytes=1-2,4-5", "items=0-1", "bytes=-", "bytes=x-"])
def test_what_cannot_be_read_as_one_range_gets_the_whole(folder, wanted):
    response, content = get_download(archive.of_folder(folder, "m"), Range=wanted)
    assert response.status_code == 200 and len(content) == int(response["Content-Length"])


@pytest.mark.parametrize("wanted", ["bytes=99999999999-", "bytes=5-4", "bytes=-0"])
def test_a_range_beyond_the_end_is_refused(folder, wanted):
    download = archive.of_folder(folder, "m")
    response, _ = get_download(download, Range=wanted)
    assert response.status_code == 416 and response["Content-Range"] == f"bytes */{download.length}"


def test_a_download_that_changed_meanwhile_begins_anew(folder):
    tag = get_download(archive.of_folder(folder, "m"))[0]["ETag"]
    assert get_download(archive.of_folder(folder, "m"), Range="bytes=5-", **{"If-Range": tag})[0].status_code == 206
    (folder / "even").write_bytes(b"y" * 512)
    assert get_download(archive.of_folder(folder, "m"), Range="bytes=5-", **{"If-Range": tag})[0].status_code == 200


def test_what_cannot_be_read_at_all_is_told_before_anything_is_sent():
    def away(first, last):
        raise archive.Gone("the storage is away")
        yield b""

    entries = [archive.ArchiveFile("empty", 0), archive.ArchiveFile("weights", 3, source=away)]
    with pytest.raises(archive.Gone, match="is away"):
        archive.respond(RequestFactory().get("/"), archive.of_entries(entries, "m", "x"))
