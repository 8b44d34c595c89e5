"""The time-outs of sessions, for scripts of owners."""

from django.http import HttpRequest
from ninja import Field, Router

from webapp.accounts import access
from webapp.accounts.models import Role, Workspace
from webapp.accounts.sessions import time_outs
from webapp.core.requests.openapi import StrictIn

router = Router(tags=["accounts"])


class TimeOutsIn(StrictIn):
    idle_minutes: int | None = Field(description="Minutes without use; null: the workspace has no own limit")
    session_minutes: int | None = Field(
        description="Minutes after the session began; null: the workspace has no own limit"
    )


class TimeOutsOut(TimeOutsIn):
    """The time-outs of the workspace and of the installation. The strictest of a person's workspaces counts."""

    installation_idle_minutes: int
    installation_session_minutes: int


@router.get("/time-outs", response=TimeOutsOut, summary="The time after which sessions end")
def read(request: HttpRequest) -> dict[str, int | None]:
    return _told(access.require(request, Role.OWNER).workspace)


@router.put("/time-outs", response=TimeOutsOut, summary="Change how long sessions last")
def change(request: HttpRequest, payload: TimeOutsIn) -> dict[str, int | None]:
    """The change takes effect at once: people who have been away for longer, or signed in earlier, must sign in again."""
    membership = access.require(request, Role.OWNER)
    return _told(time_outs.change(membership, payload.idle_minutes, payload.session_minutes))


def _told(workspace: Workspace) -> dict[str, int | None]:
    whole = time_outs.installation()
    return {
        "idle_minutes": workspace.idle_minutes,
        "session_minutes": workspace.session_minutes,
        "installation_idle_minutes": time_outs.in_minutes(whole.idle),
        "installation_session_minutes": time_outs.in_minutes(whole.longest),
    }
