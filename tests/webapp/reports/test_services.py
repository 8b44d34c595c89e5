"""Saving reports: versions do not change, and two people may write at the same time."""

import pytest

from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.reports import queries, services

pytestmark = pytest.mark.django_db


def test_each_save_is_a_version_and_the_same_text_again_is_none(team, report):
    assert services.write(team.owner, report, 1, "What we saw", "## Words\nSeen twice.").number == 2
    assert services.write(team.owner, report, 2, "What we saw", "## Words\r\nSeen twice.\n\n").number == 2
    assert [each.body for each in queries.versions(report)] == ["## Words\nSeen twice.", "## Words\nSeen."]
    told = AuditEntry.objects.filter(action__startswith="report.").order_by("id").values_list("action", flat=True)
    assert list(told) == ["report.created", "report.written"]


def test_whoever_saves_second_is_told_and_nothing_is_lost(team, report):
    services.write(team.owner, report, 1, "What we saw", "first")
    with pytest.raises(services.WrittenMeanwhile) as caught:
        services.write(team.researcher, report, 1, "What we saw", "second")
    assert caught.value.newest.body == "first" and caught.value.extra == {"newest": 2}
    assert services.write(team.researcher, report, 2, "What we saw", "second").number == 3
    assert [each.body for each in queries.versions(report)] == ["second", "first", "## Words\nSeen."]


def test_a_restored_version_is_the_newest_and_keeps_what_came_between(team, report):
    services.write(team.owner, report, 1, "Renamed", "other")
    made = services.restore_version(team.owner, report, 1)
    assert (made.number, made.restored_from, made.title) == (3, 1, "What we saw")
    report.refresh_from_db()
    assert (report.newest, report.title) == (3, "What we saw")
    assert services.restore_version(team.owner, report, 1).number == 3


def test_what_cannot_be_saved_is_named(team):
    with pytest.raises(Invalid) as caught:
        services.create(team.researcher, "  ", "words\n```chart\nmetrc: a\nruns: 1\n```")
    assert caught.value.fields == {
        "title": "a title of 1 to 120 characters",
        "body": "Line 3: A block “chart” has no “metrc”. Did you mean metric?",
    }
    for body in ("x" * (services.MAX_BODY + 1), "```chart\nmetric: a\nruns: 1\n```\n" * (services.MOST_BLOCKS + 1)):
        with pytest.raises(Invalid):
            services.create(team.researcher, "t", body)


def test_an_archived_report_is_off_the_list_and_comes_back(team, report):
    listed = queries.reports(team.workspace.pk, archived=False)
    services.archive(team.researcher, report)
    assert not listed.exists() and queries.reports(team.workspace.pk, archived=True).get() == report
    services.unarchive(team.researcher, report)
    assert listed.get() == report
