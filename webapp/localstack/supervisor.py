"""Starts services in the order they need each other, keeps them running, and ends them all.

One thread and one loop: the kernel ties a child's death signal to the thread that started it, and a supervisor
should be the last program with a race in it.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from .processes import Child, Command, bound_log, end_descendants, reap_orphans

logger = logging.getLogger(__name__)

TICK_S = 0.15
FIRST_BACKOFF_S, LAST_BACKOFF_S = 0.5, 30.0
HEALTHY_AFTER_S = 10.0
"""A service that was up this long starts its back-off again: an error now is not caused by its start."""
MOST_PATIENCE = 4  # doublings of the time to start
LOG_CHECK_S = 30.0
EXTERNAL_CHECK_S = 5.0


class State(Enum):
    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    DONE = "done"
    FAILED = "failed"
    EXTERNAL = "external"
    AWAY = "external, does not answer"
    STOPPING = "stopping"
    STOPPED = "stopped"


UP = frozenset({State.RUNNING, State.DONE, State.EXTERNAL})


@dataclass
class SupervisedService:
    """A program to keep running. `command` is called at each start, so that ports are chosen when they are needed.

    `once`: ends by itself and is done with exit code 0; tried `attempts` times. It is not started where `unneeded` says that
    there is nothing to do; `finished` is called when it is done. `command` None: someone else runs it and `ready` only
    tells whether it answers. `detail` is shown beside the state.
    """

    name: str
    command: Callable[[], Command] | None
    ready: Callable[[Child | None], bool] = lambda child: True
    needs: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None
    once: bool = False
    unneeded: Callable[[], bool] = lambda: False
    finished: Callable[[], None] = lambda: None
    attempts: int = 3
    start_timeout_s: float = 120.0
    grace_s: float = 10.0
    last_to_stop: bool = False
    detail: Callable[[], str] = lambda: ""
    state: State = field(default=State.WAITING, init=False)
    reason: str = field(default="", init=False)
    child: Child | None = field(default=None, init=False)
    failures: int = field(default=0, init=False)
    next_try: float = field(default=0.0, init=False)
    up_since: float = field(default=0.0, init=False)

    def patience_s(self) -> float:
        """Seconds in which the service must answer; twice as many after each failure, because on a busy machine the next start would be too
        slow as well."""
        return self.start_timeout_s * 2.0 ** min(self.failures, MOST_PATIENCE)

    def backoff_s(self) -> float:
        return float(min(FIRST_BACKOFF_S * 2 ** (self.failures - 1), LAST_BACKOFF_S))


class Supervisor:
    """`on_change(service)` is called whenever a service's state or reason changes."""

    def __init__(
        self, services: list[SupervisedService], logs: Path, on_change: Callable[[SupervisedService], None]
    ) -> None:
        self.services = services
        self.logs = logs
        self.on_change = on_change
        self.stop_asked = False
        self._by_name = {service.name: service for service in services}
        self._next_log_check = 0.0

    def run(self, after_tick: Callable[[], None] = lambda: None) -> None:
        """Runs the services until `stop_asked` is set (a signal handler may set it); then ends everything."""
        try:
            while not self.stop_asked:
                self.tick()
                after_tick()
                time.sleep(TICK_S)
        finally:
            self.stop_all()

    def is_up(self, name: str) -> bool:
        return self._by_name[name].state in UP

    def tick(self) -> None:
        """One look at every service."""
        for service in self.services:
            if service.command is None:
                self._look_outside(service)
            elif service.child is not None:
                self._look_at(service)
            elif self._may_start(service):
                self._start(service)
        reap_orphans({s.child.pid for s in self.services if s.child})
        if time.monotonic() > self._next_log_check:
            self._next_log_check = time.monotonic() + LOG_CHECK_S
            for service in self.services:
                bound_log(self._log(service))

    def stop_all(self) -> None:
        """Ends all services in two steps: first those that use the stores, then the stores. Leaves no process behind."""
        for last in (False, True):
            group = [s for s in self.services if s.child and s.last_to_stop is last]
            for service in group:
                self._set(service, State.STOPPING)
                if service.child:
                    service.child.ask_to_stop()
            deadline = {s.name: time.monotonic() + s.grace_s for s in group}
            while group:
                for service in list(group):
                    if service.child and (
                        service.child.exit_code() is not None or time.monotonic() > deadline[service.name]
                    ):
                        service.child.kill_group()
                        service.child = None
                        self._set(service, State.STOPPED)
                        group.remove(service)
                time.sleep(0.05)
        end_descendants()

    def _may_start(self, service: SupervisedService) -> bool:
        if service.state in (State.DONE, State.FAILED) or time.monotonic() < service.next_try:
            return False
        return all(self.is_up(name) for name in service.needs)

    def _start(self, service: SupervisedService) -> None:
        try:
            if service.once and service.unneeded():
                self._set(service, State.DONE)
                return
            if service.prepare:
                service.prepare()
            if service.command:
                service.child = Child(service.command(), self._log(service))
        except Exception as error:  # any error is shown beside the service, and it is tried again
            logger.debug("cannot start %s", service.name, exc_info=True)
            self._failed(service, str(error) or type(error).__name__)
            return
        self._set(service, State.STARTING)

    def _look_at(self, service: SupervisedService) -> None:
        child = service.child
        if child is None:
            return
        code = child.exit_code()
        age = time.monotonic() - child.started
        if code is not None:
            child.kill_group()
            service.child = None
            if service.once and code == 0:
                service.finished()
                self._set(service, State.DONE)
            else:
                self._failed(service, _exit_reason(code, child, self._log(service)))
        elif service.state is State.STARTING and not service.once:
            if service.ready(child):
                service.up_since = time.monotonic()
                self._set(service, State.RUNNING)
            elif age > (limit := service.patience_s()):
                child.kill_group()
                service.child = None
                self._failed(service, f"did not answer within {limit:.0f} s")
        elif service.state is State.RUNNING and time.monotonic() - service.up_since > HEALTHY_AFTER_S:
            service.failures = 0

    def _failed(self, service: SupervisedService, reason: str) -> None:
        service.failures += 1
        if service.once and service.failures >= service.attempts:
            self._set(service, State.FAILED, reason)
            return
        service.next_try = time.monotonic() + service.backoff_s()
        self._set(service, State.RESTARTING, reason)

    def _look_outside(self, service: SupervisedService) -> None:
        if time.monotonic() >= service.next_try:
            service.next_try = time.monotonic() + EXTERNAL_CHECK_S
            self._set(service, State.EXTERNAL if service.ready(None) else State.AWAY)

    def _set(self, service: SupervisedService, state: State, reason: str = "") -> None:
        if (state, reason) != (service.state, service.reason):
            service.state, service.reason = state, reason
            self.on_change(service)

    def _log(self, service: SupervisedService) -> Path:
        return self.logs / f"{service.name}.log"


def _exit_reason(code: int, child: Child, log: Path) -> str:
    ended = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    lines = [line for line in child.output().splitlines() if line.strip() and not line[0].isspace()]
    # the line that names the error, where there is one: a database adds lines of its own below it
    telling = next((line for line in reversed(lines[-6:]) if "rror" in line), lines[-1] if lines else "")
    return f"{ended}: {telling[:200]} (see {log})" if telling else f"{ended} (see {log})"
