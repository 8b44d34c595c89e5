"""Delivery to a real HTTP server that loses replies, refuses, and forgets."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.timeouts import SECONDS
from trainer.contracts import EventBatch, LogData
from trainer.monitors import HttpSink, RunMonitor, Spool
from trainer.monitors import sink as sink_module


class Server:
    """Keeps every event once, by number. `troubles` are the first statuses that it answers; 0 means that the reply is lost."""

    def __init__(self) -> None:
        self.stored: dict[int, str] = {}
        self.posts: list[tuple[float, EventBatch]] = []
        self.troubles: list[int] = []
        self.command = "continue"
        self.token = "secret"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/events"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        if handler.headers["Authorization"] != f"Bearer {self.token}":
            return handler.send_error(401)
        trouble = self.troubles.pop(0) if self.troubles else 200
        if trouble in (0, 200):
            batch = EventBatch.model_validate_json(body)
            self.posts.append((time.monotonic(), batch))
            for event in batch.events:
                self.stored.setdefault(event.seq, event.data.model_dump_json())
        if trouble == 0:
            return handler.connection.close()
        if trouble != 200:
            return handler.send_error(trouble)
        acked = 0
        while acked + 1 in self.stored:
            acked += 1
        reply = json.dumps({"acked": acked, "command": self.command}).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(reply)))
        handler.end_headers()
        handler.wfile.write(reply)
        return None

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_module, "_HEARTBEAT_S", 0.1)
    monkeypatch.setattr(sink_module, "_LINGER_S", 0.0)
    monkeypatch.setattr(sink_module, "_BACKOFF_MAX_S", 0.05)


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Callable[..., tuple[Spool, HttpSink]]]:
    started = []

    def start(token: str = "secret") -> tuple[Spool, HttpSink]:  # noqa: S107
        spool = Spool(tmp_path / "events.jsonl")
        sink = HttpSink(spool, server.url, token, attempt=1)
        sink.start()
        started.append(sink)
        return spool, sink

    yield start
    for sink in started:
        sink.close(0.0)


def say(spool: Spool, sink: HttpSink, *texts: str) -> None:
    for text in texts:
        spool.append(LogData(message=text))
    sink.notify()


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def messages(server: Server) -> list[str]:
    return [json.loads(server.stored[seq])["message"] for seq in sorted(server.stored)]


def test_events_arrive_in_order_and_are_acknowledged(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]]
) -> None:
    spool, sink = start()
    say(spool, sink, "a", "b", "c")
    assert sink.close(SECONDS)
    assert messages(server) == ["a", "b", "c"]
    assert spool.path.with_name("acked").read_text() == "3"


def test_a_lost_reply_is_answered_by_sending_again(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]]
) -> None:
    server.troubles = [0, 0]
    spool, sink = start()
    say(spool, sink, "a")
    assert until(lambda: sink.acked == 1)
    assert messages(server) == ["a"]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_server_in_trouble_is_tried_again(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]], status: int
) -> None:
    server.troubles = [status] * 3
    spool, sink = start()
    say(spool, sink, "a")
    assert until(lambda: sink.acked == 1)
    assert sink.command == "continue"


def test_a_refused_token_means_abandon_and_silence(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]]
) -> None:
    spool, sink = start(token="of an older attempt")
    say(spool, sink, "a")
    assert until(lambda: sink.command == "abandon")
    assert not sink.close(5.0)
    assert server.stored == {}


def test_silence_is_filled_with_heartbeats(server: Server, start: Callable[..., tuple[Spool, HttpSink]]) -> None:
    start()
    assert until(lambda: len(server.posts) >= 3)
    assert all(batch.events == () for _, batch in server.posts)


def test_a_stop_reaches_the_run_with_the_next_heartbeat(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]]
) -> None:
    spool, sink = start()
    monitor = RunMonitor(spool, sink)
    assert monitor.command == "continue"
    server.command = "stop"
    assert until(lambda: monitor.command == "stop")


def test_many_events_travel_in_batches_of_the_allowed_size(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]]
) -> None:
    spool = start()[0]
    for number in range(450):
        spool.append(LogData(message=str(number)))
    assert until(lambda: len(server.stored) == 450)
    assert max(len(batch.events) for _, batch in server.posts) <= 200


def test_a_batch_stays_below_the_allowed_bytes(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_module, "MAX_POST_BYTES", 3000)
    server.troubles = [503]
    spool, sink = start()
    say(spool, sink, *("x" * 900 for _ in range(6)))
    assert until(lambda: len(server.stored) == 6)
    assert max(len(batch.model_dump_json()) for _, batch in server.posts) < 3000


def test_a_restart_sends_only_what_is_not_acknowledged(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]]
) -> None:
    spool, sink = start()
    say(spool, sink, "a", "b")
    assert sink.close(SECONDS)
    server.posts.clear()
    spool, sink = start()
    say(spool, sink, "c")
    assert sink.close(SECONDS)
    assert [event.seq for _, batch in server.posts for event in batch.events] == [3]


def test_a_server_restored_from_a_backup_gets_everything_again(
    server: Server, start: Callable[..., tuple[Spool, HttpSink]]
) -> None:
    spool, sink = start()
    say(spool, sink, "a", "b", "c")
    assert until(lambda: sink.acked == 3)
    del server.stored[2], server.stored[3]
    say(spool, sink, "d")
    assert until(lambda: len(server.stored) == 4)
    assert messages(server) == ["a", "b", "c", "d"]


def test_each_post_says_where_the_events_of_this_attempt_begin(server: Server, tmp_path: Path) -> None:
    earlier = Spool(tmp_path / "events.jsonl")
    earlier.append(LogData(message="unheard"))
    earlier.close()
    spool = Spool(tmp_path / "events.jsonl")
    sink = HttpSink(spool, server.url, "secret", attempt=2)
    sink.start()
    say(spool, sink, "mine")
    assert sink.close(SECONDS)
    assert messages(server) == ["unheard", "mine"]
    assert {batch.begins for _, batch in server.posts} == {2}
