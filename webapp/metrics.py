"""`/metrics` in Prometheus' text format: counters (`webapp.core.monitoring.telemetry`), and the present state."""

import shutil
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import Count, Model
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from webapp.annotation.models import Job
from webapp.backups import queries
from webapp.core import health
from webapp.core.health import DATABASE_AWAY
from webapp.core.monitoring import telemetry
from webapp.core.requests.authorization import bearer_token
from webapp.datasets.models import CurationJob, ImportJob
from webapp.evaluation.models import Evaluation
from webapp.experiments.models import Run
from webapp.inference.models import EndpointCheck
from webapp.judging.models import Trial, Verdict
from webapp.judging.verdicts.store import COUNTED
from webapp.playground.models import TriedScore
from webapp.version import VERSION
from webapp.webhooks.models import Delivery
from webapp.weights.models import WeightsJob

QUEUE, HELD = "celery", "unacked"  # the names of Celery's transport in Redis
# Jobs by the field that names their kind, if they have one
JOBS: tuple[tuple[str, type[Model], str | None], ...] = (
    ("annotation", Job, "kind"),
    ("import", ImportJob, None),
    ("curation", CurationJob, "kind"),
    ("weights", WeightsJob, "kind"),
    ("evaluation", Evaluation, "recipe"),
    ("judge trial", Trial, None),
    ("endpoint check", EndpointCheck, None),
    ("score", TriedScore, None),
)


@login_not_required
@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The page, for a request with the token or from a network that is named. If neither is set, nobody gets it."""
    if not (_has_token(request) or _comes_from_near(request)):
        raise PermissionDenied("Set METRICS_TOKEN or METRICS_NETWORKS to read metrics: see docs/operating.md.")
    now = CollectorRegistry()
    now.register(Now())
    text = generate_latest(telemetry.registry()) + generate_latest(now)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _has_token(request: HttpRequest) -> bool:
    token = settings.ENV.metrics_token or ""
    return bool(token) and constant_time_compare(bearer_token(request.headers.get("Authorization")), token)


def _comes_from_near(request: HttpRequest) -> bool:
    """Whether the request comes from a named network. Behind a proxy that nobody named, everybody has the proxy's address, so nobody is let
    in."""
    proxied = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    if proxied and not settings.ENV.trusted_proxies:
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:  # a socket has none
        return False
    return any(address in network for network in settings.ENV.metrics_networks)


class Now(Collector):
    """A collector that reads the present state at each scrape. A value that cannot be read is absent, never zero; `touchstone_up` says what
    does not answer."""

    def collect(self) -> Iterator[Metric]:
        yield _gauge("touchstone_info", "What runs here.", "version", {VERSION: 1})
        seen = health.WATCH.look()
        yield _gauge("touchstone_up", "Whether a service answers.", "service", {n: int(s.up) for n, s in seen.items()})
        yield from _disk()
        if seen["redis"].up:
            yield from _of_redis()
        if seen["database"].up:
            yield from _of_database()


def _gauge(name: str, told: str, label: str, values: dict[str, Any]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, told, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _disk() -> Iterator[Metric]:
    usage = dict(zip(("data", "temporary"), map(shutil.disk_usage, health.folders()), strict=True))
    yield _gauge("touchstone_disk_free_bytes", "Room left.", "folder", {n: use.free for n, use in usage.items()})
    yield _gauge("touchstone_disk_bytes", "Room in all.", "folder", {n: use.total for n, use in usage.items()})


def _of_redis() -> Iterator[Metric]:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as server:
            length = {"waiting": server.llen(QUEUE), "held": server.hlen(HELD)}
        verdicts = telemetry.counted(COUNTED, Verdict.State.values)
    except (redis.RedisError, OSError):  # deleted since it was listed
        return
    yield _gauge("touchstone_tasks", "Tasks of Celery that wait, and that workers hold.", "state", length)
    family = CounterMetricFamily(
        "touchstone_verdict_calls_total", "Calls of judges, by what came of them.", labels=["state"]
    )
    for state, number in verdicts.items():
        family.add_metric([state], number)
    yield family


def _of_database() -> Iterator[Metric]:
    try:
        runs, jobs, waiting = _runs(), list(_jobs()), _waiting_deliveries()
        backups = queries.outcomes()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            size = cursor.fetchone()[0]
    except DATABASE_AWAY:
        return
    yield _gauge("touchstone_runs", "Runs by state.", "state", runs)
    family = GaugeMetricFamily("touchstone_jobs", "Jobs by kind and state.", labels=["kind", "state"])
    for kind, state, number in jobs:
        family.add_metric([kind, state], number)
    yield family
    yield _gauge("touchstone_webhook_deliveries", "Deliveries that are not over.", "state", waiting)
    good = {what: found.good_at.timestamp() for what, found in backups.items() if found.good_at}
    failed = {what: int(found.failed) for what, found in backups.items()}
    yield _gauge(
        "touchstone_backup_good_timestamp_seconds", "When a backup, or a drill of one, last went well.", "what", good
    )
    yield _gauge("touchstone_backup_failed", "Whether the last one that is over failed.", "what", failed)
    yield GaugeMetricFamily("touchstone_database_bytes", "Tables and indexes.", value=size)


def _runs() -> dict[str, int]:
    found = dict(Run.objects.values_list("state").annotate(Count("id")).order_by())
    return {state: found.get(state, 0) for state in Run.State.values}


def _jobs() -> Iterator[tuple[str, str, int]]:
    """(kind, state, number), for each kind that has a job."""
    for family, model, field in JOBS:
        by = [field, "state"] if field else ["state"]
        for *kind, state, number in model._default_manager.values_list(*by).annotate(Count("id")).order_by():
            yield " ".join([family, *kind]), state, number


def _waiting_deliveries() -> dict[str, int]:
    open_ones = (Delivery.State.WAITING, Delivery.State.SENDING)
    rows = Delivery.objects.filter(state__in=open_ones).values_list("state")
    found = dict(rows.annotate(Count("id")).order_by())
    return {state.value: found.get(state, 0) for state in open_ones}
