"""A NUL in a form is refused or left out, by whatever page, and never ends as an error of the server."""

from typing import Any

import pytest
from django.db import connection

from tests.team import browser

pytestmark = pytest.mark.django_db
NUL = "a\0b"
FORMS = [
    ("/runs/{run}/rename", {"name": NUL}),
    ("/runs/{run}/labels", {"tags": NUL, "group": NUL, "notes": NUL}),
    ("/experiments.csv", {"sort": NUL, "columns": NUL, "ids": "1"}),
    ("/experiments/share", {"title": NUL, "runs": "1"}),
    ("/runs/new", {"name": NUL, "experiment": NUL, "recipe": "sft", "dataset": NUL}),
    ("/datasets/import", {"name": NUL, "mapping": NUL}),
    ("/projects/new", {"name": NUL, "guidelines": NUL, "kind": "pairwise"}),
    ("/judges/new", {"name": NUL, "kind": "criterion"}),
    ("/reports/new", {"title": NUL, "text": NUL}),
    ("/settings/webhooks", {"url": f"https://x.example/{NUL}", "events": NUL}),
    ("/settings/tokens", {"name": NUL, "days": "30"}),
    ("/sign-in", {"email": f"{NUL}@example.org", "password": NUL}),
]


@pytest.mark.parametrize(("address", "fields"), FORMS, ids=[address for address, _ in FORMS])
def test_a_form_with_a_nul_is_no_error_of_the_server(team, run, address, fields):
    answer: Any = browser(team.owner).post(address.format(run=run.pk), fields)
    if answer.streaming:
        assert list(answer.streaming_content)
    assert answer.status_code < 500 and answer.status_code not in (404, 405)


def test_a_nul_that_no_field_has_refused_is_refused_at_the_database(team, run, monkeypatch):
    """In a text, and in JSON, where it comes as an escape."""

    def stores(*_, **__):
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s", [NUL])

    def stores_json(*_, **__):
        with connection.cursor() as cursor:
            cursor.execute("""SELECT '"a\\u0000"'::jsonb""")

    for store in (stores, stores_json):
        monkeypatch.setattr("webapp.experiments.lifecycle.services.rename", store)
        answer = browser(team.owner).post(f"/runs/{run.pk}/rename", {"name": "new"})
        assert answer.status_code == 400 and "A field holds a NUL character" in answer.content.decode()
