"""Other annotation tools, without an installation: the message if a tool is missing, and the work of its people."""

import asyncio
import json
import subprocess

import httpx
import pytest

from benchmarks import annotation, peers
from benchmarks.annotation import LABEL_STUDIO, MEASURED_ELSEWHERE, POTATO, Peer
from benchmarks.peers import label_studio, people, potato

PAGE = '<input id="instance_id" name="instance_id" type="hidden" value="k{}"/>'


class FakePotato:
    """The pages of the tool as we know them. After each answer, every person gets a task that nobody else has."""

    def __init__(self):
        self.saved, self.moved = [], 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/updateinstance":
            self.saved.append(request.content)
            return httpx.Response(200, json={"status": "success"})
        if request.url.path == "/annotate" and request.method == "POST":
            self.moved += 1
        return httpx.Response(200, text=PAGE.format(self.moved))


class FakeLabelStudio:
    """The API of the tool as we know it. It refuses requests without the token that the pages set."""

    def __init__(self):
        self.answered, self.signed_up = [], []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, headers={"Set-Cookie": "csrftoken=t0; Path=/"})
        if request.url.path == "/user/signup/":
            self.signed_up.append(request.content)
            return httpx.Response(200)
        if request.headers.get("X-CSRFToken") != "t0":
            return httpx.Response(403)
        if request.url.path == "/api/dm/actions":
            return httpx.Response(200, json={"id": 7 + len(self.answered)})
        self.answered.append((request.url.path, json.loads(request.content)["result"]))
        return httpx.Response(201, json={})


def through(fake, work):
    """The result of `work` with a client that talks to the fake server."""

    async def whole():
        async with httpx.AsyncClient(transport=httpx.MockTransport(fake), base_url="http://peer") as client:
            return await work(client)

    return asyncio.run(whole())


def test_potatos_submission_is_saved_moved_on_from_and_followed_by_a_page():
    fake = FakePotato()

    async def work(client):
        step = await potato.enter(client, 1)
        await step()
        await step()

    through(fake, work)
    assert [b'"k0"' in fake.saved[0], b'"k1"' in fake.saved[1], fake.moved] == [True, True, 2]


def test_a_page_without_a_task_is_a_failure():
    with pytest.raises(peers.PeerAway):
        potato.shown_on(httpx.Response(200, text="No work", request=httpx.Request("GET", "http://potato")))


def test_label_studios_submission_is_stored_for_the_task_that_was_shown_and_followed_by_the_next():
    fake = FakeLabelStudio()

    async def work(client):
        await label_studio.sign_up(client, "person1")
        step = await label_studio.at(client, 3)
        await step()
        await step()

    through(fake, work)
    assert b"person1" in fake.signed_up[0]
    answers = [("/api/tasks/7/annotations", label_studio.ANSWER), ("/api/tasks/8/annotations", label_studio.ANSWER)]
    assert fake.answered == answers


def test_a_refusal_is_a_failure_and_no_submission():
    def refuses(request):
        return httpx.Response(500)

    async def enter(client, number):
        async def step():
            (await client.get("/")).raise_for_status()

        return step

    with pytest.raises(peers.PeerAway, match="no submission got through"):
        asyncio.run(people.work("http://peer", 2, 0.05, enter, transport=httpx.MockTransport(refuses)))


def test_what_does_not_start_is_said_with_its_last_words(tmp_path):
    command = ["python3", "-c", "import sys; sys.exit('no such table')"]
    with pytest.raises(peers.PeerAway, match="no such table"), people.served(command, tmp_path, 1):
        pass


def test_a_package_that_cannot_be_installed_is_said_so(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "HOME", tmp_path)

    def run(command, **options):
        if "venv" not in command:
            raise subprocess.CalledProcessError(1, command, stderr="ERROR: No matching distribution")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(peers.PeerAway, match="No matching distribution"):
        peers.installed("potato", "potato-annotation")


def test_a_peer_that_is_away_stands_with_the_number_measured_elsewhere(monkeypatch, capsys):
    def away(*arguments):
        raise peers.PeerAway("it did not start")

    monkeypatch.setattr(potato, "measure", away)
    monkeypatch.setattr(label_studio, "measure", lambda *arguments: people.Load(2.0, [0.5] * 20))
    assert annotation.in_peers(1, 10) == {LABEL_STUDIO: Peer(10.0, 500.0, here=True)}
    assert "Potato is not measured here: it did not start" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("here", "potato_is", "studio_is"),
    [({}, 17.0, 5.0), ({POTATO: Peer(21.5, 9.0, True)}, 21.5, 5.0), ({LABEL_STUDIO: Peer(4.0, 9.0, True)}, 17.0, 4.0)],
)
def test_a_number_from_elsewhere_is_never_shown_as_measured_here(capsys, here, potato_is, studio_is):
    names = [
        *("submit+next per second, 50 people", "p95 ms, 50 people", "p95 ms, 200 people thinking 20 s"),
        *("tasks made per second", *(words for words, _ in annotation.PROMISED.values())),
    ]
    annotation.report(dict.fromkeys(names, 250.0), MEASURED_ELSEWHERE | here)
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [rows[f"annotation_vs_{name}"]["peer"] for name in ("potato", "label_studio")] == [potato_is, studio_is]
    assert ("elsewhere" in rows["annotation_vs_potato"]["unit"]) is (POTATO not in here)
    for name in ("annotation_vs_label_studio", "annotation_p95"):
        assert ("elsewhere" in rows[name]["unit"]) is (LABEL_STUDIO not in here)
