"""Who makes links, sees the list of links and revokes them, on pages and over the API."""

import html
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import ApiClient, browser
from webapp.accounts.models import hash_secret
from webapp.accounts.tokens.services import create_token
from webapp.accounts.workspaces.services import allow_share_links
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.experiments.models import ShareLink
from webapp.experiments.sharing import services
from webapp.personal_data import erasing

pytestmark = pytest.mark.django_db


def share_url(runs) -> str:
    return f"/experiments/share?ids={','.join(str(run.pk) for run in runs)}"


def actions() -> list[str]:
    return list(
        AuditEntry.objects.filter(action__startswith="share_link").order_by("pk").values_list("action", flat=True)
    )


def test_a_workspace_allows_no_links_until_an_owner_does(team, two, as_researcher):
    assert not team.workspace.allows_share_links
    assert b"does not allow share links" in as_researcher.get(share_url(two)).content
    answer = as_researcher.post(share_url(two), {"name": "x", "lasts": "30"})
    assert answer.status_code == 200 and not ShareLink.objects.exists()
    refused = ApiClient(team.researcher).post("/share-links", {"runs": [run.pk for run in two]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "share_links_not_allowed")
    browser(team.owner).post("/settings/share-links/allowed", {"allow": "yes"})
    assert (
        as_researcher.post(share_url(two), {"name": "x", "lasts": "30"}).status_code == 200
        and ShareLink.objects.exists()
    )
    assert AuditEntry.objects.get(action="workspace.share_links").detail == {"allowed": True}


def test_whoever_allows_links_is_back_at_what_they_share(team, two, as_owner):
    refused = as_owner.get(share_url(two)).content.decode()
    address = html.unescape(refused.split('<a href="/settings/share-links')[1].split('"')[0])
    page = as_owner.get("/settings/share-links" + address)
    assert page.context["came_from"] == share_url(two)
    allowed = {"allow": "yes", "next": page.context["came_from"]}
    assert as_owner.post("/settings/share-links/allowed", allowed)["Location"] == share_url(two)
    elsewhere = {"allow": "yes", "next": "https://example.org/"}
    assert as_owner.post("/settings/share-links/allowed", elsewhere)["Location"] == "/settings/share-links"
    assert as_owner.get("/settings/share-links?from=https://example.org/").context["came_from"] == ""


def test_the_link_is_shown_once_and_stored_as_a_digest(team, allowed, two, as_researcher):
    text = as_researcher.post(share_url(two), {"name": "For the paper", "lasts": "30"}).content.decode()
    row = ShareLink.objects.get()
    secret = text.split("/shared/")[1].split("<")[0]
    assert row.digest == hash_secret(secret) and len(secret) == 43
    assert abs(row.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)
    listed = as_researcher.get("/settings/share-links").content.decode()
    assert "For the paper" in listed and "Rosa" in listed and "never" in listed and secret not in listed
    entry = AuditEntry.objects.get(action="share_link.made")
    assert entry.detail == {"name": "For the paper", "days": 30, "runs": [run.pk for run in two]}
    assert secret not in str(entry.detail)


def test_for_ever_has_to_be_chosen(allowed, two, as_researcher):
    form = as_researcher.get(share_url(two)).content.decode()
    assert '<option value="30" selected>30 days</option>' in form and '<option value="0">until revoked</option>' in form
    as_researcher.post(share_url(two), {"name": "x", "lasts": "0"})
    assert ShareLink.objects.get().expires_at is None
    assert "when revoked" in as_researcher.get("/settings/share-links").content.decode()


def test_the_form_says_what_will_be_seen(allowed, two, as_researcher):
    text = as_researcher.get(share_url(two)).content.decode()
    assert "ours 0 · ours 1" in text and "<code>seed</code>" in text and two[0].experiment.name in text


def test_the_baseline_of_the_page_goes_along(allowed, two, secret_run, as_researcher):
    as_researcher.post(f"{share_url(two)}&baseline={two[1].pk}", {"name": "x", "lasts": "7"})
    as_researcher.post(f"{share_url(two)}&baseline={secret_run.pk}", {"name": "y", "lasts": "7"})
    assert [
        list(link.runs.filter(baseline=True).values_list("run", flat=True)) for link in ShareLink.objects.order_by("pk")
    ] == [[two[1].pk], []]


@pytest.mark.parametrize(("days", "field"), [(0, "days"), (366, "days")])
def test_a_link_lasts_a_year_at_most(team, allowed, two, days, field):
    with pytest.raises(Invalid) as problem:
        services.share(team.researcher, two, days=days)
    assert set(problem.value.fields) == {field}


# ---- roles ----


@pytest.mark.parametrize(
    ("who", "may"),
    [("owner", True), ("researcher", True), ("reviewer", False), ("annotator", False), ("outsider", False)],
)
def test_researchers_and_owners_share_and_nobody_else(team, link, two, who, may):
    member = getattr(team, who)
    script, page, ids = ApiClient(member), browser(member), [run.pk for run in two]
    foreign = who == "outsider"
    made = script.post("/share-links", {"runs": ids}).status_code
    assert made == (201 if may else 404 if foreign else 403)
    listed = script.get("/share-links")
    assert listed.status_code == (200 if may or foreign else 403)
    if foreign:
        assert listed.json()["items"] == []
        assert link[0].name not in page.get("/settings/share-links").content.decode()
    else:
        assert page.get("/settings/share-links").status_code == (200 if may else 403)
    if not foreign:
        assert page.get(share_url(two)).status_code == (200 if may else 403)
    refused = 404 if foreign else 403
    form = page.post(f"/settings/share-links/{link[0].pk}/revoke", {"sure": "1"}).status_code
    assert form == (302 if may else refused)
    assert script.delete(f"/share-links/{link[0].pk}").status_code == (204 if may else refused)
    assert (ShareLink.objects.get(pk=link[0].pk).withdrawn_at is not None) == may


def test_runs_of_others_cannot_be_shared(team, allowed, two, elsewhere, as_researcher):
    script = ApiClient(team.researcher)
    assert script.post("/share-links", {"runs": [two[0].pk, elsewhere.pk]}).status_code == 404
    assert script.post("/share-links", {"runs": [two[0].pk], "baseline": two[1].pk}).status_code == 422
    assert script.post("/share-links", {"runs": []}).status_code == 422
    assert as_researcher.post(share_url([two[0], elsewhere]), {"name": "x", "lasts": "7"}).status_code == 404
    assert not ShareLink.objects.exists()


@pytest.mark.parametrize(
    ("areas", "may"),
    [({"experiments": "write"}, True), ({"experiments": "read"}, False), ({"datasets": "write"}, False)],
)
def test_a_token_needs_the_area_experiments(team, allowed, two, areas, may):
    script = ApiClient(team.researcher)
    script.client = Client(headers={"authorization": f"Bearer {create_token(team.researcher, 'x', rights=areas)[1]}"})
    assert script.post("/share-links", {"runs": [two[0].pk]}).status_code == (201 if may else 403)


def test_only_owners_allow_links(team):
    for who, status in (("owner", 200), ("researcher", 403), ("reviewer", 403), ("annotator", 403)):
        script = ApiClient(getattr(team, who))
        assert script.put("/share-links/allowed", {"allowed": True}).status_code == status
        assert script.get("/share-links/allowed").status_code == status
        assert browser(getattr(team, who)).post("/settings/share-links/allowed", {"allow": "no"}).status_code == (
            302 if who == "owner" else 403
        )
    assert ApiClient(team.outsider).get("/share-links/allowed").json() == {"allowed": False}


# ---- revoking ----


def test_revoking_asks_stops_the_link_and_lands_where_the_person_was(team, link, as_researcher, client):
    path, here = f"/settings/share-links/{link[0].pk}/revoke", "/settings/share-links?cursor=abc"
    assert b"Revoke the link" in as_researcher.post(path, {"next": here}).content
    assert client.get(f"/shared/{link[1]}").status_code == 200
    answer = as_researcher.post(path, {"next": here, "sure": "1"})
    assert (answer.status_code, answer["Location"]) == (302, here)
    assert client.get(f"/shared/{link[1]}").status_code == 404
    assert ApiClient(team.researcher).get("/share-links").json()["items"] == []


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "evil", ""])
def test_revoking_leads_to_no_other_site(link, as_researcher, target):
    answer = as_researcher.post(f"/settings/share-links/{link[0].pk}/revoke", {"next": target, "sure": "1"})
    assert answer["Location"] == "/settings/share-links"


