"""A link to a report opens the shared version with its runs, and nothing else of the workspace."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from tests.team import browser
from tests.webapp.experiments.sharing.conftest import set_score
from tests.webapp.experiments.sharing.test_shared_pages import closed, demoted, forbidden, removed
from tests.webapp.reports.conftest import RECORD
from webapp.core.models import AuditEntry
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Rollout, Run, RunColumn, RunValue, SharedRun, ShareLink
from webapp.experiments.sharing import comparison_contents
from webapp.experiments.sharing import public as links
from webapp.experiments.sharing import services as sharing
from webapp.experiments.table import services as table
from webapp.experiments.table.queries import Layout
from webapp.reports import block_contents, sources
from webapp.reports import services as reports
from webapp.reports.models import SharedReport
from webapp.reports.sharing import services

pytestmark = pytest.mark.django_db
ADDRESSES = ("", "/charts/1/compare", "/charts/1/curves?key=reward/mean")
CHART = "```chart\nmetric: reward/mean\n{}\n```\n"


@pytest.fixture(autouse=True)
def counted_anew():
    cache.clear()


def opens(secret: str) -> list[int]:
    """Each address of the link, for a person without cookies."""
    return [Client().get(f"/shared/{secret}{rest}").status_code for rest in ADDRESSES]


def page_of(secret: str) -> str:
    return unescape(Client().get(f"/shared/{secret}").content.decode())


def drawn(html: str) -> list[dict]:
    return [json.loads(found) for found in re.findall(r'data-report-chart="(.*?)" data-count', html)]


def runs_of(secret: str, place: int = 1) -> list[str]:
    return [run["name"] for run in Client().get(f"/shared/{secret}/charts/{place}/compare").json()["runs"]]


def test_a_stranger_sees_what_the_report_shows(link, seeds):
    html = page_of(link[1])
    assert "<strong>help</strong>" in html and "What we saw" in html and "In training" in html
    assert "Name a colour <b>" in html and "Red, as ever." in html and "Names a colour" in html
    assert html.count("<tr>") == 3 and "1.300" in html
    (chart,) = drawn(html)
    assert (chart["source"], chart["asked"]) == (f"/shared/{link[1]}/charts/1/", "")
    told = Client().get(f"{chart['source']}compare").json()
    assert told["runs"] == [{"id": i, "name": str(run), "state": "queued"} for i, run in enumerate(seeds[::-1], 1)]
    assert [each["runs"] for each in told["families"]] == [[0, 1]] and set(told) == {"runs", "families"}
    curves = Client().get(f"{chart['source']}curves?key=reward/mean").json()["curves"]
    assert {curve["run"]: curve["values"] for curve in curves} == {1: [1.1, 1.2, 1.3], 2: [0.1, 0.2, 0.3]}


def test_the_page_leads_nowhere_sets_no_cookie_and_names_nobody(link, seeds, report):
    stranger = Client()
    answer = stranger.get(f"/shared/{link[1]}")
    text = answer.content.decode()
    assert answer.status_code == 200 and not answer.cookies and not stranger.cookies
    assert "<a " not in text.replace('<a class="skip" href="#content">', "")
    assert "<form" not in text and "csrf" not in text and "main.js" not in text
    for said in (
        "Rosa",
        "example.org",
        "Lab",
        "For the paper",
        "/api/",
        "/runs/",
        "/reports/",
        "ws/",
        "is:any",
        ">Person<",
    ):
        assert said not in text, said


def test_whoever_is_signed_in_gets_the_same_page(team, link):
    path = f"/shared/{link[1]}"
    plain = Client().get(path).content
    assert browser(team.owner).get(path).content == plain == browser(team.outsider).get(path).content


# ---- nothing but what was shared ----


def ways_to_another(run: Run) -> list[str]:
    """Everything that could name another run or another chart, at every address of a link."""
    asked = [f"{name}={run.pk}" for name in ("ids", "run", "runs", "id", "baseline", "workspace", "version")]
    asked += [
        "q=is:any",
        f"q=run:{run.pk}",
        f"ids={run.pk}&keys=eval/kept_back",
        "key=eval/kept_back",
        "key=eval/far_away",
    ]
    tails = (
        "",
        "/compare",
        "/curves",
        "/charts/1/compare",
        "/charts/1/curves",
        "/charts/0/compare",
        "/charts/2/compare",
    )
    return [f"{tail}?{each}" for tail in tails for each in asked]


@pytest.mark.parametrize("whose", ["secret_run", "elsewhere"])
def test_no_address_of_a_link_shows_another_run(request, link, whose):
    """A run that the report's own query finds since then, and a run of another workspace."""
    run = request.getfixturevalue(whose)
    for rest in ways_to_another(run):
        answer = Client().get(f"/shared/{link[1]}{rest}")
        assert answer.status_code in (200, 404), rest
        for said in ("kept back", "kept_back", "far away", "far_away", "0.777", "0.888"):
            assert said not in answer.content.decode(), rest


