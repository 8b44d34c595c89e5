"""The files that runs need and leave in object storage: requests for them are signed, files are whole or absent, and they are removed in
time.
"""

import hashlib
import io
import itertools
import logging
import os
import socket
import tarfile
import threading
import time
import traceback
from collections import Counter
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import obstore
import pytest
from django.core.cache import cache
from django.test import Client

from tests.timeouts import SECONDS
from tests.webapp.backups.bucket_server import BucketServer
from trainer.config import PolicyConfig
from trainer.contracts import ModelSource, RunAssignment
from trainer.contracts.storing import Upload
from trainer.ray_jobs import places
from trainer.storing import ObjectStore, StorageAway, StoreRefused
from webapp.core.problems import Conflict, Problem
from webapp.core.storage import artifact_store, buckets
from webapp.core.storage.artifact_store import StoreAway as ServerStoreAway
from webapp.experiments.lifecycle import jobs, tokens
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Artifact, Run
from webapp.experiments.outputs import artifact_store as storing
from webapp.experiments.outputs import artifacts, starting_points
from webapp.inference.folders import files as model_files
from webapp.inference.folders import stored
from webapp.inference.models import RegisteredModel

from ..conftest import Trainer
from ..lifecycle.test_jobs import fresh, set_row  # noqa: F401 - a fixture
from .test_outputs import output

SECRET = "a secret that no node is told"
PIECE = 1000


@pytest.fixture(scope="module")
def one_server():
    with BucketServer().running() as server:
        yield server


@pytest.fixture
def bucket(one_server, settings, monkeypatch):
    one_server.empty()
    env = settings.ENV.model_copy()
    env.artifact_store, env.artifact_store_endpoint = "s3://backups/runs of us", one_server.url
    env.artifact_store_networks = (IPv4Network("127.0.0.0/8"),)
    env.artifact_store_access_key, env.artifact_store_secret = "AKID", SECRET
    settings.ENV = env
    monkeypatch.setattr(buckets, "RETRY_S", 0.001)
    monkeypatch.setattr("trainer.contracts.storing.PIECE_BYTES", PIECE)
    return one_server


@pytest.fixture
def node(run, tmp_path):
    """The objects of a run's process on another machine: its store, and a folder."""
    return node_of(run, tmp_path / "node")


def node_of(run: Run, folder: Path) -> ObjectStore:
    token = tokens.run_token(run)
    store = ObjectStore(f"http://testserver/api/v1/ingest/runs/{run.id}", token, folder, patience_s=0.0)
    client = Client(headers={"authorization": f"Bearer {token}"})

    def answer(request: httpx.Request) -> httpx.Response:
        found = client.post(request.url.path, request.content, content_type="application/json")
        return httpx.Response(found.status_code, content=found.content)

    store._server = httpx.Client(transport=httpx.MockTransport(answer))
    return store


def folder(path: Path, **files: bytes) -> Path:
    path.mkdir(parents=True)
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def keep(trainer, node: ObjectStore, place: Path, step: int) -> dict:
    """A checkpoint as a process sends and reports it."""
    path = f"checkpoints/step-{step:06d}"
    files = [file.model_dump() for file in node.keep(place, path)]
    told = {"role": "checkpoint", "path": path, "bytes": 1, "digest": "c" * 64, "files": files}
    assert trainer.post(trainer.event("artifact", step, **told)).status_code == 200
    return told


def test_a_checkpoint_goes_to_the_store_in_pieces_and_comes_back_on_another_node(run, trainer, node, bucket, tmp_path):
    weights = os.urandom(2 * PIECE + 17)
    place = folder(tmp_path / "step", policy=weights, empty=b"", state=b"{}")
    (place / "shards").mkdir()
    (place / "shards" / "rank-0").write_bytes(weights[::-1])
    keep(trainer, node, place, 10)
    assert sum(hashlib.sha256(weights).hexdigest() in name for name in bucket.names()) == 3
    answer = trainer.client.get(trainer.url()).json()
    assert (answer["run_dir"], answer["checkpoints"]) == ("", ["checkpoints/step-000010"])
    assert answer["store_url"].endswith(f"/ingest/runs/{run.id}")

    there = tmp_path / "elsewhere"
    told = RunAssignment.model_validate(answer)
    places.newest_checkpoint(told, node_of(run, tmp_path / "other"), there)
    got = there / "checkpoints/step-000010"
    found = {path.relative_to(got).as_posix(): path.read_bytes() for path in got.rglob("*") if path.is_file()}
    assert found == {"policy": weights, "empty": b"", "state": b"{}", "shards/rank-0": weights[::-1]}


