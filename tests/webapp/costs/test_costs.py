"""The page of costs, with numbers worked by hand: months, missing values, roles, and as many queries for any number of runs."""

import csv
import io
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html import unescape
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.pages import page_html
from tests.team import browser
from tests.webapp.experiments.conftest import launch, model, places_enough, run, version  # noqa: F401  fixtures
from webapp.annotation.models import Assignment, Project, Task
from webapp.costs import queries, views
from webapp.evaluation.models import Evaluation
from webapp.experiments.models import LOGGED, Run
from webapp.usage.models import MonthlyUse, WorkSpan
from webapp.weights.models import WeightsJob

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 10, 12, tzinfo=UTC)
MARCH, APRIL = date(2026, 3, 1), date(2026, 4, 1)


def at(month, day, hour=0):
    return datetime(2026, month, day, hour, tzinfo=UTC)


def named(row, name):
    Run.objects.filter(pk=row.pk).update(name=name)
    return row


def span(row, began, ended, attempt=1, gpus=None, **fields):
    """An attempt of a run in the ledger, or of a job whose id is `row`."""
    kind, work = ("job", row) if isinstance(row, int) else ("run", row.pk)
    of = {} if isinstance(row, int) else {"place": row.experiment_id, "person": row.created_by}
    return WorkSpan.objects.create(
        workspace=fields.pop("workspace", None) or row.experiment.workspace, kind=kind, work=work, attempt=attempt,
        began=began, ended=ended, gpus=gpus, **of, **fields,
    )  # fmt: skip


def use(team, kind="run", work=1, month=MARCH, endpoint=None, **fields):
    told = {"calls": 2, "prompt_tokens": 80, "completion_tokens": 20, "money": Decimal("0.5"), **fields}
    return MonthlyUse.objects.create(
        workspace=team.workspace, kind=kind, work=work, month=month, endpoint=endpoint, **told
    )


def table(membership, by="run", month=None, sort="hours", **more):
    return queries.table(membership, by, month, sort, NOW, **more)


def rounded_rows(found, *names):
    values = [[line.name, *(line.amounts[name].value for name in names)] for line in (*found.lines, found.total)]
    return [[value if not isinstance(value, float) else round(value, 6) for value in row] for row in values]


def test_hours_belong_to_the_months_in_which_they_passed(team, launch):  # noqa: F811
    span(a := named(launch(), "a"), at(3, 31, 21), at(4, 1, 2), gpus=0.5)
    span(a, at(4, 2), at(4, 2, 1), attempt=2, gpus=2)
    span(named(launch(), "b"), NOW - timedelta(minutes=30), None, gpus=0)
    named(launch(), "c")
    names = ("hours", "gpu_hours")
    assert rounded_rows(table(team.reviewer, month=MARCH), *names) == [["a", 3.0, 1.5], ["", 3.0, 1.5]]
    assert rounded_rows(table(team.reviewer, month=APRIL), *names) == [["a", 3.0, 3.0], ["b", 0.5, 0.0], ["", 3.5, 3.0]]
    assert rounded_rows(table(team.reviewer), *names) == [["a", 6.0, 4.5], ["b", 0.5, 0.0], ["", 6.5, 4.5]]
    assert rounded_rows(table(team.reviewer, "month"), *names) == [
        ["2026-04", 3.5, 3.0],
        ["2026-03", 3.0, 1.5],
        ["", 6.5, 4.5],
    ]
    assert rounded_rows(table(team.reviewer, month=date(2026, 5, 1)), *names) == [["", None, None]]
    assert table(team.outsider).lines == []


def test_an_attempt_of_several_months_is_cut_at_midnight_utc(team, run):  # noqa: F811
    span(run, datetime(2025, 12, 31, 23, tzinfo=UTC), at(3, 1), gpus=1)
    assert rounded_rows(table(team.reviewer, "month"), "hours") == [
        ["2026-02", 28 * 24.0],
        ["2026-01", 31 * 24.0],
        ["2025-12", 1.0],
        ["", 59 * 24.0 + 1],
    ]
    for month, hours in ((date(2025, 12, 1), 1.0), (date(2026, 2, 1), 28 * 24.0), (MARCH, None)):
        assert table(team.reviewer, month=month).total.amounts["hours"].value == hours


