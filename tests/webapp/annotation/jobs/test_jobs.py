"""Work over whole projects continues after its worker died, even if nobody opens a page, and is done once."""

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.team import ApiClient
from tests.workers import kill, worker
from trainer.rewards.alignment import WORDS
from webapp.annotation.agreement import matching, refresh, upkeep
from webapp.annotation.jobs import runner
from webapp.annotation.models import AgreementReport, Job, Resolution, TaskReview
from webapp.annotation.publishing import services as publish
from webapp.annotation.review import services as review
from webapp.core.background import jobs
from webapp.core.database import locks
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict

from ..answers import annotators, answer, make_project, preference

ROOT = Path(__file__).parents[4]
# Each program prints a line when its first part is in the database, and then waits to be killed
STUCK = {
    "majority": """
review.BATCH = 2
at = jobs.Report.at
def stuck(*args): print("half", flush=True); time.sleep(600)
jobs.Report.at = stuck
""",
    "publish": """
publish.BATCH = 2
def stuck(*args): print("half", flush=True); time.sleep(600)
jobs.Report.at = stuck
""",
    "match": """
import sys
settings.MATCH_COMMAND = [sys.executable, "-c", '''
import json, sys, time
print(json.dumps({"matcher": "meaning"}), flush=True)
for number, line in enumerate(sys.stdin.readlines()):
    if number == 2: time.sleep(600)
    print(json.dumps({"id": json.loads(line)["id"], "groups": []}), flush=True)
''']
at = jobs.Report.at
def told(report, done, total):
    at(report, done, total)
    if done == 2: print("half", flush=True)
jobs.Report.at = told
""",
}
WORKER = """
import sys, time, django
django.setup()
from django.conf import settings
from webapp.annotation.jobs import runner as jobs
from webapp.annotation.publishing import services as publish
from webapp.annotation.review import services as review
{stuck}
jobs.run(int(sys.argv[1]))
"""


@pytest.fixture
def project(team):
    """Six complete tasks. The two people agree about the side but not about the strength, and each has a reason."""
    made = make_project(team, n=6)
    people = annotators(team, made)
    for task in made.tasks.all():
        for member, strength in zip(people, (1, 2), strict=True):
            answer(task, member, preference(strength, "It is short."))
    refresh.bring_up_to_date(made)
    return made


def kill_a_worker_of(job: Job) -> None:
    with worker(WORKER.format(stuck=STUCK[job.kind]), job, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"half\n"
        kill(process, job, locks.Work.PROJECT_JOB)
    assert job.state == Job.State.RUNNING


@pytest.mark.django_db(transaction=True)
class TestWorkersThatAreKilled:
    def test_majorities_are_accepted_once_each(self, project, team, eager):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(review, "AT_ONCE", 1)
            patch.setattr(runner, "enqueue", lambda *args: None)
            assert review.accept_majority(team.reviewer, project) is None
        job = Job.objects.get()
        kill_a_worker_of(job)
        assert Resolution.objects.count() == 2 and job.result == {"resolved": 2}
        Job.objects.update(seen_at=timezone.now() - timedelta(hours=1))
        assert jobs.take_up_lost() == 1
        job.refresh_from_db()
        assert (job.state, job.result) == ("finished", {"resolved": 6})
        assert Resolution.objects.filter(source="majority").count() == 6
        [entry] = AuditEntry.objects.filter(action="project.majority_accepted")
        assert entry.detail["tasks"] == 6

    def test_a_publication_is_made_whole_and_once(self, project, team, eager):
        review.accept_majority(team.reviewer, project)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(publish, "AT_ONCE", 1)
            patch.setattr(runner, "enqueue", lambda *args: None)
            assert publish.start(team.researcher, project, publish.Choice()) is None
        job = Job.objects.get(kind="publish")
        kill_a_worker_of(job)
        assert project.version.dataset.versions.count() == 1
        Job.objects.update(seen_at=timezone.now() - timedelta(hours=1))
        assert jobs.take_up_lost() == 1
        job.refresh_from_db()
        assert (job.state, job.done, job.total, job.result["version"]) == ("finished", 6, 6, 2)
        assert project.version.dataset.versions.get(number=2).counts["preferences"] == 6

    def test_matching_keeps_what_was_matched(self, project, eager, settings):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runner, "enqueue", lambda *args: None)
            assert matching.ask(project)
        job = Job.objects.get()
        kill_a_worker_of(job)
        assert TaskReview.objects.filter(matcher="meaning").count() == 2
        asked = []

        def found(kind, lists):
            asked.extend(lists)
            yield from (("meaning", pk, []) for pk in lists)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matching, "run", found)
            Job.objects.update(seen_at=timezone.now() - timedelta(hours=1))
            assert jobs.take_up_lost() == 1
        assert len(asked) == 4 and not TaskReview.objects.filter(matcher=WORDS).exists()


@pytest.mark.django_db
class TestJobs:
    def test_measuring_whose_worker_died_is_done_by_upkeep(self, project, eager, django_capture_on_commit_callbacks):
        AgreementReport.objects.update(started_at=timezone.now() - timedelta(hours=1), body=None)
        with django_capture_on_commit_callbacks(execute=True):
            assert upkeep.take_up_lost() == 1
        report = AgreementReport.objects.get()
        assert report.started_at is None and report.body["answers"] == 12
        assert upkeep.take_up_lost() == 0

    def test_there_is_one_of_a_kind_at_a_time_and_the_last_is_kept(self, project, team):
        first = runner.start(project, Job.Kind.MATCH)
        assert runner.start(project, Job.Kind.MATCH) is None
        Job.objects.update(finished_at=timezone.now(), state="finished")
        second = runner.start(project, Job.Kind.MATCH)
        assert list(Job.objects.all()) == [second] and second != first
        runner.start(project, Job.Kind.MAJORITY, team.reviewer, minimum=0)
        with pytest.raises(Conflict):
            review.withdraw_majority(team.reviewer, project)

    def test_a_mistake_of_ours_ends_it_and_is_not_tried_for_ever(self, project, monkeypatch):
        monkeypatch.setitem(runner.WORK, Job.Kind.MATCH, lambda job, report: 1 / 0)
        job = runner.start(project, Job.Kind.MATCH)
        runner.run(job.pk)
        job.refresh_from_db()
        assert (job.state, job.problem) == ("failed", jobs.BROKE)

    def test_the_roles(self, project, team):
        runner.start(project, Job.Kind.MATCH)
        for who, status in ((team.annotator, 403), (team.outsider, 404), (team.reviewer, 200)):
            assert ApiClient(who).get(f"/projects/{project.pk}/jobs").status_code == status
