"""Jobs whose worker died go on without anybody opening a page."""

from datetime import timedelta

import pytest
from django.utils import timezone

from trainer.rewards.alignment import WORDS
from webapp.annotation.models import AgreementReport, TaskReview
from webapp.annotation.services import matching, standing, upkeep

from .answers import annotators, answer, make_project, preference

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(cast):
    made = make_project(cast, n=1)
    for person in annotators(cast, made):
        answer(made.tasks.get(), person, preference(1, "It is short."))
    return made


def began(project, **fields):
    AgreementReport.objects.update_or_create(project=project, defaults=fields)


def test_measuring_whose_worker_died_is_done_by_upkeep(project, eager, django_capture_on_commit_callbacks):
    began(project, started_at=timezone.now() - timedelta(hours=1))
    with django_capture_on_commit_callbacks(execute=True):
        assert upkeep.take_up_lost() == 1
    report = AgreementReport.objects.get()
    assert report.started_at is None and report.body["answers"] == 2
    assert upkeep.take_up_lost() == 0


def test_matching_whose_worker_died_is_done_by_upkeep(project, eager, monkeypatch, django_capture_on_commit_callbacks):
    standing.bring_up_to_date(project)
    began(project, matching_at=timezone.now() - timedelta(hours=1))
    monkeypatch.setattr(matching, "run", lambda lines: ("meaning", {line["id"]: [] for line in lines}))
    assert TaskReview.objects.get().matcher == WORDS
    with django_capture_on_commit_callbacks(execute=True):
        assert upkeep.take_up_lost() == 1
    assert TaskReview.objects.get().matcher == "meaning"
    assert AgreementReport.objects.get().matching_at is None


def test_jobs_that_began_just_now_are_left_alone_and_one_round_queues_a_lost_one_once(project):
    began(project, started_at=timezone.now(), matching_at=timezone.now() - timedelta(hours=1))
    assert [upkeep.take_up_lost(), upkeep.take_up_lost()] == [1, 0]
