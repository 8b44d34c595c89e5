"""Pages of reports: how each reader sees a block, and how two tabs edit one report."""

import json
import re
from html import unescape

import pytest

from tests.team import ApiClient, browser
from webapp.experiments.table import services as table
from webapp.experiments.table.queries import Layout
from webapp.reports import queries, services

from .conftest import CHART

pytestmark = pytest.mark.django_db


def page_of(membership, report) -> str:
    return unescape(browser(membership).get(f"/reports/{report.pk}").content.decode())


def drawn(html: str) -> list[dict]:
    return [json.loads(found) for found in re.findall(r'data-report-chart="(.*?)" data-count', html)]


def test_a_chart_names_its_runs_for_the_data_that_the_table_answers(team, launch):
    run = launch()
    made = services.create(team.researcher, "Chart", "Before\n\n" + CHART.format(run=run.pk) + "\nAfter")
    html = page_of(team.reviewer, made)
    (chart,) = drawn(html)
    assert chart["asked"] == f"ids={run.pk}" and chart["metrics"][0]["key"] == "reward/mean" and not chart["apart"]
    assert html.index("Before") < html.index("data-report-chart") < html.index("After")


def test_words_of_strangers_are_no_html(team):
    made = services.create(
        team.researcher, "<b>t</b>", "<script>alert(1)</script> **bold**\n![x](https://x.example/y.png)"
    )
    html = browser(team.reviewer).get(f"/reports/{made.pk}").content.decode()
    assert "<script>alert" not in html and "<strong>bold</strong>" in html
    assert "<b>t</b>" not in html and "<img" not in html


def test_runs_that_are_not_there_are_said_in_the_block(team, launch):
    run, other = launch(), launch()
    gone = other.pk
    body = CHART.format(run=f"{run.pk}, {gone}") + "\n" + CHART.format(run=gone)
    made = services.create(team.researcher, "Chart", body)
    other.delete()
    html = page_of(team.reviewer, made)
    assert [each["asked"] for each in drawn(html)] == [f"ids={run.pk}"]
    assert html.count(f"Run {gone} is not here: it was deleted, or belongs to another workspace.") == 2


def test_a_reader_sees_runs_of_their_workspace_alone(team, launch):
    run = launch()
    made = services.create(team.outsider, "Theirs", CHART.format(run=run.pk))
    html = page_of(team.outsider, made)
    assert f"Run {run.pk} is not here" in html and not drawn(html)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("query: tag:none", "The query finds no run: tag:none"),
        ("query: state~~x", "Line 3: the query cannot be read."),
        ("view: Nights", "There is no saved view “Nights” of the table of runs here."),
    ],
)
def test_a_query_that_finds_nothing_or_cannot_be_read_says_so(team, launch, source, told):
    launch()
    made = services.create(team.researcher, "Chart", f"```chart\nmetric: a\n{source}\n```\nwords after")
    html = page_of(team.reviewer, made)
    assert told in html and "words after" in html and not drawn(html)


def test_a_saved_view_stands_for_its_query(team, launch):
    launch()
    table.save_view(team.researcher, "Nights", Layout("state:queued"))
    made = services.create(team.researcher, "Chart", "```chart\nmetric: a\nview: Nights\n```")
    assert drawn(page_of(team.reviewer, made))[0]["asked"] == "q=state%3Aqueued"


def test_the_second_of_two_tabs_is_told_and_keeps_its_words(team, report):
    first, second = browser(team.owner), browser(team.researcher)
    body = {"base": "1", "title": "What we saw", "body": "the first tab"}
    assert first.post(f"/reports/{report.pk}/edit", body).status_code == 302
    refused = second.post(f"/reports/{report.pk}/edit", body | {"body": "the second tab"})
    html = refused.content.decode()
    assert refused.status_code == 409 and "the second tab</textarea>" in html and "the first tab" in html
    assert 'name="base" value="2"' in html and "Save as version 3" in html
    assert second.post(f"/reports/{report.pk}/edit", body | {"body": "the second tab", "base": "2"}).status_code == 302
    assert [each.body for each in queries.versions(report)] == ["the second tab", "the first tab", "## Words\nSeen."]


