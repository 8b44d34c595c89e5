"""Answers of two projects, as an evaluation reads them: those of the right kind, of this workspace, that are current and not gold."""

import pytest

from tests.webapp.annotation.seed import make_annotators, make_project
from trainer.config.errors import ConfigInvalid
from webapp.annotation.models import Project
from webapp.annotation.work import queue
from webapp.evaluation.launch import services
from webapp.evaluation.sources import people

pytestmark = pytest.mark.django_db


@pytest.fixture
def comparing(team) -> Project:
    """Two of its three tasks are compared; the third is a gold task."""
    made, (person,) = make_project(team.researcher, overlap=1), make_annotators(team.researcher, 1)
    made.participants.create(user=person.user)
    made.tasks.filter(rank=2).update(gold={"verdict": "compared", "strength": -2}, overlap=None)
    while seats := queue.claim(person, made, 1):
        queue.submit(person, seats[0], {"verdict": "compared", "strength": -2}, seconds=12.5)
    return made


def test_answers_that_stand_come_with_their_texts_and_times_and_gold_is_none_of_them(team, comparing):
    found = list(people.answers(team.workspace.pk, comparing.pk))
    assert sorted(each.example for each in found) == ["q0", "q1"]
    assert {each.rater for each in found} == {"annotator-1"} and found[0].seconds == 12.5
    assert set(found[0].subject.values()) == set(found[0].texts), "each side with its text"
    assert list(people.answers(team.outsider.workspace.pk, comparing.pk)) == []


def refused(team, project, **config) -> dict[str, str]:
    with pytest.raises(ConfigInvalid) as told:
        services.create(team.researcher, recipe="grade_or_compare", config=config, dataset=project.version)
    return {each.path: each.message for each in told.value.problems}


def test_a_project_of_another_kind_or_workspace_is_refused_at_its_field(team, comparing):
    told = refused(team, comparing, grading=comparing.pk, comparing=comparing.pk)
    assert told == {"grading": "is a project of kind pairwise; choose one of kind grading"}
    grading = make_project(team.researcher, kind="grading")
    Project.objects.filter(pk=grading.pk).update(workspace=team.outsider.workspace)
    told = refused(team, comparing, grading=grading.pk, comparing=comparing.pk)
    assert told == {"grading": "this workspace has no such project"}


def test_a_ridge_of_zero_is_refused_at_its_field(team, comparing):
    grading = make_project(team.researcher, kind="grading")
    told = refused(team, comparing, grading=grading.pk, comparing=comparing.pk, ridge=0)
    assert list(told) == ["ridge"]