def test_what_is_not_what_was_written_is_passed_over_for_the_one_before(run, trainer, node, bucket, tmp_path):
    keep(trainer, node, folder(tmp_path / "1", policy=b"first"), 10)
    keep(trainer, node, folder(tmp_path / "2", policy=b"other"), 20)
    (damaged,) = (name for name in bucket.names() if hashlib.sha256(b"other").hexdigest() in name)
    bucket.put(damaged, b"OTHER")
    told = RunAssignment.model_validate(trainer.client.get(trainer.url()).json())
    places.newest_checkpoint(told, node, tmp_path / "run")
    assert [path.name for path in (tmp_path / "run/checkpoints").iterdir()] == ["step-000010"], "no half folder either"
    (first,) = (name for name in bucket.names() if hashlib.sha256(b"first").hexdigest() in name)
    bucket.put(first, b"FIRST")
    with pytest.raises(StoreRefused, match=r"step-000020: policy of .* is not what was written; .*step-000010"):
        places.newest_checkpoint(told, node, tmp_path / "again")


def test_no_credential_leaves_the_server_and_no_address_is_logged(run, trainer, node, bucket, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)  # log records of every library too
    asked = Upload(path="outputs/policy", files=stored.listed(folder(tmp_path / "m", a=b"1")))
    links = storing.upload(run.id, asked)
    assert SECRET not in links.model_dump_json() + caplog.text
    assert "X-Amz-Signature" in links.files[0].urls[0] and "X-Amz-Signature" not in caplog.text
    assert f"/backups/runs%20of%20us/runs/{run.id}/outputs/policy/" in links.files[0].urls[0]
    assert SECRET not in repr(buckets.access("ARTIFACT_STORE"))
    keep(trainer, node, folder(tmp_path / "1", policy=b"weights"), 10)
    node.fetch("checkpoints/step-000010", tmp_path / "got")
    assert {method for method, _ in bucket.asked} >= {"PUT", "GET"}
    # without the log of the bucket's server
    said = "".join(each.getMessage() for each in caplog.records if each.name != "werkzeug")
    assert said and "X-Amz-" not in said and SECRET not in said


def test_an_answer_that_cannot_be_read_is_told_without_its_addresses(node, tmp_path):
    signed = "https://storage.example/a?X-Amz-Signature=1"
    links = {"files": [{"path": "a", "bytes": "many", "digest": "a" * 64, "urls": [signed]}], "headers": [signed]}
    node._server = httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200, json=links)))
    with pytest.raises(StoreRefused, match=r"files\.0\.bytes: .*; headers: ") as told:
        node.fetch("x", tmp_path / "got")
    assert "Signature" not in "".join(traceback.format_exception(told.value))


def test_a_token_reaches_its_own_run_and_nothing_else(launch, run, trainer, node, bucket, tmp_path):
    other = launch()
    keep(Trainer(other), node_of(other, tmp_path / "n"), folder(tmp_path / "1", policy=b"theirs"), 10)
    stranger = RegisteredModel.objects.create(
        workspace=run.experiment.workspace, name="x", source="local", path=str(folder(tmp_path / "x", a=b"1"))
    )
    stored.copied(run.experiment.workspace_id, [ModelSource(path=stranger.path)])
    for name in ("checkpoints/step-000010", stranger.path, "../1", "/etc"):
        with pytest.raises(StoreRefused, match="has no folder"):
            node.fetch(name, tmp_path / "got")
    for path in ("../../2/checkpoints/x", "/checkpoints", ".hidden"):
        body = {"path": path, "files": [{"path": "a", "bytes": 1, "digest": "a" * 64}]}
        found = trainer.client.post(trainer.url("/store/uploads"), body, content_type="application/json")
        assert found.status_code == 422, path
    assert not (tmp_path / "got").exists()