def test_a_refused_save_keeps_the_text_and_names_the_line(team):
    sent = {"title": "T", "body": "kept\n```chart\nmetrc: a\n```"}
    refused = browser(team.researcher).post("/reports/new", sent)
    html = unescape(refused.content.decode())
    assert refused.status_code == 422 and "kept\n```chart\nmetrc: a\n```</textarea>" in html
    assert html.count("A block “chart” has no “metrc”. Did you mean metric?") == 2  # at the field, and in the block


def test_the_preview_tells_lines_at_fault_in_their_place(team):
    html = (
        browser(team.researcher)
        .post("/reports/preview", {"body": "# One\n\n```chart\nmetric: a\n```"})
        .content.decode()
    )
    assert "<h1" in html and 'data-line="3"' in html and "needs runs" in html


def test_the_list_has_an_empty_state_and_the_archive_a_way_back(team):
    page = browser(team.researcher)
    assert "No reports yet" in page.get("/reports").content.decode()
    made = services.create(team.researcher, "Old news", "")
    assert "Old news" in page.get("/reports").content.decode()
    page.post(f"/reports/{made.pk}/act", {"action": "archive"})
    assert "Old news" in page.get("/reports?archived=1").content.decode()
    page.post(f"/reports/{made.pk}/act", {"action": "restore"})
    assert "Old news" in page.get("/reports").content.decode()


def test_the_page_compare_begins_a_report_of_its_runs(team):
    html = browser(team.researcher).get("/reports/new?ids=3,4").content.decode()
    assert "runs: 3,4" in html and "metric: eval/rubric_score" in html


def test_a_report_begins_with_a_chart_of_what_its_runs_have_measured(team, seeds):
    """A run with a reward model has no score of rubrics, so a chart of that would be empty."""
    page, ids = browser(team.researcher), ",".join(str(each.pk) for each in seeds)
    for each in seeds:
        each.summary = {"eval/reward": 0.4, "reward/mean": 0.5}
        each.save()
    for asked in (f"ids={ids}", f"q=run:{ids}"):
        html = page.get(f"/reports/new?{asked}").content.decode()
        assert "metric: eval/reward" in html
    assert "metric: eval/rubric_score" in page.get("/reports/new?q=((").content.decode()
    assert "metric: policy/kl" in page.get(f"/reports/new?ids={ids}&metric=policy/kl").content.decode()


def test_a_change_that_is_refused_in_one_field_saves_nothing_of_the_others(team, report):
    api, path = ApiClient(team.researcher), f"/reports/{report.pk}"
    refused = api.patch(path, {"base": 1, "title": "Half", "project": 10**9})
    assert refused.status_code == 422 and refused.json()["error"]["fields"][0]["path"] == "project"
    assert (api.get(path).json()["version"], api.get(path).json()["title"]) == (1, report.title)


def test_the_api_writes_reads_and_refuses_what_is_out_of_date(team, report):
    api = ApiClient(team.researcher)
    made = api.post("/reports", {"title": "By program", "body": "one"})
    assert made.status_code == 201
    path = f"/reports/{made.json()['id']}"
    changed = api.patch(path, {"base": 1, "body": "two"})
    assert changed.status_code == 200 and (changed.json()["version"], changed.json()["title"]) == (2, "By program")
    refused = api.patch(path, {"base": 1, "body": "three"})
    assert refused.status_code == 409 and refused.json()["error"]["code"] == "written_meanwhile"
    assert refused.json()["newest"] == 2 and api.get(path).json()["body"] == "two"
    assert api.patch(path, {"title": "x"}).json()["error"]["fields"][0]["path"] == "base"
    assert api.patch(path, {"archived": True}).json()["archived_at"]
    assert [each["id"] for each in api.get("/reports").json()["items"]] == [report.pk]
    assert api.patch(path, {"project": 10**9}).json()["error"]["fields"][0]["path"] == "project"
