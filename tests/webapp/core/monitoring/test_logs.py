"""Log lines that programs can read, and one id from a request to its tasks."""

import json
import logging
import os
import re
import subprocess
import sys

import pytest
from django.conf import settings
from django.test import Client

from trainer.contracts import jsonlines
from webapp.celery import REQUEST_ID, app
from webapp.core.monitoring.logs import JsonLines, NoSecrets, RequestIdFilter
from webapp.core.tasks import _send
from webapp.request_id import current_request_id


def line(record: logging.LogRecord) -> dict:
    for each in (RequestIdFilter(), NoSecrets()):
        each.filter(record)
    text = JsonLines().format(record)
    assert "\n" not in text
    return json.loads(text)


def test_a_failure_is_one_line_of_json_with_its_traceback_and_without_keys():
    try:
        raise ValueError("at /join/Xb3kk")
    except ValueError:
        about = {
            "name": "webapp",
            "levelname": "ERROR",
            "msg": "no\nway %s",
            "args": ("ü",),
            "exc_info": sys.exc_info(),
        }
    told = line(logging.makeLogRecord(about))
    assert (told["level"], told["message"], told["request"]) == ("ERROR", "no\nway ü", "-")
    assert "ValueError: at /join/..." in told["traceback"] and "Xb3kk" not in str(told)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{12}\+00:00", told["time"])


def test_the_web_servers_own_lines_take_the_same_form_and_no_request_is_listed():
    program = (
        "import logging, uvicorn\n"
        "uvicorn.Config('webapp.asgi:application', access_log=False)\n"
        "import django; django.setup()\n"
        "logging.getLogger('uvicorn.error').info('Started')\n"
        "logging.getLogger('uvicorn.access').info('GET /sign-in')\n"
    )
    env = os.environ | {"LOG_FORMAT": "json", "LOG_LEVEL": "INFO", "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=settings.BASE_DIR, capture_output=True, text=True
    )
    [only] = jsonlines.rows(done.stderr)
    assert (only["logger"], only["message"]) == ("uvicorn.error", "Started")


@pytest.fixture
def logged_ids():
    """Tasks run immediately. The ids under which they log."""
    ids: list[str] = []

    @app.task(name="tests.look", shared=False)
    def look(then=None):
        ids.append(current_request_id.get())
        if then:
            _send(then, ())

    app.conf.task_always_eager = True
    yield ids
    app.conf.task_always_eager = False
    del app.tasks["tests.look"]


def test_a_task_logs_under_the_id_of_the_request_that_asked_for_it_and_so_does_the_task_it_asks_for(logged_ids):
    asked = current_request_id.set("abc123")
    _send("tests.look", ("tests.look",))
    current_request_id.reset(asked)
    assert logged_ids == ["abc123", "abc123"]


def test_what_nobody_asked_for_has_an_id_of_its_own_and_leaves_none_behind(logged_ids):
    app.tasks["tests.look"].apply()
    app.tasks["tests.look"].apply()
    assert len(set(logged_ids)) == 2 and "-" not in logged_ids
    assert current_request_id.get() == "-"


def test_the_id_travels_with_the_message(monkeypatch):
    sent = {}
    monkeypatch.setattr(app, "send_task", lambda name, **options: sent.update(options))
    asked = current_request_id.set("abc123")
    _send("workers.runs.launch", (1,))
    current_request_id.reset(asked)
    assert sent["headers"] == {REQUEST_ID: "abc123"}


def test_every_refusal_quotes_its_id():
    for address in ("/runs/%00", "/?q=%00"):
        answer = Client().get(address)
        assert answer.status_code == 400 and answer.headers["X-Request-Id"] in answer.content.decode()
