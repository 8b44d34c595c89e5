"""`/ws/notices`: the notices of one person as they happen."""

from typing import Any

from django.urls import path

from webapp.accounts.areas import Area, Need, Right
from webapp.accounts.models import Membership
from webapp.experiments.live.consumers import WorkspaceFeed

from . import queries
from .dispatch import group


class NoticeFeed(WorkspaceFeed):
    """The feed of the workspace chosen in the session, or of the token's. It begins with the number of unread notices."""

    need = Need(Area.ACCOUNT, Right.READ)

    def group_for(self, mine: list[Membership]) -> str | None:
        if super().group_for(mine) is None:
            return None
        self.membership = next(each for each in mine if each.workspace_id == self.workspace_id)
        return group(self.workspace_id, self.membership.user_id)

    def greeting(self) -> list[dict[str, Any]]:
        return [{"type": "unread", "unread": queries.unread(self.membership)}]


websocket_urlpatterns = [path("ws/notices", NoticeFeed.as_asgi())]
