"""The people of a project and invitations, over the API."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.accounts.models import Membership, User
from webapp.core.network.addresses import public_url
from webapp.core.problems import Invalid

from .. import access
from .. import queries as listing
from .. import schemas as s
from ..agreement import coefficients, refresh
from ..models import Project
from . import queries, serializers, services

router = Router(tags=["annotation"])


@router.get("/projects/{int:project_id}/people", response=s.PersonList, summary="The work of each person")
def people(request: HttpRequest, project_id: s.ProjectId) -> dict[str, Any]:
    """Amount, speed, gold tasks, agreement with others, and how these drift; the busiest person first. The figures are as of `computed_at`;
    with `state` `computing`, newer answers are being counted. Reviewers see pseudonyms."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    report = refresh.current_report(project)
    state = "ready" if coefficients.fresh(report, project) else "computing"
    named = access.may_name(membership)
    items = [serializers.person(row, named) for row in queries.people(project)]
    return {"state": state, "computed_at": report.computed_at, "items": items}


@router.post("/projects/{int:project_id}/people", response={201: s.PersonOut}, summary="Add a member to a project")
def add(request: HttpRequest, project_id: s.ProjectId, payload: s.ParticipantIn) -> Status[dict[str, Any]]:
    membership = require(request)
    project = access.project_write(membership, project_id)
    user = _member(membership, payload)
    services.add_participant(membership, project, user)
    return Status(201, _person(project, user.pk))


def _member(membership: Membership, payload: s.ParticipantIn) -> User:
    members = Membership.objects.filter(workspace_id=membership.workspace_id).select_related("user")
    if payload.user is not None:
        members = members.filter(user_id=payload.user)
    else:
        members = members.filter(user__email=(payload.email or "").strip().lower())
    found = members.first()
    if found is not None and payload.user is None and not found.user.verified:
        reason = "is not verified: name the person by `user`, or invite the address"
        raise Invalid("This address is not verified.", {"email": reason})
    if found is None:
        field = "email" if payload.user is None and payload.email else "user"
        raise Invalid("This person is not a member.", {field: "is not a member of this workspace"})
    return found.user


def _person(project: Project, user_id: int) -> dict[str, Any]:
    return serializers.person(next(row for row in queries.people(project) if row.user.pk == user_id), named=True)


@router.patch(
    "/projects/{int:project_id}/people/{int:user_id}",
    response=s.PersonOut,
    summary="Pause a person, or let a paused person continue",
)
def pause(request: HttpRequest, project_id: s.ProjectId, user_id: s.ProjectId, payload: s.PausedIn) -> dict[str, Any]:
    """The open tasks of a paused person go back to the queue; their drafts are kept."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    services.pause_participant(membership, project, access.participant(project, user_id), payload.paused)
    return _person(project, user_id)


@router.get("/projects/{int:project_id}/invites", response=s.InviteList, summary="Invitation links that still work")
def invites(request: HttpRequest, project_id: s.ProjectId) -> dict[str, Any]:
    project = access.project_write(require(request), project_id)
    return {"items": list(listing.invites(project))}


@router.post("/projects/{int:project_id}/invites", response={201: s.NewInviteOut}, summary="Create an invitation link")
def invite(request: HttpRequest, project_id: s.ProjectId, payload: s.ProjectInviteIn) -> Status[dict[str, Any]]:
    """The person who opens the link becomes an annotator of the workspace and works in this project. With `email` it is for that address
    alone, and opening it shows that the address is theirs. If this installation sends mail, it goes there, and `link` is null."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    row, secret = services.invite(membership, project, payload.uses, payload.days, payload.email or "")
    shown = {name: getattr(row, name) for name in s.ProjectInviteOut.model_fields}
    return Status(201, {**shown, "link": f"{public_url()}/join/{secret}" if secret else None})


@router.delete(
    "/projects/{int:project_id}/invites/{int:invite_id}", response={204: None}, summary="Revoke an invitation link"
)
def revoke(request: HttpRequest, project_id: s.ProjectId, invite_id: s.ProjectId) -> Status[None]:
    membership = require(request)
    project = access.project_write(membership, project_id)
    services.revoke_invite(membership, access.invite(project, invite_id))
    return Status(204, None)


@router.post("/projects/join", response=s.JoinOut, summary="Follow an invitation link")
def join(request: HttpRequest, payload: s.JoinIn) -> dict[str, Any]:
    """Joins with the account that asks. 409 if the link is used up, expired or revoked."""
    project = services.join(require(request).user, payload.secret).project
    return {"project": project.pk, "name": project.name, "workspace": project.workspace.name}
