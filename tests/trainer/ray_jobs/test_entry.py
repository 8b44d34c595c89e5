"""The job with a server that gives out an assignment, streams examples and stores events."""

import hashlib
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.loops.conftest import SMALL
from trainer.contracts import ArtifactData, EventBatch, Example, RunEvent
from trainer.outputs import list_files
from trainer.ray_jobs import entry, folder
from trainer.ray_jobs.entry import job


class Ingest:
    """One run, number 7, with the token `t`."""

    def __init__(self, examples: list[Example], model: Path, run_dir: Path) -> None:
        self.lines = "".join(example.canonical() + "\n" for example in examples)
        digests = sorted(example.digest() + "\n" for example in examples)
        self.events: dict[int, RunEvent] = {}
        self.away: Callable[[], bool] | None = None
        self.assignment: dict[str, Any] = {
            "run_id": 7,
            "name": "test",
            "recipe": "policy",
            "config": SMALL,
            "attempt": 1,
            "resume": False,
            "last_seq": 0,
            "models": {"base": {"path": str(model)}},
            "run_dir": str(run_dir),
            "examples_digest": hashlib.sha256("".join(digests).encode()).hexdigest(),
        }
        self.objects: dict[str, bytes] = {}
        self.model = model
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                assert "Authorization" not in self.headers, "storage never sees the run's token"
                outer.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
                return outer.reply(self, "")

            def do_GET(self) -> None:
                if self.path in outer.objects:
                    return outer.reply(self, outer.objects[self.path])
                if self.headers["Authorization"] != "Bearer t":
                    return self.send_error(401)
                return outer.reply(
                    self, outer.lines if self.path.endswith("/examples") else json.dumps(outer.assignment)
                )

            def do_POST(self) -> None:
                if outer.away and outer.away():
                    return self.send_error(503)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if "/store/" in self.path:
                    return outer.reply(self, outer.linked(json.loads(body)))
                for event in EventBatch.model_validate_json(body).events:
                    outer.events.setdefault(event.seq, event)
                return outer.reply(self, json.dumps({"acked": len(outer.events)}))

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.assignment["examples_url"] = f"{self.url}/api/v1/ingest/runs/7/examples"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def linked(self, asked: dict[str, Any]) -> str:
        """Addresses for files that the job sends, or for files of the model or of an artifact that it has reported."""
        files = asked.get("files")
        if files is None and asked["name"] == str(self.model):
            files = [file.model_dump() for file in list_files(self.model)]
            for file in files:
                self.objects[f"/objects/{file['digest']}"] = (self.model / file["path"]).read_bytes()
        if files is None:
            (told,) = {each.path: each for each in self.artifacts() if each.path == asked["name"]}.values()
            files = [file.model_dump() for file in told.files]
        urls = [[f"{self.url}/objects/{file['digest']}"] if file["bytes"] else [] for file in files]
        return json.dumps({"files": [{**file, "urls": each} for file, each in zip(files, urls, strict=True)]})

    def artifacts(self) -> list[ArtifactData]:
        return [event.data for event in self.events.values() if isinstance(event.data, ArtifactData)]

    @staticmethod
    def reply(handler: BaseHTTPRequestHandler, text: str | bytes) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(text.encode() if isinstance(text, str) else text)

    def states(self) -> list[tuple[str, str]]:
        kept = [self.events[seq].data for seq in sorted(self.events)]
        return [(data.state, data.reason) for data in kept if data.kind == "state"]


@pytest.fixture
def server(
    examples: list[Example], tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ingest]:
    server = Ingest(examples, tiny_dir, tmp_path / "runs" / "7")
    for name, value in (("URL", server.url), ("RUN_ID", "7"), ("RUN_TOKEN", "t")):
        monkeypatch.setenv(f"TOUCHSTONE_{name}", value)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_a_job_runs_its_assignment_and_delivers_every_event(server: Ingest, tmp_path: Path) -> None:
    assert job([]) == 0
    assert [name for name, _ in server.states()] == ["running", "finished"]
    spooled = (tmp_path / "runs" / "7" / "events.jsonl").read_text().count("\n")
    assert sorted(server.events) == list(range(1, spooled + 1))


