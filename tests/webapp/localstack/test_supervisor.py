"""The supervisor with small fake services: order, crashes, grandchildren. Nothing is left at the end."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from tests.timeouts import SECONDS
from webapp.localstack.processes import LOG_LIMIT, Child, Command, bound_log
from webapp.localstack.supervisor import FIRST_BACKOFF_S, HEALTHY_AFTER_S, State, SupervisedService, Supervisor

ROOT = Path(__file__).resolve().parents[3]


def script(code: str) -> Command:
    return Command([sys.executable, "-c", textwrap.dedent(code)])


def sleeper() -> Command:
    return script("import time; time.sleep(300)")


def until(supervisor: Supervisor, done) -> None:
    deadline = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < deadline, {s.name: (s.state.value, s.reason) for s in supervisor.services}
        supervisor.tick()
        time.sleep(0.02)


@pytest.fixture
def supervise(tmp_path):
    made = []

    def make(*services: SupervisedService, on_change=lambda service: None) -> Supervisor:
        made.append(Supervisor(list(services), tmp_path, on_change))
        return made[-1]

    yield make
    for supervisor in made:
        supervisor.stop_all()


def test_a_service_waits_for_what_it_needs(supervise, tmp_path):
    flag = tmp_path / "flag"
    first = SupervisedService("first", sleeper, ready=lambda child: flag.exists())
    second = SupervisedService("second", sleeper, needs=("first",))
    supervisor = supervise(first, second)
    for _ in range(5):
        supervisor.tick()
    assert (first.state, second.state) == (State.STARTING, State.WAITING)
    flag.touch()
    until(supervisor, lambda: second.state is State.RUNNING)


def test_a_crash_is_followed_by_a_restart(supervise):
    states = []
    service = SupervisedService("web", sleeper)
    supervisor = supervise(service, on_change=lambda s: states.append(s.state))
    until(supervisor, lambda: service.state is State.RUNNING)
    before = service.child.pid
    os.kill(before, signal.SIGKILL)
    until(supervisor, lambda: service.state is State.RESTARTING)
    assert "signal 9" in service.reason
    until(supervisor, lambda: service.state is State.RUNNING)
    assert service.child.pid != before
    assert states == [State.STARTING, State.RUNNING, State.RESTARTING, State.STARTING, State.RUNNING]


def test_back_off_grows_and_is_bounded():
    service = SupervisedService("web", sleeper)
    waits = []
    for service.failures in range(1, 12):
        waits.append(service.backoff_s())
    assert waits[:4] == [0.5, 1, 2, 4]
    assert waits[-1] == 30


def test_what_is_killed_long_after_its_start_comes_back_at_once_however_often(supervise):
    service = SupervisedService("web", sleeper)
    supervisor = supervise(service)
    for _ in range(4):
        until(supervisor, lambda: service.state is State.RUNNING)
        service.up_since -= HEALTHY_AFTER_S + 1
        supervisor.tick()
        os.kill(service.child.pid, signal.SIGKILL)
        until(supervisor, lambda: service.state is State.RESTARTING)
        assert service.next_try - time.monotonic() <= FIRST_BACKOFF_S


def test_what_dies_as_soon_as_it_is_up_waits_longer_each_time_however_slowly_it_starts(supervise):
    service = SupervisedService("ray", sleeper)
    supervisor = supervise(service)
    for failures in (1, 2, 3):
        service.next_try = 0
        until(supervisor, lambda: service.state is State.RUNNING)
        service.child.started -= HEALTHY_AFTER_S + 1  # the start has used all of it
        supervisor.tick()
        os.kill(service.child.pid, signal.SIGKILL)
        until(supervisor, lambda: service.state is State.RESTARTING)
        assert service.failures == failures


def test_a_step_that_ends_well_is_done_and_one_that_does_not_fails_with_its_last_words(supervise):
    good = SupervisedService("good", lambda: script("print('fine')"), once=True)
    bad = SupervisedService(
        "bad", lambda: script("print('no such column'); raise SystemExit(3)"), once=True, attempts=1
    )
    after = SupervisedService("after", sleeper, needs=("bad",))
    supervisor = supervise(good, bad, after)
    until(supervisor, lambda: good.state is State.DONE and bad.state is State.FAILED)
    assert "exit code 3: no such column" in bad.reason
    assert after.state is State.WAITING


def test_a_step_that_is_not_needed_is_done_without_a_process(supervise):
    happened = []
    step = SupervisedService("migrate", lambda: script("raise SystemExit(3)"), once=True, unneeded=lambda: True)
    step.finished = lambda: happened.append("finished")
    supervisor = supervise(step, SupervisedService("web", sleeper, needs=("migrate",)))
    until(supervisor, lambda: supervisor.is_up("web"))
    assert (step.state, step.child, happened) == (State.DONE, None, [])


def test_a_step_says_when_it_is_finished_before_others_start(supervise):
    happened = []
    step = SupervisedService("migrate", lambda: script("pass"), once=True, finished=lambda: happened.append("finished"))
    web = SupervisedService("web", sleeper, needs=("migrate",), prepare=lambda: happened.append("web starts"))
    failing = SupervisedService("bad", lambda: script("raise SystemExit(3)"), once=True, attempts=1)
    failing.finished = lambda: happened.append("never")
    supervisor = supervise(step, web, failing)
    until(supervisor, lambda: supervisor.is_up("web") and failing.state is State.FAILED)
    assert happened == ["finished", "web starts"]


def test_a_service_that_cannot_be_prepared_says_why(supervise):
    def prepare():
        raise RuntimeError("no space left on device")

    service = SupervisedService("postgres", sleeper, prepare=prepare)
    supervise(service).tick()
    assert (service.state, service.reason) == (State.RESTARTING, "no space left on device")


def test_a_service_that_never_answers_is_started_again(supervise):
    service = SupervisedService("web", sleeper, ready=lambda child: False, start_timeout_s=0.2)
    supervisor = supervise(service)
    until(supervisor, lambda: service.state is State.RESTARTING)
    assert "did not answer" in service.reason


def test_whoever_was_too_slow_to_start_gets_twice_as_long_the_next_time(supervise):
    service = SupervisedService("web", sleeper, ready=lambda child: False, start_timeout_s=50)
    supervisor = supervise(service)
    for said in (50, 100, 200):
        service.next_try = 0
        until(supervisor, lambda: service.state is State.STARTING)
        service.child.started -= said - 20
        supervisor.tick()
        assert service.state is State.STARTING
        service.child.started -= 21
        supervisor.tick()
        assert (service.state, service.reason) == (State.RESTARTING, f"did not answer within {said} s")
    service.failures = 99
    assert service.patience_s() == 50 * 16


def test_an_external_service_is_only_looked_at(supervise):
    answers = [True]
    service = SupervisedService("postgres", None, ready=lambda child: answers[0])
    supervisor = supervise(service)
    supervisor.tick()
    assert service.state is State.EXTERNAL
    answers[0], service.next_try = False, 0
    supervisor.tick()
    assert service.state is State.AWAY


def test_stopping_ends_stores_last(supervise):
    stopped = []
    store = SupervisedService("store", sleeper, last_to_stop=True)
    user = SupervisedService("user", sleeper, needs=("store",))
    supervisor = supervise(
        store, user, on_change=lambda s: stopped.append(s.name) if s.state is State.STOPPED else None
    )
    until(supervisor, lambda: user.state is State.RUNNING)
    supervisor.stop_all()
    assert stopped == ["user", "store"]


SUPERVISED = """
import signal, sys, time
from pathlib import Path
from webapp.localstack.processes import Command, adopt_orphans
from webapp.localstack.supervisor import SupervisedService, Supervisor