def test_revoking_twice_is_one_entry_of_the_log(team, link):
    script = ApiClient(team.owner)
    assert [script.delete(f"/share-links/{link[0].pk}").status_code for _ in range(2)] == [204, 204]
    assert actions() == ["share_link.made", "share_link.revoked"]


@pytest.mark.django_db(transaction=True)
def test_two_who_revoke_at_once_are_one_entry_of_the_log(team, link):
    who = (team.owner, team.researcher) * 4
    concurrently(lambda each=each: services.revoke(each, ShareLink.objects.get(pk=link[0].pk)) for each in who)
    assert actions() == ["share_link.made", "share_link.revoked"]


@pytest.mark.django_db(transaction=True)
def test_two_who_open_first_are_one_entry_of_the_log(link):
    concurrently([lambda: services.note_opened(ShareLink.objects.get(pk=link[0].pk))] * 8)
    assert actions() == ["share_link.made", "share_link.first_opened"]


# ---- the list, the API's answers ----


def test_the_list_says_of_a_link_that_opens_nothing_why(team, link, two, as_owner):
    def standing() -> str:
        return as_owner.get("/settings/share-links").content.decode()

    assert 'data-tone="warn"' not in standing()
    ShareLink.objects.update(expires_at=timezone.now())
    assert ">ended<" in standing()
    ShareLink.objects.update(expires_at=None)
    allow_share_links(team.owner, False)
    assert ">closed<" in standing()
    for run in two:
        run.delete()
    assert ">its runs were deleted<" in standing()


def test_the_api_makes_lists_and_revokes(team, allowed, two, client):
    script = ApiClient(team.researcher)
    made = script.post("/share-links", {"runs": [run.pk for run in two], "name": "nightly", "days": None}).json()
    assert made["expires_at"] is None and made["created_by"] == "Rosa" and made["run_count"] == 2
    assert client.get(urlsplit(made["url"]).path).status_code == 200
    (listed,) = script.get("/share-links").json()["items"]
    assert "url" not in listed and listed["name"] == "nightly" and listed["last_opened_at"]
    assert script.delete(f"/share-links/{made['id']}").status_code == 204
    assert client.get(urlsplit(made["url"]).path).status_code == 404


def test_the_links_of_an_erased_account_are_deleted(team, link, client):
    erasing.erase(team.researcher.user, None)
    assert not ShareLink.objects.exists() and client.get(f"/shared/{link[1]}").status_code == 404
