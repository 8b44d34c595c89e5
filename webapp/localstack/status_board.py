"""Shows the services: a block of lines that changes in place on a terminal, one line per change elsewhere."""

import sys
from contextlib import suppress
from typing import TextIO

from .supervisor import State, SupervisedService

COLOURS = {
    State.RUNNING: 32,
    State.DONE: 32,
    State.EXTERNAL: 36,
    State.RESTARTING: 33,
    State.FAILED: 31,
    State.AWAY: 31,
}


class StatusBoard:
    """A block of lines with the services. If it cannot be shown (a full disk, a reader that has gone), the services still continue."""

    def __init__(self, services: list[SupervisedService], out: TextIO = sys.stdout) -> None:
        self.services = services
        self.out = out
        self.live = out.isatty()
        self.drawn = 0
        self.notes: list[str] = []

    def changed(self, service: SupervisedService) -> None:
        self._show(_line(service))

    def note(self, text: str) -> None:
        """Shows a message below the services."""
        self.notes.append(text)
        self._show(text)

    def _show(self, line: str) -> None:
        with suppress(OSError):
            if self.live:
                self.draw()
            else:
                print(line, file=self.out, flush=True)

    def draw(self) -> None:
        lines = [_line(service, colour=True) for service in self.services]
        for note in self.notes:
            lines += note.splitlines()
        up = f"\x1b[{self.drawn}F" if self.drawn else ""
        # no wrapping: a wrapped line would make the count of lines to go back wrong
        self.out.write(up + "\x1b[?7l" + "".join(f"\x1b[2K{line}\n" for line in lines) + "\x1b[?7h")
        self.out.flush()
        self.drawn = len(lines)


def _line(service: SupervisedService, colour: bool = False) -> str:
    state = f"{service.state.value:<12}"
    if colour and service.state in COLOURS:
        state = f"\x1b[{COLOURS[service.state]}m{state}\x1b[0m"
    return f"{service.name:<10}{state}{service.reason or service.detail()}".rstrip()
