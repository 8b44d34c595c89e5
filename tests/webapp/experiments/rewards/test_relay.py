"""Rewards over HTTP. A service is named in the workspace, and this server asks it, because only this server has its secret."""

import asyncio
import json
from ipaddress import ip_network
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from trainer.config import ConfigInvalid
from trainer.rewards import relay as trainer_relay
from trainer.rewards.parts import Away, Unscored
from trainer.rewards.relay import Relay, RelayedService
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.experiments.models import Run
from webapp.experiments.rewards import relay
from webapp.inference.endpoints import checks
from webapp.inference.endpoints import services as endpoints
from webapp.inference.endpoints.checks import carry_out
from webapp.inference.models import Endpoint, EndpointLease

from ..conftest import Trainer
from .service import SECRET, reward_service

CONFIG = {"steps": 2, "scaffold": None, "rewards": [{"kind": "http", "endpoint": "ours"}]}
ASKED: list[Any] = [{"key": "e0", "response": "four"}, {"key": "e1", "response": "seventh"}]
VALUES = [{"value": 0.04, "why": "its length"}, {"value": 0.07, "why": "its length"}]


@pytest.fixture
def service(settings):
    settings.ENDPOINT_NETWORKS = (ip_network("127.0.0.0/8"),)
    with reward_service() as found:
        yield found


@pytest.fixture
def named(team, service) -> Endpoint:
    return endpoints.create_endpoint(team.researcher, "reward", name="ours", url=service.url, secret=SECRET, retries=0)


async def post(run: Run, name: str = "ours", responses=ASKED):
    process = await sync_to_async(Trainer)(run)
    headers = {"authorization": f"Bearer {process.token}"}
    body = {"service": name, "responses": responses}
    answer = await AsyncClient().post(process.url("/services"), body, content_type="application/json", headers=headers)
    if not answer.streaming:
        return answer.status_code, answer.json()
    return answer.status_code, json.loads(b"".join([piece async for piece in answer.streaming_content]))  # type: ignore[attr-defined]


def post_responses(run: Run, name: str = "ours", responses=ASKED):
    return asyncio.run(post(run, name, responses))


@pytest.mark.django_db(transaction=True)
def test_the_server_posts_signed_and_gives_back_the_values(launch, service, named, caplog):
    run = launch(config=CONFIG)
    told = Trainer(run).client.get(f"/api/v1/ingest/runs/{run.id}")
    assert told.json()["services"] == ["ours"] and told.json()["services_url"].endswith(f"/{run.id}/services")
    assert post_responses(run) == (200, {"values": VALUES})
    assert service.asked == ASKED and service.signed == 1
    assert service.url not in told.content.decode() and SECRET not in told.content.decode() + caplog.text
    assert not EndpointLease.objects.exists(), "nothing is held once nobody asks"


@pytest.mark.django_db(transaction=True)
def test_only_what_the_run_names_and_only_while_it_lives(team, launch, service, named):
    endpoints.create_endpoint(team.researcher, "reward", name="other", url=service.url)
    run = launch(config=CONFIG)
    assert post_responses(run, "other")[0] == 409
    assert post_responses(run, responses=[])[0] == 422
    endpoints.archive(team.researcher, named)
    assert "archived" in post_responses(run)[1]["away"]
    endpoints.restore(team.researcher, named)
    assert post_responses(run)[1]["values"]
    Run.objects.filter(pk=run.pk).update(state="finished")
    assert post_responses(Run.objects.get(pk=run.pk))[0] == 409
    Run.objects.filter(pk=run.pk).update(state="running", token_digest="x" * 64)
    assert post_responses(Run.objects.get(pk=run.pk))[0] == 401


@pytest.mark.django_db(transaction=True)
def test_a_service_that_moved_inwards_is_not_connected_to(launch, service, named, settings):
    run = launch(config=CONFIG)
    settings.ENDPOINT_NETWORKS = ()
    assert "is not public" in post_responses(run)[1]["away"] and not service.asked


@pytest.mark.django_db(transaction=True)
def test_what_is_wrong_with_the_service_reaches_the_run(launch, service, named):
    run = launch(config=CONFIG)
    service.status = 503
    assert post_responses(run)[1] == {"away": "answered 503"}
    service.status = 422
    assert post_responses(run)[1] == {"unscored": "answered 422"}


@pytest.mark.django_db(transaction=True)
def test_the_limit_holds_for_all_groups_together_and_waiting_is_heard_of(team, launch, service, named, monkeypatch):
    monkeypatch.setattr(relay, "BEAT_S", 0.05)
    endpoints.change_endpoint(team.researcher, named, concurrency=2)
    run = launch(config=CONFIG)
    service.gate.clear()
    found = relay.target(run, "ours")

    heard: list[list[bytes]] = [[] for _ in range(5)]

    async def ask(pieces: list[bytes]) -> None:
        async for piece in relay.answer(found, tuple(ASKED)):
            pieces.append(piece)
            if service.inside == 2 and min(map(len, heard)) > 2:
                service.gate.set()

    async def ask_all() -> None:
        await asyncio.gather(*map(ask, heard))

    asyncio.run(ask_all())
    assert all(json.loads(last) == {"values": VALUES} for *_, last in heard) and service.most_inside == 2
    assert all(set(blanks) == {b" "} for *blanks, _ in heard), "while it waits"
    assert not EndpointLease.objects.exists()


