"""The state of the services on which this installation depends, each checked within a bounded time.

`/readyz`, which is open to strangers, and the administrators' page read the same list.
"""

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import redis
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.template.defaultfilters import filesizeformat
from psycopg_pool import PoolTimeout

from webapp.celery import app

from .distributed.ray_client import RayAway, RayRefused, client
from .requests.bodies import ROOM

logger = logging.getLogger(__name__)
DATABASE_AWAY = (OperationalError, InterfaceError, PoolTimeout)
State = Literal["ok", "away", "late", "low"]
WAIT_S = 3.0  # for all checks together
KEEP_S = 5.0  # strangers may ask as often as they like; the services hear of it this often
WORKER_ANSWERS_S = 2.5  # on a machine with too much to do, a second was too short for workers that were well
THREADS = 10  # checks that hang keep theirs; what then finds none is late, which is true


@dataclass(frozen=True)
class ServiceState:
    """`note`: the service's own words, or why it does not answer; for administrators only."""

    state: State
    note: str

    @property
    def up(self) -> bool:
        return self.state == "ok"


Check = Callable[[], ServiceState]


class ServiceWatch:
    """Checks all services at once, waits `wait_s` seconds for them together, and keeps the result for `keep_s`.

    One caller checks. Other callers meanwhile get the previous result, if there is one, so that threads that answer requests do not pile up
    behind a service that hangs.
    """

    def __init__(self, checks: Mapping[str, Check], wait_s: float = WAIT_S, keep_s: float = KEEP_S) -> None:
        self._checks, self._wait_s, self._keep_s = checks, wait_s, keep_s
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._seen: dict[str, ServiceState] = {}
        self._at = float("-inf")

    def look(self) -> dict[str, ServiceState]:
        """Name of each service -> its state."""
        if not self._lock.acquire(blocking=not self._seen):
            return self._seen
        try:
            if time.monotonic() - self._at >= self._keep_s:
                self._seen = self._ask()
                self._at = time.monotonic()
            return self._seen
        finally:
            self._lock.release()

    def _ask(self) -> dict[str, ServiceState]:
        if self._threads is None:  # here: a server that forks would not take the threads along
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="health")
        asked = {name: self._threads.submit(check) for name, check in self._checks.items()}
        wait(asked.values(), self._wait_s)
        return {name: self._outcome(name, future) for name, future in asked.items()}

    def _outcome(self, name: str, future: "Future[ServiceState]") -> ServiceState:
        if not future.done():
            future.cancel()  # if it has not begun
            return ServiceState("late", f"no answer within {self._wait_s:g} s")
        if error := future.exception():
            logger.error("the check of %s failed", name, exc_info=error)
            return ServiceState("away", f"the check failed: {type(error).__name__}")
        return future.result()


def redis_answers() -> bool:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as server:
            return bool(server.ping())
    except (redis.RedisError, OSError):
        return False


def _database() -> ServiceState:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version")
            return ServiceState("ok", f"version {cursor.fetchone()[0]}")
    except DATABASE_AWAY:
        return ServiceState("away", "does not answer")
    finally:
        connection.close()  # of this thread, which has no request at whose end it would be given back


def _redis() -> ServiceState:
    if not redis_answers():
        return ServiceState("away", "does not answer")
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as server:
        told: Any = server.info()
    return ServiceState("ok", redis_note(told))


def redis_note(told: Mapping[str, Any]) -> str:
    """The version and the memory of a Redis, from its own INFO."""
    used = f", {filesizeformat(told['used_memory'])} in use" if "used_memory" in told else ""
    return f"version {told.get('redis_version', 'unknown')}{used}"


def _workers() -> ServiceState:
    """The first worker that answers. No worker can be asked while Redis, which carries the question, is down."""
    if not redis_answers():
        return ServiceState("away", "cannot be asked while Redis is away")
    answers = app.control.broadcast("ping", reply=True, timeout=WORKER_ANSWERS_S, limit=1) or []
    names = ", ".join(name for answer in answers for name in answer)
    return ServiceState("ok", names) if names else ServiceState("late", f"no answer within {WORKER_ANSWERS_S:g} s")


def _ray() -> ServiceState:
    try:
        return ServiceState("ok", f"version {client().version()}")
    except (RayAway, RayRefused) as away:
        return ServiceState("away", str(away))


def folders() -> tuple[Path, Path]:
    """The folders of runs and models, and of the bodies of requests."""
    kept: Path = settings.VAR if settings.VAR.exists() else settings.BASE_DIR
    return kept, Path(tempfile.gettempdir())


def _disk() -> ServiceState:
    free = min(shutil.disk_usage(folder).free for folder in folders())
    return ServiceState("ok" if free >= ROOM else "low", f"{filesizeformat(free)} free")


CHECKS: dict[str, Check] = {"database": _database, "redis": _redis, "workers": _workers, "ray": _ray, "disk": _disk}
NEEDED = frozenset({"database", "redis"})  # without these no page is answered; without the others work waits
WATCH = ServiceWatch(CHECKS)