def test_the_months_add_up_to_the_whole(team, launch):  # noqa: F811
    draw = Random(4)  # noqa: S311  numbers for a test
    for _ in range(30):
        began = at(1, 1) + timedelta(hours=draw.random() * 2000)
        span(launch(), began, began + timedelta(hours=draw.random() * 1500), gpus=draw.choice([None, 0, 0.25, 4]))
    whole, months = table(team.reviewer), table(team.reviewer, "month")
    for name in ("hours", "gpu_hours"):
        assert sum(line.amounts[name].value or 0 for line in months.lines) == pytest.approx(
            whole.total.amounts[name].value
        )
        for line in months.lines:
            alone = table(team.reviewer, month=date.fromisoformat(f"{line.name}-01")).total.amounts[name]
            assert alone.value == pytest.approx(line.amounts[name].value)


def test_what_was_not_measured_is_missing_and_counted_once_for_each_run(team, launch):  # noqa: F811
    for name, gpus in zip("abc", (0, 1, None), strict=True):
        row = named(launch(), name)
        for attempt in (1, 2):
            span(row, at(3, 9, attempt), at(3, 9, attempt + 1), attempt, gpus)
    Run.objects.filter(pk=named(launch(), "d").pk).update(started_at=at(3, 1), ended_at=at(3, 9), recipe=LOGGED)
    found = table(team.reviewer)
    kept = {line.name: line.amounts["gpu_hours"] for line in (*found.lines, found.total)}
    assert [kept[name].value for name in "abcd"] == [0.0, 2.0, None, None]
    assert (kept[""].value, kept[""].unknown) == (2.0, 2)
    assert (found.total.amounts["hours"].value, found.total.amounts["hours"].unknown) == (6.0, 1)
    assert found.total.amounts["money"] == queries.MeasuredCost(None, 0)
    text = page_html(browser(team.reviewer).get("/costs?by=run"))
    assert "2 unknown" in text and ">Total</th>" in text and ">Hours as a bar</th>" in text


def test_the_column_by_which_the_table_is_sorted_comes_first(team, run):  # noqa: F811
    use(team, "run", named(run, "R").pk, money="1.25")
    for sort, first in (("hours", "Hours"), ("money", "Money"), ("minutes", "People's minutes")):
        text = page_html(browser(team.reviewer).get(f"/costs?by=run&sort={sort}"))
        heads = re.findall(r'<th scope="col" class="num" data-sort="number">([^<]+)', text)
        assert unescape(heads[0]) == first and len(set(heads)) == 5, "a phone has room for one number beside the name"
    text = page_html(browser(team.reviewer).get("/costs?by=run&sort=money"))
    assert re.search(r'<th scope="row">.*?</th>\s*<td[^>]*data-value="1.25', text, re.DOTALL)


def test_all_who_ask_endpoints_cost_tokens_and_money(team, run):  # noqa: F811
    evaluation = Evaluation.objects.create(workspace=team.workspace, name="E", recipe="judge_audit", benchmark="x")
    project = Project.objects.create(workspace=team.workspace, name="P", kind="rating", version=run.dataset_version)
    use(team, "run", named(run, "R").pk, place=run.experiment_id)
    use(team, "evaluation", evaluation.pk, other_tokens=7)
    use(team, "project", project.pk, month=APRIL)
    for work in (1, 2):
        use(team, "tried", work, month=APRIL, money=Decimal(2))
    names = ("tokens", "money")
    assert rounded_rows(table(team.reviewer, sort="money"), *names) == [
        ["Answers scored on Try it", 200, 4.0],
        ["E", 107, 0.5],
        ["P", 100, 0.5],
        ["R", 100, 0.5],
        ["", 507, 5.5],
    ]
    assert rounded_rows(table(team.reviewer, month=MARCH, sort="tokens"), *names) == [
        ["E", 107, 0.5],
        ["R", 100, 0.5],
        ["", 207, 1.0],
    ]
    projects = [line[0] for line in rounded_rows(table(team.reviewer, "project", sort="tokens"))]
    assert projects == ["Answers scored on Try it", "Evaluations", str(run.experiment), "P", ""]


