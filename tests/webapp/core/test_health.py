"""The server's answers to probes. They come within a limited time, reveal little, and are 503 only if no page could be answered."""

import shutil
import threading
import time

import pytest
from django.db import OperationalError
from django.template.defaultfilters import filesizeformat
from django.test import Client

from webapp.core import health
from webapp.core.health import ServiceState, ServiceWatch

OK, AWAY = ServiceState("ok", "version 9"), ServiceState("away", "secret address")


def ready(monkeypatch, **seen):
    monkeypatch.setattr(health, "WATCH", ServiceWatch({name: lambda each=each: each for name, each in seen.items()}))  # type: ignore[misc]
    return Client().get("/readyz")


def test_the_process_answers_whatever_is_away(monkeypatch):
    # no service is asked, and neither is the database, which this test may not use
    monkeypatch.setattr(health, "WATCH", None)
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"web": "ok"})


@pytest.mark.parametrize(
    ("away", "status"), [(None, 200), ("database", 503), ("redis", 503), ("workers", 200), ("ray", 200), ("disk", 200)]
)
def test_only_what_pages_need_makes_it_not_ready(monkeypatch, away, status):
    seen = {name: AWAY if name == away else OK for name in health.CHECKS}
    answer = ready(monkeypatch, **seen)
    assert answer.status_code == status
    assert answer.json() == {name: each.state for name, each in seen.items()}
    assert b"version" not in answer.content and b"secret" not in answer.content
    assert "no-store" in answer.headers["Cache-Control"]


def test_a_service_that_hangs_is_late_and_holds_up_nobody():
    over = threading.Event()

    def hangs():
        over.wait(60)
        return OK

    watch = ServiceWatch({"database": lambda: OK, "ray": hangs}, wait_s=0.05)
    try:
        began = time.monotonic()
        seen = watch.look()
        assert time.monotonic() - began < 30
        assert (seen["database"].state, seen["ray"].state) == ("ok", "late")
    finally:
        over.set()


def test_many_who_ask_cost_one_look():
    asked, looking, over = [], threading.Event(), threading.Event()

    def count():
        asked.append(1)
        if len(asked) == 2:
            looking.set()
            over.wait(60)
        return ServiceState("ok", str(len(asked)))

    watch = ServiceWatch({"redis": count}, wait_s=60, keep_s=0)
    watch.look()
    second = threading.Thread(target=watch.look)
    second.start()
    assert looking.wait(60)
    assert watch.look()["redis"].note == "1", "what was seen before, at once, while another looks"
    over.set()
    second.join()
    kept = ServiceWatch({"redis": count}, keep_s=60)
    assert [kept.look()["redis"].note for _ in range(5)] == ["3"] * 5


def test_a_check_that_breaks_is_away_and_in_the_log(caplog):
    def broken():
        raise ZeroDivisionError

    assert ServiceWatch({"disk": broken}).look()["disk"].state == "away"
    assert "the check of disk failed" in caplog.text


@pytest.mark.django_db
def test_the_real_checks_say_what_is_there(monkeypatch):
    seen = ServiceWatch(health.CHECKS, wait_s=60).look()
    assert seen["database"].up and seen["disk"].up
    assert {seen[name].state for name in ("redis", "workers", "ray")} == {"away"}  # there is none in tests

    def away(*args):
        raise OperationalError("connection refused")

    monkeypatch.setattr("django.db.backends.postgresql.base.DatabaseWrapper.get_new_connection", away)
    assert ServiceWatch(health.CHECKS, wait_s=60).look()["database"] == ServiceState("away", "does not answer")


def test_workers_that_say_nothing_in_time_are_late_and_none_is_asked_without_redis(monkeypatch):
    said = [[{"celery@one": {"ok": "pong"}}], []]
    monkeypatch.setattr(health, "redis_answers", lambda: True)
    monkeypatch.setattr("webapp.celery.app.control.broadcast", lambda *args, **options: said.pop(0))
    assert health._workers() == ServiceState("ok", "celery@one")
    assert health._workers().state == "late"
    monkeypatch.setattr(health, "redis_answers", lambda: False)
    assert health._workers().state == "away" and not said


def test_the_free_space_has_the_unit_of_the_pages(monkeypatch):
    found = shutil.disk_usage(".")._replace(free=5 * 2**30)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: found)
    assert health._disk().note == f"{filesizeformat(found.free)} free" == "5.0\N{NO-BREAK SPACE}GB free"


def test_a_full_disk_is_low(monkeypatch, settings):
    monkeypatch.setattr(health, "ROOM", 10**18)
    assert health._disk().state == "low"


def test_the_memory_of_redis_reads_like_other_sizes():
    assert health.redis_note({"redis_version": "8.1.2", "used_memory": 1_929_379}) == "version 8.1.2, 1.8\xa0MB in use"
    assert health.redis_note({"redis_version": "8.1.2"}) == "version 8.1.2", "not every server says it"
