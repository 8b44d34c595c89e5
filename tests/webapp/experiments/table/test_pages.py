"""Sorting and paging give every run once, in every order, with missing values, and with changes between two pages."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webapp.experiments.table.module_runs import *  # noqa: F403 - fixtures
from webapp.core.problems import Invalid
from webapp.experiments.models import Run
from webapp.experiments.table import columns, keyset, queries, services
from webapp.experiments.table.queries import Layout

pytestmark = pytest.mark.django_db


def begin(make, team):
    """Seven runs. Some have no score, and two have the same."""
    scores = [[0.5], [], [0.2, 0.9], [0.5], [], [0.1], [0.7]]
    return [make(f"r{place}", scores=each, lr=10.0 ** -(place % 3 + 3)) for place, each in enumerate(scores)]


@pytest.fixture
def seven(runs_copy):
    return runs_copy["runs"]


def walked(membership, sort: str, limit: int = 2, query: str = "") -> list[str]:
    names, cursor = [], None
    while True:
        page = queries.page(membership, Layout(query=query, sort=sort), cursor, limit)
        names += [row.run.name for row in page.rows]
        cursor = page.next
        if cursor is None:
            return names


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("-created", "r6 r5 r4 r3 r2 r1 r0"),
        ("created", "r0 r1 r2 r3 r4 r5 r6"),
        ("name", "r0 r1 r2 r3 r4 r5 r6"),
        ("-name", "r6 r5 r4 r3 r2 r1 r0"),
        ("-eval/score", "r2 r6 r3 r0 r5 r4 r1"),
        ("eval/score", "r5 r0 r3 r6 r2 r4 r1"),
        ("-min(eval/score)", "r6 r3 r0 r2 r5 r4 r1"),
        ("-config.optim.lr", "r6 r3 r0 r4 r1 r5 r2"),
        ("config.model.name", "r0 r1 r2 r3 r4 r5 r6"),
        ("-ended", "r6 r5 r4 r3 r2 r1 r0"),
    ],
)
def test_every_order_has_every_run_once_and_what_is_missing_last(seven, team, sort, expected):
    for limit in (1, 2, 3, 50):
        assert walked(team.researcher, sort, limit) == expected.split()


@pytest.mark.parametrize("peek", [1, 2, 4, 200])
@pytest.mark.parametrize(
    ("query", "expected"),
    [("-name:r3", "r2 r6 r0 r5 r4 r1"), ("name:r5", "r5"), ("-name:r2 -name:r6", "r3 r0 r5 r4 r1"), ("name:r9", "")],
)
def test_what_is_looked_at_first_changes_no_page(seven, team, monkeypatch, peek, query, expected):
    monkeypatch.setattr(keyset, "PEEK", peek)
    for limit in (1, 3, 50):
        assert walked(team.researcher, "-eval/score", limit, query) == expected.split()


def test_an_order_by_name_walks_an_index(seven, team):
    """The expression of the index must be exactly that of the query."""
    with CaptureQueriesContext(connection) as asked:
        queries.page(team.researcher, Layout(sort="name"))
    (sql,) = [query["sql"] for query in asked.captured_queries if 'AS "sorted_by"' in (query["sql"] or "")]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {sql}")
        assert any("runs_by_shown_name" in line for (line,) in cursor.fetchall())


def test_rows_are_drawn_without_the_configs_of_runs(seven, as_researcher):
    """Configs are wide, and a separate query would read each of them."""
    as_researcher.get("/experiments")
    with CaptureQueriesContext(connection) as asked:
        as_researcher.get("/experiments", {"columns": ",".join([*columns.FACTS, *columns.PICTURES, "config.optim.lr"])})
    assert not [
        query["sql"] for query in asked.captured_queries if '"experiments_run"."config"' in (query["sql"] or "")
    ]


@pytest.mark.parametrize("name", [each for each in columns.FACTS if each not in columns.STORED_FACTS])
def test_every_fact_sorts_both_ways(seven, team, name):
    Run.objects.filter(name__in=["r1", "r2"]).update(
        started_at="2026-11-20T10:00Z", ended_at="2026-11-20T11:00Z", step=3
    )
    for sort in (name, f"-{name}"):
        assert sorted(walked(team.researcher, sort)) == [f"r{place}" for place in range(7)]


def test_a_result_is_promised_only_to_runs_that_are_not_over(seven, as_researcher):
    Run.objects.exclude(name="r1").delete()
    over = as_researcher.get("/experiments").content.decode()
    assert '<span class="missing">none</span>' in over and "not yet" not in over
    Run.objects.update(state="running")
    assert '<span class="missing">not yet</span>' in as_researcher.get("/experiments").content.decode()
    assert "By person" in over


def test_a_run_that_is_made_between_two_pages_shifts_nothing(seven, team, make):
    first = queries.page(team.researcher, Layout(sort="-eval/score"), None, 3)
    make("late", scores=[0.99])
    rest = queries.page(team.researcher, Layout(sort="-eval/score"), first.next, 50)
    assert [row.run.name for row in (*first.rows, *rest.rows)] == ["r2", "r6", "r3", "r0", "r5", "r4", "r1"]


@pytest.mark.parametrize("cursor", ["x", "bm9wZQ==", "WzEsMl0=", "W10=", pytest.param("W1tb" * 1_000, id="deep")])
def test_a_cursor_of_somebody_else_is_refused(seven, team, cursor):
    with pytest.raises(Invalid):
        queries.page(team.researcher, Layout(), cursor)


def test_a_cursor_fits_its_own_order_only(seven, team):
    cursor = queries.page(team.researcher, Layout(sort="-eval/score"), None, 2).next
    with pytest.raises(Invalid):
        queries.page(team.researcher, Layout(sort="eval/score"), cursor)


def test_cells_hold_what_the_columns_ask(seven, team):
    shown = ("max(eval/score)", "eval/score", "config.optim.lr", "config.model.name", "state", "nowhere/at_all")
    page = queries.page(team.researcher, Layout(query="r2", columns=shown))
    assert [cell.value for cell in page.rows[0].cells] == [0.9, 0.9, 1e-5, seven[2].config["model"]["name"], None]
    assert page.unknown == {"nowhere/at_all": "No run here has nowhere/at_all."}


def test_a_page_costs_the_same_whatever_it_holds(seven, team, make):
    layout = Layout(query="-tag:x eval/score>0", sort="-eval/score", columns=("eval/score", "config.optim.lr", "curve"))
    services.tag(team.researcher, [run.pk for run in seven], "y")
    with CaptureQueriesContext(connection) as few:
        queries.page(team.researcher, layout, None, 50)
    for place in range(5):
        make(f"more{place}", scores=[0.3])
    with CaptureQueriesContext(connection) as many:
        assert len(queries.page(team.researcher, layout, None, 50).rows) == 10
    assert len(many) <= len(few)


def test_counting_stops_at_a_bound(seven, team, monkeypatch):
    assert queries.count(team.researcher, "eval/score>0.4") == (4, False)
    monkeypatch.setattr(queries, "MOST_COUNTED", 3)
    assert queries.count(team.researcher, "eval/score>0.4") == (3, True)
