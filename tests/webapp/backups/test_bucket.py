"""Backups in object storage are the same as in a folder, in the same format. Failures of the network are tested too."""

import json
import logging
import os
import time
from datetime import timedelta
from socket import gethostname

import obstore
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from tests.timeouts import SECONDS
from webapp.backups import addresses, bucket, manifest, retention, services
from webapp.backups.manifest import KeptFile
from webapp.backups.models import Backup
from webapp.backups.problems import BackupProblem, Damaged, WrongKey
from webapp.backups.store import open_store
from webapp.environment import Environment
from webapp.inference.models import RegisteredModel

from .conftest import SECRET, WHERE


@pytest.fixture(params=[None, b"a long enough passphrase"], ids=["plain", "encrypted"])
def backup_store(request, server):
    return open_store(WHERE, request.param, create=True)


@pytest.mark.parametrize("packed", [False, True])
def test_a_content_is_kept_once_and_read_again(backup_store, server, packed, monkeypatch):
    monkeypatch.setattr(bucket, "BLOCK", 100_000)
    data = [os.urandom(150_000), b"", b"end"]
    with backup_store.alone():
        first, second = backup_store.add(iter(data), packed), backup_store.add(iter(data), packed)
    assert first.digest == second.digest and first.added > 0 and second.added == 0
    assert b"".join(backup_store.read(first.digest, packed)) == b"".join(data)
    assert list(backup_store.contents()) == [backup_store.content_name(first.digest, packed)]
    assert all(name.startswith("touch/stone/") for name in server.names())
    assert list(backup_store.place.scratch.iterdir()) == []


def test_a_large_content_is_uploaded_in_parts(server, monkeypatch):
    monkeypatch.setattr(bucket, "PART", 5 << 20)
    kept = open_store(WHERE, None, create=True)
    data = os.urandom(12 << 20)
    with kept.alone():
        digest = kept.add([data]).digest
    assert sum(method == "PUT" and digest in path for method, path in server.asked) == 3
    assert b"".join(kept.read(digest)) == data and server.uploads() == 0


def test_an_upload_that_breaks_off_is_no_content_and_no_backup(server, monkeypatch):
    monkeypatch.setattr(bucket, "PART", 5 << 20)
    kept = open_store(WHERE, None, create=True)
    server.failing = lambda method, path: 503 if method == "PUT" and "/objects/" in path else None
    with kept.alone(), pytest.raises(BackupProblem, match=r"^s3://backups/touch/stone answers 503"):
        kept.add([os.urandom(12 << 20)])
    server.failing = lambda method, path: None
    assert list(kept.contents()) == [] == kept.names() and list(kept.place.scratch.iterdir()) == []


def test_what_fails_now_and_then_is_tried_again(server):
    kept = open_store(WHERE, None, create=True)
    turns = iter([503, 500, 503])
    server.failing = lambda method, path: next(turns, None) if method == "PUT" and "/objects/" in path else None
    with kept.alone():
        digest = kept.add([b"content"]).digest
    turns = iter([503, 500, 503])
    server.failing = lambda method, path: next(turns, None) if method == "GET" and "/objects/" in path else None
    assert b"".join(kept.read(digest)) == b"content" and next(turns, None) is None


def test_what_was_changed_or_removed_is_told(backup_store, server):
    with backup_store.alone():
        digest = backup_store.add([b"content" * 1000], True).digest
    path = f"touch/stone/{backup_store.content_name(digest, True)}"
    server.put(path, server.get(path)[:-3] + b"xyz")
    with pytest.raises(Damaged):
        list(backup_store.read(digest, True))
    backup_store.place.remove([backup_store.content_name(digest, True)])
    with pytest.raises(Damaged, match="missing"):
        list(backup_store.read(digest, True))


