"""The tools of `make chaos` by themselves: what they would miss, no storm would show."""

import math
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from benchmarks.chaos.clock import Clock, compiler
from benchmarks.chaos.comparing import Finding, _compared, events, verdicts
from benchmarks.chaos.installation import Site
from benchmarks.chaos.judge import question
from benchmarks.chaos.killing import ACTORS, AT_WORK_S, ENDS_RUNS, Seen, Up, _kind
from benchmarks.chaos.ledger import Ledger
from benchmarks.chaos.patience import GivenUp
from benchmarks.chaos.proxy import Proxy
from benchmarks.chaos.runs import Launched, Runs
from benchmarks.chaos.slow_disk import SlowDisk, available
from benchmarks.chaos.storm import Mercy
from tests.stack import Stack


def test_the_ledger_gives_back_what_was_written_and_leaves_out_a_torn_line(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.write("answer", id=1)
    ledger.write("killed", pid=7)
    with ledger.path.open("a") as file:
        file.write('{"kind": "answer", "id"')
    assert [row["id"] for row in Ledger(ledger.path).read("answer")] == [1]


def test_what_is_missing_other_or_besides_is_counted() -> None:
    whole = {("loss", 1): 0.1, ("loss", 2): 0.2, ("loss", 3): 0.3}
    found = _compared("metrics", [(whole, {("loss", 1): 0.1, ("loss", 2): math.nextafter(0.2, 1), ("loss", 4): 0.4})])
    assert (found.compared, found.lost, found.doubled) == (3, 2, 1), (
        "one by its last bit, one is missing, one is besides"
    )
    assert not found.holds and _compared("metrics", [(whole, dict(whole))]).holds
    assert not Finding("nothing", 0).holds, "what compares nothing shows nothing"


class Rows:
    """An installation whose database says what it is told to."""

    def __init__(self, ledger: Ledger, *rows: tuple[Any, ...]) -> None:
        self.ledger, self._rows = ledger, list(rows)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._rows


def test_an_answer_without_an_event_is_not_made_up_for_by_another_with_two(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number in (1, 2):
        ledger.write("answer", id=number)
        ledger.write("heard", id=f"event {number}")
    sent = [(f"event {number}", "answer.submitted", "delivered", str(number)) for number in (1, 2)]
    assert all(each.holds for each in events(cast(Site, Rows(ledger, *sent)), 1))
    twice = [(*row[:3], "1") for row in sent]
    heard, of_answers = events(cast(Site, Rows(ledger, *twice)), 1)
    assert heard.holds and (of_answers.compared, of_answers.lost, of_answers.doubled) == (2, 1, 1)


def test_a_question_without_a_verdict_is_not_made_up_for_by_another_with_two(tmp_path: Path) -> None:
    asked = [{"messages": [{"role": "user", "content": text}], "seed": None} for text in ("ä?", "b?")]
    ledger = Ledger(tmp_path / "judge.jsonl")
    for body in (*asked, asked[0]):
        ledger.write("asked", model="m", question=question(body))
    first, second = (("m", "done", body) for body in asked)
    found = verdicts(cast(Site, Rows(ledger, first, second)), ledger)
    assert found.holds and found.told == "1 questions were asked again"
    found = verdicts(cast(Site, Rows(ledger, first, first)), ledger)
    assert (found.compared, found.lost, found.doubled) == (2, 1, 1)
    assert not verdicts(cast(Site, Rows(ledger, first, ("m", "failed", asked[1]))), ledger).holds


@pytest.mark.parametrize(
    ("kind", "name", "line", "parent"),
    [
        ("web server", "python", "python -u -m uvicorn webapp.asgi:application --workers 2", 1),
        ("worker", "python", "python -u -m celery -A webapp worker --pool threads", 1),
        ("beat", "python", "python -u -m celery -A webapp beat --loglevel INFO", 1),
        ("Redis", "valkey-server", "valkey-server unixsocket:/x", 1),
        ("Postgres", "postgres", "/x/bin/postgres -D /x", 1),
        ("Ray's head", "gcs_server", "gcs_server --port 1", 9),
        ("raylet", "raylet", "raylet --x", 9),
        ("learner", "python", "/x/python -m trainer job", 9),
        ("rollout actor", "ray::RolloutActor", "ray::RolloutActor.sample", 9),
        ("reward worker", "ray::RewardActor", "ray::RewardActor", 9),
        ("", "python", "python -m http.server", 1),
    ],
)
def test_every_kind_is_known_by_its_command(kind: str, name: str, line: str, parent: int) -> None:
    assert _kind(Seen(5, name, line, parent), 1) == kind


class Server:
    """An installation whose web server answers from a table, and says of runs what `steps` says."""

    def __init__(self, path: Path) -> None:
        self.steps: dict[int, int] = {}
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[tuple[str, str], httpx.Response] = {}
        api = httpx.Client(base_url="http://away/", transport=httpx.MockTransport(self._answer))
        self.site = Site(cast(Stack, None), api, Ledger(path / "ledger.jsonl"))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        asked = (request.method, request.url.path)
        self.asked.append(asked)
        if asked in self.answers:
            return self.answers[asked]
        step = self.steps[int(request.url.path.rsplit("/", 1)[1])]
        return httpx.Response(200, json={"state": "running", "progress": {"step": step}})


def test_what_is_not_at_work_yet_is_known_by_the_last_that_was_told_of_it() -> None:
    told = [
        "web       running     http://x",
        "celery    running     8 threads",
        "beat      running",
        "redis     running     /x",
    ]
    told += [
        "web       restarting  killed by signal 9: an error",
        "",
        "Touchstone is at http://x",
        "postgres  starting    /x",
    ]
    up, away = Up(), ["web server", "web process", "Postgres", "Postgres backend", "Ray's head", "raylet"]
    assert up.beginning("\n".join(told), 5.0) == away
    told += ["redis     restarting", "redis     running     /x"]
    assert up.beginning("\n".join(told), 6.0) == [*away[:2], "Redis", *away[2:]], "not for long"
    assert up.beginning("\n".join(told), 6.0 + AT_WORK_S) == away


def test_runs_are_set_back_only_once_they_are_further_than_ever(tmp_path: Path) -> None:
    server = Server(tmp_path)
    runs = Runs(server.site, 12, "")
    runs.launched += [Launched(1, "synchronous", True), Launched(2, "asynchronous", True)]
    mercy = Mercy(runs)

    def spared(**steps: int) -> tuple[str, ...]:
        server.steps = {1: steps["sync"], 2: steps["asyn"]}
        runs.look(again=False)
        return mercy.spared()

    assert spared(sync=1, asyn=0) == (*ENDS_RUNS, *ACTORS), "the other would have nothing to go on from"
    assert spared(sync=5, asyn=1) == ()
    mercy.note("rollout actor")
    assert spared(sync=5, asyn=1) == ACTORS
    mercy.note("raylet")
    assert spared(sync=4, asyn=0) == (*ENDS_RUNS, *ACTORS), "gone on from a checkpoint"
    assert spared(sync=5, asyn=2) == ENDS_RUNS, "a step that is made once more is no further"
    mercy.note("web server")
    assert spared(sync=6, asyn=2) == ()


def test_what_sets_runs_back_is_killed_once_where_nothing_is_trained(tmp_path: Path) -> None:
    mercy = Mercy(Runs(Server(tmp_path).site, 0, ""))
    assert mercy.spared() == ()
    mercy.note("Ray's head")
    assert mercy.spared() == (*ENDS_RUNS, *ACTORS)


def test_what_was_made_though_its_answer_got_lost_is_found_by_its_name(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.answers["POST", "/judges"] = httpx.Response(422, json={"errors": {"name": "another has it"}})
    server.answers["GET", "/judges"] = httpx.Response(200, json={"items": [{"id": 3, "name": "mine"}], "next": None})
    assert server.site.named("judges", "mine") == 3
    with pytest.raises(GivenUp, match="another has it"):
        server.site.named("judges", "not mine")
    server.answers["POST", "/judges"] = httpx.Response(201, json={"id": 8, "judge_id": 4})
    assert server.site.named("judges", "not mine") == 4


def test_a_way_that_is_cut_lets_nobody_through_and_throws_out_who_was_on_it() -> None:
    far, proxy = socket.create_server(("127.0.0.1", 0)), Proxy()
    proxy.to = far.getsockname()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as near:
        there, _ = far.accept()
        near.sendall(b"a")
        assert there.recv(1) == b"a"
        proxy.cut()
        assert near.recv(1) == b""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as near:
        assert near.recv(1) == b""
    proxy.mend()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as near:
        there, _ = far.accept()
        there.sendall(b"b")
        assert near.recv(1) == b"b"
    proxy.close()
    far.close()


SYNC = """
import os, sys, time
with open(sys.argv[1], "w") as file:
    began = time.monotonic()
    os.fsync(file.fileno())
    os.fdatasync(file.fileno())
print(time.monotonic() - began)
"""


@pytest.mark.skipif(not available(), reason="the kernel's number of fsync is not known for this machine")
def test_a_slow_disk_holds_up_each_sync_of_a_program_that_knows_nothing_of_it(tmp_path: Path) -> None:
    disk = SlowDisk(0.2)
    command = [sys.executable, "-c", SYNC, str(tmp_path / "file")]
    with subprocess.Popen(command, preexec_fn=disk.enter, stdout=subprocess.PIPE) as program:
        disk.start()
        told, _ = program.communicate(timeout=60)
    assert float(told) >= 0.4 and disk.held == 2
    disk.close()


TICKS = """
import sys, time
for line in sys.stdin:
    time.sleep(0.001)
    print(time.time(), time.monotonic(), flush=True)
"""


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_a_clock_is_set_under_a_program_that_runs_and_the_one_that_only_runs_forward_is_true() -> None:
    clock = Clock()
    command = [sys.executable, "-c", TICKS]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(command, env={**os.environ, **clock.environment}, **pipes) as program:

        def off() -> float:
            """Hours."""
            assert program.stdin and program.stdout
            program.stdin.write("?\n")
            wall, steady = map(float, program.stdout.readline().split())
            assert abs(steady - time.monotonic()) < 60
            return (wall - time.time()) / 3600

        found = []
        for hours in (0, -2, 0, 2):
            clock.set(hours)
            found.append(off())
        program.stdin.close()  # type: ignore[union-attr]
    assert found == [pytest.approx(hours, abs=0.02) for hours in (0, -2, 0, 2)]
    clock.close()
