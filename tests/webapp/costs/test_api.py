"""Costs over the API: the numbers of the page, in pages of one moment, for the roles and tokens that may see them."""

import json
from base64 import urlsafe_b64encode
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.team import ApiClient
from tests.webapp.experiments.conftest import launch, model, places_enough, run, version  # noqa: F401  fixtures
from webapp.accounts.tokens.services import create_token
from webapp.experiments.models import LOGGED, Run

from .test_costs import NOW, at, named, seats, span, use  # noqa: F401  a fixture among them

pytestmark = pytest.mark.django_db


def listed(script, **query):
    """All lines, page by page, and the totals of the pages."""
    lines, totals, cursor = [], [], {}
    while True:
        answer = script.get("/costs", **query, **cursor)
        assert answer.status_code == 200, answer.content
        told = answer.json()
        lines += told["items"]
        totals.append(told["total"])
        if told["next"] is None:
            return lines, totals
        cursor = {"cursor": told["next"]}


def test_it_says_what_the_page_says(team, run):  # noqa: F811
    span(named(run, "a"), at(3, 31, 22), at(4, 1, 1), gpus=0.5)
    use(team, "run", run.pk, place=run.experiment_id, unpriced=1)
    (line,), (total,) = listed(ApiClient(team.reviewer), by="run", month="2026-03")
    assert (line["kind"], line["id"], line["name"], line["url"]) == ("run", run.pk, "a", f"/runs/{run.pk}")
    assert (line["hours"], line["gpu_hours"]) == ({"value": 2.0, "unknown": 0}, {"value": 1.0, "unknown": 0})
    assert (line["tokens"], line["money"]) == ({"value": 100.0, "unknown": 0}, {"value": 0.5, "unknown": 1})
    assert line["minutes"] == {"value": None, "unknown": 0}
    assert total == {**line, "kind": "total", "id": 0, "name": "", "url": ""}
    months, _ = listed(ApiClient(team.reviewer), run=run.pk)
    assert [(each["name"], each["hours"]["value"]) for each in months] == [("2026-04", 1.0), ("2026-03", 2.0)]


@pytest.mark.parametrize("by", ["run", "month", "project", "person"])
@pytest.mark.parametrize("sort", ["hours", "money", "minutes"])
def test_pages_have_every_line_once_and_in_order(team, launch, by, sort):  # noqa: F811
    for number in range(7):
        row = launch()
        span(row, at(1 + number % 3, 5), at(1 + number % 3, 5, number % 4), gpus=1)
        Run.objects.filter(pk=row.pk).update(experiment=row.experiment)
    use(team, "evaluation", 1, money=Decimal(1) / 3)
    use(team, "evaluation", 2, unpriced=2)
    Run.objects.filter(pk=launch().pk).update(started_at=at(2, 1), ended_at=at(2, 9), recipe=LOGGED)
    script = ApiClient(team.reviewer)
    whole, _ = listed(script, by=by, sort=sort, limit=200)
    for limit in (1, 3):
        lines, totals = listed(script, by=by, sort=sort, limit=limit)
        assert lines == whole and all(total == totals[0] for total in totals)
    values = [line[sort]["value"] for line in whole if line[sort]["value"] is not None]
    assert by == "month" or values == sorted(values, reverse=True)
    assert len({(line["kind"], line["id"], line["name"]) for line in whole}) == len(whole)


def test_pages_are_of_the_moment_of_the_first(team, launch, monkeypatch):  # noqa: F811
    """What is under way goes on costing, and would else move behind the place where the first page ended."""
    for hours in (3, 2, 1):
        span(launch(), NOW - timedelta(hours=hours), None, gpus=0)
    script = ApiClient(team.reviewer)
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    first = script.get("/costs", by="run", limit=2).json()
    monkeypatch.setattr(timezone, "now", lambda: NOW + timedelta(hours=9))
    second = script.get("/costs", by="run", limit=2, cursor=first["next"]).json()
    assert [line["hours"]["value"] for line in (*first["items"], *second["items"])] == [3.0, 2.0, 1.0]
    assert second["next"] is None and second["total"] == first["total"]


def test_what_cannot_be_read_is_refused_at_its_parameter(team, run, launch):  # noqa: F811
    for row in (run, launch()):
        span(row, at(3, 1), at(3, 1, 1))
    script = ApiClient(team.reviewer)
    cursor = script.get("/costs", by="run", limit=1).json()["next"]
    now = NOW.isoformat()
    asked = ["run", None, "hours", None]
    forged = [
        [asked, now, "NaN", "run", 1],
        [asked, now, "1", "run", -1],
        [asked, now, "1", 5, 1],
        [asked, "2026-01-01T00:00:00", "1", "run", 1],
        [asked, now, "1", "a\0", 1],
        [asked, now],
        7,
    ]
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("by", {"by": "colour"}),
        ("sort", {"sort": "name"}),
        ("month", {"month": "2026-13"}),
        ("month", {"month": "0000-01"}),
        ("month", {"month": "9999-12"}),
        ("run", {"run": "x"}),
        ("run", {"run": 0}),
        ("cursor", {"by": "run", "cursor": "x"}),
        ("cursor", {"by": "run", "cursor": "W1tb" * 1_000}),  # lists in lists, too deep to be read
        ("cursor", {"by": "project", "cursor": cursor}),
        ("cursor", {"by": "run", "month": "2026-03", "cursor": cursor}),
        *(
            ("cursor", {"by": "run", "cursor": urlsafe_b64encode(json.dumps(each).encode()).decode()})
            for each in forged
        ),
    ]
    for name, query in wrong:
        answer = script.get("/costs", **query)
        assert answer.status_code == 422, (query, answer.content)
        assert name in answer.content.decode(), query
    assert script.get("/costs", run=run.pk + 1000).status_code == 404
    assert ApiClient(team.outsider).get("/costs", run=run.pk).status_code == 404


def test_the_roles_and_the_areas(team, seats):  # noqa: F811
    assert ApiClient(team.annotator).get("/costs").status_code == 403
    assert ApiClient(team.outsider).get("/costs").json()["items"] == []
    people = {line["name"] for line in listed(ApiClient(team.researcher, "read"), by="person")[0]}
    assert people == {"Anna", "Ravi"}
    hidden = {line["name"] for line in listed(ApiClient(team.reviewer), by="person")[0]}
    assert hidden == {"Ravi", "People who are not named"}

    def status(areas):
        secret = create_token(team.researcher, "narrow", rights=areas)[1]
        return Client(headers={"authorization": f"Bearer {secret}"}).get("/api/v1/costs", {"by": "person"})

    assert status({"datasets": "read"}).status_code == 403
    told = status({"experiments": "read"}).json()["items"]
    assert [line["name"] for line in told] == ["People who are not named"]
