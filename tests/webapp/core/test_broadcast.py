"""Messages to open pages are sent after the commit, and messages of one change are sent together."""

from typing import Any

import pytest
from django.db import transaction
from redis import exceptions

from webapp.core import broadcast

pytestmark = pytest.mark.django_db
ONE: Any
TWO: Any
THREE: Any
ONE, TWO, THREE = (("group", {"type": name}) for name in ("one", "two", "three"))


@pytest.fixture
def delivered(monkeypatch):
    found = []
    monkeypatch.setattr(broadcast, "_deliver", lambda messages: found.append(list(messages)))
    return found


def test_messages_of_a_block_are_delivered_at_once(delivered, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        broadcast.send(*ONE)
        with broadcast.together():
            broadcast.send(*TWO)
            with broadcast.together():
                broadcast.send(*THREE)
        assert delivered == []
    assert delivered == [[ONE], [TWO, THREE]]


def test_a_block_that_fails_tells_nobody_and_the_next_one_goes_on(delivered, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        with pytest.raises(ValueError, match="no"), transaction.atomic(), broadcast.together():
            broadcast.send(*ONE)
            raise ValueError("no")
        with broadcast.together():
            broadcast.send(*TWO)
    assert delivered == [[TWO]]


def test_a_broker_that_is_away_keeps_nobody_from_going_on(monkeypatch, caplog):
    class Away:
        async def group_send(self, group, message):
            raise ConnectionError

    monkeypatch.setattr(broadcast, "get_channel_layer", Away)
    broadcast.send_now(*ONE)
    assert "cannot broadcast to group" in caplog.text


class Layer:
    """Sends messages. `fails` says which error a message meets. `tried` has the messages that reached it, in order."""

    def __init__(self, fails):
        self.fails, self.tried, self.sent = fails, [], []

    async def group_send(self, group, message):
        name = message["message"]["type"]
        self.tried.append(name)
        if name in self.fails:
            raise self.fails[name]
        self.sent.append(name)


@pytest.mark.parametrize("error", [TypeError("no JSON"), ConnectionResetError(), exceptions.ConnectionError()])
def test_a_message_that_fails_takes_no_other_with_it(monkeypatch, error):
    layer = Layer({"two": error})
    monkeypatch.setattr(broadcast, "get_channel_layer", lambda: layer)
    broadcast._deliver([ONE, TWO, THREE])
    assert layer.sent == ["one", "three"]


@pytest.mark.parametrize("error", [TimeoutError(), exceptions.ConnectionError(), exceptions.TimeoutError()])
def test_a_broker_that_is_away_is_not_waited_for_by_every_message(monkeypatch, caplog, error):
    layer = Layer({str(i): error for i in range(50)})
    monkeypatch.setattr(broadcast, "get_channel_layer", lambda: layer)
    broadcast._deliver([("group", {"type": str(i)}) for i in range(50)])
    assert len(layer.tried) == broadcast.MOST_AWAY and "48 more broadcasts are not sent" in caplog.text