def test_a_metric_that_the_chart_does_not_draw_is_not_told(link, seeds):
    set_score(seeds[0], "eval/private", 0.5)
    assert Client().get(f"/shared/{link[1]}/charts/1/curves?key=eval/private").status_code == 404
    assert "eval/private" not in page_of(link[1])


def test_a_link_to_a_report_is_none_to_a_comparison_nor_the_other_way(team, link, seeds):
    """A comparison contains all metrics and all configs that differ."""
    for rest in ("compare", "curves?key=reward/mean"):
        assert Client().get(f"/shared/{link[1]}/{rest}").status_code == 404
    _, secret = sharing.share(team.researcher, seeds)
    assert Client().get(f"/shared/{secret}/charts/1/compare").status_code == 404


def test_a_run_of_another_workspace_in_the_text_shows_nothing(shared, elsewhere, seeds):
    secret = shared(
        CHART.format(f"runs: {elsewhere.pk}, {seeds[0].pk}")
        + f"```runs\nruns: {elsewhere.pk}\n```\n```rollout\nrun: {elsewhere.pk}\nstep: 2\nprompt: 4\n```"
    )
    html = page_of(secret)
    assert html.count(block_contents.GONE) == 2 and html.count(sources.SOME_GONE) == 1
    assert "far away" not in html and str(elsewhere.pk) not in html.replace(secret, "").replace("charts/1", "")
    assert runs_of(secret) == [str(seeds[0])]


def test_a_row_that_names_the_run_of_another_workspace_shows_nothing(link, elsewhere):
    """No service writes such a row, but reading must not rely on that."""
    SharedRun.objects.create(link=link[0], run=elsewhere, place=7)
    assert "far away" not in page_of(link[1]) and len(runs_of(link[1])) == 2


def test_a_row_that_names_the_report_of_another_workspace_shows_nothing(team, link):
    theirs = reports.create(team.outsider, "Theirs", "secret words")
    SharedReport.objects.filter(link=link[0]).update(version=theirs.versions.get())
    assert opens(link[1]) == [404] * 3


def test_a_rollout_that_was_not_there_when_the_report_was_shared_stays_closed(shared, seeds):
    """The text names the run by its number, and the run leaves the table only later."""
    secret = shared(f"```rollout\nrun: {seeds[1].pk}\nstep: 9\nprompt: 1\n```")
    Rollout.objects.create(
        run=seeds[1],
        step=9,
        phase="train",
        group=0,
        index=0,
        example_key="e",
        reward=0.5,
        content={**RECORD, "response": "Too late."},
    )
    assert block_contents.GONE in page_of(secret) and "Too late." not in page_of(secret)


def test_a_query_that_finds_more_later_opens_no_more(link, launch, seeds):
    set_score(launch(name="later", config={"steps": 4}), "reward/mean", 0.9)
    assert "later" not in page_of(link[1]) and runs_of(link[1]) == [str(run) for run in seeds[::-1]]


def test_a_saved_view_that_somebody_widens_opens_no_more(team, shared, launch, seeds):
    view = table.save_view(team.researcher, "Ours", Layout(f"is:any run:{seeds[0].pk}"))
    secret = shared(CHART.format("view: Ours"))
    assert runs_of(secret) == [str(seeds[0])]
    launch(name="later", config={"steps": 4})
    type(view).objects.filter(pk=view.pk).update(query="is:any")
    assert runs_of(secret) == [str(seeds[0])]
    type(view).objects.filter(pk=view.pk).update(query="tag:secret-project")
    assert block_contents.GONE in page_of(secret) and "secret-project" not in page_of(secret) and runs_of(secret) == []


def test_a_version_that_is_saved_later_is_not_shown_until_somebody_says_so(team, link, report, secret_run):
    reports.write(team.owner, report, 1, "New title", "secret words\n" + CHART.format(f"runs: {secret_run.pk}"))
    html = page_of(link[1])
    assert "What we saw" in html and "New title" not in html and "secret words" not in html
    services.show_newest(team.owner, SharedReport.objects.select_related("link", "version__report").get())
    html = page_of(link[1])
    assert "New title" in html and "secret words" in html and runs_of(link[1]) == ["kept back"]
    assert "Red, as ever." not in html and SharedRun.objects.count() == 1
    assert AuditEntry.objects.get(action="share_link.changed").detail["version"] == 2


