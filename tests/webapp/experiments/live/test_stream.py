"""A run as server-sent events: who may listen, which events are sent, and when the stream ends."""

import asyncio
import json

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.test import Client

from tests.team import browser
from tests.timeouts import SECONDS
from webapp.accounts.tokens.services import create_token, revoke_token
from webapp.experiments.live import broadcasts, stream, waiting

from .test_consumers import post, scene  # noqa: F401  the scene is a fixture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def as_in_life(monkeypatch):
    monkeypatch.setattr(stream, "LONGEST_S", 3600.0)
    monkeypatch.setattr(stream, "database_sync_to_async", database_sync_to_async)


async def listen(run, member):
    """The token and the response."""
    row, secret = await database_sync_to_async(create_token)(member, "feed", rights={"experiments": "read"})
    answer = await database_sync_to_async(Client().get)(
        f"/api/v1/runs/{run.id}/feed", headers={"Authorization": f"Bearer {secret}"}
    )
    return row, answer


async def heard(answer):
    """The event, or None for a line that only keeps the connection open."""
    async for piece in answer.streaming_content:
        lines = piece.decode().splitlines()
        if lines[0].startswith(":"):
            yield None
        else:
            assert lines[0].startswith("event: ") and lines[1].startswith("data: ")
            told = json.loads(lines[1].removeprefix("data: "))
            assert told["type"] == lines[0].removeprefix("event: ")
            yield told


async def next_of(feed):
    return await asyncio.wait_for(anext(feed), SECONDS)


async def test_a_program_hears_a_run_from_now_to_its_end(scene):  # noqa: F811
    team, run, process = scene
    _, answer = await listen(run, team.reviewer)
    assert answer["Content-Type"].startswith("text/event-stream") and answer["X-Accel-Buffering"] == "no"
    feed = heard(answer)
    now = await next_of(feed)
    assert (now["type"], now["id"], now["state"]) == ("now", run.id, "starting")
    await post(process, process.event("state", state="running"), process.metrics(1, **{"reward/mean": 0.5}))
    metrics, running = await next_of(feed), await next_of(feed)
    assert (metrics["type"], metrics["step"], metrics["values"]) == ("metrics", 1, {"reward/mean": 0.5})
    assert (running["type"], running["state"]) == ("run", "running")
    await post(process, process.metrics(2, **{"reward/mean": 0.75}), process.event("state", state="finished"))
    rest = [told async for told in feed]
    assert [told["type"] for told in rest] == ["metrics", "run"] and rest[-1]["state"] == "finished"
    assert rest[0]["values"] == {"reward/mean": 0.75}  # no metric from before the end comes after it
    layer = get_channel_layer()
    assert broadcasts.run_group(run.id) not in layer.groups


async def test_a_run_that_is_over_is_told_once(scene):  # noqa: F811
    team, run, process = scene
    await post(process, process.event("state", state="running"), process.event("state", state="finished"))
    _, answer = await listen(run, team.reviewer)
    assert [(told["type"], told["state"]) async for told in heard(answer)] == [("now", "finished")]


async def test_a_silent_run_keeps_the_connection_alive(scene, monkeypatch):  # noqa: F811
    team, run, _ = scene
    monkeypatch.setattr(stream, "STILL_HERE_S", 0.02)
    _, answer = await listen(run, team.reviewer)
    feed = heard(answer)
    assert (await next_of(feed))["type"] == "now"
    assert [await next_of(feed), await next_of(feed)] == [None, None]
    await feed.aclose()


async def test_a_slow_program_is_told_to_load_again(scene, monkeypatch):  # noqa: F811
    team, run, _ = scene
    monkeypatch.setattr(waiting, "MOST_WAITING", 10)
    _, answer = await listen(run, team.reviewer)
    feed = heard(answer)
    await next_of(feed)
    items = [{"type": "metrics", "step": step, "values": {}, "histograms": {}} for step in range(30)]
    message = {"type": "broadcast", "message": {"type": "batch", "items": items}}
    await get_channel_layer().group_send(broadcasts.run_group(run.id), message)
    assert await next_of(feed) == {"type": "resync"}
    await feed.aclose()


async def test_whose_token_is_revoked_stops_hearing(scene, monkeypatch):  # noqa: F811
    team, run, _ = scene
    monkeypatch.setattr(stream, "RECHECK_S", 0.05)
    row, answer = await listen(run, team.reviewer)
    feed = heard(answer)
    await next_of(feed)
    await database_sync_to_async(revoke_token)(team.reviewer, row)
    rest = await asyncio.wait_for(_all(feed), SECONDS)
    assert all(told is None for told in rest)


async def _all(feed):
    return [told async for told in feed]


async def test_a_stream_ends_in_the_end(scene, monkeypatch):  # noqa: F811
    team, run, _ = scene
    monkeypatch.setattr(stream, "LONGEST_S", 0.0)
    _, answer = await listen(run, team.reviewer)
    assert [told["type"] for told in await asyncio.wait_for(_all(heard(answer)), SECONDS)] == ["now"]


async def test_who_may_not_read_hears_nothing(scene):  # noqa: F811
    team, run, _ = scene
    statuses = [(await listen(run, member))[1].status_code for member in (team.annotator, team.outsider)]
    assert statuses == [403, 404]
    page = await database_sync_to_async(browser)(team.owner)
    answer = await database_sync_to_async(page.get)(f"/api/v1/runs/{run.id}/feed")
    assert answer.status_code == 401  # a page has the websocket
