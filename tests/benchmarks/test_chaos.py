"""The tools of `make chaos` by themselves. If a tool missed a failure, a storm would not show it."""

import math
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from benchmarks.chaos.clock import ShiftedClock, compiler
from benchmarks.chaos.comparing import ChaosFinding, _compared, events, published, verdicts
from benchmarks.chaos.installation import Site
from benchmarks.chaos.judge import question
from benchmarks.chaos.killing import ACTORS, ENDS_RUNS, SERVICES, SHARES, Hit, KillDraws, SeenProcess, Up, _kind
from benchmarks.chaos.ledger import Ledger
from benchmarks.chaos.patience import GivenUp
from benchmarks.chaos.proxy import Proxy
from benchmarks.chaos.runs import Launched, Runs
from benchmarks.chaos.slow_disk import SlowDisk, available
from benchmarks.chaos.storm import Mercy
from tests.stack import Stack
from webapp.localstack.supervisor import HEALTHY_AFTER_S


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
    assert not ChaosFinding("nothing", 0).holds, "what compares nothing shows nothing"


class Rows:
    """An installation whose database answers with given rows."""

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
    assert _kind(SeenProcess(5, name, line, parent), 1) == kind


class Server:
    """An installation whose web server answers from a table."""

    def __init__(self, path: Path) -> None:
        self.answers: dict[tuple[str, str], httpx.Response] = {}
        api = httpx.Client(base_url="http://away/", transport=httpx.MockTransport(self._answer))
        self.site = Site(cast(Stack, SimpleNamespace(var=path)), api, Ledger(path / "ledger.jsonl"))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        return self.answers.get((request.method, request.url.path), httpx.Response(503))

    def checkpoint(self, run: int, step: int) -> None:
        (self.site.run_folder(run) / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)


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
    assert up.beginning("\n".join(told), 6.0 + SHARES["Redis"].rest_s) == away
    assert all(SHARES[kind].rest_s > HEALTHY_AFTER_S for kind in SERVICES), "or its supervisor waits longer and longer"


RAY = ["Ray's head", "raylet"]


def two_runs(server: Server, steps: int = 60) -> Runs:
    """Run 1 is synchronous, run 2 is asynchronous."""
    runs = Runs(server.site, steps, "")
    runs.launched += [Launched(1, "synchronous", True), Launched(2, "asynchronous", True)]
    return runs


def test_a_run_is_ended_only_once_it_has_a_newer_checkpoint_than_at_its_last_end(tmp_path: Path) -> None:
    server = Server(tmp_path)
    mercy = Mercy(two_runs(server))
    assert (mercy.may_end(), mercy.spared()) == ([], [*RAY, *ACTORS]), "they would begin anew"
    server.checkpoint(1, 2)
    assert (mercy.may_end(), mercy.spared()) == ([1], [*RAY, *ACTORS]), "the web server need not answer for that"
    mercy.note(Hit("learner", 1))
    server.checkpoint(2, 2)
    assert (mercy.may_end(), mercy.spared()) == ([2], RAY)
    server.checkpoint(1, 4)
    assert (mercy.may_end(), mercy.spared()) == ([1, 2], [])
    mercy.note(Hit("raylet"))
    assert (mercy.may_end(), mercy.spared()) == ([], [*RAY, *ACTORS])
    shutil.rmtree(server.site.run_folder(1))
    server.checkpoint(1, 4)
    assert mercy.may_end() == [], "a checkpoint that is made once more is no newer"


def test_an_actor_is_killed_once_the_asynchronous_run_is_further_than_at_the_last_such_kill(tmp_path: Path) -> None:
    server = Server(tmp_path)
    mercy = Mercy(two_runs(server))
    server.checkpoint(2, 2)
    for actor, step in (("rollout actor", 4), ("reward worker", 6)):
        assert not {*ACTORS} & {*mercy.spared()}
        mercy.note(Hit(actor))
        assert {*ACTORS} <= {*mercy.spared()} and mercy.may_end() == [2], "an actor's end is not the run's"
        server.checkpoint(2, step)
    mercy.note(Hit("web server"))
    assert not {*ACTORS} & {*mercy.spared()}


