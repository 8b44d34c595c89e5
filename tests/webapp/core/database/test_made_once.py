"""A statement that is made once gives the rows of each id and of each moment."""

from datetime import timedelta

import pytest
from django.db.models import Exists, OuterRef
from django.utils import timezone

from webapp.accounts.models import Membership, Workspace
from webapp.core.database.made_once import StatementOfId

pytestmark = pytest.mark.django_db


def test_it_is_made_once_and_gives_the_rows_of_each_id(team):
    made = []

    def query(workspace):
        made.append(workspace)
        people = Membership.objects.filter(workspace=OuterRef("pk"), role="annotator")
        return Workspace.objects.filter(pk=workspace).values_list("name", Exists(people))

    statement = StatementOfId(query)
    ours, theirs = team.owner.workspace, team.outsider.workspace
    for _ in range(2):
        assert statement.rows(ours.pk) == [(ours.name, True)]
        assert statement.rows(theirs.pk) == [(theirs.name, False)]
        assert statement.rows(2**40) == []
    assert len(made) == 1


def test_times_move_with_the_clock(team, monkeypatch):
    young = StatementOfId(
        lambda pk: Workspace.objects.filter(pk=pk, created_at__gt=timezone.now() - timedelta(days=1)).values_list("pk")
    )
    pk = team.workspace.pk
    assert young.rows(pk) == [(pk,)]
    later = timezone.now() + timedelta(days=1, minutes=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert young.rows(pk) == []
