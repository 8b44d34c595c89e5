"""The page of costs, with numbers worked by hand: months, missing values, roles, and as many queries for any number of runs."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.cast import browser
from tests.pages import shown
from tests.webapp.experiments.conftest import launch, model, places_enough, run, version  # noqa: F401  fixtures
from webapp.annotation.models import Assignment, Project, Task
from webapp.costs import queries
from webapp.experiments.models import LOGGED, Run, RunJudge
from webapp.inference.models import Endpoint
from webapp.judging.judges.services import create_judge
from webapp.weights.models import WeightsJob

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 10, 12, tzinfo=UTC)
MARCH, APRIL = date(2026, 3, 1), date(2026, 4, 1)


def at(month, day, hour=0):
    return datetime(2026, month, day, hour, tzinfo=UTC)


def set_run(row, **fields):
    Run.objects.filter(pk=row.pk).update(**{"started_at": at(3, 1), **fields})


def table(membership, by="run", month=None, sort="hours"):
    return queries.table(membership, by, month, sort, NOW)


def said(found, *names):
    values = [[line.name, *(line.amounts[name].value for name in names)] for line in (*found.lines, found.total)]
    return [[value if not isinstance(value, float) else round(value, 6) for value in row] for row in values]


def test_a_run_counts_with_all_attempts_in_the_month_in_which_it_ended(cast, launch):  # noqa: F811
    first, second, waits = launch(), launch(), launch()
    set_run(first, name="a", under_way=timedelta(hours=3), ended_at=at(4, 1) - timedelta(microseconds=1))
    set_run(second, name="b", under_way=timedelta(hours=2), begun_at=NOW - timedelta(minutes=30))
    Run.objects.filter(pk=waits.pk).update(name="c")
    assert said(table(cast.reviewer, month=MARCH), "hours") == [["a", 3.0], ["", 3.0]]
    assert said(table(cast.reviewer, month=APRIL), "hours") == [["b", 2.5], ["", 2.5]]
    assert said(table(cast.reviewer), "hours") == [["a", 3.0], ["b", 2.5], ["", 5.5]]
    assert said(table(cast.reviewer, "month"), "hours") == [["2026-04", 2.5], ["2026-03", 3.0], ["", 5.5]]
    assert table(cast.outsider).lines == []


def test_what_was_not_measured_is_missing_and_counted(cast, launch):  # noqa: F811
    devices = ("the processor", "NVIDIA H100", "", "2 processes of the Ray cluster")
    for name, device in zip("abcd", devices, strict=True):
        row = launch()
        set_run(row, name=name, under_way=timedelta(hours=1), ended_at=at(3, 9), learner_device=device)
    set_run(row := launch(), name="e", ended_at=at(3, 9), recipe=LOGGED)
    found = table(cast.reviewer)
    kept = {line.name: line.amounts["gpu_hours"] for line in (*found.lines, found.total)}
    assert [kept[name].value for name in "abcde"] == [0.0, 1.0, None, None, None]
    assert (kept[""].value, kept[""].unknown) == (1.0, 3)
    assert (found.total.amounts["hours"].value, found.total.amounts["hours"].unknown) == (4.0, 1)
    assert found.total.amounts["money"] == queries.MeasuredCost(None, 0)
    text = shown(browser(cast.reviewer).get("/costs?by=run"))
    assert "3 unknown" in text and "Together" in text


def test_judges_of_runs_cost_tokens_and_money_unless_nobody_knows_the_price(cast, run):  # noqa: F811
    set_run(run, under_way=timedelta(hours=1), ended_at=at(3, 9))
    for name, price, money in (("a", Decimal(2), "0.5"), ("b", None, "0")):
        endpoint = Endpoint.objects.create(
            workspace=cast.workspace, name=name, kind="chat", url="https://a.example/v1", model="m",
            price_prompt=price, price_completion=price,
        )  # fmt: skip
        judge = create_judge(cast.researcher, name=name, spec={"kind": "criterion"}, endpoint=endpoint)
        RunJudge.objects.create(run=run, version=judge, calls=2, tokens=100, money=Decimal(money))
    total = table(cast.reviewer, "project").total.amounts
    assert (total["judge_tokens"].value, total["money"].value, total["money"].unknown) == (200, 0.5, 1)
    assert (total["hours"].value, total["hours"].unknown, total["gpu_hours"].unknown) == (1.0, 0, 1)


def test_a_job_that_was_tried_again_has_no_hours(cast):
    for attempt in (1, 2):
        WeightsJob.objects.create(
            workspace=cast.workspace, kind="generate", title=f"t{attempt}", key=f"{attempt}", attempt=attempt, state="finished",
            params={"resources": {"gpus": 1}}, started_at=at(3, 9), ended_at=at(3, 9, 2),
        )  # fmt: skip
    total = table(cast.reviewer).total.amounts
    assert (total["hours"], total["gpu_hours"]) == (queries.MeasuredCost(2.0, 1), queries.MeasuredCost(2.0, 1))


@pytest.fixture
def seats(cast, version):  # noqa: F811
    """Anna worked for 2 minutes and for a time that nobody measured; Ravi, a reviewer, for 3 minutes."""
    project = Project.objects.create(workspace=cast.workspace, name="Colours", kind="rating", version=version)
    examples = list(version.members.values_list("example_id", flat=True))
    for place, (who, seconds) in enumerate([(cast.annotator, 120), (cast.annotator, 0), (cast.reviewer, 180)]):
        task = Task.objects.create(project=project, example_id=examples[place], rank=place)
        Assignment.objects.create(
            task=task, project=project, user=who.user, state="submitted", seconds=seconds,
            claimed_at=at(3, 31), lease_until=at(4, 2), submitted_at=at(4, 1),
        )  # fmt: skip


def test_minutes_have_a_name_only_for_those_who_may_know_it(cast, seats):
    assert said(table(cast.researcher, "person", APRIL, "minutes"), "minutes") == [
        ["Ravi", 3.0],
        ["Anna", 2.0],
        ["", 5.0],
    ]
    hidden = table(cast.reviewer, "person", APRIL, "minutes")
    assert said(hidden, "minutes") == [["Ravi", 3.0], ["People who are not named", 2.0], ["", 5.0]]
    assert hidden.total.amounts["minutes"].unknown == 1
    assert table(cast.researcher, "person", MARCH).lines == []
    assert "Anna" not in browser(cast.reviewer).get("/costs?by=person").content.decode()
    assert browser(cast.annotator).get("/costs").status_code == 403


def test_the_file_has_the_same_numbers_and_an_empty_cell_for_what_is_missing(cast, seats, run):  # noqa: F811
    set_run(run, name="=1+1", under_way=timedelta(hours=1), ended_at=at(4, 9))
    answer = browser(cast.researcher).get("/costs.csv?by=run&month=2026-04")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [(row["Run"], row["hours"], row["minutes"], row["minutes_unknown"]) for row in rows] == [
        ("'=1+1", "1.0", "", "0"),
        ("Colours", "", "5.0", "1"),
    ]


def test_a_run_leads_to_its_own_costs_and_back(cast, launch):  # noqa: F811
    first, second = launch(), launch()
    for row, name in ((first, "first of all"), (second, "the second")):
        set_run(row, name=name, under_way=timedelta(hours=row.number), ended_at=at(3, 9))
    client = browser(cast.reviewer)
    address = f"/costs?by=run&amp;run={first.pk}"
    assert address in client.get(f"/runs/{first.pk}").content.decode()
    page = client.get(address.replace("&amp;", "&")).content.decode()
    assert f'href="/runs/{first.pk}"' in page and "the second" not in page
    rows = list(csv.DictReader(io.StringIO(client.get(f"/costs.csv?by=month&run={first.pk}").content.decode())))
    assert [(row["Month"], row["hours"]) for row in rows] == [("2026-03", "1.0")]
    assert browser(cast.outsider).get(f"/costs?run={first.pk}").status_code == 404
    assert "the second" in client.get("/costs?by=run&run=x").content.decode()


def test_more_runs_ask_no_more_queries(cast, launch):  # noqa: F811
    client, counts = browser(cast.reviewer), []
    for _ in range(2):
        for _ in range(2):
            set_run(launch(), under_way=timedelta(hours=1), ended_at=at(3, 9))
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert client.get("/costs?by=run").status_code == 200
        counts.append(len(asked))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("address", ["by=x&sort=y&month=z", "month=9999-12", "month=2026-12", "by=month&month=2026-04"])
def test_an_address_that_cannot_be_read_shows_the_page(cast, address):
    assert browser(cast.reviewer).get(f"/costs?{address}").status_code == 200