class TestOneAtATime:
    def test_a_second_writer_is_refused(self, server):
        kept, other = open_store(WHERE, None, create=True), open_store(WHERE, None)
        with (
            kept.alone(),
            pytest.raises(BackupProblem, match=r"Another backup is being made in s3://.* by "),
            other.alone(),
        ):
            pass
        with other.alone():
            pass
        assert not any(name.endswith("lock") for name in server.names())

    def test_a_dead_one_of_this_machine_makes_room_at_once(self, server):
        kept = open_store(WHERE, None, create=True)
        dead = {"host": gethostname(), "pid": os.getpid(), "began": 1.0}  # another process with the same number
        server.put("touch/stone/lock", json.dumps(dead).encode())
        with kept.alone():
            assert json.loads(server.get("touch/stone/lock"))["began"] != 1.0

    def test_one_elsewhere_is_dead_when_it_is_silent(self, server, monkeypatch):
        kept = open_store(WHERE, None, create=True)
        server.put("touch/stone/lock", json.dumps({"host": "elsewhere", "pid": 1, "began": 1.0}).encode())
        with pytest.raises(BackupProblem, match="by elsewhere"), kept.alone():
            pass
        monkeypatch.setattr(bucket, "STALE", timedelta(0))
        with kept.alone():
            pass

    def test_who_was_taken_for_dead_writes_no_more(self, server, monkeypatch):
        monkeypatch.setattr(bucket, "REFRESH_S", 0.02)
        kept = open_store(WHERE, None, create=True)
        with kept.alone():
            server.put("touch/stone/lock", json.dumps({"host": "elsewhere", "pid": 1, "began": 1.0}).encode())
            deadline = time.monotonic() + SECONDS
            while not kept.place._lost:  # type: ignore[attr-defined]
                assert time.monotonic() < deadline
                time.sleep(0.01)
            with pytest.raises(BackupProblem, match="Another process writes"):
                kept.add([b"content"])
        assert json.loads(server.get("touch/stone/lock"))["host"] == "elsewhere"

    def test_a_lock_that_was_lost_since_the_last_look_makes_no_backup(self, server):
        kept = open_store(WHERE, None, create=True)
        with kept.alone():
            server.put("touch/stone/lock", b"not ours")
            with pytest.raises(BackupProblem, match="Another process writes"):
                kept.write_manifest("2026-01-01T030000Z", manifest_of())
        assert kept.names() == [] and server.get("touch/stone/lock") == b"not ours"
        with pytest.raises(BackupProblem, match="by somebody"), kept.alone():
            pass

    def test_who_wakes_after_the_lock_was_lost_removes_nothing_more(self, server, monkeypatch):
        monkeypatch.setattr(bucket, "BATCH", 1)
        kept = open_store(WHERE, None, create=True)
        delete, asked = obstore.delete, []

        def then_frozen(store, names):
            delete(store, names)
            asked.append(names)
            server.put("touch/stone/lock", b"not ours")

        with kept.alone():
            names = [kept.content_name(kept.add([word]).digest) for word in (b"a", b"b", b"c")]
            with monkeypatch.context() as patch:
                patch.setattr(obstore, "delete", then_frozen)
                with pytest.raises(BackupProblem, match="Another process writes"):
                    kept.place.remove(names)
        assert asked == [names[:1]] and sorted(kept.contents()) == sorted(names[1:])

    def test_another_bucket_is_written_meanwhile(self, server):
        kept, other = (open_store(where, None, create=True) for where in (WHERE, "s3://backups/other"))
        with kept.alone():
            gathered = kept.place.scratch / "1.partial"
            gathered.write_bytes(b"half")
            with other.alone():
                other.add([b"content"])
            assert gathered.read_bytes() == b"half"
        with kept.alone():
            assert not gathered.exists()


def manifest_of(*digests: str) -> bytes:
    listed = tuple(KeptFile(path=each, bytes=1, modified=1, digest=each) for each in digests)
    told = {
        "made_at": "2026-01-01T00:00:00Z",
        "seconds": 1,
        "version": "1",
        "server": "18",
        "var": "/v",
        "migrations": (),
    }
    made = manifest.Manifest(**told, tables=(), sequences={}, files=listed, key_mark="m", added=1)
    return made.model_dump_json().encode()


def test_what_the_rule_does_not_keep_goes(backup_store):
    with backup_store.alone():
        shared, old, new = (backup_store.add([word]).digest for word in (b"shared", b"old", b"new"))
        backup_store.write_manifest("2026-01-01T030000Z", manifest_of(shared, old))
        backup_store.write_manifest("2026-01-02T030000Z", manifest_of(shared, new))
    assert backup_store.names() == ["2026-01-01T030000Z", "2026-01-02T030000Z"]
    assert retention.prune(backup_store, daily=1, weekly=0) == ["2026-01-01T030000Z"]
    assert [backup_store.has(each) for each in (shared, old, new)] == [True, False, True]
    assert [file.digest for file in manifest.read(backup_store, manifest.newest(backup_store)).files] == [shared, new]