def test_what_is_not_there_is_not_explained(shared, seeds, secret_run):
    """The reasons that members read name metrics, views and queries."""
    secret = shared(
        CHART.format("query: tag:nothing-like-it")
        + f"```runs\nruns: {seeds[0].pk}\ncolumns: eval/kept_bac\n```\n```runs\nruns: {seeds[0].pk}\nsort: eval/kept_bac\n```"
    )
    html = page_of(secret)
    assert html.count(block_contents.GONE) == 2 and "eval/kept_bac: it is not here" in html
    assert "kept_back" not in html and "nothing-like-it" not in html


def test_long_texts_and_addresses_of_a_config_are_not_shown(team, shared, seeds):
    column = RunColumn.objects.get_or_create(workspace=team.workspace, source="config", path="seed")[0]
    RunValue.objects.filter(run=seeds[0], column=column).delete()
    RunValue.objects.create(run=seeds[0], column=column, text="http://10.0.0.7:8000")
    for apart in ("", "\nseeds: apart"):
        secret = shared(
            f"```runs\nruns: {seeds[0].pk}\ncolumns: config.seed{apart}\n```\n" + CHART.format("query: is:any")
        )
        told = page_of(secret) + Client().get(f"/shared/{secret}/charts/1/compare").content.decode()
        assert "10.0.0.7" not in told and comparison_contents.HIDDEN in told


# ---- headers, methods, limits ----


@pytest.mark.parametrize("rest", ADDRESSES)
@pytest.mark.parametrize("secret", ["right", "wrong"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_every_answer_keeps_the_address_secret(link, rest, secret, method):
    answer = getattr(Client(), method)(f"/shared/{link[1] if secret == 'right' else 'x'}{rest}")
    assert answer.status_code == (405 if method == "post" else 200 if secret == "right" else 404)
    assert (answer["Cache-Control"], answer["Referrer-Policy"]) == ("no-store", "no-referrer")
    assert "noindex" in answer["X-Robots-Tag"] and "unsafe" not in answer["Content-Security-Policy"]


def test_one_address_is_counted_at_all_addresses_of_a_link(link, monkeypatch):
    monkeypatch.setattr(links, "PER_MINUTE", 2)
    assert opens(link[1]) == [200, 200, 429] and opens("x") == [429] * 3


def test_the_first_opening_is_an_entry_of_the_audit_log(link):
    assert opens(link[1])[0] == 200
    assert AuditEntry.objects.filter(action="share_link.first_opened").count() == 1


# ---- the ends of a link ----


@pytest.mark.parametrize("end", [demoted, removed, closed, forbidden])
def test_a_link_ends_with_what_it_rests_on(team, link, end):
    assert opens(link[1]) == [200] * 3
    end(team)
    assert opens(link[1]) == [404] * 3


def test_a_link_that_is_revoked_or_over_opens_nothing(team, link):
    ShareLink.objects.update(expires_at=timezone.now() + timedelta(seconds=60))
    assert opens(link[1]) == [200] * 3
    ShareLink.objects.update(expires_at=timezone.now())
    assert opens(link[1]) == [404] * 3
    ShareLink.objects.update(expires_at=None)
    sharing.revoke(team.owner, link[0])
    assert opens(link[1]) == [404] * 3


def test_a_link_shows_nothing_of_an_archived_report(team, link, report):
    before = ShareLink.objects.get().last_opened_at
    reports.archive(team.researcher, report)
    answer = Client().get(f"/shared/{link[1]}")
    assert (answer.status_code, opens(link[1])) == (404, [404] * 3) and b"This link shows nothing" in answer.content
    assert ShareLink.objects.get().last_opened_at == before
    reports.unarchive(team.researcher, report)
    assert opens(link[1]) == [200] * 3


def test_a_deleted_run_is_gone_from_the_link_and_the_words_stay(team, link, seeds):
    Run.objects.update(state=Run.State.FINISHED)
    lifecycle.delete(team.owner, seeds[0])
    html = page_of(link[1])
    assert (
        html.count(block_contents.GONE) == 1 and "Red, as ever." not in html and "0.300" not in html and "1.300" in html
    )
    assert runs_of(link[1]) == [str(seeds[1])]
    lifecycle.delete(team.owner, seeds[1])
    html = page_of(link[1])
    assert html.count(block_contents.GONE) == 3 and "<strong>help</strong>" in html
    assert Client().get(f"/shared/{link[1]}/charts/1/curves?key=reward/mean").json()["curves"] == []
