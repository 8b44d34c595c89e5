"""Peers of annotation: what is said where one is away, and how its people work, without installing anything."""

import asyncio
import json

import httpx
import pytest

from benchmarks import annotation, peers

PAGE = '<input id="instance_id" name="instance_id" type="hidden" value="k{}"/>'


class FakePotato:
    """Its pages, from memory: every person has a task of their own after each answer."""

    def __init__(self):
        self.saved, self.moved = [], 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/updateinstance":
            self.saved.append(request.content)
            return httpx.Response(200, json={"status": "success"})
        if request.url.path == "/annotate" and request.method == "POST":
            self.moved += 1
        return httpx.Response(200, text=PAGE.format(self.moved))


def test_a_submission_is_saved_moved_on_from_and_followed_by_a_page():
    fake = FakePotato()

    async def work():
        async with httpx.AsyncClient(transport=httpx.MockTransport(fake), base_url="http://potato") as client:
            step = await peers._at_potato(client, 1)
            await step()
            await step()

    asyncio.run(work())
    assert [b'"k0"' in fake.saved[0], b'"k1"' in fake.saved[1], fake.moved] == [True, True, 2]


def test_a_page_without_a_task_is_a_failure():
    with pytest.raises(peers.PeerAway):
        peers._shown(httpx.Response(200, text="No work", request=httpx.Request("GET", "http://potato")))


def test_a_package_that_cannot_be_installed_is_said_so(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "HOME", tmp_path)

    def run(command, **options):
        if "venv" not in command:
            raise peers.subprocess.CalledProcessError(1, command, stderr="ERROR: No matching distribution")

    monkeypatch.setattr(peers.subprocess, "run", run)
    with pytest.raises(peers.PeerAway, match="No matching distribution"):
        peers.installed("potato", "potato-annotation")


def test_a_peer_that_is_away_stands_with_the_number_measured_elsewhere(monkeypatch, capsys):
    def away(people, seconds):
        raise peers.PeerAway("it did not start")

    monkeypatch.setattr(peers, "potato", away)
    assert annotation._potato(1) is None
    assert "it did not start" in capsys.readouterr().out


@pytest.mark.parametrize(("potato", "peer", "elsewhere"), [(None, annotation.POTATO, True), (21.5, 21.5, False)])
def test_a_number_from_elsewhere_is_never_shown_as_measured_here(capsys, potato, peer, elsewhere):
    names = [
        *("submit+next per second, 50 people", "p95 ms, 50 people", "p95 ms, 200 people thinking 20 s"),
        *("tasks made per second", *(words for words, _ in annotation.PROMISED.values())),
    ]
    annotation.report(dict.fromkeys(names, 250.0), potato)
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert rows["annotation_vs_potato"]["peer"] == peer
    assert ("elsewhere" in rows["annotation_vs_potato"]["unit"]) is elsewhere
    assert "elsewhere" in rows["annotation_vs_label_studio"]["unit"]
