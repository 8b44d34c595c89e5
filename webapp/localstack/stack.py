"""The services of one machine: their needs, their commands, and their checks."""

import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import psycopg
from django.conf import settings

from webapp.machine.places import metrics_folder, write_facts

from . import known_schema, ray, redis
from .demo import MODEL_DIR
from .ports import ReservedPort
from .postgres import Postgres
from .processes import Child, Command
from .ray import RayHead
from .redis import Redis
from .supervisor import SupervisedService

BASE = Path(settings.BASE_DIR)
# Tasks wait for the database, for endpoints and for Ray; none computes. A judged run holds a thread while it asks
CELERY_THREADS = 8
WEB_PROCESSES = min(os.cpu_count() or 1, 4)  # one process of Python serves from one core
# A variable of the GNU C library; others ignore it. Each thread that answers requests would else get a heap of its own, and each heap
# keeps the memory of its largest answer. A value of the operator's stays. Images start the web server themselves: docker/web.Dockerfile
# has the same
FEW_HEAPS = {"MALLOC_ARENA_MAX": "2"}


def _python(*args: str, nice: bool = False, env: dict[str, str] | None = None) -> Command:
    # lower priority: preparing the model must not make the pages slow on a small machine
    prefix = ["nice", "-n", "10"] if nice else []
    return Command([*prefix, sys.executable, "-u", *args], env=env or {}, cwd=BASE)


def services(demo: bool) -> list[SupervisedService]:
    """All services of this machine, in the order they are shown.

    The services of a page start first and have the machine to themselves: the stores and the web server. The rest, which takes several
    times as long, needs "web" only in order to come after it.
    """
    listed = [postgres(), _migrate(), redis_server(), ray_head(), _celery(), _beat(), _web()]
    return [*listed, _data(), _model(), _demo()] if demo else listed


def postgres() -> SupervisedService:
    if settings.ENV.database_url:
        url = settings.ENV.database_url
        return SupervisedService(
            "postgres", None, ready=lambda child: _database_answers(url), detail=lambda: _without_password(url)
        )
    server = Postgres(settings.VAR)

    def prepare() -> None:
        server.prepare()
        write_facts(settings.VAR, "postgres", host=str(server.socket_dir), data=str(server.data))

    return SupervisedService(
        "postgres",
        server.command,
        ready=lambda child: server.ready(),
        prepare=prepare,
        grace_s=30,
        last_to_stop=True,
        detail=lambda: str(server.data),
    )


def _migrate() -> SupervisedService:
    """The migration. Nothing starts on a database that is not the one this code expects."""
    url = settings.ENV.database_url or Postgres(settings.VAR).url()
    return SupervisedService(
        "migrate",
        lambda: _python("manage.py", "upgrade"),
        needs=("postgres",),
        once=True,
        unneeded=lambda: known_schema.is_current(url),
        finished=lambda: known_schema.remember(url),
    )


def redis_server() -> SupervisedService:
    if settings.ENV.redis_url:
        url = settings.ENV.redis_url
        return SupervisedService(
            "redis", None, ready=lambda child: redis.answers(url), detail=lambda: _without_password(url)
        )
    server = Redis(settings.VAR)
    return SupervisedService(
        "redis",
        server.command,
        ready=lambda child: server.ready(),
        prepare=server.prepare,
        last_to_stop=True,
        detail=lambda: str(server.socket),
    )


def ray_head() -> SupervisedService:
    if settings.ENV.ray_address:
        address, token = settings.ENV.ray_address, settings.ENV.ray_token_file
        return SupervisedService("ray", None, ready=lambda child: ray.answers(address, token), detail=lambda: address)
    head = RayHead(settings.VAR)

    def prepare() -> None:
        head.prepare()
        since = datetime.now(UTC).isoformat(timespec="seconds")
        write_facts(settings.VAR, "ray", address=head.address, token_file=str(head.token_file), since=since)

    return SupervisedService(
        "ray",
        head.command,
        ready=lambda child: head.ready(),
        needs=("web",),
        prepare=prepare,
        grace_s=15,
        detail=lambda: head.address,
    )


def _celery() -> SupervisedService:
    args = ["-m", "celery", "-A", "webapp", "worker", "--pool", "threads", "--concurrency", str(CELERY_THREADS)]
    args += ["--loglevel", settings.ENV.log_level, "--without-gossip", "--without-mingle"]
    return SupervisedService(
        "celery",
        lambda: _python(*args),
        ready=lambda child: child is not None and " ready." in child.output(20_000),
        needs=("web",),
        detail=lambda: f"{CELERY_THREADS} threads",
    )


def _beat() -> SupervisedService:
    args = ["-m", "celery", "-A", "webapp", "beat", "--loglevel", settings.ENV.log_level, "--pidfile="]
    return SupervisedService("beat", lambda: _python(*args), needs=("web",))


def _web() -> SupervisedService:
    host, port = settings.ENV.host, ReservedPort(settings.ENV.port, settings.ENV.host)

    def local() -> str:
        return f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{port.number}"  # noqa: S104

    def tell() -> None:
        write_facts(settings.VAR, "web", url=settings.ENV.public_url or local(), local=local())

    def prepare() -> None:
        shutil.rmtree(metrics_folder(settings.VAR))  # counters start again with the processes
        if port.look_again():
            tell()

    def ready(child: Child | None) -> bool:
        answers = web_answers(local())
        port.was_used |= answers
        return answers

    tell()
    return SupervisedService(
        "web",
        lambda: web_command(host, port.number),
        ready=ready,
        needs=("migrate", "redis"),
        prepare=prepare,
        detail=lambda: settings.ENV.public_url or local(),
    )


def web_command(host: str, port: int) -> Command:
    ours = {name: value for name, value in FEW_HEAPS.items() if name not in os.environ}
    return _python(*web_server(host, port), env=ours)


def web_server(host: str, port: int) -> list[str]:
    """Arguments for Python."""
    args = ["-m", "uvicorn", "webapp.asgi:application", "--host", host, "--port", str(port), "--no-proxy-headers"]
    args += [
        "--http",
        "webapp.core.requests.keep_alive:KeepAliveProtocol",
        "--lifespan",
        "off",
        "--no-access-log",
        "--timeout-graceful-shutdown",
        "3",
        "--log-level",
        "info",
    ]
    # A process that is silent for this long is ended and replaced. Uvicorn's own 5 s are less than a start takes on a busy machine: each
    # process was ended while it began, and the next one, too
    args += ["--timeout-worker-healthcheck", "60"]
    # longer than people think between two tasks: their connection is still open when they press the key
    return [*args, "--timeout-keep-alive", "75", "--workers", str(WEB_PROCESSES)]


def _data() -> SupervisedService:
    # apart from the model, which takes minutes: people who open the link at once find data and tasks
    return SupervisedService("data", lambda: _python("manage.py", "demo", "--data"), needs=("web",), once=True)


def _model() -> SupervisedService:
    args = ("-m", "trainer", "models", "prepare", "--dir", str(MODEL_DIR))
    return SupervisedService(
        "model", lambda: _python(*args, nice=True), needs=("web",), once=True, detail=lambda: str(MODEL_DIR)
    )


def _demo() -> SupervisedService:
    needs = ("data", "model", "celery", "web", "ray")
    return SupervisedService("demo", lambda: _python("manage.py", "demo"), needs=needs, once=True)


def web_answers(address: str) -> bool:
    try:
        with urlopen(f"{address}/healthz", timeout=2) as response:  # noqa: S310  built from our own settings
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def _database_answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
