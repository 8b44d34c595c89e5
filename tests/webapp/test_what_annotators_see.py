"""Walks the whole URL map as a working annotator, with the ids of real rows. Labels, other answers, ids and origins of responses, and names
of models, judges and colleagues are on no page, in no answer of the API and in no export.
"""

import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tests.team import ApiClient, browser
from tests.webapp.annotation.seed import make_project, pair
from tests.webapp.routes import routes
from webapp.annotation.kinds import KINDS
from webapp.annotation.models import Assignment, Comment, Project, ProjectInvite, Task
from webapp.annotation.people import services as people
from webapp.annotation.projects import gold_services
from webapp.annotation.review import services as review
from webapp.annotation.work import queue, suggestions
from webapp.datasets.models import Example
from webapp.inference.endpoints import services as endpoints
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Judge

pytestmark = pytest.mark.django_db
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
METHODS = ("get", "post", "put", "patch", "delete")
SECRETS = ("ID-ONE", "ID-TWO", "MODEL-", "RATER", "CLASSIFIED", "Rosa", "rosa@")
ANSWERS: dict[str, Any] = {
    "pairwise": {"verdict": "compared", "strength": 2, "note": "CLASSIFIED"},
    "rubric": {"rubric": {"criteria": [{"id": "n1", "text": "CLASSIFIED", "points": 1}]}},
    "grading": {"grades": [{"criterion": "c1", "verdict": "met", "note": "CLASSIFIED"}]},
    "ranking": {"tiers": [["A"], ["B"]], "note": "CLASSIFIED"},
    "rating": {"ratings": {"Clarity": 4}, "note": "CLASSIFIED"},
    "rationale": {"reasons": [{"text": "CLASSIFIED"}], "source": "CLASSIFIED"},
    "best_worst": {"best": "A", "worst": "B", "note": "CLASSIFIED"},
    "trace_steps": {
        "steps": [{"step": 1, "verdict": "incorrect", "reason": "CLASSIFIED"}],
        "first_error": 1,
        "note": "CLASSIFIED",
    },
}
OWN: dict[str, Any] = {  # the annotator's own words, which are not secret
    "pairwise": {"verdict": "compared", "strength": 1},
    "rubric": {"rubric": {"criteria": [{"id": "n1", "text": "Is right", "points": 1}]}},
    "grading": {"grades": [{"criterion": "c1", "verdict": "met"}]},
    "ranking": {"tiers": [["A"], ["B"]]},
    "rating": {"ratings": {"Clarity": 4}},
    "rationale": {"reasons": [{"text": "It is short"}], "source": "Short."},
    "best_worst": {"best": "A", "worst": "B"},
    "trace_steps": {"steps": [{"step": 1, "verdict": "correct"}]},
}


def working(team, kind: str) -> Project:
    """Two tasks, one of which is gold. A colleague has answered, a reviewer has decided and remarked, and a judge was asked."""
    reasons = [{"text": "clearer", "response": "ID-ONE"}]
    preference = {"a": "ID-ONE", "b": "ID-TWO", "strength": 1, "rater": "RATER", "reasons": reasons}
    secrets = {"tags": ["CLASSIFIED"], "source": "CLASSIFIED", "meta": {"label": "CLASSIFIED", "uncertainty": 0.5}}
    rubric = {"criteria": [{"id": "c1", "text": "Is clear.", "points": 2}]}
    made = make_project(
        team.researcher,
        [pair(key, preferences=[preference], rubric=rubric, **secrets) for key in ("q0", "q1")],
        kind=kind,
        settings={"scales": [{"name": "Clarity"}], "gold_every": 2, "stress_test": False},
        people=[team.annotator, team.researcher],
        overlap=2,
    )
    for seat in queue.claim(team.researcher, made, hold=2):
        queue.submit(team.researcher, seat, ANSWERS[kind])
    if kind in ("pairwise", "rubric", "rationale"):
        gold_services.mark(team.researcher, made, "labels", 1)
    seats = queue.claim(team.annotator, made, hold=2)
    queue.submit(team.annotator, seats[0], OWN[kind])
    if kind == "pairwise":
        content = {"verdict": "compared", "strength": 1}
        suggestions.keep(made, "CLASSIFIED judge", 1, dict.fromkeys(Task.objects.values_list("pk", flat=True), content))
    endpoint = endpoints.create_endpoint(team.researcher, "recorded", name="CLASSIFIED endpoint")
    create_judge(team.researcher, name="CLASSIFIED judge", spec={"kind": "pairwise"}, endpoint=endpoint)
    review.comment(team.reviewer, Task.objects.first(), "remark", "CLASSIFIED remark")
    people.invite(team.researcher, made)
    return made


