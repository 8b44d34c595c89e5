"""The messages that an open page receives, and who may receive them."""

import asyncio
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.contrib.sessions.models import Session
from django.db import OperationalError
from django.utils import timezone

from tests.team import browser, make_team
from tests.timeouts import SECONDS
from webapp.accounts.models import Membership, SignedIn, Workspace
from webapp.accounts.sessions import time_outs
from webapp.accounts.tokens.services import create_token, revoke_token
from webapp.asgi import application
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch
from webapp.experiments.live import broadcasts, consumers, waiting
from webapp.experiments.models import Run
from webapp.inference.models import RegisteredModel

from ..conftest import Trainer, make_version
from .websocket import Socket

pytestmark = pytest.mark.django_db(transaction=True)
ORIGIN = b"http://localhost"


@pytest.fixture
async def scene(transactional_db):
    """The team and a run that a process works on."""

    def build():
        team = make_team()
        version = make_version(team.owner)
        RegisteredModel.objects.create(
            workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/m"
        )
        choice = checks.DatasetChoice(id=version.dataset_id)
        run = launch.launch(team.researcher, recipe="policy", config={"steps": 4}, dataset=choice)
        Run.objects.filter(id=run.id).update(state="starting", ray_job_id="j", next_try_at=None)
        return team, run, Trainer(run)

    return await database_sync_to_async(build)()


async def connect(path, member=None, origin=ORIGIN, greetings=1, welcome=True):
    """The socket after its welcome and greeting, and whether it was accepted."""
    headers = [(b"host", b"localhost")]
    if origin:
        headers.append((b"origin", origin))
    if member:
        client = await database_sync_to_async(browser)(member)
        headers.append((b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode()))
    socket = Socket(application, path, headers)
    accepted = await socket.connect()
    if accepted and welcome:
        assert await socket.hear(1) == [{"type": "welcome"}]
        await socket.hear(greetings)
    return socket, accepted


async def refused(path, member=None):
    """Whether a page is told that it may not listen, before any message."""
    socket, accepted = await connect(path, member, welcome=False)
    told = await socket.receive_output(timeout=SECONDS)
    return accepted and (told["type"], told.get("code")) == ("websocket.close", consumers.REFUSED)


async def post(process, *events):
    response = await database_sync_to_async(process.post)(*events)
    assert response.status_code == 200, response.content


async def test_a_page_hears_metrics_rollouts_log_and_state(scene):
    team, run, process = scene
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.reviewer)
    assert accepted
    histogram = {"edges": [0.0, 1.0], "counts": [2]}
    await post(
        process,
        process.event("state", state="running"),
        process.event("metrics", 1, values={"reward/mean": 0.5}, histograms={"policy/ratio_raw": histogram}),
        process.metrics(2, **{"reward/mean": 0.75}),
        process.event("rollouts", 2, rollouts=[process.rollout(0), process.rollout(1)]),
        process.event("log", 2, message="hello"),
    )
    heard = await socket.hear(5)
    assert heard[:3] == [
        {"type": "metrics", "step": 1, "values": {"reward/mean": 0.5}, "histograms": {"policy/ratio_raw": histogram}},
        {"type": "metrics", "step": 2, "values": {"reward/mean": 0.75}, "histograms": {}},
        {"type": "rollouts", "step": 2, "phase": "train", "count": 2},
    ]
    assert (heard[3]["type"], heard[3]["lines"][0]["message"]) == ("log", "hello")
    assert (heard[4]["type"], heard[4]["state"], heard[4]["progress"]["step"]) == ("run", "running", 2)
    assert "config" not in heard[4]
    assert await socket.receive_nothing()
    await socket.disconnect()


async def test_a_page_learns_what_happened_between_its_drawing_and_its_connection(scene):
    team, run, process = scene
    await post(process, process.event("state", state="running"), process.event("state", state="finished"))
    socket, _ = await connect(f"/ws/runs/{run.id}", team.reviewer, greetings=0)
    (now,) = await socket.hear(1)
    assert (now["type"], now["id"], now["state"], now["last_seq"]) == ("now", run.id, "finished", 2)
    await socket.disconnect()
    of_all, _ = await connect("/ws/workspace", team.reviewer, greetings=0)
    (news,) = await of_all.hear(1)
    assert (news["type"], news["id"], news["state"]) == ("run", run.id, "finished")
    await of_all.disconnect()


