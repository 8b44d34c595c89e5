"""Rationales: an explanation of the data may be longer than a text that a person writes."""

import pytest

from tests.webapp.annotation.seed import make_annotators, make_project, pair
from webapp.annotation.agreement import refresh
from webapp.annotation.models import Answer, Resolution
from webapp.annotation.review import services as review
from webapp.annotation.work import queue
from webapp.core.problems import Invalid

pytestmark = pytest.mark.django_db
LONG = "It is longer. " * 2_000


def given(team, **meta):
    """(project, its people), with one task."""
    people = make_annotators(team.owner, 2)
    return make_project(team.researcher, [pair(meta=meta)], kind="rationale", people=people), people


def test_a_long_explanation_is_split_and_consolidated(team):
    project, people = given(team, rationale=LONG)
    for person, reason in zip(people, ("longer", "kinder"), strict=True):
        (seat,) = queue.claim(person, project)
        queue.submit(person, seat, {"source": LONG, "reasons": [{"text": reason}]})
    refresh.bring_up_to_date(project)
    task, answers = project.tasks.get(), list(Answer.objects.values_list("id", flat=True))
    decisions = {f"item:{answer}:0": {"action": "keep", "answer": answer} for answer in answers}
    review.consolidate(team.reviewer, task, answers=answers, decisions=decisions)
    assert Resolution.objects.get().content["source"] == LONG


def test_a_text_of_ones_own_has_a_limit(team):
    project, (person, _) = given(team)
    (seat,) = queue.claim(person, project)
    with pytest.raises(Invalid) as refused:
        queue.submit(person, seat, {"source": LONG, "reasons": [{"text": "longer"}]})
    assert refused.value.fields == {"content.source": "has more than 20,000 characters"}