def test_a_job_that_shares_no_disk_goes_on_elsewhere_from_what_it_has_stored(
    server: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt is on one node and ends after two steps. The second is on another node and finishes."""
    server.assignment |= {"run_dir": "", "store_url": f"{server.url}/api/v1/ingest/runs/7"}
    server.assignment["config"] = {**SMALL, "steps": 2, "checkpoint": {"every": 1}}
    monkeypatch.setenv("TOUCHSTONE_SCRATCH", str(tmp_path / "one"))
    assert job([]) == 0
    kept = {each.path: each for each in server.artifacts()}
    assert set(kept) >= {"checkpoints/step-000001", "checkpoints/step-000002"} and all(
        each.files for each in kept.values()
    )
    assert not list((tmp_path / "one").glob("*/runs/*")) and not (tmp_path / "runs").exists()

    shutil.rmtree(tmp_path / "one")
    monkeypatch.setenv("TOUCHSTONE_SCRATCH", str(tmp_path / "other"))
    server.assignment |= {"attempt": 2, "resume": True, "last_seq": len(server.events)}
    server.assignment["config"] = {**SMALL, "steps": 3, "checkpoint": {"every": 1}}
    server.assignment["checkpoints"] = ["checkpoints/step-000002", "checkpoints/step-000001"]
    assert job([]) == 0
    assert server.states()[-1][0] == "finished"
    assert any("resumed after step 2" in event.model_dump_json() for event in server.events.values())
    (made,) = {each.path: each for each in server.artifacts() if each.role == "model"}.values()
    assert all(f"/objects/{file.digest}" in server.objects for file in made.files if file.bytes)


def test_a_run_that_failed_keeps_what_may_be_stored_nowhere_else(
    server: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.assignment |= {"run_dir": "", "store_url": f"{server.url}/api/v1/ingest/runs/7"}
    monkeypatch.setenv("TOUCHSTONE_SCRATCH", str(tmp_path / "one"))

    def failing(attempt: entry.Attempt, wholes: Any) -> None:
        (attempt.run_dir / "checkpoints").mkdir()
        attempt.monitor.state("failed", "the storage does not answer")

    monkeypatch.setattr(entry.Attempt, "prepared", failing)
    assert job([]) == 1
    assert list((tmp_path / "one").glob("*/runs/*/checkpoints"))


def test_a_run_that_ends_while_the_database_is_away_still_delivers_its_end(server: Ingest, tmp_path: Path) -> None:
    spool = tmp_path / "runs" / "7" / "events.jsonl"
    ended_at: list[float] = []

    def away() -> bool:
        if not ended_at and '"finished"' in spool.read_text():
            ended_at.append(time.monotonic())
        return not ended_at or time.monotonic() < ended_at[0] + 1.0

    server.away = away
    assert job([]) == 0
    assert server.states()[-1][0] == "finished"


def test_examples_that_are_not_the_frozen_version_are_refused(server: Ingest) -> None:
    server.assignment["examples_digest"] = "0" * 64
    assert job([]) == 1
    (state, reason), *_ = server.states()
    assert state == "failed" and "not the frozen version" in reason


def test_a_config_that_does_not_fit_fails_at_its_field(server: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_REQUEST_ID", "abc123")
    server.assignment["config"] = {"stepz": 3}
    assert job([]) == 1
    assert "request abc123" in str(server.events), "the run's own log leads to the server's"
    assert server.states() == [("failed", "stepz: unknown key; did you mean steps?")]


def test_a_missing_model_is_reported(server: Ingest, tmp_path: Path) -> None:
    server.assignment["models"] = {"base": {"path": str(tmp_path / "nowhere")}}
    assert job([]) == 1
    assert "no config.json here" in server.states()[-1][1]


def test_a_refused_token_ends_the_job_at_once(
    server: Ingest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOUCHSTONE_RUN_TOKEN", "old")
    assert job([]) == 3
    assert "HTTP 401" in capsys.readouterr().err


def test_a_missing_variable_is_named(
    server: Ingest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TOUCHSTONE_RUN_ID")
    assert job([]) == 3
    assert "TOUCHSTONE_RUN_ID is not set" in capsys.readouterr().err


HOLDER = """
import sys
from pathlib import Path
from trainer.ray_jobs import folder
with folder.lock_folder(Path(sys.argv[1]), 1.0):
    print("in", flush=True)
    sys.stdin.read()
"""


def test_a_job_waits_for_the_process_of_an_earlier_attempt_and_writes_nothing_meanwhile(
    server: Ingest, tmp_path: Path
) -> None:
    run_dir = tmp_path / "runs" / "7"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as earlier:
        assert earlier.stdout and earlier.stdout.readline() == b"in\n"
        codes: list[int] = []
        thread = threading.Thread(target=lambda: codes.append(job([])))
        thread.start()
        time.sleep(1.0)
        assert not codes and not (run_dir / "events.jsonl").exists()
        earlier.kill()
        thread.join()
    assert codes == [0] and server.states()[-1][0] == "finished"


def test_a_folder_that_stays_taken_is_left_alone(
    server: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "_PATIENCE_S", 0.3)
    with folder.lock_folder(tmp_path / "runs" / "7", 1.0):
        assert job([]) == 3
    assert "another process has been writing to" in capsys.readouterr().err
    assert not server.events


def test_a_job_that_does_not_reach_its_server_says_which_address_and_what_helps(
    server: Ingest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "_PATIENCE_S", 0.0)
    monkeypatch.setenv("TOUCHSTONE_URL", "http://127.0.0.1:9")
    assert job([]) == 3
    said = capsys.readouterr().err
    assert "GET http://127.0.0.1:9/api/v1/ingest/runs/7: ConnectError" in said and "INTERNAL_URL" in said


def test_a_run_whose_examples_cannot_be_fetched_says_so_before_its_first_step(
    server: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "_PATIENCE_S", 0.0)
    server.assignment["examples_url"] = "http://127.0.0.1:9/examples"
    assert job([]) == 1
    ((state, reason),) = server.states()
    assert state == "failed" and "GET http://127.0.0.1:9/examples: ConnectError" in reason
    assert "resume the run; nothing is lost" in reason