def test_storage_that_is_away_is_told_and_tried_again_and_nothing_is_half_there(run, trainer, node, bucket, tmp_path):
    place = folder(tmp_path / "1", policy=os.urandom(3 * PIECE))
    bucket.failing = lambda method, path: 503 if method == "PUT" else None
    with pytest.raises(StorageAway, match=r"the artifact store at 127\.0\.0\.1:\d+ answers 503") as told:
        node.keep(place, "checkpoints/step-000010")
    assert "Signature" not in str(told.value)
    assert storing.checkpoints(run) == ()
    calls = []
    bucket.failing = lambda method, path: 503 if method == "PUT" and len(calls) < 2 and not calls.append(1) else None
    node._patience_s = 30.0
    keep(trainer, node, place, 10)
    assert storing.checkpoints(run) == ("checkpoints/step-000010",)


class TestLongTransfers:
    """Each request takes longer than the process waits for storage that is away. Only a request that fails again and again is given up."""

    @pytest.fixture
    def slow(self, node, bucket, monkeypatch):
        """Sets the answer to the first request for each piece."""
        now, seen = [0.0], Counter()
        clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s))
        monkeypatch.setattr("trainer.storing.time", clock)
        node._patience_s = 120.0

        def fail_first(wanted: str, status: int) -> Counter:
            def failing(method: str, path: str) -> int | None:
                if method != wanted:
                    return None
                now[0] += 150.0
                seen[path] += 1
                return status if seen[path] == 1 else None

            bucket.failing = failing
            return seen

        return fail_first

    @pytest.mark.parametrize("status", [503, 403])
    def test_a_piece_that_fails_is_sent_again_and_no_other(self, run, trainer, node, slow, tmp_path, status, asked):
        tries = slow("PUT", status)
        keep(trainer, node, folder(tmp_path / "1", policy=os.urandom(9 * PIECE), state=b"{}"), 10)
        assert len(tries) == 10 and set(tries.values()) == {2}
        assert storing.checkpoints(run) == ("checkpoints/step-000010",)
        assert asked["uploads"] > 2, "new addresses for the tries behind a failure"

    @pytest.mark.parametrize("status", [503, 403])
    def test_a_piece_that_fails_is_fetched_again_and_no_other(self, trainer, node, slow, tmp_path, status, asked):
        weights = os.urandom(9 * PIECE)
        keep(trainer, node, folder(tmp_path / "1", policy=weights, state=b"{}"), 10)
        tries = slow("GET", status)
        node.fetch("checkpoints/step-000010", tmp_path / "got")
        assert (tmp_path / "got/policy").read_bytes() == weights
        assert len(tries) == 10 and set(tries.values()) == {2}
        assert asked["folders"] == 11, "new addresses behind each failure, and for nothing else"

    @pytest.fixture
    def asked(self, node, monkeypatch):
        """The number of requests to the server for addresses, by their purpose."""
        count, links = Counter(), node._links
        monkeypatch.setattr(node, "_links", lambda what, asked: (count.update([what]), links(what, asked))[1])
        return count


@pytest.mark.parametrize("sizes", [[2**62], [4 << 40, 4 << 40], [PIECE * 65_536, 1]])
def test_files_of_more_pieces_than_can_be_signed_are_refused_at_their_field(run, trainer, bucket, sizes):
    files = [{"path": f"f{number}", "bytes": size, "digest": "a" * 64} for number, size in enumerate(sizes)]
    asked = trainer.client.post(
        trainer.url("/store/uploads"), {"path": "outputs/a", "files": files}, content_type="application/json"
    )
    assert asked.status_code == 422 and "files" in str(asked.json()["error"]["fields"])
    told = {"role": "checkpoint", "path": "checkpoints/step-000001", "bytes": 1, "digest": "c" * 64, "files": files}
    answer = trainer.post(trainer.event("artifact", 1, **told))
    assert answer.status_code == 422 and "files" in str(answer.json()["error"]["fields"])
    assert not Artifact.objects.filter(run=run).exists()