def test_calls_without_a_price_are_no_money_and_counted(team):
    use(team, "evaluation", 1, unpriced=2, money=Decimal(0))
    use(team, "evaluation", 2, untold=2, prompt_tokens=0, completion_tokens=0)
    use(team, "evaluation", 3, calls=3, unpriced=1, untold=1)
    total = table(team.reviewer).total.amounts
    assert total["money"] == queries.MeasuredCost(1.0, 3)
    assert total["tokens"] == queries.MeasuredCost(200.0, 3)
    lines = {line.id: line for line in table(team.reviewer).lines}
    assert lines[1].amounts["money"].value is None and lines[2].amounts["tokens"].value is None


def test_a_small_amount_is_not_shown_as_zero(team):
    for work, money in enumerate(("0", "0.0049", "0.00004", "12.3"), 1):
        use(team, kind="evaluation", work=work, money=Decimal(money))
    page = page_html(browser(team.owner).get("/costs", {"by": "run", "sort": "money"}))
    shown = dict(re.findall(r'data-value="([0-9.]+)"> (\S.*?) ?</td>', page))
    amounts = ("12.300000", "0.004900", "0.000040", "0.000000")
    assert [shown[value] for value in amounts] == ["12.30", "0.0049", "under 0.0001", "0.00"]


def test_a_job_that_was_tried_again_has_its_hours_unless_it_is_older_than_the_ledger(team):
    job = WeightsJob.objects.create(workspace=team.workspace, kind="generate", title="t", key="t")
    for attempt in (1, 2):
        span(job.pk, at(3, 9, attempt), at(3, 9, attempt + 1), attempt, 0.5, workspace=team.workspace)
    span(job.pk + 1, at(3, 9), None, 0, 1, workspace=team.workspace, measured=False)
    assert rounded_rows(table(team.reviewer, month=MARCH), "hours", "gpu_hours") == [
        ["t", 2.0, 1.0],
        [f"Job on the cluster {job.pk + 1}, deleted", None, None],
        ["", 2.0, 1.0],
    ]
    for found in (table(team.reviewer), table(team.reviewer, "month"), table(team.reviewer, month=MARCH)):
        assert (found.total.amounts["hours"].value, found.total.amounts["hours"].unknown) == (2.0, 1)
    assert table(team.reviewer, month=APRIL).lines == []


def test_a_run_that_went_through_pause_and_resume_counts_while_it_ran(team, run):  # noqa: F811
    for attempt, hours in ((1, (9, 10)), (2, (20, 23))):
        span(run, at(3, 1, hours[0]), at(3, 1, hours[1]), attempt, 1)
    use(team, "run", run.pk)
    amounts = table(team.reviewer, "month", run=run.pk).lines[0].amounts
    assert (amounts["hours"].value, amounts["gpu_hours"].value, amounts["tokens"].value) == (4.0, 4.0, 100)


def test_a_deleted_run_has_cost_what_it_has_cost(team, run):  # noqa: F811
    span(run, at(3, 1), at(3, 1, 2), gpus=1)
    pk, experiment = run.pk, str(run.experiment)
    run.delete()
    assert rounded_rows(table(team.reviewer), "hours") == [[f"Run {pk}, deleted", 2.0], ["", 2.0]]
    assert rounded_rows(table(team.reviewer, "project"), "hours") == [[experiment, 2.0], ["", 2.0]]


@pytest.fixture
def seats(team, version):  # noqa: F811
    """Anna worked for 2 minutes and for a time that nobody measured; Ravi, a reviewer, for 3 minutes."""
    project = Project.objects.create(workspace=team.workspace, name="Colours", kind="rating", version=version)
    examples = list(version.members.values_list("example_id", flat=True))
    for place, (who, seconds) in enumerate([(team.annotator, 120), (team.annotator, 0), (team.reviewer, 180)]):
        task = Task.objects.create(project=project, example_id=examples[place], rank=place)
        Assignment.objects.create(
            task=task, project=project, user=who.user, state="submitted", seconds=seconds,
            claimed_at=at(3, 31), lease_until=at(4, 2), submitted_at=at(4, 1),
        )  # fmt: skip


