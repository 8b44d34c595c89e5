"""A virus scanner checks the files that people send. A small server replaces it here, with clamd's protocol."""

import json
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pydantic import ValidationError

from tests.team import ApiClient, browser
from webapp.core import scanning
from webapp.datasets.models import ImportJob
from webapp.environment import Environment

from .connections import accept_connections

pytestmark = pytest.mark.django_db
ROW = json.dumps({"prompt": "Hi", "chosen": "a", "rejected": "b"}) + "\n"
BAD = "no virus, but a word that this scanner knows"


class Clamd:
    """Finds BAD. It accepts files up to `largest` bytes and closes the connection for larger ones. If `answer` is set, it is sent instead.
    A scan takes `scan_s` seconds.
    """

    def __init__(self, family: int, address: Any) -> None:
        self.seen: list[bytes] = []
        self.pieces = 0
        self.largest, self.answer, self.scan_s = 1 << 30, b"", 0.0
        self.line = socket.socket(family)
        self.line.bind(address)
        self.line.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for client in accept_connections(self.line):
            with client, client.makefile("rb") as stream:
                self._look(client, stream)

    def _look(self, client, stream) -> None:
        assert stream.read(10) == b"zINSTREAM\0"
        found = b""
        while size := int.from_bytes(stream.read(4), "big"):
            found += stream.read(size)
            self.pieces += 1
            if len(found) > self.largest:
                client.sendall(b"INSTREAM size limit exceeded. ERROR\0")
                return
        self.seen.append(found)
        time.sleep(self.scan_s)
        verdict = b"stream: Word.Known FOUND\0" if BAD.encode() in found else b"stream: OK\0"
        with suppress(OSError):  # nobody waits for it any longer
            client.sendall(self.answer or verdict)


@pytest.fixture
def clamd(settings):
    server = Clamd(socket.AF_INET, ("127.0.0.1", 0))
    settings.CLAMD = f"tcp://127.0.0.1:{server.line.getsockname()[1]}"
    yield server
    server.line.close()


def upload_form(text: str) -> dict[str, object]:
    return {"file": SimpleUploadedFile("pairs.jsonl", text.encode()), "name": "Pairs", "format": "auto"}


def test_what_the_scanner_knows_is_refused_on_pages_and_by_the_api(team, clamd):
    home, script = browser(team.researcher), ApiClient(team.researcher)
    page = home.post("/datasets/import", upload_form(ROW + BAD))
    assert page.status_code == 422 and "found Word.Known in pairs.jsonl" in page.content.decode()
    told = script.client.post("/api/v1/datasets/import", upload_form(BAD))
    assert (told.status_code, told.json()["error"]["code"]) == (422, "file_refused")
    shown = home.post("/datasets/import/preview", upload_form(BAD), headers={"HX-Request": "true"})
    assert shown.status_code == 400 and "Word.Known" in shown.json()["error"]["message"]
    for path in ("/evaluations/recordings", "/api/v1/evaluations/recordings"):
        assert home.post(path, upload_form(BAD)).status_code == 422
    assert not ImportJob.objects.exists() and len(clamd.seen) == 5


def test_a_clean_file_is_seen_whole_in_pieces_and_then_taken(team, clamd):
    rows = "".join(json.dumps({"prompt": f"Hi {n}", "chosen": "a" * 99, "rejected": "b"}) + "\n" for n in range(3000))
    assert browser(team.researcher).post("/datasets/import", upload_form(rows)).status_code == 302
    assert clamd.seen == [rows.encode()] and clamd.pieces > 1
    assert ImportJob.objects.count() == 1


def test_a_scanner_at_a_socket_of_this_machine(team, settings, tmp_path):
    server = Clamd(socket.AF_UNIX, str(tmp_path / "clamd.ctl"))
    settings.CLAMD = f"unix://{tmp_path}/clamd.ctl"
    assert browser(team.researcher).post("/datasets/import", upload_form(ROW)).status_code == 302
    assert browser(team.researcher).post("/datasets/import", upload_form(BAD)).status_code == 422
    server.line.close()


@pytest.mark.parametrize("how", ["away", "too large", "nonsense", "too slow"])
@pytest.mark.parametrize(("setting", "status", "imports"), [("refuse", 503, 0), ("take", 302, 1)])
def test_a_file_that_was_not_looked_at(team, clamd, settings, caplog, monkeypatch, how, setting, status, imports):
    settings.CLAMD_AWAY = setting
    if how == "away":
        clamd.line.shutdown(socket.SHUT_RDWR)
        clamd.line.close()
    elif how == "too large":
        clamd.largest = 10
    elif how == "too slow":
        monkeypatch.setattr(scanning, "SCAN_S", 0.1)
        clamd.scan_s = 1.0
    else:
        clamd.answer = b"\0"
    answer = browser(team.researcher).post("/datasets/import", upload_form(ROW))
    assert answer.status_code == status and ImportJob.objects.count() == imports
    assert "unseen" in caplog.text
    if status == 503:
        assert "does not accept unchecked files" in answer.content.decode()


def test_a_scan_may_take_longer_than_the_way_of_a_piece(team, clamd, monkeypatch):
    """clamd answers after it has read the whole file: for gigabytes this takes minutes."""
    monkeypatch.setattr(scanning, "PATIENCE_S", 0.3)
    clamd.scan_s = 1.0
    assert browser(team.researcher).post("/datasets/import", upload_form(ROW)).status_code == 302
    assert ImportJob.objects.count() == 1 and scanning.SCAN_S > 120


def test_forms_without_files_and_installations_without_a_scanner_ask_nobody(team, clamd, settings, monkeypatch):
    assert browser(team.owner).post("/workspaces", {"name": "Mine"}).status_code == 302 and clamd.seen == []
    settings.CLAMD = None
    monkeypatch.setattr(scanning, "scan", None)
    assert browser(team.researcher).post("/datasets/import", upload_form(BAD)).status_code == 302


@pytest.mark.parametrize(
    "address", ["host:abc", "host:99999", "host:-1", "host:0", ":3310", "[::1", "us:er@host", "h?x", "a..b"]
)
def test_an_address_that_no_scanner_can_have_stops_the_start(address):
    with pytest.raises(ValidationError, match="clamd"):
        Environment(_env_file=None, clamd=f"tcp://{address}")


@pytest.mark.parametrize(
    "address", ["tcp://clamav.internal:3310", "tcp://host", "tcp://[::1]:3310", "unix:///run/c.ctl"]
)
def test_addresses_that_a_scanner_can_have(address):
    assert Environment(_env_file=None, clamd=address).clamd == address