def test_older_checkpoints_leave_the_store_and_a_deleted_run_all_of_it(
    run, trainer, node, bucket, tmp_path, eager, django_capture_on_commit_callbacks
):
    most = PolicyConfig().checkpoint.keep
    with django_capture_on_commit_callbacks(execute=True):
        for step in range(1, most + 3):
            keep(trainer, node, folder(tmp_path / str(step), policy=bytes([step])), step)
    rows = {row.step: artifacts.is_there(row) for row in Artifact.objects.filter(run=run)}
    assert [step for step, there in rows.items() if there] == list(range(3, most + 3))
    assert len(bucket.names()) == most
    Run.objects.filter(id=run.id).delete()
    jobs.remove_folder(run.id)
    assert bucket.names() == []


def test_a_forked_run_owns_the_checkpoint_that_it_goes_on_from(launch, run, trainer, node, bucket, tmp_path, team):
    keep(trainer, node, folder(tmp_path / "1", policy=b"weights"), 2)
    other = launch()
    Run.objects.filter(id=other.id).update(forked_from=run, start_step=2, state="starting")
    other, source = fresh(other), Artifact.objects.get(run=run)
    starting_points.keep_checkpoint(source)
    sent = len(bucket.asked)
    starting_points.adopt(source, other)
    assert len(bucket.asked) == sent, "no request of a person waits for a copy"
    Run.objects.filter(id=run.id).update(state="finished")
    with pytest.raises(Conflict, match="has not copied it yet"):
        lifecycle.delete(team.researcher, run)
    for step in range(3, 4 + PolicyConfig().checkpoint.keep):
        keep(trainer, node, folder(tmp_path / f"later-{step}", policy=bytes([step])), step)
    storing.prune(run.id)
    assert "checkpoints/step-000002" in storing.checkpoints(run), "kept for the fork"
    storing._take_over(other, lambda: None)
    storing.prune(run.id)
    assert "checkpoints/step-000002" not in storing.checkpoints(run)
    with pytest.raises(Conflict, match="replaced by a newer one"):
        starting_points.keep_checkpoint(source)
    storing.remove(run.id)
    node_of(other, tmp_path / "n").fetch("checkpoints/step-000002", tmp_path / "got")
    assert (tmp_path / "got/policy").read_bytes() == b"weights"
    assert storing.checkpoints(other) == ("checkpoints/step-000002",)


def test_a_run_deleted_while_its_checkpoint_is_copied_leaves_nothing(launch, run, trainer, node, bucket, tmp_path):
    keep(trainer, node, folder(tmp_path / "1", policy=b"weights"), 2)
    other = launch()
    Run.objects.filter(id=other.id).update(forked_from=run, start_step=2)
    other = fresh(other)
    with pytest.raises(Problem, match="was deleted"):
        storing._take_over(other, lambda: Run.objects.filter(id=other.id).delete() and None)
    assert len(bucket.names()) == 1


def test_pruning_asks_only_for_what_is_there(run, trainer, node, bucket, tmp_path):
    most = PolicyConfig().checkpoint.keep
    for step in range(1, most + 6):
        keep(trainer, node, folder(tmp_path / str(step), policy=bytes([step])), step)
    storing.prune(run.id)
    assert len(bucket.names()) == most
    sent = len(bucket.asked)
    storing.prune(run.id)
    assert len(bucket.asked) - sent == 1, "not one request for each that was ever pruned"


