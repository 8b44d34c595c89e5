"""`manage.py up`: everything Touchstone needs, in the foreground, until Ctrl-C."""

import signal
import subprocess
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.core.network.addresses import public_url
from webapp.localstack import stack
from webapp.localstack.demo import EMAIL
from webapp.localstack.processes import adopt_orphans
from webapp.localstack.status_board import StatusBoard
from webapp.localstack.supervisor import Supervisor
from webapp.machine import lock
from webapp.machine.places import RESTORING, close_to_others

LINK_TIMEOUT_S = 120.0


class Command(BaseCommand):
    help = "Start all services on this machine and keep them running"
    requires_system_checks = []  # the migrate step runs them, with the database there

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="do not load the demo or start its run")

    def handle(self, *args: Any, **options: Any) -> None:
        if (settings.VAR / RESTORING).exists():
            raise CommandError(
                f"{settings.VAR} is not restored completely: wait for `manage.py restore` to end, or remove the folder."
            )
        close_to_others(settings.VAR)
        try:
            held = lock.take(settings.VAR)
        except lock.AlreadyRunning as running:
            self.stdout.write(f"Touchstone is already running (process {running.pid}) at {public_url()}")
            self.stdout.write("Stop it with Ctrl-C in its terminal, or choose another folder with TOUCHSTONE_VAR.")
            return
        with held:
            self._run(demo=not options["no_demo"])

    def _run(self, demo: bool) -> None:
        adopt_orphans()
        services = stack.services(demo)
        board = StatusBoard(services, sys.stdout)
        supervisor = Supervisor(services, settings.VAR / "log", board.changed)
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for number in signals:
            signal.signal(number, lambda *_: setattr(supervisor, "stop_asked", True))
        welcome = Welcome(board, supervisor, demo)
        supervisor.run(welcome.look)
        board.note("Everything is stopped; the data is kept.")


HOW_TO_SIGN_IN = """\
.venv/bin/python manage.py signin EMAIL
.venv/bin/python manage.py signin EMAIL --new WORKSPACE   (a new account)"""


class Welcome:
    """Prints the address once the web server answers, and the sign-in link once there is an owner."""

    def __init__(self, board: StatusBoard, supervisor: Supervisor, demo: bool) -> None:
        self.board, self.supervisor, self.demo = board, supervisor, demo
        self.said = False

    def look(self) -> None:
        if self.said or not self.supervisor.is_up("web"):
            return
        self.said = True
        self.board.note(f"\nTouchstone is at {public_url()}")
        # made while the supervisor waits, so before the services that are still to come take the processors
        if self.demo and (link := _sign_in_link()):
            self.board.note(f"Sign in once as {EMAIL}:\n{link}")  # alone on its line: the board cuts long ones
        if not self.demo:
            self.board.note(f"To sign in, open the link that this prints:\n{HOW_TO_SIGN_IN}")
        self.board.note("Ctrl-C stops everything; the data stays.\n")


def _sign_in_link() -> str:
    """A sign-in link for the demo's owner; made in a separate process, because this one loads neither the database nor the apps."""
    command = [sys.executable, "manage.py", "demo", "--link"]
    try:
        made = subprocess.run(command, capture_output=True, text=True, cwd=settings.BASE_DIR, timeout=LINK_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return ""
    return made.stdout.strip() if made.returncode == 0 else ""
