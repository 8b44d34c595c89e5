"""Everything at once, with random kills: the code that the command and its short form in the tests share."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from tests.stack import Stack
from webapp.localstack.ports import free_ports

from . import comparing
from .comparing import ChaosFinding
from .installation import Site, prepare
from .judge import JudgeProcess
from .killing import ACTORS, ENDS_RUNS, Hit, Killer
from .ledger import Ledger
from .patience import GivenUp, until
from .people import ChaosPeople
from .receiver import Receiver
from .runs import KINDS, Runs, Watching
from .work import PausedWork

Say = Callable[[str], None]
Disturb = Callable[["Storm", Runs], None]
"""Disturbs the installation while everything works; returns at the end."""


@dataclass(frozen=True)
class StormPlan:
    """The amounts of work. `every_s` is the mean time between two kills; each is drawn from half of it to three halves. `compared` are
    pairs for people, `graded` pairs for the judge. With `steps` 0 no run is trained. With `more`, work that has ended before the end of
    the kills (a run, an import, an evaluation) is followed by the next of its kind. `settled_s` is how long everything may take to end
    after the last kill.
    """

    seed: int
    seconds: float
    kills: int
    every_s: float = 4.0
    people: int = 3
    compared: int = 1_000
    graded: int = 400
    rows: int = 60_000
    steps: int = 12
    latency_s: float = 0.2
    more: bool = True
    settled_s: float = 1200.0


@dataclass
class StormOutcome:
    kills: Counter[str]
    findings: list[ChaosFinding]
    resumed: Counter[str]
    broken: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return not self.broken and all(each.holds for each in self.findings)


class Storm:
    """People, an import, a judge and two runs on a running installation, and the disturbance `disturb`; by default, kills."""

    def __init__(
        self, stack: Stack, plan: StormPlan, folder: Path, say: Say = print, disturb: Disturb | None = None
    ) -> None:
        self.plan, self.say, self.disturb = plan, say, disturb or kill_at_random
        self.folder = folder
        self.judged = Ledger(folder / "judge.jsonl")
        self.site = Site(stack, stack.api(), Ledger(folder / "ledger.jsonl"))
        api = self.site.api
        self.apart = httpx.Client(
            base_url=api.base_url, headers=api.headers, timeout=api.timeout, trust_env=False
        )  # failures of the threads that watch
        self.judge = JudgeProcess(free_ports(1)[0], self.judged.path, plan.latency_s)
        self.receiver = Receiver(self.site.ledger)
        self.killer = Killer(stack, self.site.ledger, plan.seed, lambda: self.judge.pid)
        self.times: dict[str, float] = {}

    def run(self) -> StormOutcome:
        """Play the storm. Raises GivenUp if something does not even begin."""
        try:
            prepare(self.site, self.plan.compared, self.plan.graded, runs=bool(self.plan.steps))
            hook = int(
                self.site.post("webhooks", url=self.receiver.url, events=["answer.submitted", "import.finished"])["id"]
            )
            runs = Runs(self.site, self.plan.steps, self.judge.url)
            if self.plan.steps:
                self.times["two undisturbed runs"] = runs.undisturbed()
                self.say(f"two undisturbed runs took {self.times['two undisturbed runs']:.0f} s")
            people = ChaosPeople(self.site, self.plan.people, self.plan.seed, f"person-{self.plan.seed}")
            work, broken = self._under_fire(runs, people, hook)
            findings = comparing.everything(self.site, people.project, hook, self.judged, runs)
            self.times["longest wait for the answer to a submission"] = people.longest_wait_s
            resumed = runs.resumed + work.resumed
            return StormOutcome(
                self.killer.counts, findings, resumed, people.broken + broken + work.failed(), self.times
            )
        finally:
            self.judge.close()
            self.receiver.close()
            self.site.api.close()
            self.apart.close()

    def _under_fire(self, runs: Runs, people: ChaosPeople, hook: int) -> tuple[PausedWork, list[str]]:
        """Disturb while everybody works; returns the work, and what has gone wrong."""
        site = replace(self.site, api=self.apart)
        watched = Runs(site, self.plan.steps, self.judge.url)
        watched.launched, watched.resumed = runs.launched, runs.resumed
        work = PausedWork(site, watched, str(self.plan.seed), self.plan.rows, self.folder)
        work.look(again=False)
        watching = [Watching(self.plan.more, look) for look in (work.look, watched.look)[: 2 if self.plan.steps else 1]]
        for each in watching:
            each.start()
        people.start()
        broken: list[str] = []
        try:
            self._disturb(watched)
            for each in watching:
                each.begin_no_more()
            self.say("now everything must come to its end")
            began = time.monotonic()
            people.stop()
            self._settle(watched, work, hook)
            self.times["until all was quiet again"] = time.monotonic() - began
        except GivenUp as trouble:  # what has come back is compared in any case
            broken.append(f"has not come back: {trouble}")
        finally:
            people.stop()
            for each in watching:
                each.stop()
        return work, [*broken, *(trouble for each in watching for trouble in each.broken)]

    def _disturb(self, watched: Runs) -> None:
        """Disturb until Ctrl-C, which ends only this."""
        try:
            self.disturb(self, watched)
        except KeyboardInterrupt:
            self.say("interrupted")

    def _settle(self, runs: Runs, work: PausedWork, hook: int) -> None:
        def left() -> list[str]:
            waiting = self.site.rows(
                "SELECT count(*) FROM webhooks_delivery WHERE webhook_id = %s AND state IN ('waiting', 'sending')", hook
            )
            return [
                *work.left(),
                *(["the runs"] if not runs.all_over else []),
                *([f"{waiting[0][0]} messages"] if waiting[0][0] else []),
            ]

        until(left, lambda found: not found, "the end of all that was under way", self.plan.settled_s)


def kill_at_random(storm: Storm, runs: Runs) -> None:
    plan, killer, mercy = storm.plan, storm.killer, Mercy(runs)
    draw = random.Random(-plan.seed)  # noqa: S311
    deadline = time.monotonic() + plan.seconds
    while time.monotonic() < deadline and killer.counts.total() < plan.kills:
        time.sleep(draw.uniform(0.5, 1.5) * plan.every_s)
        hit = killer.strike(mercy.spared(), mercy.may_end())
        mercy.note(hit)
        storm.say(f"killed: {hit.kind or 'nobody'}{f' of run {hit.run}' if hit.run else ''}")


class Mercy:
    """Ends a run again only if it has a newer checkpoint than at its last end; otherwise no run would ever finish. Its learner is killed if
    this is true of the run, Ray if it is true of both. An actor is killed if the asynchronous run has a newer one since the last kill of
    an actor. If nothing is trained, Ray is killed once.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._ended: dict[int, int] = {}
        self._without_actor: dict[int, int] = {}
        self._ray_hit = False

    def may_end(self) -> list[int]:
        """Runs whose learner may be killed."""
        return [run for run in self._runs.under_way.values() if self._got_on(run, self._ended)]

    def spared(self) -> list[str]:
        if not self._runs.steps:
            return [*ENDS_RUNS, *ACTORS] if self._ray_hit else []
        under_way = self._runs.under_way
        all_on = len(under_way) == len(KINDS) and all(
            self._runs.finished(run) or self._got_on(run, self._ended) for run in under_way.values()
        )
        trains = under_way.get("asynchronous")
        actors_on = trains is not None and self._got_on(trains, self._without_actor)
        return [
            *(() if all_on else [kind for kind in ENDS_RUNS if kind != "learner"]),
            *(() if actors_on else ACTORS),
        ]

    def note(self, hit: Hit) -> None:
        self._ray_hit |= hit.kind in ENDS_RUNS
        ended = list(self._runs.under_way.values()) if hit.kind in ENDS_RUNS and hit.run is None else [hit.run]
        for run in (each for each in ended if each is not None):
            self._ended[run] = self._without_actor[run] = self._runs.checkpoint(run)
        if hit.kind in ACTORS and (trains := self._runs.under_way.get("asynchronous")):
            self._without_actor[trains] = self._runs.checkpoint(trains)

    def _got_on(self, run: int, since: dict[int, int]) -> bool:
        return self._runs.checkpoint(run) > since.get(run, 0)


def table(outcome: StormOutcome) -> str:
    """A table of the records that were compared. It says how many of each kind were lost or came twice."""
    lines = [f"{'':38}{'compared':>10}{'lost':>7}{'doubled':>9}"]
    for each in outcome.findings:
        lines.append(f"{each.name:38}{each.compared:>10,}{each.lost:>7,}{each.doubled:>9,}  {each.told}".rstrip())
        lines += [f"    {example}" for example in each.examples if not each.holds]
    kills = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.kills.items()))
    lines += [f"{outcome.kills.total()} kills: {kills}"] if kills else []
    lines += [f"resumed by hand {count} times: {reason}" for reason, count in sorted(outcome.resumed.items())]
    lines += [f"{name}: {seconds:.0f} s" for name, seconds in outcome.times.items()]
    return "\n".join([*lines, *(f"broken: {each}" for each in outcome.broken)])