def test_ray_is_killed_while_one_run_goes_on_and_the_other_is_over(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.answers["GET", "/runs/1"] = httpx.Response(
        200, json={"state": "finished", "progress": {"step": 60}, "id": 1}
    )
    server.answers["GET", "/runs/2"] = httpx.Response(200, json={"state": "running", "progress": {"step": 3}, "id": 2})
    runs = two_runs(server)
    runs.look(again=False)
    server.checkpoint(2, 2)
    assert Mercy(runs).spared() == []


def test_ray_is_killed_once_where_nothing_is_trained(tmp_path: Path) -> None:
    mercy = Mercy(Runs(Server(tmp_path).site, 0, ""))
    assert mercy.spared() == []
    mercy.note(Hit("Ray's head"))
    assert mercy.spared() == [*ENDS_RUNS, *ACTORS]


def test_who_is_furthest_behind_its_share_is_hit_and_who_was_hit_rests() -> None:
    draws = KillDraws(3)
    for _ in range(5):
        draws.note("Redis", 0.0)
    draws.note("Postgres", 0.0)
    there = ["Redis", "Postgres", "judge"]
    assert draws.kind(there, 5.0) == "judge", "the only one that does not rest"
    draws.note("judge", 5.0)
    draws.note("judge", 5.0)
    assert draws.kind(there, 14.0) == ""
    assert {draws.kind(there, 100.0) for _ in range(50)} == {"judge", "Postgres"}, "5 / 4 is ahead of 2 / 4 and 1 / 2"
    assert draws.kind(["judge"], 100.0) == "", "an installation that is away is not hit"


def test_who_was_hit_while_it_began_is_hit_again_only_once_it_was_at_work() -> None:
    draws, there, web = KillDraws(3), ["web server", "web process"], ["web server", "web process"]
    drawn = [kind for second in range(100) if (kind := draws.kind(there, float(second), web))]
    assert 0 < len(drawn) < 30 and {*drawn} == {*there}, "one of ten draws hits who begins"
    draws.note("web process", 0.0, web)
    assert not any(draws.kind(there, 1000.0 + second, web) for second in range(100)), "its server begins with it"
    assert draws.kind(there, 2000.0)
    assert any(draws.kind(there, 3000.0 + second, web) for second in range(100)), "it was at work meanwhile"


def test_learners_wait_for_ray_to_have_its_turn() -> None:
    draws = KillDraws(3)
    for _ in range(3):
        assert draws.kind(["learner"], draws.counts.total() * 1000.0) == "learner"
        draws.note("learner", draws.counts.total() * 1000.0)
    assert draws.kind(["learner"], 1e6) == ""
    for kind in RAY:
        draws.note(kind, 0.0)
    assert draws.kind(["learner"], 1e6) == "learner"


class Slow:
    """A simulated installation on a busy machine. A service that was hit is back after a while, and so are the services that depend on it.
    Runs are launched once all services have been up together for a while. They begin on Ray and make a checkpoint now and then.
    """

    back = {"web server": 25, "web process": 10, "worker": 25, "beat": 10, "Redis": 2, "Postgres": 10, "judge": 3}
    back |= {"Postgres backend": 5, "Ray's head": 45, "raylet": 45, "rollout actor": 20, "reward worker": 20}
    hang = {"web server": ["web process"], "Postgres": ["Postgres backend"], "Postgres backend": ["Postgres"]}
    hang |= {"raylet": ["Ray's head", *ACTORS], "Ray's head": ["raylet", *ACTORS]}
    submitting = ("web server", "worker", "Redis", "Postgres", "Ray's head")
    launch_s, begins_s, checkpoint_s = 5.0, 45.0, 10.0
    steps = 60

    def __init__(self) -> None:
        self.there_at = dict.fromkeys(self.back, 0.0)
        self.launching = {1: self.launch_s, 2: self.launch_s}
        self.waits = {1: self.begins_s, 2: self.begins_s}
        self.made = {1: 0.0, 2: 0.0}

    under_way: dict[str, int] = {"synchronous": 1, "asynchronous": 2}

    def checkpoint(self, run: int) -> int:
        return 2 * int(self.made[run])

    def finished(self, run: int) -> bool:
        return False

    def go_on(self, now: float, seconds: float) -> None:
        all_there = all(self.there_at[kind] <= now for kind in self.submitting)
        for run in (1, 2):
            if self.launching[run] > 0:
                self.launching[run] -= seconds * all_there
            elif self.waits[run] > 0:
                self.waits[run] -= seconds
            elif run == 1 or all(self.there_at[actor] <= now for actor in ACTORS):
                self.made[run] += seconds / self.checkpoint_s

    def living(self, may_end: list[int]) -> list[str]:
        """The processes that live. A process that is beginning counts, like a service that its supervisor has started."""
        learner = ["learner"] if any(self.waits[run] <= 0 for run in may_end) else []
        away = () if self.waits[2] <= 0 else ACTORS
        return [kind for kind in self.there_at if kind not in away] + learner

    def beginning(self, now: float) -> list[str]:
        return [kind for kind, at in self.there_at.items() if kind in SERVICES and at + SHARES[kind].rest_s > now]

    def lose(self, kind: str, run: int | None, now: float) -> None:
        for each in (kind, *self.hang.get(kind, ())):
            if each in self.back:
                self.there_at[each] = now + self.back[each]
        for each in (1, 2) if kind in RAY else (run,) if run else ():
            self.launching[each], self.waits[each] = self.launch_s, self.begins_s
            self.made[each] = float(int(self.made[each]))


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_is_hit_within_ten_minutes_on_a_busy_machine_and_runs_get_on(seed: int) -> None:
    slow, draws, chance = Slow(), KillDraws(seed), random.Random(seed)  # noqa: S311
    mercy, now = Mercy(cast(Runs, slow)), 0.0
    while now < 600:
        seconds = chance.uniform(0.5, 1.5) * 4
        now += seconds
        slow.go_on(now, seconds)
        may_end, spared = mercy.may_end(), mercy.spared()
        beginning = slow.beginning(now)
        if kind := draws.kind([each for each in slow.living(may_end) if each not in spared], now, beginning):
            run = next((run for run in may_end if slow.waits[run] <= 0), None) if kind == "learner" else None
            draws.note(kind, now, beginning)
            mercy.note(Hit(kind, run))
            slow.lose(kind, run, now)
    assert {*SHARES} == {*draws.counts}, draws.counts
    ends = sum(draws.counts[kind] for kind in RAY) + draws.counts["learner"] / 2
    assert min(map(slow.checkpoint, (1, 2))) >= ends, (draws.counts, slow.made)


def test_what_was_made_though_its_answer_got_lost_is_found_by_its_name(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.answers["POST", "/judges"] = httpx.Response(422, json={"errors": {"name": "another has it"}})
    server.answers["GET", "/judges"] = httpx.Response(200, json={"items": [{"id": 3, "name": "mine"}], "next": None})
    assert server.site.named("judges", "mine") == 3
    with pytest.raises(GivenUp, match="another has it"):
        server.site.named("judges", "not mine")
    server.answers["POST", "/judges"] = httpx.Response(201, json={"id": 8, "judge_id": 4})
    assert server.site.named("judges", "not mine") == 4


def test_a_publication_that_a_job_makes_is_waited_for(tmp_path: Path) -> None:
    first, second = ({"publication": number, "digest": "same"} for number in (4, 5))
    listed = iter([[], [], [first], [first], [second, first]])
    posts = iter([httpx.Response(202, json={"digest": None}), httpx.Response(201, json=second)])

    def answer(request: httpx.Request) -> httpx.Response:
        return next(posts) if request.method == "POST" else httpx.Response(200, json={"items": next(listed)})

    api = httpx.Client(base_url="http://away/", transport=httpx.MockTransport(answer))
    found = published(Site(cast(Stack, None), api, Ledger(tmp_path / "ledger.jsonl")), 1)
    assert found.holds and found.examples == ["same"]


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
    clock = ShiftedClock()
    command = [sys.executable, "-c", TICKS]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(command, env={**os.environ, **clock.environment}, **pipes) as program:

        def off() -> float:
            """The difference of the clocks, in hours."""
            assert program.stdin and program.stdout
            program.stdin.write("?\n")
            wall, steady = map(float, program.stdout.readline().split())
            assert abs(steady - time.monotonic()) < 60
            return (wall - time.time()) / 3600

        found = []
        for hours in (0, -2, 0, 2):
            clock.set(hours)
            found.append(off())
        program.stdin.close()
    assert found == [pytest.approx(hours, abs=0.02) for hours in (0, -2, 0, 2)]
    clock.close()