async def test_a_list_is_not_greeted_with_runs_that_moved_long_ago_or_are_queued(scene):
    team, run, _ = scene
    await database_sync_to_async(Run.objects.filter(id=run.id).update)(state="queued")
    socket, _ = await connect("/ws/workspace", team.researcher, greetings=0)
    assert await socket.receive_nothing()
    await socket.disconnect()
    long_ago = timezone.now() - consumers.JUST_NOW * 2
    await database_sync_to_async(Run.objects.filter(id=run.id).update)(state="running", state_at=long_ago)
    socket, _ = await connect("/ws/workspace", team.researcher, greetings=0)
    assert await socket.receive_nothing()
    await socket.disconnect()


async def test_lists_hear_of_state_and_progress_only(scene):
    team, run, process = scene
    socket, accepted = await connect("/ws/workspace", team.researcher)
    assert accepted
    await post(process, process.event("log", message="x"), process.metrics(3, **{"reward/mean": 0.5}))
    (heard,) = await socket.hear(1)
    assert (heard["type"], heard["id"], heard["progress"]["step"]) == ("run", run.id, 3)
    assert await socket.receive_nothing()
    await socket.disconnect()


@pytest.mark.parametrize("path", ["/ws/runs/{id}", "/ws/workspace"])
@pytest.mark.parametrize("who", ["nobody", "annotator"])
async def test_strangers_and_annotators_hear_nothing(scene, path, who):
    team, run, _ = scene
    member = None if who == "nobody" else team.annotator
    assert await refused(path.format(id=run.id), member)


async def test_a_session_without_the_second_factor_that_is_asked_for_hears_nothing(scene):
    team, run, _ = scene
    await Workspace.objects.filter(pk=team.workspace.pk).aupdate(asks_second_factor=True)
    assert await refused(f"/ws/runs/{run.id}", team.researcher)
    await Authenticator.objects.acreate(user=team.researcher.user, type="totp", data={})
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.researcher)
    assert accepted
    await socket.disconnect()


async def test_another_workspace_cannot_listen(scene):
    team, run, process = scene
    assert await refused(f"/ws/runs/{run.id}", team.outsider)
    elsewhere, accepted = await connect("/ws/workspace", team.outsider, greetings=0)
    assert accepted
    await post(process, process.metrics(1, **{"reward/mean": 0.5}))
    assert await elsewhere.receive_nothing()
    await elsewhere.disconnect()


@pytest.mark.parametrize("origin", [None, b"http://evil.example", b"http://localhost:9999"])
async def test_only_pages_of_this_address_may_connect(scene, origin):
    team, run, _ = scene
    _, accepted = await connect(f"/ws/runs/{run.id}", team.owner, origin)
    assert not accepted


async def with_token(path, member, scope="read"):
    """A script's socket, and its token."""
    row, secret = await database_sync_to_async(create_token)(member, "script", scope)
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {secret}".encode())]
    socket = Socket(application, path, headers)
    return socket, await socket.connect(), row


async def test_a_script_follows_a_run_with_a_token_that_may_only_read(scene):
    team, run, process = scene
    socket, accepted, _ = await with_token(f"/ws/runs/{run.id}", team.reviewer)
    assert accepted and (await socket.hear(1))[0]["type"] == "now"
    await post(process, process.metrics(2, **{"reward/mean": 0.75}))
    assert (await socket.hear(1))[0]["values"] == {"reward/mean": 0.75}
    await socket.disconnect()
    of_all, accepted, _ = await with_token("/ws/workspace", team.reviewer)
    assert accepted and (await of_all.hear(1))[0]["id"] == run.id
    await of_all.disconnect()


@pytest.mark.parametrize("path", ["/ws/runs/{id}", "/ws/workspace"])
async def test_a_token_opens_what_its_owner_may_read_and_nothing_else(scene, path):
    team, run, _ = scene
    path = path.format(id=run.id)
    assert not (await with_token(path, team.annotator))[1]
    elsewhere = await database_sync_to_async(Membership.objects.create)(
        user=team.researcher.user, workspace=team.outsider.workspace, role="owner"
    )
    socket, accepted, _ = await with_token(path, elsewhere)  # a member of both workspaces, with a key to the other one
    assert accepted == ("workspace" in path)
    if accepted:
        assert await socket.receive_nothing()
        await socket.disconnect()
    wrong = [(b"host", b"localhost"), (b"authorization", b"Bearer ts_nonsense")]
    assert not await Socket(application, path, wrong).connect()


async def test_a_script_stops_hearing_when_its_token_is_revoked(scene, monkeypatch):
    team, run, _ = scene
    monkeypatch.setattr(consumers, "RECHECK_S", 0.05)
    socket, accepted, row = await with_token(f"/ws/runs/{run.id}", team.reviewer)
    assert accepted
    await socket.hear(1)
    await database_sync_to_async(revoke_token)(team.reviewer, row)
    output = await socket.receive_output(timeout=SECONDS)
    assert (output["type"], output["code"]) == ("websocket.close", 4403)


