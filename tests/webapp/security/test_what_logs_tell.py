"""A log line names the person and the request, and is one line for every address."""

import json
import logging
from typing import Any

import pytest
from django.conf import settings as configured
from django.test import Client

from tests.team import ApiClient, browser
from tests.webapp.security.test_second_factor import set_up
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.core.models import AuditEntry
from webapp.core.monitoring.logs import JsonLines, NoSecrets, OneLine, Refusals, RequestIdFilter

LOGGING: dict[str, Any] = configured.LOGGING
PASSWORD = "a long enough passphrase"


class Lines(logging.Handler):
    """The console's output, in both formats."""

    def __init__(self) -> None:
        super().__init__()
        self.plain: list[str] = []
        self.json: list[dict] = []
        for each in (RequestIdFilter(), Refusals(), NoSecrets(), OneLine()):
            self.addFilter(each)

    def emit(self, record: logging.LogRecord) -> None:
        self.plain.append(logging.Formatter(LOGGING["formatters"]["line"]["format"]).format(record))
        self.json.append(json.loads(JsonLines().format(record)))


@pytest.fixture
def log():
    handler, root = Lines(), logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)


def test_the_console_has_these_filters():
    assert LOGGING["handlers"]["console"]["filters"] == ["request_id", "refusals", "no_secrets", "one_line"]


@pytest.mark.django_db
def test_a_refusal_names_who_asked_and_which_request(team, log):
    for ask in (
        lambda: browser(team.annotator).get("/settings/audit"),
        lambda: ApiClient(team.annotator).get("/datasets"),
    ):
        log.json.clear()
        answer = ask()
        assert answer.status_code == 403
        [line] = [each for each in log.json if "orbidden" in each["message"]]
        assert line["person"] == str(team.annotator.user_id)
        assert line["request"] == answer["X-Request-Id"] and line["time"].endswith("+00:00")
    Client().get("/nowhere")
    assert log.json[-1]["person"] == "-"


@pytest.mark.django_db
def test_no_address_writes_a_line_of_the_log(team, log):
    browser(team.owner).get("/nowhere%0a2026-11-23 ERROR forged: all is lost %s %(name)s")
    logging.getLogger("webapp").warning("refused %s", "/a\r\nforged\x1b[31m\u2028too")
    assert log.plain and all(len(line.splitlines()) == 1 for line in log.plain)
    assert "\\r\\nforged\\x1b[31m\\u2028too" in log.plain[-1] and any(
        "all is lost %s %(name)s" in line for line in log.plain
    )


@pytest.mark.django_db
def test_a_sign_in_tells_by_what_and_a_failure_is_logged(team, log, client):
    _, app = set_up(team.owner)
    client.post("/sign-in", {"email": team.owner.user.email, "password": "not this one"})
    assert any("login failure" in line for line in log.plain) and not any("not this one" in line for line in log.plain)
    client.post("/sign-in", {"email": team.owner.user.email, "password": PASSWORD})
    client.post("/sign-in/second-factor", {"code": "000000"})
    assert any(f"refused a second factor (totp) of person {team.owner.user_id}" in line for line in log.plain)
    client.post("/sign-in/second-factor", {"code": app.code(1)})
    assert AuditEntry.objects.filter(action="session.started").latest("id").detail == {"by": ["password", "totp"]}
    Client().post(f"/sign-in/link/{create_sign_in_link(team.annotator.user)}")
    assert AuditEntry.objects.filter(action="session.started").latest("id").detail == {"by": ["link"]}