def test_a_run_names_only_services_that_are_there(team, launch, settings):
    settings.ENDPOINT_NETWORKS = (ip_network("127.0.0.0/8"),)
    endpoints.create_endpoint(team.outsider, "reward", name="ours", url="http://127.0.0.1:9/")
    with pytest.raises(ConfigInvalid, match="no reward service is called 'ours'"):
        launch(config=CONFIG)


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"url": "http://127.0.0.1:8000/score"}, "url"),
        ({"url": "https://user:pw@example.org/"}, "url"),
        ({"url": "https://1.1.1.1/score", "secret": "not base64!"}, "secret"),
        ({"url": "https://1.1.1.1/score", "secret": "c2hvcnQ="}, "secret"),
        ({"url": "https://1.1.1.1/score", "model": "m"}, "model"),
    ],
)
def test_what_cannot_be_a_service_is_refused_at_its_field(team, fields, at):
    with pytest.raises(Invalid) as caught:
        endpoints.create_endpoint(team.researcher, "reward", name="ours", **fields)
    assert at in caught.value.fields and not Endpoint.objects.exists()


def test_it_is_made_and_changed_on_the_pages_and_its_secret_is_never_seen(as_researcher, api, service):
    assert "Signing secret" in as_researcher.get("/models/endpoints/new?kind=reward").content.decode()
    fields = {"name": "ours", "url": service.url, "concurrency": 4, "timeout_s": 5, "retries": 1}
    answer = as_researcher.post("/models/endpoints/new?kind=reward", {**fields, "secret": SECRET})
    assert answer.status_code == 302, answer.content.decode()
    row = Endpoint.objects.get()
    assert row.url == service.url and SECRET not in row.secret
    seen = [as_researcher.get(f"/models/endpoints/{row.pk}{rest}").content.decode() for rest in ("", "/edit")]
    seen += [api.get(f"/endpoints/{row.pk}").content.decode(), str(list(AuditEntry.objects.values()))]
    assert not any(SECRET.removeprefix("whsec_") in text or row.secret in text for text in seen)
    assert "stored, encrypted" in seen[0] and "Probe" not in seen[0]
    check = checks.start_check(_member(row), row, "test")
    carry_out(check.pk)
    check.refresh_from_db()
    assert check.state == "finished" and check.result["value"] == 0.22 and service.signed == 1
    assert "0.22" in as_researcher.get(f"/models/endpoints/{row.pk}").content.decode()
    moved = as_researcher.post(f"/models/endpoints/{row.pk}/edit", {**fields, "url": "https://1.1.1.1/score"})
    assert moved.status_code == 422 and "another host" in moved.content.decode(), "its secret goes to nobody else"


def _member(row: Endpoint):
    from webapp.accounts.models import Membership

    return Membership.objects.get(workspace=row.workspace, user=row.created_by)


def test_a_judge_cannot_ask_a_reward_service(as_researcher, team, named, api):
    assert "ours" not in as_researcher.get("/judges/new?kind=criterion").content.decode()
    answer = api.post("/judges", {"name": "Grader", "spec": {"kind": "criterion"}, "endpoint": named.pk})
    assert answer.status_code == 422 and "reward service" in answer.content.decode()


class Stub(RelayedService):
    """A relay with fixed answers instead of a server."""

    def __init__(self, *answers):
        super().__init__(Relay("http://x/services", "t", "ours"))
        self.answers = list(answers)

    async def _posted(self, body: bytes) -> bytes:
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def test_the_run_outlasts_a_restart_of_the_server(monkeypatch):
    import httpx

    monkeypatch.setattr(trainer_relay, "AGAIN_S", 0.0)
    stub = Stub(httpx.ConnectError("down"), b"   ", b'  {"values": [1]}')
    assert asyncio.run(stub.answer(ASKED)) == [1]
    monkeypatch.setattr(trainer_relay, "PATIENCE_S", -1.0)
    with pytest.raises(Away, match="does not answer"):
        asyncio.run(Stub(httpx.ConnectError("down")).answer(ASKED))
    with pytest.raises(Away, match="answered 503"):
        asyncio.run(Stub(b'{"away": "answered 503"}').answer(ASKED))
    with pytest.raises(Unscored, match="answered 422"):
        asyncio.run(Stub(b'{"unscored": "answered 422"}').answer(ASKED))