def ids_of(team, project: Project) -> dict[str, int]:
    """The ids of existing rows, by the names that addresses have for them. If rows belong to a person, they are those of a colleague."""
    theirs = Assignment.objects.filter(project=project, user=team.researcher.user).first()
    return {
        "project_id": project.pk,
        "task_id": theirs.task_id,
        "assignment_id": theirs.pk,
        "dataset_id": project.version.dataset_id,
        "version_id": project.version_id,
        "example_id": Example.objects.first().pk,
        "user_id": team.researcher.user_id,
        "comment_id": Comment.objects.first().pk,
        "invite_id": ProjectInvite.objects.first().pk,
        "judge_id": Judge.objects.first().pk,
    }


def filled(ids: dict[str, int], route: str) -> str:
    return "/" + PARAMETER.sub(lambda match: str(ids.get(match[1], 1)), route)


def secrets_in_answer(client, method: str, address: str) -> set[str]:
    """The secrets in the answer, or "a file" for a streamed answer."""
    client.raise_request_exception = False
    body = {} if method == "get" else {"data": "{}", "content_type": "application/json"}
    response = getattr(client, method)(address, **body)
    assert response.status_code < 500 or "readyz" in address, (method, address)
    if getattr(response, "streaming", False):
        return {"a file"} if response.status_code == 200 and "/static/" not in address else set()
    text = response.content.decode(errors="replace")
    return {word for word in SECRETS if word in text}


@pytest.mark.parametrize("kind", KINDS)
def test_no_address_tells_an_annotator_what_is_not_theirs(team, kind):
    project = working(team, kind)
    page, script, ids = browser(team.annotator), ApiClient(team.annotator).client, ids_of(team, project)
    for route in routes():
        ours = any(word in route for word in ("project", "task", "assignment", "example"))
        if "sign-out" in route or not (ours or kind == "pairwise"):
            continue
        address = filled(ids, route)
        for client, method in (
            ((page, "get"), (page, "post")) if "api/" not in route else ((script, m) for m in METHODS)
        ):
            assert not secrets_in_answer(client, method, address), (method, address)


@pytest.mark.parametrize("kind", ["pairwise", "rubric"])  # with reasons, and with texts that are matched by meaning
def test_no_address_tells_a_reviewer_who_an_annotator_is(team, kind):
    project = working(team, kind)
    review.comment(team.annotator, Task.objects.first(), "guidelines", "What is clear?")
    page, script, ids = browser(team.reviewer), ApiClient(team.reviewer).client, ids_of(team, project)
    theirs = {"project_id": project.pk, "task_id": Assignment.objects.filter(user=team.annotator.user).first().task_id}
    numbered = False
    for route in routes():
        if not any(word in route for word in ("project", "task", "assignment", "example", "evaluation", "search")):
            continue
        address = "/" + PARAMETER.sub(lambda match: str(theirs.get(match[1], "{}")), route)
        address = address if "{}" not in address else filled(ids, route)
        for client, query in ((page, ""), (page, "?names=1"), (script, ""), (script, "?names=true")):
            response = client.get(address + query)
            streams = getattr(response, "streaming", False) and "answers" in address
            text = b"".join(read(response)) if streams else getattr(response, "content", b"")
            assert not re.search(rb"\bAnna\b|anna@", text), address + query
            numbered |= b"Annotator 1" in text
    assert numbered


@async_to_sync
async def read(response) -> list[bytes]:
    return [part async for part in response.streaming_content]


def test_researchers_see_on_one_page_who_is_who(team):
    project = working(team, "pairwise")
    for who, name in ((team.researcher, "Anna"), (team.reviewer, "Annotator 1")):
        person = ApiClient(who).get(f"/projects/{project.pk}/people").json()["items"]
        assert {each["rater"] for each in person} == {"annotator-1", "annotator-2"}
        assert ("Anna" in {each["name"] for each in person}) == (name == "Anna")
        for tab in ("", "/people"):
            assert name in browser(who).get(f"/projects/{project.pk}{tab}").content.decode()
        task = Task.objects.filter(assignments__user=team.annotator.user).first().pk
        page = f"/projects/{project.pk}/tasks/{task}"
        assert "Anna" not in browser(who).get(page).content.decode()
        assert name in browser(who).get(f"{page}?names=1").content.decode()
        assert "name" not in {k for seat in ApiClient(who).get(page).json()["seats"] for k, v in seat.items() if v}
        assert ApiClient(who).get(page, names=True).status_code == (200 if name == "Anna" else 403)


def test_the_same_walk_shows_a_reviewer_all_of_it_but_names(team):
    project, client = working(team, "pairwise"), browser(team.reviewer)
    ids = ids_of(team, project)
    walked = [filled(ids, route) for route in routes() if "project_id" in route or "task_id" in route]
    found = set().union(*(secrets_in_answer(client, "get", address) for address in walked))
    assert found >= {"ID-ONE", "MODEL-", "CLASSIFIED", "a file"}, found
