"""The administrators' pages: who sees them, their content, and their buttons."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.pages import page_html
from tests.team import browser
from webapp.accounts.administration import quotas
from webapp.accounts.models import User, Workspace
from webapp.core.models import AuditEntry

pytestmark = pytest.mark.django_db
PAGES = (
    "/installation",
    "/installation/people",
    "/installation/audit",
    "/installation/directories",
    "/installation/reconciler",
    "/installation/limits",
    "/installation/workspaces/1",
)


def test_only_administrators_come_in_whatever_their_role(team, as_researcher, as_outsider, client):
    for page in PAGES:
        assert as_researcher.get(page).status_code == 403
        assert as_outsider.get(page).status_code == 403  # owns a workspace, but is not an administrator
        assert client.get(page).status_code == 302
    person = team.outsider.user
    assert (
        as_outsider.post(f"/installation/people/{person.pk}", {"right": "administrator", "give": "1"}).status_code
        == 403
    )
    assert not User.objects.get(pk=person.pk).is_administrator


def test_the_page_says_how_services_storage_and_workspaces_are(team, as_owner):
    quotas.change(team.owner.user, team.workspace, quotas.Limits(running_runs=3))
    text = page_html(as_owner.get("/installation"))
    assert "files of logged runs." in text  # and no space before the full stop
    for told in ("Postgres", "Redis", "Workers", "Ray", "Free on the disk", "Lab", "Elsewhere", "0 of 3", "own limits"):
        assert told in text
    assert "cannot be asked while Redis is away" in text  # of the tests, which have none


def test_more_workspaces_cost_no_more_queries(team, as_owner):
    def queries():
        with CaptureQueriesContext(connection) as seen:
            assert as_owner.get("/installation").status_code == 200
        return len(seen)

    queries()
    before = queries()
    Workspace.objects.bulk_create(Workspace(name=f"W{n}", slug=f"w{n}") for n in range(20))
    assert queries() == before


def test_limits_are_set_on_the_page_and_wrong_ones_told_at_their_field(team, as_owner):
    page = f"/installation/workspaces/{team.workspace.pk}"
    wrong = as_owner.post(page, {"running_runs": "-1", "import_gb": "much"})
    assert wrong.status_code == 422 and quotas.limits_by_workspace() == {}
    assert wrong.content.count(b'class="error"') == 2
    as_owner.post("/installation/limits", {"running_runs": "4"})
    as_owner.post(page, {"imports_at_once": "2", "import_gb": "1.5", "gpus": "6"})
    assert quotas.limits_of(team.workspace.pk) == quotas.Limits(4, 2, 3 * 2**29, gpus=6)
    assert "at most 4 runs at once, no limit on imports" in page_html(as_owner.get("/installation"))
    assert b'value="1.5"' in as_owner.get(page).content
    assert as_owner.get("/installation/workspaces/999999").status_code == 404


def test_rights_are_given_and_taken_and_the_last_administrator_stays(team, as_owner):
    rosa = team.researcher.user
    address = f"/installation/people/{rosa.pk}"
    as_owner.post(address, {"right": "workspaces", "give": "1"})
    rosa.refresh_from_db()
    assert rosa.may_create_workspaces and not rosa.is_administrator
    as_owner.post(f"/installation/people/{team.owner.user_id}", {"right": "administrator", "give": "0"})
    assert User.objects.get(pk=team.owner.user_id).is_administrator
    as_owner.post(address, {"right": "administrator", "give": "1"})
    assert browser(team.researcher).get("/installation").status_code == 200
    as_owner.post(address, {"right": "everything", "give": "1"})
    told = AuditEntry.objects.filter(workspace=team.workspace, action="right.given")
    assert [entry.detail["right"] for entry in told.order_by("id")] == ["workspaces", "administrator"]


def test_only_who_administers_is_asked_about(team, as_owner):
    text = page_html(as_owner.get("/installation/people"))
    mine, other = (f"right-administrator-{each.user_id}" for each in (team.owner, team.researcher))
    assert text.count(f'data-open="{mine}"') == text.count(f'<dialog id="{mine}"') == 1
    assert "This is your own right. You lose these pages at once" in text
    assert f'<dialog id="{other}"' in text and 'data-open="right-workspaces' not in text


def test_people_are_found_by_their_address(team, as_owner):
    text = page_html(as_owner.get("/installation/people?q=rosa"))
    assert "rosa@example.org" in text and "ravi@example.org" not in text
    assert "ravi@example.org" in page_html(as_owner.get("/installation/people?cursor=x"))
    assert "No address contains “nobody-has-this”" in page_html(as_owner.get("/installation/people?q=nobody-has-this"))
