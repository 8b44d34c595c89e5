"""What is around every page: the navigation, the workspaces of a person, and the number of unread notices."""

import re
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.safestring import mark_safe

from tests.team import browser
from webapp.accounts.workspaces.services import create_workspace
from webapp.core.templatetags.ui import icon
from webapp.notices.models import Notice


@pytest.mark.django_db
def test_it_asks_for_the_memberships_of_a_person_once(as_researcher):
    with CaptureQueriesContext(connection) as asked:
        assert as_researcher.get("/help").status_code == 200
    first = [re.findall(r'FROM "?(\w+)', each["sql"])[:1] for each in asked.captured_queries]
    assert (first.count(["accounts_membership"]), first.count(["notices_notice"])) == (1, 1), first


@pytest.mark.django_db
def test_workspaces_are_listed_by_name(team):
    for name in ("beta", "Alpha"):
        create_workspace(name, team.researcher.user)
    page = browser(team.researcher).get("/help").content.decode()
    listed = re.findall(r'<button class="menu-item"[^>]*>\s*(\w+)\s*<small', page)
    assert listed == ["Alpha", "beta", "Lab"]


@pytest.mark.django_db
def test_unread_notices_are_counted_up_to_a_hundred_and_only_ones_own(team):
    def count(membership) -> str:
        return re.search(r'data-unread="(\d+)"', browser(membership).get("/help").content.decode())[1]

    told = {"user": team.researcher.user, "workspace": team.workspace, "facts": {}, "created_at": timezone.now()}
    rows = [Notice(event="run.failed", event_id=uuid4(), about="run", subject=n, **told) for n in range(101)]
    Notice.objects.bulk_create(rows[:2])
    assert (count(team.researcher), count(team.reviewer)) == ("2", "0")
    Notice.objects.bulk_create(rows[2:])
    assert count(team.researcher) == "100"


def test_a_label_is_escaped_also_when_the_same_words_were_safe_before():
    assert "<b>x</b>" in icon("menu", mark_safe("<b>x</b>"))  # noqa: S308 - a constant
    assert "&lt;b&gt;x&lt;/b&gt;" in icon("menu", "<b>x</b>")
