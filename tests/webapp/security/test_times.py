"""Times do not reveal the person behind a pseudonym: reviewers see the days of an annotator's work, but not the times."""

from datetime import UTC, datetime

import pytest

from tests.team import ApiClient, browser
from tests.webapp.routes import routes
from tests.webapp.test_what_annotators_see import PARAMETER, filled, ids_of, read, working
from webapp.annotation.agreement import refresh
from webapp.annotation.models import Answer, Assignment, Comment, Participant, Task
from webapp.annotation.review import services as review

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 11, 20, 3, 17, 41, 123_456, tzinfo=UTC)
TOLD = b"17:41"
SEEN = ("project", "task", "assignment", "example", "search", "inbox", "members")


def worked(team):
    project = working(team, "pairwise")
    review.comment(team.annotator, Task.objects.first(), "guidelines", "What is clear?")
    mine = {"user": team.annotator.user}
    Assignment.objects.filter(**mine).update(claimed_at=MOMENT, submitted_at=MOMENT)
    Participant.objects.filter(**mine).update(created_at=MOMENT)
    Answer.objects.filter(assignment__user=team.annotator.user).update(submitted_at=MOMENT)
    Comment.objects.filter(author=team.annotator.user).update(created_at=MOMENT, resolved_at=None)
    refresh.current_report(project)
    return project


def test_no_surface_of_a_reviewer_tells_when_somebody_under_a_pseudonym_was_at_work(team):
    project = worked(team)
    page, script, ids = browser(team.reviewer), ApiClient(team.reviewer).client, ids_of(team, project)
    theirs = {"project_id": project.pk, "task_id": Assignment.objects.filter(user=team.annotator.user).first().task_id}
    days = 0
    for route in routes():
        if route and not any(word in route for word in SEEN):
            continue
        address = "/" + PARAMETER.sub(lambda match: str(theirs.get(match[1], "{}")), route)
        address = address if "{}" not in address else filled(ids, route)
        for client, query in ((page, ""), (page, "?names=1"), (script, ""), (script, "?format=csv")):
            response = client.get(address + query)
            streams = getattr(response, "streaming", False) and "answers" in address
            text = b"".join(read(response)) if streams else getattr(response, "content", b"")
            assert TOLD not in text, address + query
            days += b"2026-11-20" in text
    assert days > 5  # the walk has visited pages that show the work


def test_who_may_name_people_sees_the_moment_beside_the_name(team):
    project = worked(team)
    script = ApiClient(team.researcher)
    for names, told in ((False, False), (True, True)):
        items = script.get(f"/projects/{project.pk}/answers", names=names).json()["items"]
        assert any(":17:41" in each["submitted_at"] for each in items) == told
    [person] = [row for row in script.get(f"/projects/{project.pk}/people").json()["items"] if row["name"] == "Anna"]
    assert ":17:41" in person["joined_at"]
