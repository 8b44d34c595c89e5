"""The metrics for Prometheus: sums over all processes, current values, and no value for a metric that cannot be read."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings as django_settings
from django.test import Client, override_settings
from prometheus_client.parser import text_string_to_metric_families

from webapp.backups.models import Backup, BackupDrill
from webapp.core import health
from webapp.core.health import ServiceState, ServiceWatch
from webapp.core.monitoring import telemetry
from webapp.core.requests.handler import ThreadedHandler

TOKEN = "a-token-of-twenty-letters"


@pytest.fixture
def scrape(monkeypatch):
    monkeypatch.setattr(django_settings.ENV, "metrics_token", TOKEN)

    def read() -> dict[tuple[str, ...], float]:
        answer = Client().get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/plain; version=")
        families = text_string_to_metric_families(answer.content.decode())
        return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}

    return read


def up(monkeypatch, **states):
    seen = {name: ServiceState(states.get(name, "ok"), "") for name in health.CHECKS}
    monkeypatch.setattr(health, "WATCH", ServiceWatch({name: lambda each=each: each for name, each in seen.items()}))  # type: ignore[misc]


async def ask(path: str, method: str = "GET", headers: tuple = ()) -> int:
    async def known(scope):
        return False

    scope = {"type": "http", "method": method, "path": path, "query_string": b""}
    app = ApplicationCommunicator(ThreadedHandler(1, known), scope | {"headers": [(b"host", b"localhost"), *headers]})
    await app.send_input({"type": "http.request", "body": b""})
    return (await app.receive_output(30))["status"]


async def test_requests_are_counted_by_route_and_never_by_address():
    seen = telemetry.REQUESTS.labels("GET", "/healthz", "200")
    before, slow = seen._value.get(), telemetry.SECONDS.labels("/healthz")._sum.get()
    with override_settings(MIDDLEWARE=["webapp.core.requests.middleware.RequestIdMiddleware"]):
        assert await ask("/healthz") == 200
        assert await ask("/no/such/address-77", "BREW") == 404
    assert seen._value.get() == before + 1
    assert telemetry.SECONDS.labels("/healthz")._sum.get() > slow
    labels = {tuple(s.labels.values()) for family in telemetry.REQUESTS.collect() for s in family.samples}
    assert ("other", "(none)", "404") in labels
    assert not [each for each in labels if "address-77" in str(each) or "BREW" in each]


async def test_a_body_that_is_refused_is_counted():
    refused = telemetry.REQUESTS.labels("POST", telemetry.REFUSED_BODY, "413")
    before = refused._value.get()
    assert await ask("/healthz", "POST", ((b"content-length", b"99000000"),)) == 413
    assert refused._value.get() == before + 1


@pytest.mark.django_db
def test_runs_jobs_and_room_are_told_with_zeros_where_there_are_none(scrape, monkeypatch):
    up(monkeypatch, redis="away", ray="late")
    now = scrape()
    assert now["touchstone_runs", "running"] == 0 == now["touchstone_webhook_deliveries", "waiting"]
    assert now["touchstone_disk_free_bytes", "data"] > 0 and now["touchstone_database_bytes",] > 0
    assert (now["touchstone_up", "ray"], now["touchstone_up", "database"]) == (0, 1)
    assert not [name for name in now if name[0].startswith("touchstone_backup")]  # there has been none


@pytest.mark.django_db
def test_a_failed_drill_and_the_last_good_backup_are_told(scrape, monkeypatch):
    up(monkeypatch, redis="away")
    at = datetime(2026, 11, 22, 2, tzinfo=UTC)
    Backup.objects.create(origin="command", folder="/b", state="finished", open=None, finished_at=at)
    BackupDrill.objects.create(passed=False, finished_at=at)
    now = scrape()
    assert now["touchstone_backup_good_timestamp_seconds", "backup"] == at.timestamp()
    assert ("touchstone_backup_good_timestamp_seconds", "drill") not in now
    assert (now["touchstone_backup_failed", "backup"], now["touchstone_backup_failed", "drill"]) == (0, 1)


def test_what_cannot_be_asked_is_absent_and_not_zero(scrape, monkeypatch):
    up(monkeypatch, redis="away", database="away")  # this test may not use the database, and has no Redis
    names = {name for name, *_ in scrape()}
    assert "touchstone_up" in names and "touchstone_disk_bytes" in names
    assert not names & {"touchstone_runs", "touchstone_jobs", "touchstone_tasks", "touchstone_verdict_calls_total"}


@pytest.mark.django_db
def test_more_jobs_cost_no_more_queries(scrape, monkeypatch, django_assert_num_queries, team):
    from webapp.datasets.models import ImportJob

    up(monkeypatch, redis="away")
    job = {"workspace": team.workspace, "dataset_name": "a", "file_name": "b", "file_path": "c", "format": "native"}
    ImportJob.objects.bulk_create(ImportJob(**job) for _ in range(3))
    # one for each kind of job, and for runs, deliveries and the size; four about backups
    with django_assert_num_queries(15):
        assert scrape()["touchstone_jobs", "import", "queued"] == 3


def test_a_cache_that_is_away_costs_the_count_alone(monkeypatch, caplog):
    def away(*args):
        raise ConnectionError

    monkeypatch.setattr("django.core.cache.backends.locmem.LocMemCache.add", away)
    telemetry.count("calls", {"done": 1})
    assert "not counted" in caplog.text


PROGRAM = """
import os, sys
from webapp.core.monitoring import telemetry
telemetry.answered(None, "GET", 200, 0.02)
telemetry.WEBSOCKETS.inc()
if sys.argv[1:]:
    from prometheus_client import generate_latest
    import time
    print(generate_latest(telemetry.registry()).decode())
"""


def test_processes_add_up_and_what_a_dead_one_had_open_is_closed(tmp_path):
    run: dict[str, Any] = {"cwd": django_settings.BASE_DIR, "capture_output": True, "text": True, "check": True}
    run["env"] = os.environ | {telemetry.FOLDER: str(tmp_path), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    subprocess.run([sys.executable, "-c", PROGRAM], **run)
    told = subprocess.run([sys.executable, "-c", PROGRAM, "tell"], **run).stdout
    assert re.search(r'^touchstone_http_requests_total\{method="GET",route="\(none\)",status="200"\} 2\.0$', told, re.M)
    assert re.search(r'^touchstone_http_request_seconds_bucket\{le="0\.025",route="\(none\)"\} 2\.0$', told, re.M)
    assert re.search(r"^touchstone_websockets 1\.0$", told, re.M), "the first process has ended"
