"""Sends to every operation of the API requests that its description allows, and others. No answer may be a 5xx, and every answer must have
a status, content type and form that the description has.
"""

from collections.abc import Iterator
from contextlib import suppress

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.team import make_team
from webapp.accounts.tokens.services import create_token

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
OPERATIONS = [found.ok() for found in schema.get_all_operations()]


@pytest.fixture(scope="module")
def secret(module_rows) -> Iterator[str]:
    # a real server closes its connection after each request, but the test's transaction is in that connection
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    with module_rows():
        _, made = create_token(make_team().owner, "fuzz")
    yield made
    for signal in signals:
        signal.connect(close_old_connections)


# The fuzzer's own decorator gives all operations one id, and parallel workers run one test per id.
@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_no_input_is_answered_as_the_description_does_not_say(operation, mode, secret):
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=6,  # for each mode and operation; together some 2,000 requests
        deadline=None,
        derandomize=True,  # the requests are the same every day
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def answer(case):
        case.call_and_validate(headers={"Authorization": f"Bearer {secret}"}, checks=CHECKS)

    with suppress(Unsatisfiable):  # an operation without parameters has no wrong ones
        answer()