class TestModels:
    @pytest.fixture
    def local(self, model, tmp_path) -> RegisteredModel:
        model.path = str(folder(tmp_path / "smollm", **{"config.json": b"{}", "model.safetensors": os.urandom(2500)}))
        (Path(model.path) / ".git").write_text("no part of the model")
        model.save()
        return model

    def test_a_registered_folder_is_copied_once_and_again_when_it_changes(self, run, node, bucket, local, tmp_path):
        storing.make_ready(run, lambda: None)
        sent = len(bucket.asked)
        storing.make_ready(run, lambda: None)
        assert len(bucket.asked) == sent
        got = node.source(ModelSource(path=local.path))
        assert sorted(path.name for path in Path(got.path).iterdir()) == ["config.json", "model.safetensors"]
        assert node.model(local.path) == Path(got.path), "another run on the node loads the same copy"
        (Path(local.path) / "config.json").write_bytes(b'{"a": 1}')
        storing.make_ready(run, lambda: None)
        assert (node.model(local.path) / "config.json").read_bytes() == b'{"a": 1}'

    def test_a_launch_waits_for_the_storage_in_words(self, run, ray, bucket, local, settings):  # noqa: F811
        bucket.failing = lambda method, path: 503
        assert jobs.launch(run.id) == 1
        told = fresh(run)
        assert told.state == "starting" and "s3://backups/runs of us answers 503" in told.state_reason
        assert "It is tried again until it works" in told.state_reason and ray.jobs == {}
        bucket.failing = lambda method, path: None
        set_row(run, next_try_at=told.created_at)
        assert jobs.launch(run.id) is None
        assert list(ray.jobs) == [f"run-{run.id}-1"]
        assert not any(
            "ARTIFACT_STORE" in name or "AWS" in name
            for name in ray.jobs[f"run-{run.id}-1"]["body"]["runtime_env"]["env_vars"]
        )

    def test_a_folder_that_is_gone_fails_the_launch_in_words(self, run, ray, bucket):  # noqa: F811
        jobs.launch(run.id)
        assert fresh(run).state == "failed" and "there is no folder /models/smollm2" in fresh(run).state_reason

    @pytest.mark.parametrize("name", ["training args.bin", f"{'x' * 201}.json", f"{'sub/' * 50}config.json"])
    def test_a_file_that_the_store_cannot_keep_fails_the_launch_by_name(self, run, ray, bucket, local, name):  # noqa: F811
        (Path(local.path) / name).parent.mkdir(parents=True, exist_ok=True)
        (Path(local.path) / name).write_bytes(b"{}")
        assert jobs.launch(run.id) is None
        told = fresh(run)
        assert told.state == "failed" and f"cannot keep the file {local.path}/{name}: it takes names of" in (
            told.state_reason
        )
        assert bucket.names() == [] and ray.jobs == {}

    def test_the_claim_is_kept_while_a_large_file_is_read_and_while_a_piece_is_sent(
        self,
        run,
        bucket,
        local,
        monkeypatch,
    ):
        monkeypatch.setattr(artifact_store, "BEAT_S", 0.05)
        monkeypatch.setattr(artifact_store, "BLOCK", 500)
        beats: list[Any] = []
        put = obstore.put
        monkeypatch.setattr(stored, "time", SimpleNamespace(monotonic=itertools.count(0.0, 20.0).__next__))
        stored.listed(Path(local.path), lambda: beats.append("read"))
        assert len(beats) == 1 + 5, "one for each block, as each takes so long"

        def slowly(*told):
            ends = time.monotonic() + SECONDS
            while len(beats) < 3 and time.monotonic() < ends:
                time.sleep(0.01)
            return put(*told)

        beats.clear()
        monkeypatch.setattr(obstore, "put", slowly)
        (file,) = (each for each in stored.listed(Path(local.path)) if each.path == "config.json")
        artifact_store.keep("models/1", Path(local.path), [file], lambda: beats.append(threading.get_ident()))
        assert len(beats) > 2 and set(beats) == {threading.get_ident()}, "in the thread that holds the connection"

    def test_what_a_run_trained_is_read_where_it_lies(self, run, trainer, node, bucket, api, settings, tmp_path):
        place = folder(
            tmp_path / "policy", **{"README.md": b"---\na: b\n---\n# Trained here", "adapter.safetensors": bytes(3000)}
        )
        files = [file.model_dump() for file in node.keep(place, "outputs/policy")]
        event = output(trainer)
        event["data"]["files"] = files
        event["data"]["model"]["files"] = files
        trainer.post(event)
        (row,) = RegisteredModel.objects.filter(source="run")
        assert not Path(row.path).exists() and api.get(f"/models/{row.id}").json()["present"] is True
        sent = api.get(f"/models/{row.id}/download")
        with tarfile.open(fileobj=io.BytesIO(b"".join(sent))) as tar:
            assert {Path(each.name).name: each.size for each in tar} == {"README.md": 27, "adapter.safetensors": 3000}
        part = api.client.get(f"/api/v1/models/{row.id}/download", headers={"range": "bytes=512-520"})
        assert b"".join(part) == b"---\na: b\n"
        assert model_files.card(row) == "# Trained here"
        stranger = stored.local_source(ModelSource(path=row.path), run.experiment.workspace_id + 1)
        assert stranger.path == row.path, "another workspace's is not looked up"
        here = stored.local_source(ModelSource(path=row.path), run.experiment.workspace_id)
        assert Path(here.path).is_relative_to(settings.VAR / "fetched")
        assert (Path(here.path) / "adapter.safetensors").read_bytes() == bytes(3000)
        sent = len(bucket.asked)
        assert model_files.card(row) == "# Trained here" and len(bucket.asked) == sent, "asked for once"
        bucket.failing = lambda method, path: 503
        assert api.get(f"/models/{row.id}/download").status_code == 503
        cache.clear()
        assert model_files.card(row) == ""
        sent = len(bucket.asked)
        assert model_files.card(row) == "" and len(bucket.asked) == sent, "not asked again at once"
        with pytest.raises(ServerStoreAway, match="answers 503"):
            artifact_store.fetch("runs/x", stored.placed(row).files, tmp_path / "half")
        assert not list(tmp_path.glob("half*")) + list(tmp_path.glob(".half*"))

    def test_what_went_to_the_store_wins_over_what_an_earlier_attempt_left_here(
        self, run, trainer, node, bucket, api, tmp_path
    ):
        folder(artifacts.folder(run.id) / "outputs/policy", **{"README.md": b"old", "adapter.safetensors": b"old"})
        files = [
            file.model_dump()
            for file in node.keep(
                folder(tmp_path / "new", **{"README.md": b"new", "adapter.safetensors": b"new"}), "outputs/policy"
            )
        ]
        event = output(trainer)
        event["data"]["files"] = event["data"]["model"]["files"] = files
        trainer.post(event)
        (row,) = RegisteredModel.objects.filter(source="run")
        artifact = Artifact.objects.get(run=run)
        assert model_files.card(row) == "new"
        here = stored.local_source(ModelSource(path=row.path), run.experiment.workspace_id).path
        assert (Path(here) / "adapter.safetensors").read_bytes() == b"new"
        assert (artifacts.local_path(artifact) / "adapter.safetensors").read_bytes() == b"new"
        for url in (f"/models/{row.id}/download", f"/runs/{run.id}/artifacts/{artifact.id}/download"):
            sent = b"".join(api.get(url))
            assert b"new" in sent and b"old" not in sent, url

    def test_a_card_keeps_no_page_waiting_for_storage_that_says_nothing(self, settings, bucket, monkeypatch):
        silent = socket.create_server(("127.0.0.1", 0))
        env = settings.ENV.model_copy()
        env.artifact_store_endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings.ENV = env
        monkeypatch.setattr(model_files, "CARD_WITHIN_S", 0.3)
        file = {"path": "README.md", "bytes": 3, "digest": "a" * 64}
        began = time.monotonic()
        assert model_files._in_store(stored.placed_at("runs/1/outputs/policy", [file])) == ""
        assert time.monotonic() - began < 8
        silent.close()

    def test_copies_that_nobody_asks_for_are_forgotten(self, settings):
        there = settings.VAR / stored.FETCHED
        for name, days in (("old", 31), ("used", 29)):
            folder(there / name, a=b"1")
            then = time.time() - days * 86_400
            os.utime(there / name, (then, then))
        stored.forget_fetched()
        assert [path.name for path in there.iterdir()] == ["used"]


def test_a_run_that_began_on_this_disk_goes_on_in_the_store(launch, run, trainer, bucket, model, tmp_path):
    folder(artifacts.folder(run.id) / "checkpoints" / "step-000004", state=b"{}")
    model.path = str(folder(tmp_path / "m", **{"config.json": b"{}"}))
    model.save()
    storing.make_ready(fresh(run), lambda: None)
    assert storing.checkpoints(run) == ("checkpoints/step-000004",)


def test_without_a_store_nothing_changes(run, trainer):
    answer = trainer.client.get(trainer.url()).json()
    assert answer["run_dir"] == str(artifacts.folder(run.id)) and answer["store_url"] == ""
    storing.remove(run.id)  # needs no storage, and does not fail without one
