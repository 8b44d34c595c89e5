"""Websockets with the events of runs. Pages and scripts load their state over HTTP and then apply these messages."""

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.security.websocket import AllowedHostsOriginValidator
from django.conf import settings
from django.urls import path
from django.utils import timezone

from webapp.accounts.areas import Area, Need, Right
from webapp.accounts.authentication.credentials import bearer
from webapp.accounts.authentication.middleware import SESSION_KEY
from webapp.accounts.models import Membership
from webapp.core.health import DATABASE_AWAY
from webapp.core.monitoring import telemetry
from webapp.core.requests.authorization import bearer_token
from webapp.identity import second_factor

from .. import access, serializers
from ..models import Run
from . import broadcasts
from .waiting import OutgoingQueue

JUST_NOW = timedelta(minutes=2)  # longer than a page takes to load
MOST_GREETED = 50
RECHECK_S = 60  # how soon a person who was removed, or has signed out, stops hearing
TRY_AGAIN = 1013
REFUSED = 4403  # who listens is signed out, or may not read this; `socket.js` knows the number
LISTENING = Need(Area.EXPERIMENTS, Right.READ)  # what a token needs to hear runs
WELCOME = {"type": "welcome"}  # `socket.js` knows it


def key_of(scope: Mapping[str, Any]) -> str:
    """The token of a script. Browsers never send this header by themselves, so a page of another address cannot."""
    return bearer_token(dict(scope["headers"]).get(b"authorization", b"").decode("latin-1"))


class FeedDoor:
    """Lets in pages of our hosts, and scripts, which have a token instead of an origin."""

    def __init__(self, feeds: Any) -> None:
        self.scripts, self.pages = feeds, AllowedHostsOriginValidator(feeds)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        with telemetry.WEBSOCKETS.track_inprogress():
            return await (self.scripts if key_of(scope) else self.pages)(scope, receive, send)