async def test_a_slow_client_is_told_to_load_again(scene, monkeypatch):
    team, run, _ = scene
    monkeypatch.setattr(waiting, "MOST_WAITING", 10)
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.owner)
    assert accepted
    items = [{"type": "metrics", "step": i, "values": {}, "histograms": {}} for i in range(30)]
    message = {"type": "broadcast", "message": {"type": "batch", "items": items}}
    await get_channel_layer().group_send(broadcasts.run_group(run.id), message)
    assert await socket.hear(1) == [{"type": "resync"}]
    assert await socket.receive_nothing()
    await socket.disconnect()


async def test_who_leaves_the_workspace_stops_hearing(scene, monkeypatch):
    team, run, _ = scene
    monkeypatch.setattr(consumers, "RECHECK_S", 0.05)
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.reviewer)
    assert accepted
    await database_sync_to_async(team.reviewer.delete)()
    assert (await socket.receive_output(timeout=SECONDS))["type"] == "websocket.close"


async def test_who_leaves_stops_hearing_also_of_a_run_that_never_falls_silent(scene, monkeypatch):
    team, run, _ = scene
    monkeypatch.setattr(consumers, "RECHECK_S", 0.3)
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.reviewer)
    assert accepted
    await database_sync_to_async(team.reviewer.delete)()
    message = {"type": "broadcast", "message": {"type": "log", "lines": []}}
    kinds = []
    async with asyncio.timeout(SECONDS):
        while "websocket.close" not in kinds:
            await get_channel_layer().group_send(broadcasts.run_group(run.id), message)
            kinds.append((await socket.receive_output(timeout=SECONDS))["type"])
            await asyncio.sleep(0.05)


async def test_who_signs_out_stops_hearing(scene, monkeypatch):
    team, run, _ = scene
    monkeypatch.setattr(consumers, "RECHECK_S", 0.05)
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.reviewer)
    assert accepted
    await database_sync_to_async(Session.objects.all().delete)()
    assert (await socket.receive_output(timeout=SECONDS))["type"] == "websocket.close"


async def test_a_socket_keeps_no_session_open_and_closes_with_it(scene, monkeypatch):
    team, run, _ = scene
    monkeypatch.setattr(consumers, "RECHECK_S", 0.05)
    await database_sync_to_async(time_outs.change)(team.owner, 5, None)
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.reviewer)
    assert accepted
    await asyncio.sleep(0.3)  # the role is checked several times, so one check is not enough
    mine = SignedIn.objects.filter(user=team.reviewer.user)
    await mine.aupdate(last_used_at=timezone.now() - timedelta(minutes=6))
    while (output := await socket.receive_output(timeout=SECONDS))["type"] != "websocket.close":
        pass
    assert output["code"] == 4403 and not await mine.aexists()


async def test_a_token_needs_the_area_of_what_it_hears(scene):
    """Runs are heard with `experiments`. Notices are also about projects, datasets and models, and need `account`, as in the API."""
    team, run, _ = scene
    runs, notices = f"/ws/runs/{run.id}", "/ws/notices"
    opened = {"experiments": {runs, "/ws/workspace"}, "datasets": set(), "account": {notices}}
    for area, opens in opened.items():
        _, secret = await database_sync_to_async(create_token)(team.reviewer, "script", rights={area: "read"})
        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {secret}".encode())]
        for path in (runs, "/ws/workspace", notices):
            socket = Socket(application, path, headers)
            assert await socket.connect() == (path in opens), (area, path)
            await socket.disconnect()


async def test_while_the_database_is_away_the_page_is_told_to_come_back(scene, monkeypatch):
    team, run, _ = scene
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.reviewer)
    assert accepted

    async def away(feed):
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(consumers, "RECHECK_S", 0.05)
    monkeypatch.setattr(consumers.GroupFeed, "allowed_group", away)
    await get_channel_layer().group_send(
        broadcasts.run_group(run.id), {"type": "broadcast", "message": {"type": "log", "lines": []}}
    )
    while (output := await socket.receive_output(timeout=SECONDS))["type"] != "websocket.close":
        pass
    assert output["code"] == 1013


@pytest.mark.parametrize("question", ["group_for", "greeting"])
async def test_a_page_that_comes_while_the_database_is_away_is_told_to_come_back(scene, monkeypatch, question):
    team, run, _ = scene

    def away(*_):
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(consumers.RunFeed, question, away)
    socket, accepted = await connect(f"/ws/runs/{run.id}", team.reviewer, welcome=False)
    assert accepted
    output = await socket.receive_output(timeout=SECONDS)
    assert (output["type"], output["code"]) == ("websocket.close", 1013)
