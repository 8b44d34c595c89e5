"""Many listeners lose their connection in one moment, as after a restart of the web process, and come back together."""

import asyncio
import itertools
from unittest import mock

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db.backends.utils import CursorWrapper

from tests.team import browser
from webapp.asgi import application
from webapp.experiments.live import broadcasts
from webapp.experiments.live.consumers import RunFeed

from .test_consumers import ORIGIN, post, scene  # noqa: F401
from .websocket import Socket

pytestmark = pytest.mark.django_db(transaction=True)
VIEWERS = 100


async def test_a_hundred_listeners_come_back_and_each_hears_every_event_once(scene, monkeypatch):  # noqa: F811
    """A page loads what it has missed from the number that the greeting names, so the greeting must hold all that was sent before it."""
    team, run, process = scene
    client = await database_sync_to_async(browser)(team.reviewer)
    cookie = f"sessionid={client.cookies['sessionid'].value}".encode()
    headers = [(b"host", b"localhost"), (b"origin", ORIGIN), (b"cookie", cookie)]

    async def listen() -> tuple[Socket, int]:
        """A socket behind its greeting, and the number of the last event that the greeting knows."""
        socket = Socket(application, f"/ws/runs/{run.id}", headers)
        assert await socket.connect()
        welcome, now = await socket.hear(2)
        assert (welcome["type"], now["type"]) == ("welcome", "now")
        return socket, now["last_seq"]

    greeting, greeted = RunFeed.greeting, itertools.count()

    def greeting_then_event(feed: RunFeed) -> list[dict]:
        """The run goes on while listeners come: an event falls exactly behind every tenth greeting."""
        found = greeting(feed)
        if next(greeted) % 10 == 0:
            assert process.post(process.metrics(process.seq + 1, **{"reward/mean": 0.5})).status_code == 200
        return found

    monkeypatch.setattr(RunFeed, "greeting", greeting_then_event)

    async def storm() -> list[tuple[Socket, int]]:
        return list(await asyncio.gather(*(listen() for _ in range(VIEWERS))))

    await post(process, process.event("state", state="running"))
    first = await storm()
    await asyncio.gather(*(socket.disconnect() for socket, _ in first))
    group = get_channel_layer().groups
    assert broadcasts.run_group(run.id) not in group
    await post(process, process.metrics(process.seq + 1, **{"reward/mean": 0.5}))  # nobody listens
    queries = mock.Mock()
    executed = CursorWrapper.execute

    def counted(cursor, sql, params=None):
        queries(sql)
        return executed(cursor, sql, params)

    with mock.patch.object(CursorWrapper, "execute", counted):
        second = await storm()
    assert len(group[broadcasts.run_group(run.id)]) == VIEWERS
    asked = [call.args[0] for call in queries.call_args_list if "SELECT" in call.args[0]]
    assert len(asked) <= 12 * VIEWERS + 30 * process.seq, "each listener asks a few questions, however many come"
    await post(process, process.metrics(process.seq + 1, **{"reward/mean": 0.75}))
    last = process.seq
    for socket, known in second:
        heard: list[int] = []
        while not heard or heard[-1] < last:
            (told,) = await socket.hear(1)
            if told["type"] == "metrics":
                heard.append(told["step"])
        # events may come twice around the greeting: once within it, once as a message. None is missing, and none comes twice as a message
        assert heard == list(range(heard[0], last + 1)) and heard[0] <= known + 1
    await asyncio.gather(*(socket.disconnect() for socket, _ in second))