CHILD = '''
import os, subprocess, sys, time
from pathlib import Path
hidden = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300)"],
                          start_new_session=True)
Path(sys.argv[1]).write_text(f"{os.getpid()} {hidden.pid}")
time.sleep(300)
'''
folder = Path(sys.argv[1])
adopt_orphans()
service = SupervisedService("ray", lambda: Command([sys.executable, "-c", CHILD, str(folder / "pids")]))
supervisor = Supervisor([service], folder, lambda s: None)
signal.signal(signal.SIGTERM, lambda *_: setattr(supervisor, "stop_asked", True))
supervisor.run()
"""


@pytest.fixture
def supervised(tmp_path):
    """A supervisor in a separate process. Its service has a child in another session that ignores SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISED, str(tmp_path)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    pids = tmp_path / "pids"
    deadline = time.monotonic() + SECONDS
    while not (pids.exists() and len(pids.read_text().split()) == 2):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child, grandchild = map(int, pids.read_text().split())
    yield process, child, grandchild
    for pid in (process.pid, child, grandchild):
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def gone(pid: int) -> bool:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def test_sigterm_ends_grandchildren_that_hide_in_their_own_session(supervised):
    process, child, grandchild = supervised
    process.terminate()
    assert process.wait(SECONDS) == 0
    assert gone(child) and gone(grandchild)


def test_children_do_not_outlive_a_killed_supervisor(supervised):
    process, child, _ = supervised
    process.kill()
    process.wait()
    assert gone(child)


def test_a_long_log_is_cut_while_it_is_written(tmp_path):
    log = tmp_path / "web.log"
    log.write_bytes(b"x" * (LOG_LIMIT + 10) + b"last words\n")
    bound_log(log)
    assert log.stat().st_size == 0
    assert (tmp_path / "web.old.log").read_bytes().endswith(b"last words\n")
    child = Child(script("print('new')"), log)
    child.process.wait()
    assert child.output() == "new\n"


def test_a_long_log_on_a_full_disk_ends_nobody_and_is_cut_all_the_same(supervise, tmp_path):
    service = SupervisedService("web", sleeper)
    supervisor = supervise(service)
    until(supervisor, lambda: service.state is State.RUNNING)
    log, older = tmp_path / "web.log", tmp_path / "web.old.log"
    log.write_bytes(b"x" * (LOG_LIMIT + 10))
    older.write_bytes(b"older words\n")
    supervisor._next_log_check = 0.0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LOG_LIMIT // 2, hard))  # more writing fails, like on a full disk
    try:
        supervisor.tick()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert service.state is State.RUNNING
    assert log.stat().st_size == 0 and older.read_bytes() == b"older words\n"
    assert {path.name for path in tmp_path.glob("web*")} == {log.name, older.name}