class GroupFeed(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """Passes on one group's messages. Subclasses name the group, and so decide who may listen.

    Messages wait in a queue of this connection, so that a slow client delays nobody else.
    """

    need = LISTENING
    group: str | None = None

    async def connect(self) -> None:
        self.waiting = OutgoingQueue()
        self.sender: asyncio.Task[None] | None = None
        try:
            self.group = await self.allowed_group() if key_of(self.scope) or self.same_origin() else None
            if self.group is None:
                await self.refuse()
                return
            await self.channel_layer.group_add(self.group, self.channel_name)  # first: nothing falls in between
            greeting = await database_sync_to_async(self.greeting)()
        except DATABASE_AWAY:
            await self.accept()  # only an open connection can be told to try again
            await self.close(TRY_AGAIN)
            return
        await self.accept()
        # a page that is refused, or told to try again, has an open connection too; a script has not, and its documented first message stays
        welcome = [] if key_of(self.scope) else [WELCOME]
        for message in [*welcome, *greeting]:
            await self.send(text_data=json.dumps(message))
        self.sender = asyncio.create_task(self.send_waiting())

    async def disconnect(self, code: int) -> None:
        if self.sender:
            self.sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.sender
        if self.group:
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Ignores messages of clients."""

    async def broadcast(self, event: dict[str, Any]) -> None:
        """Queues a message of the channel layer. Never waits for the client."""
        self.waiting.add(event["message"])

    async def send_waiting(self) -> None:
        checked = time.monotonic()
        while True:
            text = await self.waiting.next(RECHECK_S)
            # by the clock, not only in silence: a run that is under way is never silent
            if time.monotonic() - checked >= RECHECK_S:
                if not await self.may_go_on():
                    return
                checked = time.monotonic()
            if text is not None:
                await self.send(text_data=text)

    def same_origin(self) -> bool:
        """Whether the page has this very address: browsers send cookies to any port of a host."""
        headers = dict(self.scope["headers"])
        origin, host = headers.get(b"origin", b"").decode(), headers.get(b"host", b"").decode()
        trusted = getattr(settings, "CSRF_TRUSTED_ORIGINS", [])
        return bool(origin) and (urlsplit(origin).netloc == host or origin in trusted)

    async def may_go_on(self) -> bool:
        """Whether this person may still listen; if not, or if nobody can tell, the connection is closed."""
        try:
            allowed = await self.allowed_group() == self.group
        except DATABASE_AWAY:
            await self.close(TRY_AGAIN)  # the page connects again, and is asked again
            return False
        if not allowed:
            await self.close(REFUSED)
        return allowed

    async def refuse(self) -> None:
        """Closes a connection before its first message. A browser tells a page no reason for a connection that was never open, and the page
        would try again for ever; so a page of ours gets the reason over an open one."""
        if key_of(self.scope) or not self.same_origin():
            await self.close()
            return
        await self.accept()
        await self.close(REFUSED)

    async def allowed_group(self) -> str | None:
        """The group this person may hear, asked of the database; None refuses.

        Token and session are read again: the session in the scope does not show a later sign-out.
        """
        if secret := key_of(self.scope):
            of_key: str | None = await database_sync_to_async(self.group_of_key)(secret)
            return of_key
        session = import_module(settings.SESSION_ENGINE).SessionStore(self.scope["session"].session_key)
        user = await get_user({"session": session})
        group: str | None = await database_sync_to_async(self.group_of)(user, session)
        return group

    def group_of_key(self, secret: str) -> str | None:
        membership = bearer(secret, self.need)
        return self.group_for([membership]) if membership else None

    def group_of(self, user: Any, session: Any) -> str | None:
        """The group of a page: for the workspaces of the signed-in person, without those that ask for a second factor that the session
        lacks."""
        if not user.is_authenticated:
            return None
        mine = Membership.objects.filter(user_id=user.pk).select_related("workspace").order_by("id")
        return self.group_for([each for each in mine if not second_factor.is_missing(session, each)])

    def group_for(self, mine: list[Membership]) -> str | None:
        """The group that these memberships, all of the listener's, may hear."""
        raise NotImplementedError

    def greeting(self) -> list[dict[str, Any]]:
        """Events between the drawing of the page and this connection, which no message reports."""
        raise NotImplementedError


class RunFeed(GroupFeed):
    """`/ws/runs/{id}`: metrics, rollouts, log and state of one run."""

    def group_for(self, mine: list[Membership]) -> str | None:
        run_id = self.scope["url_route"]["kwargs"]["run_id"]
        readable = [membership.workspace_id for membership in mine if membership.may(access.READER)]
        found = Run.objects.present().filter(id=run_id, experiment__workspace_id__in=readable)
        return broadcasts.run_group(run_id) if found.exists() else None

    def greeting(self) -> list[dict[str, Any]]:
        run = Run.objects.with_names().filter(id=self.scope["url_route"]["kwargs"]["run_id"]).first()
        return [{"type": "now", **serializers.run(run, config=False)}] if run else []


class WorkspaceFeed(GroupFeed):
    """`/ws/workspace`: state and progress of all runs and imports of the workspace chosen in the session, or the token's."""

    def group_for(self, mine: list[Membership]) -> str | None:
        chosen = self.scope["session"].get(SESSION_KEY)
        membership = next((m for m in mine if m.workspace_id == chosen), mine[0] if mine else None)
        if membership is None or not membership.may(access.READER):
            return None
        self.workspace_id = membership.workspace_id
        return broadcasts.workspace_group(membership.workspace_id)

    def greeting(self) -> list[dict[str, Any]]:
        """Queued runs are left out: a list announces them as new, and cannot tell that it has them on another page."""
        runs = Run.objects.with_names().present().filter(experiment__workspace_id=self.workspace_id)
        moved = runs.filter(state_at__gte=timezone.now() - JUST_NOW).exclude(state=Run.State.QUEUED)
        return [{"type": "run", **serializers.run(run, config=False)} for run in moved.order_by("-id")[:MOST_GREETED]]


websocket_urlpatterns = [
    path("ws/runs/<int:run_id>", RunFeed.as_asgi()),
    path("ws/workspace", WorkspaceFeed.as_asgi()),
]
