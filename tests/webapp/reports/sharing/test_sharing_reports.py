"""Sharing a report on pages and over the API: who may share, and what the pages say before and after."""

from html import unescape
from urllib.parse import urlsplit

import pytest
from django.core.cache import cache
from django.test import Client

from tests.team import ApiClient, browser
from webapp.accounts.tokens.services import create_token
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.experiments.models import ShareLink
from webapp.experiments.table import comparing
from webapp.reports import services as reports
from webapp.reports.models import SharedReport
from webapp.reports.sharing import services

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def counted_anew():
    cache.clear()


def test_a_workspace_allows_no_links_until_an_owner_does(team, report, as_researcher):
    path = f"/reports/{report.pk}/share"
    assert b"does not allow share links" in as_researcher.get(path).content
    assert as_researcher.post(path, {"name": "x", "lasts": "30"}).status_code == 200
    refused = ApiClient(team.researcher).post(f"/reports/{report.pk}/share-links", {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "share_links_not_allowed")
    assert not ShareLink.objects.exists()


def test_the_form_says_what_will_be_seen(allowed, report, as_researcher, seeds):
    text = unescape(as_researcher.get(f"/reports/{report.pk}/share").content.decode())
    assert "all of version 1" in text and "<code>reward/mean</code>" in text and f"{seeds[0]}, step 2" in text
    assert "State, Person, reward/mean" in text and "<em>Person</em> is left out" in text
    assert f'href="/reports/{report.pk}/share"' in as_researcher.get(f"/reports/{report.pk}").content.decode()


def test_the_link_is_shown_once_and_listed_with_its_report(allowed, report, as_researcher, seeds, client):
    text = as_researcher.post(f"/reports/{report.pk}/share", {"name": "For the paper", "lasts": "30"}).content.decode()
    secret = text.split("/shared/")[1].split("<")[0]
    assert client.get(f"/shared/{secret}").status_code == 200
    listed = as_researcher.get("/settings/share-links").content.decode()
    assert f'<a href="/reports/{report.pk}/versions/1">What we saw, version 1</a>' in listed and secret not in listed
    assert "version 1" in as_researcher.get(f"/reports/{report.pk}/share").content.decode()
    detail = AuditEntry.objects.get(action="share_link.made").detail
    assert (detail["report"], detail["version"], set(detail["runs"])) == (report.pk, 1, {run.pk for run in seeds})
    reports.archive(SharedReport.objects.get().link.created_by.memberships.get(), report)
    assert "its report is archived" in as_researcher.get("/settings/share-links").content.decode()


@pytest.mark.parametrize(
    ("who", "status"), [("owner", 200), ("researcher", 200), ("reviewer", 403), ("annotator", 403), ("outsider", 404)]
)
def test_researchers_and_owners_share_and_nobody_else(team, link, report, who, status):
    page, script = browser(getattr(team, who)), ApiClient(getattr(team, who))
    path, made = f"/reports/{report.pk}/share", ShareLink.objects.count()
    assert page.get(path).status_code == status
    assert page.post(path, {"name": "x", "lasts": "7"}).status_code == status
    assert script.post(f"/reports/{report.pk}/share-links", {}).status_code == (201 if status == 200 else status)
    assert ShareLink.objects.count() - made == (2 if status == 200 else 0)
    assert script.get(f"/reports/{report.pk}/share-links").status_code == status
    newest = f"{link[0].pk}/newest"
    assert page.post(f"{path}/{newest}").status_code == (302 if status == 200 else status)
    assert script.post(f"/reports/{report.pk}/share-links/{newest}").status_code == status


def test_a_link_is_changed_at_its_own_report_alone(team, link, report):
    other = reports.create(team.researcher, "Other", "words")
    assert ApiClient(team.researcher).post(f"/reports/{other.pk}/share-links/{link[0].pk}/newest").status_code == 404
    assert browser(team.researcher).post(f"/reports/{other.pk}/share/{link[0].pk}/newest").status_code == 404


def test_a_report_that_is_archived_or_shows_too_much_is_not_shared(team, allowed, report, monkeypatch, as_researcher):
    monkeypatch.setattr(comparing, "MOST_RUNS", 2)
    assert services.share(team.researcher, report)
    more = reports.create(team.researcher, "More", report.versions.get().body)
    monkeypatch.setattr(comparing, "MOST_RUNS", 1)
    monkeypatch.setattr("webapp.reports.sources.comparing.MOST_RUNS", 1)
    body = "".join(
        f"```runs\nruns: {pk}\n```\n" for pk in SharedReport.objects.get().link.runs.values_list("run", flat=True)
    )
    reports.write(team.researcher, more, 1, "More", body)
    with pytest.raises(Invalid):
        services.share(team.researcher, more)
    reports.archive(team.researcher, report)
    with pytest.raises(Conflict):
        services.share(team.researcher, report)
    assert ShareLink.objects.count() == 1
    assert b"is archived" in as_researcher.post(f"/reports/{report.pk}/share", {"name": "x", "lasts": "7"}).content


def test_the_api_shares_lists_changes_and_revokes(team, allowed, report, client):
    script, path = ApiClient(team.researcher), f"/reports/{report.pk}/share-links"
    made = script.post(path, {"name": "nightly", "days": None}).json()
    assert (made["shows"], made["page"], made["version"]) == ("report", f"/reports/{report.pk}/versions/1", 1)
    assert made["expires_at"] is None and made["created_by"] == "Rosa" and made["run_count"] == 2
    assert client.get(urlsplit(made["url"]).path).status_code == 200
    reports.write(team.owner, report, 1, "New", "words")
    (listed,) = script.get(path).json()["items"]
    assert "url" not in listed and (listed["version"], listed["run_count"]) == (1, 2)
    changed = script.post(f"{path}/{made['id']}/newest").json()
    assert (changed["version"], changed["run_count"]) == (2, 0)
    assert [each["page"] for each in script.get("/share-links").json()["items"]] == [f"/reports/{report.pk}/versions/2"]
    assert script.delete(f"/share-links/{made['id']}").status_code == 204
    assert client.get(urlsplit(made["url"]).path).status_code == 404 and script.get(path).json()["items"] == []
    assert script.post(f"{path}/{made['id']}/newest").status_code == 404


@pytest.mark.parametrize(
    ("areas", "may"),
    [({"experiments": "write"}, True), ({"experiments": "read"}, False), ({"datasets": "write"}, False)],
)
def test_a_token_needs_the_area_experiments(team, allowed, report, areas, may):
    script = ApiClient(team.researcher)
    script.client = Client(headers={"authorization": f"Bearer {create_token(team.researcher, 'x', rights=areas)[1]}"})
    assert script.post(f"/reports/{report.pk}/share-links", {}).status_code == (201 if may else 403)
