"""Counters for Prometheus.

Each web process counts in a file of its own, and any of them adds up the files of all (`webapp.asgi` says where these lie). What Celery's
workers do is counted in the cache, which all processes of an installation share: `count` and `counted`.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
from django.core.cache import cache
from django.http import HttpRequest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

logger = logging.getLogger(__name__)
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the client library's own name
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
REFUSED_BODY = "(body refused)"  # before it was known which route it goes to
_ONE_PROCESS = CollectorRegistry()

REQUESTS = Counter(
    "touchstone_http_requests_total",
    "Requests answered, by method, route and status.",
    ["method", "route", "status"],
    registry=_ONE_PROCESS,
)
SECONDS = Histogram(
    "touchstone_http_request_seconds",
    "Seconds from the end of a request's body to the beginning of its answer, waiting for a thread included.",
    ["route"],
    buckets=BUCKETS_S,
    registry=_ONE_PROCESS,
)
WEBSOCKETS = Gauge("touchstone_websockets", "Websockets open now.", multiprocess_mode="livesum", registry=_ONE_PROCESS)
SUBMISSIONS = Counter(
    "touchstone_annotation_submissions_total", "Answers that people submitted.", ["kind"], registry=_ONE_PROCESS
)


def answered(request: HttpRequest | None, method: str, status: int, seconds: float) -> None:
    """Counts a request under its route's pattern: `runs/<int:run_id>`, never the address, of which there are too many.

    `request` is None if none could be made of what came.
    """
    route = _route(request)
    REQUESTS.labels(_method(method), route, str(status)).inc()
    SECONDS.labels(route).observe(seconds)


def refused(method: str, status: int) -> None:
    """Counts a request whose body was not read."""
    REQUESTS.labels(_method(method), REFUSED_BODY, str(status)).inc()


def _method(method: str) -> str:
    return method if method in METHODS else "other"


def _route(request: HttpRequest | None) -> str:
    if request is None:
        return "(none)"
    if request.resolver_match is not None:
        return "/" + request.resolver_match.route
    return "/static/" if request.path.startswith("/static/") else "(none)"


def registry() -> CollectorRegistry:
    """The counts of all web processes of this machine, or of this one if no folder is set."""
    if not (folder := os.environ.get(FOLDER)):
        return _ONE_PROCESS
    _forget_open_of_the_dead(Path(folder))
    found = CollectorRegistry()
    MultiProcessCollector(found, folder)  # type: ignore[no-untyped-call]
    return found


def _forget_open_of_the_dead(folder: Path) -> None:
    """Ends what a process had open when it ended; its counts stay."""
    for file in folder.glob("gauge_live*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            with suppress(FileNotFoundError):  # another scrape was first
                file.unlink()


def count(name: str, numbers: Mapping[str, int]) -> None:
    """Adds to the numbers of `name` that all processes share. If the cache is down, only the count is lost."""
    try:
        for label, number in numbers.items():
            cache.add(_key(name, label), 0, None)
            cache.incr(_key(name, label), number)
    except Exception:  # redis and the in-memory cache share no error class
        logger.warning("not counted, as the cache does not answer: %s %s", name, dict(numbers), exc_info=True)


def counted(name: str, labels: Iterable[str]) -> dict[str, int]:
    """Label -> number; 0 for what never happened. Raises what the cache raises when it is away."""
    keys = {label: _key(name, label) for label in labels}
    found = cache.get_many(keys.values())
    return {label: int(found.get(key, 0)) for label, key in keys.items()}


def _key(name: str, label: str) -> str:
    return f"telemetry:{name}:{label}"