def test_minutes_have_a_name_only_for_those_who_may_know_it(team, seats):
    assert rounded_rows(table(team.researcher, "person", APRIL, "minutes"), "minutes") == [
        ["Ravi", 3.0],
        ["Anna", 2.0],
        ["", 5.0],
    ]
    hidden = table(team.reviewer, "person", APRIL, "minutes")
    assert rounded_rows(hidden, "minutes") == [["Ravi", 3.0], ["People who are not named", 2.0], ["", 5.0]]
    assert hidden.total.amounts["minutes"].unknown == 1
    assert table(team.researcher, "person", MARCH).lines == []
    assert "Anna" not in browser(team.reviewer).get("/costs?by=person").content.decode()
    assert browser(team.annotator).get("/costs").status_code == 403


def file(answer) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))


@pytest.mark.parametrize("by", ["run", "month"])
def test_the_file_has_all_lines_however_many_are_read_at_once(team, launch, monkeypatch, by):  # noqa: F811
    for month in range(1, 6):
        span(launch(), at(month, 2), at(month, 2, 1))
    client = browser(team.researcher)
    whole = file(client.get(f"/costs.csv?by={by}"))
    monkeypatch.setattr(views, "PAGE", 2)
    assert file(client.get(f"/costs.csv?by={by}")) == whole and len(whole) == 5


def test_the_file_has_the_same_numbers_and_an_empty_cell_for_what_is_missing(team, seats, run):  # noqa: F811
    span(named(run, "=1+1"), at(4, 9), at(4, 9, 1))
    rows = file(browser(team.researcher).get("/costs.csv?by=run&month=2026-04"))
    assert [(row["Work"], row["hours"], row["minutes"], row["minutes_unknown"]) for row in rows] == [
        ("'=1+1", "1.0", "", "0"),
        ("Colours", "", "5.0", "1"),
    ]


def test_a_run_leads_to_its_own_costs_and_back(team, launch):  # noqa: F811
    first, second = launch(), launch()
    for row, name in ((first, "first of all"), (second, "the second")):
        span(named(row, name), at(3, 9), at(3, 9, row.number))
    client = browser(team.reviewer)
    address = f"/costs?by=run&amp;run={first.pk}"
    assert address in client.get(f"/runs/{first.pk}").content.decode()
    page = client.get(address.replace("&amp;", "&")).content.decode()
    assert f'href="/runs/{first.pk}"' in page and "the second" not in page
    rows = file(client.get(f"/costs.csv?by=month&run={first.pk}"))
    assert [(row["Month"], row["hours"]) for row in rows] == [("2026-03", "1.0")]
    assert browser(team.outsider).get(f"/costs?run={first.pk}").status_code == 404
    for wrong in ("x", "-1", "1.5", "9" * 30, "٣", f"{first.pk + second.pk + 1000}"):
        assert client.get("/costs", {"by": "run", "run": wrong}).status_code == 404, wrong
        assert client.get("/costs.csv", {"run": wrong}).status_code == 404, wrong
    assert "the second" in client.get("/costs?by=run&run=").content.decode()


def test_more_runs_ask_no_more_queries(team, launch):  # noqa: F811
    client, counts = browser(team.reviewer), []
    for _ in range(2):
        for _ in range(2):
            span(row := launch(), at(3, 9), at(3, 9, 1))
            use(team, "run", row.pk, place=row.experiment_id)
            evaluation = Evaluation.objects.create(workspace=team.workspace, name="E", recipe="a", benchmark="x")
            use(team, "evaluation", evaluation.pk)
        with CaptureQueriesContext(connection) as asked:
            assert client.get("/costs?by=run").status_code == 200
        counts.append(len(asked))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("address", ["by=x&sort=y&month=z", "month=9999-12", "month=2026-12", "by=month&month=2026-04"])
def test_an_address_that_cannot_be_read_shows_the_page(team, address):
    assert browser(team.reviewer).get(f"/costs?{address}").status_code == 200
