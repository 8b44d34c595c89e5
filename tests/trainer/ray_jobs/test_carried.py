"""One job that trains several runs. Each has its own assignment, folder, events and end."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests import fork_server
from tests.trainer.loops.conftest import SMALL, metrics_of
from trainer.config import resolve
from trainer.contracts import CARRIES, Example, ModelSource
from trainer.devices import CHOICE
from trainer.inference.adapters import whole_directory
from trainer.ray_jobs import entry, folder
from trainer.ray_jobs.entry import job

from ..running import run
from .test_entry import Ingest


class Front:
    """One address for the servers of the runs 7, 8 and 9."""

    def __init__(self, runs: dict[int, Ingest]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def passed_on(self) -> None:
                behind = runs[int(self.path.split("/")[5])]
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {"Authorization": self.headers["Authorization"]}
                found = httpx.request(
                    self.command, f"{behind.url}{self.path}", content=body, headers=headers, trust_env=False
                )
                self.send_response(found.status_code)
                self.end_headers()
                self.wfile.write(found.content)

            do_GET = do_POST = passed_on

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def runs(
    examples: list[Example], tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[int, Ingest]]:
    made = {number: Ingest(examples, tiny_dir, tmp_path / "runs" / str(number)) for number in (7, 8, 9)}
    for number, server in made.items():
        lora = {"model": {"lora": {"rank": number - 5, "alpha": 4}}}
        server.assignment |= {"run_id": number, "config": SMALL | lora}
        server.assignment["examples_url"] = f"{server.url}/api/v1/ingest/runs/{number}/examples"
    front = Front(made)
    for name, value in (("URL", front.url), ("RUN_ID", "7"), ("RUN_TOKEN", "t")):
        monkeypatch.setenv(f"TOUCHSTONE_{name}", value)
    monkeypatch.setenv(CARRIES, json.dumps({"8": "t", "9": "t"}))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(entry, "processes_for", lambda models: 1)  # a fork does not copy the threads of these servers
    yield made
    front.close()
    for server in made.values():
        server.http.shutdown()
        server.http.server_close()


def test_each_run_is_carried_out_as_by_itself(
    runs: dict[int, Ingest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert job([]) == 0
    assert [[name for name, _ in server.states()] for server in runs.values()] == 3 * [["running", "finished"]]
    together = {number: metrics_of(tmp_path / "runs" / str(number)) for number in runs}
    monkeypatch.delenv(CARRIES)
    for number, server in runs.items():
        server.assignment["run_dir"] = str(tmp_path / "alone" / str(number))
        monkeypatch.setenv("TOUCHSTONE_RUN_ID", str(number))
        assert job([]) == 0
        assert metrics_of(tmp_path / "alone" / str(number)) == together[number] != {}


def test_small_models_are_trained_by_several_processes_of_the_job(
    runs: dict[int, Ingest], tmp_path: Path, tiny_dir: Path
) -> None:
    """Two cores for three runs. Each core uses one thread, so that numbers do not depend on the machine."""
    program = fork_server.command("tests.trainer.ray_jobs.on_two_cores")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", CHOICE: "cpu"}
    made = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert [[name for name, _ in server.states()] for server in runs.values()] == 3 * [["running", "finished"]]
    assert all(f"run {number}" in made.stdout for number in runs)
    times = {
        number: [event.time for event in server.events.values() if event.data.kind == "metrics"]
        for number, server in runs.items()
    }
    assert times[7][0] < times[8][-1] and times[8][0] < times[7][-1], "they trained at the same time"
    together = {number: metrics_of(tmp_path / "runs" / str(number)) for number in runs}
    for number, server in runs.items():
        config = resolve(server.assignment["recipe"], server.assignment["config"])
        alone = tmp_path / "alone" / str(number)
        assert run(config, tmp_path / "runs" / "7" / "examples.jsonl", tiny_dir, alone)
        assert metrics_of(alone) == together[number] != {}


def test_who_cannot_say_now_what_the_models_are_trains_in_one_process(
    runs: dict[int, Ingest], tiny_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "processes_for", lambda models: 2 if list(models) == [tiny_dir] else 0)
    assert entry._processes("8", "t") == 2
    assert entry._processes("8", "old") == 1
    monkeypatch.delenv("TOUCHSTONE_URL")
    assert entry._processes("8", "t") == 1


def test_one_that_cannot_begin_and_one_that_fails_keep_nobody_else_from_training(
    runs: dict[int, Ingest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOUCHSTONE_RUN_TOKEN", "old")
    runs[8].assignment["config"] = {"stepz": 3}
    assert job([]) == 1
    assert "HTTP 401" in capsys.readouterr().err and runs[7].states() == []
    assert runs[8].states() == [("failed", "stepz: unknown key; did you mean steps?")]
    assert runs[9].states()[-1][0] == "finished"
    for number in (8, 9):  # left to the next attempt
        with folder.lock_folder(tmp_path / "runs" / str(number), 0.0):
            pass


def test_a_base_with_adapters_is_merged_once_for_all(
    runs: dict[int, Ingest], tmp_path: Path, tiny_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from peft import LoraConfig, get_peft_model

    from trainer.inference.models import load_model

    adapter = tmp_path / "adapter"
    get_peft_model(load_model(tiny_dir), LoraConfig(r=2, target_modules="all-linear")).save_pretrained(str(adapter))
    made: list[Path] = []
    whole = whole_directory

    def noted(source: ModelSource, kept: Path) -> Path:
        made.append(kept)
        return whole(source, kept)

    monkeypatch.setattr(entry, "whole_directory", noted)
    for server in runs.values():
        server.assignment["models"] = {"base": {"path": str(tiny_dir), "adapters": [str(adapter)]}}
    assert job([]) == 0
    assert made == [tmp_path / "runs" / "7" / "merged" / "base"]
    assert [server.states()[-1][0] for server in runs.values()] == 3 * ["finished"]
