"""The rows on which a report rests: kept with each save, and looked at again later."""

from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.evaluation.models import Evaluation
from webapp.experiments.models import Rollout
from webapp.experiments.sharing import services as links
from webapp.lineage.traversal import walk
from webapp.reports import origins, services
from webapp.reports.models import ReportPage
from webapp.reports.sharing import services as sharing

pytestmark = pytest.mark.django_db
TABLE = "```runs\nruns: {0}\n```"


def stored_sources(report):
    return set(report.sources.values_list("run_id", "evaluation_id", "rollout_id"))


def test_blocks_and_links_are_what_a_report_rests_on(team, report, seeds):
    first, second = (run.pk for run in seeds)
    evaluation = Evaluation.objects.create(
        workspace=team.workspace, name="a", recipe="policy", config={}, benchmark="b"
    )
    theirs = Evaluation.objects.create(
        workspace=team.outsider.workspace, name="a", recipe="policy", config={}, benchmark="b"
    )
    words = f"See [it](/evaluations/{evaluation.pk}), /evaluations/{theirs.pk} and https://x.example/runs/{second}/log."
    block = f"```rollout\nrun: {first}\nstep: 2\nprompt: 4\nresponse: 2\n```"
    services.write(team.researcher, report, 1, "Saw", f"{words} /api/v1/runs/{first}\n{block}")
    rollout = Rollout.objects.get()
    assert stored_sources(report) == {
        (None, evaluation.pk, None),
        (second, None, None),
        (first, None, None),
        (first, None, rollout.pk),
    }
    assert walk(("evaluation", evaluation.pk), "down").ids == {"report": {report.pk}}
    services.write(team.researcher, report, 2, "Saw", f"{TABLE.format(first)}\n```chart\nmetric: a\nruns: 987654\n```")
    assert stored_sources(report) == {(first, None, None)}
    seeds[0].delete()
    assert stored_sources(report) == set()


def test_runs_that_a_query_finds_later_are_seen_in_the_next_round(team, report, seeds, launch):
    services.write(team.researcher, report, 1, "Saw", "```chart\nmetric: reward/mean\nquery: is:any\n```")
    later = launch(config={"seed": 9})
    origins.look_again()
    assert later.pk not in {run for run, _, _ in stored_sources(report)}
    ReportPage.objects.update(sources_at=timezone.now() - timedelta(hours=2))
    team.researcher.delete()  # who has left: an owner reads it
    origins.look_again()
    assert {run for run, _, _ in stored_sources(report)} == {seeds[0].pk, seeds[1].pk, later.pk}


def test_a_report_that_cannot_be_looked_at_keeps_no_other_waiting(team, report, seeds, monkeypatch):
    services.write(team.researcher, report, 1, "Saw", "Broken")
    other = services.create(team.researcher, "Other", TABLE.format(seeds[0].pk))
    other.sources.all().delete()
    ReportPage.objects.update(sources_at=None)
    found = origins.rows_by_block

    def broken(reader, body):
        if body == "Broken":
            raise RuntimeError("the database was too slow")
        return found(reader, body)

    monkeypatch.setattr(origins, "rows_by_block", broken)
    monkeypatch.setattr(origins, "AT_ONCE", 1)
    origins.look_again()
    origins.look_again()
    assert stored_sources(other) == {(seeds[0].pk, None, None)}


def test_a_report_of_before_is_looked_at_first(team, report, seeds):
    services.write(team.researcher, report, 1, "Saw", TABLE.format(seeds[0].pk))
    report.sources.all().delete()
    ReportPage.objects.update(sources_at=None)
    origins.look_again()
    assert stored_sources(report) == {(seeds[0].pk, None, None)}


def test_a_link_that_shows_an_older_version_keeps_its_runs_until_it_is_revoked(team, report, seeds):
    team.workspace.allows_share_links = True
    team.workspace.save()
    services.write(team.researcher, report, 1, "Saw", TABLE.format(seeds[0].pk))
    link, _ = sharing.share(team.researcher, report)
    services.write(team.researcher, report, 2, "Saw", "Nothing.")
    assert walk(("run", seeds[0].pk), "down").ids.get("report") == {report.pk}
    links.revoke(team.researcher, link)
    assert "report" not in walk(("run", seeds[0].pk), "down").ids
