"""A deletion that cannot be undone asks first, and changes nothing if the answer is no."""

import pytest

from webapp.accounts.tokens.services import create_token
from webapp.annotation.models import ProjectInvite
from webapp.annotation.people import services as people
from webapp.evaluation.models import Evaluation
from webapp.inference.models import RegisteredModel


@pytest.fixture
def losses(team, make_project):
    """(whose page, address, posted fields, whether the object still exists)."""
    project = make_project()
    token, _ = create_token(team.researcher, "laptop")
    invite, _ = people.invite(team.researcher, project)
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m <b>", source="hub", path="o/m")
    row = Evaluation.objects.create(workspace=team.workspace, name="E", recipe="judge_audit", state="running")
    return {
        "token": (
            f"/settings/tokens/{token.pk}/revoke",
            {},
            lambda: type(token).objects.get(pk=token.pk).revoked_at is None,
        ),
        "link": (
            f"/projects/{project.pk}/invites/{invite.pk}/revoke",
            {},
            lambda: ProjectInvite.objects.get(pk=invite.pk).revoked_at is None,
        ),
        "model": (f"/models/{model.pk}/delete", {}, lambda: RegisteredModel.objects.filter(pk=model.pk).exists()),
        "evaluation": (
            f"/evaluations/{row.pk}/move",
            {"to": "cancelled"},
            lambda: Evaluation.objects.get(pk=row.pk).state == "running",
        ),
    }


@pytest.mark.parametrize("name", ["token", "link", "model", "evaluation"])
def test_it_is_asked_and_a_yes_does_it(losses, as_researcher, name):
    address, posted, there = losses[name]
    asked = as_researcher.post(address, posted)
    page = asked.content.decode()
    assert asked.status_code == 200 and there() and "Keep it" in page and 'name="sure" value="1"' in page
    assert "m <b>" not in page and all(f'name="{key}" value="{value}"' in page for key, value in posted.items())
    assert as_researcher.post(address, {**posted, "sure": "1"}).status_code == 302 and not there()
