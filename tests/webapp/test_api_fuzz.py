"""Throws at every operation of the API what its own description allows, and what it does not: never an answer 5xx."""

from collections.abc import Iterator

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from tests.cast import make_cast
from webapp.accounts import services

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())


@pytest.fixture
def secret(db) -> Iterator[str]:
    # a real server closes its connection after each request; the test's transaction lives in that connection
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield services.create_token(make_cast().owner, "fuzz")[1]
    for signal in signals:
        signal.connect(close_old_connections)


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,  # the suite finds the same today and tomorrow
    suppress_health_check=list(HealthCheck),
)
def test_no_input_is_answered_with_5xx(case, secret):
    case.call_and_validate(headers={"Authorization": f"Bearer {secret}"}, checks=(not_a_server_error,))
