"""Every operation of the API, called by each role. A new operation is closed to every role that is not named for it here."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from tests.webapp.test_what_annotators_see import working
from webapp.accounts.models import RANK, Role
from webapp.accounts.tokens.services import create_token
from webapp.accounts.workspaces.services import allow_share_links
from webapp.annotation.models import Assignment, Comment, ProjectInvite, Task
from webapp.datasets import probe_services
from webapp.datasets.models import Example
from webapp.datasets.probe_services import MeasuredProbe
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.models import Judge
from webapp.reports import services as reports
from webapp.reports.sharing import services as sharing
from webapp.webhooks.models import Webhook

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
OPERATIONS = {operation.label: operation for operation in (found.ok() for found in schema.get_all_operations())}
OPEN = {  # for annotators: operations about the person and their own tasks, and things that they send
    "GET /me",
    "GET /version",
    "GET /workspaces",
    "GET /tokens",
    "DELETE /tokens/{token_id}",
    "POST /projects/join",
    "GET /projects/mine",
    "GET /projects/{project_id}/mine",
    "POST /projects/{project_id}/claim",
    "PATCH /projects/{project_id}/keys",
    "GET /assignments/{assignment_id}",
    "GET /assignments/{assignment_id}/stress",
    "PUT /assignments/{assignment_id}/draft",
    "POST /assignments/{assignment_id}/submit",
    "POST /assignments/{assignment_id}/skip",
    "POST /assignments/{assignment_id}/reopen",
    "POST /assignments/{assignment_id}/renew",
    "POST /assignments/{assignment_id}/flag",
    "POST /render",
    "POST /rubrics/check",
    "POST /rubrics/stress",
    "GET /verifiers",
    "POST /verifiers/{name}/try",
}
BY_HAND = {  # only for people at a page: no token may make tokens or show other workspaces
    "POST /tokens",
    "GET /me/data",
    "POST /me/data",
    "GET /me/data/{export_id}",
    "GET /me/data/{export_id}/download",
}
REVIEWING = {  # what reviewers may do besides reading
    "POST /runs/{run_id}/rollouts/dataset/preview",  # creates nothing
    "POST /projects/{project_id}/agreement/match",
    "POST /projects/{project_id}/review/majority",
    "DELETE /projects/{project_id}/review/majority",
    "PUT /tasks/{task_id}/resolution",
    "DELETE /tasks/{task_id}/resolution",
    "PUT /tasks/{task_id}/groups",
    "POST /tasks/{task_id}/comments",
    "POST /comments/{comment_id}/settle",
    "POST /assignments/{assignment_id}/send-back",
    "POST /datasets/{dataset_id}/versions/{number}/derive/preview",
    "POST /datasets/{dataset_id}/views",
    "DELETE /views/{view_id}",
    "POST /recipes/{name}/check",
    "POST /runs/{run_id}/reasons",
    "PUT /runs/{run_id}/star",
    "PUT /runs/{run_id}/pinned-charts",
    "PUT /runs/table/views/{view_id}/default",
    "DELETE /runs/table/default",
    "POST /notices/read",
    "POST /notices/settings",
    "POST /watches",
}
NOT_TO_READ = {"GET /projects/{project_id}/invites"}  # by reviewers


def least(label: str) -> Role:
    """The role that an operation needs."""
    if label in OPEN:
        return Role.ANNOTATOR
    if (
        "/webhooks" in label
        or label == "GET /tokens/all"
        or "/time-outs" in label
        or "/share-links/allowed" in label
        or "/retention" in label
        or ("/members" in label and label != "GET /members")
    ):
        return Role.OWNER
    reading = label.startswith("GET ") and label not in NOT_TO_READ
    if "/share-links" in label:  # a person who sees the list knows what leaves the workspace
        return Role.RESEARCHER
    return Role.REVIEWER if reading or label in REVIEWING else Role.RESEARCHER


@pytest.fixture
def statuses_by_role(team, monkeypatch) -> Iterator:
    """`statuses_by_role(operation)`: the status that each role gets for a request that fits its schema, about rows of the lab."""
    monkeypatch.setattr("webapp.accounts.authentication.credentials.REQUESTS_PER_MINUTE", 10**9)
    project = working(team, "pairwise")
    allow_share_links(team.owner, True)  # otherwise everybody would be refused as if by their role
    report = reports.create(team.researcher, "What we saw", "## Words")
    theirs = Assignment.objects.filter(project=project, user=team.researcher.user).first()
    ids = {
        "project_id": project.pk,
        "task_id": Task.objects.filter(project=project).first().pk,
        "assignment_id": theirs.pk,
        "dataset_id": project.version.dataset_id,
        "number": 1,
        "example_id": Example.objects.first().pk,
        "probe_id": probe_services.store(project.version, None, MeasuredProbe(1, 0, "m", 8, 1.0, {})).pk,
        "user_id": team.annotator.user_id,
        "comment_id": Comment.objects.first().pk,
        "invite_id": ProjectInvite.objects.first().pk,
        "member_id": team.annotator.pk,
        "judge_id": Judge.objects.first().pk,
        "endpoint_id": Endpoint.objects.first().pk,
        "model_id": RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m").pk,
        "hook_id": Webhook.objects.create(workspace=team.workspace, url="https://example.org", events=[]).pk,
        "token_id": create_token(team.owner, "lab")[0].pk,
        "report_id": report.pk,
        "link_id": sharing.share(team.researcher, report)[0].pk,
    }
    ids |= {"what": "model", "what_id": ids["model_id"]}
    people = {**{Role(who.role): who for who in (team.annotator, team.reviewer, team.researcher)}, None: team.outsider}
    keys = {role: create_token(who, "test")[1] for role, who in people.items()}
    signals = (request_started, request_finished)
    # a real server closes its connection after each request, but the test's transaction is in it
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield lambda operation: _statuses(operation, ids, keys)
    for signal in signals:
        signal.connect(close_old_connections)


def _statuses(operation, ids: dict[str, int | str], keys: dict[Role | None, str]) -> dict[Role | None, int]:
    """The status of the first request that fits. For most operations the first one fits, so at first one is drawn: drawing takes longer
    than asking. For some, hardly one in ten does, and the drawn requests depend on other imports.
    """
    found: dict[Role | None, int] = {}

    def ask(case):
        if found:
            return
        for name in case.path_parameters or {}:
            case.path_parameters[name] = ids.get(name, 1) if name in ids or name.endswith("_id") else "x"
        if "ids" in (case.query or {}):
            case.query["ids"] = "1"
        answers = {role: _answer(case, key) for role, key in keys.items()}
        if not any(
            each.status_code == 400 or "does not have the expected form" in each.text for each in answers.values()
        ):
            found.update({role: each.status_code for role, each in answers.items()})

    for drawn in (1, 5, 200):
        if not found:
            _drawn(operation, ask, drawn)
    return found


def _drawn(operation, ask: Callable, most: int) -> None:
    """Calls `ask` with up to this many requests that the operation's schema allows."""

    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @settings(
        max_examples=most, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    def each(case):
        ask(case)

    with suppress(Unsatisfiable):
        each()


def _answer(case, key: str):
    """The response. Its changes are undone."""
    with transaction.atomic():
        response = case.call(headers={"Authorization": f"Bearer {key}"})
        transaction.set_rollback(True)
    return response


def test_each_operation_is_closed_below_its_role_and_to_other_workspaces(statuses_by_role):
    wrong, shown = {}, {}
    for label, operation in OPERATIONS.items():
        name = label.replace("/api/v1", "")
        if "/ingest/" in label:
            continue
        found = statuses_by_role(operation)
        outside = found.pop(None, None)
        expected = {role: name in BY_HAND or RANK[role] < RANK[least(name)] for role in found}
        if not found or {role: status == 403 for role, status in found.items()} != expected:
            wrong[name] = found
        if "_id}" in label and outside != (403 if name in BY_HAND else 404):
            shown[name] = outside
    assert (wrong, shown) == ({}, {})


def test_only_a_runs_own_token_opens_its_ingest(statuses_by_role):
    found = {label: set(statuses_by_role(each).values()) for label, each in OPERATIONS.items() if "/ingest/" in label}
    assert len(found) == 13
    assert set(map(frozenset, found.values())) == {frozenset({401})}