def test_a_bucket_is_encrypted_or_not_and_nothing_else(server):
    open_store("s3://backups/plain", None, create=True)
    open_store("s3://backups/sealed", b"a long enough passphrase", create=True)
    with pytest.raises(WrongKey, match="are not encrypted"):
        open_store("s3://backups/plain", b"a long enough passphrase", create=True)
    with pytest.raises(WrongKey, match="The passphrase is not the one"):
        open_store("s3://backups/sealed", b"another long passphrase")
    with pytest.raises(BackupProblem, match="There are no backups in s3://backups/nowhere"):
        open_store("s3://backups/nowhere", None)
    server.put("thesis/thesis.tex", b"mine")
    with pytest.raises(BackupProblem, match=r"is not empty: it contains thesis.tex"):
        open_store("s3://backups/thesis", None, create=True)


class TestAddresses:
    def test_an_endpoint_in_a_closed_network_is_refused(self, server, settings):
        settings.ENV.backup_networks = ()
        with pytest.raises(BackupProblem, match=r"127\.0\.0\.1 is not public\. .* BACKUP_NETWORKS"):
            open_store(WHERE, None)
        assert server.asked[2:] == []

    def test_an_endpoint_of_the_librarys_own_variables_is_looked_at_too(self, server, settings, monkeypatch):
        settings.ENV.backup_networks, settings.ENV.backup_endpoint = (), None
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.url)
        with pytest.raises(BackupProblem, match="is not public"):
            open_store(WHERE, None)

    @pytest.mark.parametrize("where", ["s3://key:secret@backups/x", "ftp://backups/x", "s3://", "s3://backups?x=y"])
    def test_what_is_no_bucket_is_told(self, server, where):
        with pytest.raises(BackupProblem, match="is not a bucket: name s3|must not hold credentials"):
            addresses.parse_address(where)

    def test_no_such_bucket(self, server):
        with pytest.raises(BackupProblem, match="There is no bucket s3://nobodys/x: make it first"):
            open_store("s3://nobodys/x", None, create=True)

    def test_refused_credentials_are_told_and_never_shown(self, server, caplog):
        caplog.set_level(logging.DEBUG)
        server.failing = lambda method, path: 403
        with pytest.raises(BackupProblem, match="refuses this server: check the credentials") as told:
            open_store(WHERE, None, create=True)
        assert SECRET not in str(told.value) + caplog.text and told.value.__cause__ is None

    def test_google_and_azure_are_made_by_their_address(self, settings, monkeypatch):
        env = settings.ENV.model_copy()
        env.backup_secret, env.backup_endpoint = "c2VjcmV0", None
        settings.ENV = env
        assert type(addresses.parse_address("az://account/container/x")._store).__name__ == "AzureStore"  # type: ignore[attr-defined]
        env.backup_secret = None
        assert type(addresses.parse_address("gs://bucket/x")._store).__name__ == "GCSStore"  # type: ignore[attr-defined]

    @pytest.mark.parametrize("text", ["s3://", "s4://bucket", "s3://key:secret@bucket", "https://bucket"])
    def test_a_wrong_address_stops_the_start(self, text):
        with pytest.raises(ValueError, match="the address of a bucket has the form"):
            Environment(backup_folder=text)


@pytest.mark.django_db(transaction=True)
def test_a_second_backup_of_an_installation_costs_what_changed(team, server, settings, key_file, tmp_path, capsys):
    """`test_restoring` restores an installation from a bucket."""
    model = settings.VAR / "models" / "tiny"
    model.mkdir(parents=True)
    (model / "model.safetensors").write_bytes(os.urandom(300_000))
    RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(model))
    for _ in range(2):
        call_command("backup", WHERE + "/", key_file=key_file)
    first, second = Backup.objects.order_by("id")
    assert first.folder == second.folder == WHERE and second.added < first.added - 300_000
    assert services.prune(WHERE, key_file, 1, 0) == [first.name]
    with pytest.raises(CommandError, match="missing"):
        call_command("restore", f"{WHERE}/{first.name}.manifest", into=tmp_path / "new", key_file=key_file)
    assert SECRET not in capsys.readouterr().out
