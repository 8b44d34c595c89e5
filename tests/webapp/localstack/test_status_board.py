"""The display of the services, with and without a terminal."""

import errno
import io
from types import SimpleNamespace
from typing import cast

from webapp.localstack.management.commands.up import Welcome
from webapp.localstack.status_board import StatusBoard
from webapp.localstack.supervisor import State, SupervisedService, Supervisor


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_each_change_is_a_plain_line():
    web = SupervisedService("web", None, detail=lambda: "http://127.0.0.1:8000")
    out = io.StringIO()
    board = StatusBoard([web], out)
    web.state = State.RUNNING
    board.changed(web)
    web.state, web.reason = State.RESTARTING, "killed by signal 9"
    board.changed(web)
    board.note("Touchstone is at http://127.0.0.1:8000")
    assert out.getvalue().splitlines() == [
        "web       running     http://127.0.0.1:8000",
        "web       restarting  killed by signal 9",
        "Touchstone is at http://127.0.0.1:8000",
    ]


def test_on_a_terminal_the_block_is_drawn_again_in_place():
    services = [SupervisedService("postgres", None), SupervisedService("web", None)]
    out = Terminal()
    board = StatusBoard(services, out)
    board.changed(services[0])
    board.changed(services[1])
    assert "\x1b[2F" in out.getvalue()


class Full(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_services_go_on_where_nothing_can_be_shown():
    board = StatusBoard([web := SupervisedService("web", None)], Full())
    board.changed(web)
    board.note("Touchstone is at http://127.0.0.1:8000")


def test_a_server_without_a_demo_says_how_people_sign_in():
    out = io.StringIO()
    running = cast(Supervisor, SimpleNamespace(is_up=lambda name: name == "web"))
    Welcome(StatusBoard([], out), running, demo=False).look()
    assert ".venv/bin/python manage.py signin EMAIL --new WORKSPACE" in out.getvalue()
