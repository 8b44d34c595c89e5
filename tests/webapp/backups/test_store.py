"""A folder of backups. Each content is there once, complete, and exactly as it was written."""

import errno
import os

import pytest

from webapp.backups import store
from webapp.backups.problems import BackupProblem, Damaged, WrongKey


@pytest.fixture(params=[None, b"a long enough passphrase"], ids=["plain", "encrypted"])
def backup_store(request, tmp_path):
    return store.open_store(tmp_path / "backups", request.param, create=True)


@pytest.mark.parametrize("packed", [False, True])
def test_a_content_is_kept_once_and_read_again(backup_store, packed):
    data = [b"line\n" * 100_000, b"", b"end"]
    first, second = backup_store.add(iter(data), packed), backup_store.add(iter(data), packed)
    assert first.digest == second.digest and first.added > 0 and second.added == 0
    assert b"".join(backup_store.read(first.digest, packed)) == b"".join(data)
    assert len(list(backup_store.contents())) == 1 and first.size == len(b"".join(data))


def test_an_encrypted_folder_tells_neither_contents_nor_digests(tmp_path):
    kept = store.open_store(tmp_path / "backups", b"a long enough passphrase", create=True)
    digest = kept.add(iter([b"something that people wrote"])).digest
    kept.write_manifest("one", b"what it holds")
    for path in (tmp_path / "backups").rglob("*"):
        assert digest not in path.name
        assert path.is_dir() or (b"people" not in path.read_bytes() and b"it holds" not in path.read_bytes())


@pytest.mark.parametrize("packed", [False, True])
def test_a_content_that_was_changed_or_removed_is_told(backup_store, packed):
    digest = backup_store.add(iter([b"content" * 1000]), packed).digest
    path = backup_store.place.path / backup_store.content_name(digest, packed)
    data = path.read_bytes()
    path.write_bytes(data[:-3] + b"xyz")
    with pytest.raises(Damaged):
        list(backup_store.read(digest, packed))
    path.unlink()
    with pytest.raises(Damaged, match="missing"):
        list(backup_store.read(digest, packed))


def test_a_manifest_that_was_changed_is_told(backup_store):
    backup_store.write_manifest("one", b"what it holds")
    assert backup_store.read_manifest("one") == b"what it holds" and backup_store.names() == ["one"]
    path = backup_store.place.path / "one.manifest"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(Damaged):
        backup_store.read_manifest("one")


def test_a_full_disk_is_told_and_leaves_nothing_half(backup_store, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for write in (
        lambda: backup_store.add(iter([b"content"])),
        lambda: backup_store.write_manifest("one", b"what it holds"),
    ):
        with pytest.raises(BackupProblem, match=r"is full\. Free some space"):
            write()
    assert backup_store.names() == [] and list(backup_store.contents()) == []
    monkeypatch.undo()
    with backup_store.alone():
        assert not list(backup_store.place.path.rglob("*.partial"))


def test_one_process_writes_at_a_time(backup_store):
    with backup_store.alone(), pytest.raises(BackupProblem, match="Another backup"), backup_store.alone():
        pass


def test_backups_are_made_and_not_removed_while_one_is_read(backup_store):
    with backup_store.reading(), backup_store.alone(), backup_store.reading():
        pass
    with backup_store.reading(), pytest.raises(BackupProblem, match="is being read"), backup_store.removing():
        pass
    with backup_store.removing(), pytest.raises(BackupProblem, match="are being removed"), backup_store.reading():
        pass


def test_a_folder_is_encrypted_or_not(tmp_path):
    store.open_store(tmp_path / "plain", None, create=True)
    store.open_store(tmp_path / "sealed", b"a long enough passphrase", create=True)
    with pytest.raises(WrongKey, match="are not encrypted"):
        store.open_store(tmp_path / "plain", b"a long enough passphrase", create=True)
    with pytest.raises(WrongKey, match="are encrypted"):
        store.open_store(tmp_path / "sealed", None, create=True)
    with pytest.raises(WrongKey, match="The passphrase is not the one"):
        store.open_store(tmp_path / "sealed", b"another long passphrase")
    with pytest.raises(BackupProblem, match="There are no backups in"):
        store.open_store(tmp_path / "nowhere", None)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(BackupProblem, match="is not empty: it contains thesis.tex"):
        store.open_store(tmp_path, None, create=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_key_file_that_is_short_or_absent_is_told(tmp_path):
    (tmp_path / "key").write_text("short\n")
    with pytest.raises(WrongKey, match="at least 12 characters"):
        store.passphrase_of(tmp_path / "key")
    with pytest.raises(WrongKey, match="cannot be read"):
        store.passphrase_of(tmp_path / "none")
