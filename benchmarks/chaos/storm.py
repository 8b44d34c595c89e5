"""Everything at once, and kills at random: what the command and its short form in the tests have in common."""

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
from .comparing import Finding
from .installation import OVER, PAIRS, Site, pair, prepare, send, written
from .judge import COMPARES, JudgeProcess
from .killing import ENDS_RUNS, Killer
from .ledger import Ledger
from .patience import until
from .people import People
from .receiver import Receiver
from .runs import Runs, Watching

Say = Callable[[str], None]
Disturb = Callable[["Storm", Runs], None]
"""What happens to the installation while everything works; returns when it is over."""


@dataclass(frozen=True)
class Plan:
    """How much of everything. `every_s`: the mean time between two kills, which is drawn from the half to three halves of it.
    `steps` 0: no run is trained. `more_runs`: where a disturbed run has finished before the end of the kills, the next one of its
    kind begins. `settled_s`: how long all may take to come to its end once the kills are over."""

    seed: int
    seconds: float
    kills: int
    every_s: float = 4.0
    people: int = 3
    pairs: int = 400
    rows: int = 60_000
    steps: int = 12
    latency_s: float = 0.2
    more_runs: bool = True
    settled_s: float = 1200.0


@dataclass
class Outcome:
    kills: Counter[str]
    findings: list[Finding]
    resumed: Counter[str]
    broken: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return not self.broken and all(each.holds for each in self.findings)


class Storm:
    """People, an import, a judge and two runs on a running installation, and what `disturb` does to it; kills, where it is left out."""

    def __init__(
        self, stack: Stack, plan: Plan, folder: Path, say: Say = print, disturb: Disturb | None = None
    ) -> None:
        self.plan, self.say, self.disturb = plan, say, disturb or kill_at_random
        self.folder = folder
        self.judged = Ledger(folder / "judge.jsonl")
        self.site = Site(stack, stack.api(), Ledger(folder / "ledger.jsonl"))
        self.judge = JudgeProcess(free_ports(1)[0], self.judged.path, plan.latency_s)
        self.receiver = Receiver(self.site.ledger)
        self.killer = Killer(stack, self.site.ledger, plan.seed, lambda: self.judge.pid)
        self.times: dict[str, float] = {}

    def run(self) -> Outcome:
        """Raises GivenUp where something has not come back."""
        try:
            prepare(self.site, self.plan.pairs, runs=bool(self.plan.steps))
            hook = int(
                self.site.post("webhooks", url=self.receiver.url, events=["answer.submitted", "import.finished"])["id"]
            )
            runs = Runs(self.site, self.plan.steps, self.judge.url)
            if self.plan.steps:
                self.times["two undisturbed runs"] = runs.undisturbed()
                self.say(f"two undisturbed runs took {self.times['two undisturbed runs']:.0f} s")
            people = People(self.site, self.plan.people, self.plan.seed, f"person-{self.plan.seed}")
            watching = self._under_fire(runs, people, hook)
            findings = comparing.everything(self.site, people.project, hook, self.judged, runs)
            self.times["longest wait for the answer to a submission"] = people.longest_wait_s
            return Outcome(self.killer.counts, findings, runs.resumed, people.broken + watching.broken, self.times)
        finally:
            self.judge.close()
            self.receiver.close()
            self.site.api.close()

    def _under_fire(self, runs: Runs, people: People, hook: int) -> Watching:
        apart = httpx.Client(
            base_url=self.site.api.base_url,
            headers=self.site.api.headers,
            timeout=self.site.api.timeout,
            trust_env=False,
        )
        watched = Runs(replace(self.site, api=apart), self.plan.steps, self.judge.url)
        watched.launched, watched.resumed = runs.launched, runs.resumed
        watching = Watching(watched, self.plan.more_runs)
        work = self._work(runs)
        if self.plan.steps:
            watching.start()
        people.start()
        try:
            self.disturb(self, watched)
            watching.again = False
            self.say(f"{self.killer.counts.total()} kills; now everything must come to its end")
            began = time.monotonic()
            people.stop()
            self._settle(watched, work, hook)
            self.times["until all was quiet again"] = time.monotonic() - began
        finally:
            people.stop()
            watching.stop()
            apart.close()
        return watching

    def _work(self, runs: Runs) -> tuple[int, int]:
        """A large import and a judge who grades, both under way; their ids."""
        rows = written(self.folder / "large.jsonl", (pair(number) for number in range(self.plan.rows)))
        job = send(self.site, "chaos large", rows)
        name = runs.judge(f"{COMPARES} pairs {self.plan.seed}", "pairwise")
        [judge] = [row for row in self.site.get("judges")["items"] if row["name"] == name]
        version = self.site.get(f"judges/{judge['id']}/versions")["items"][0]["id"]
        [dataset] = [row for row in self.site.get("datasets")["items"] if row["name"] == PAIRS]
        body = {"config": {"judges": [{"version": version}]}, "dataset": {"id": dataset["id"]}}
        evaluation = self.site.once(
            "evaluations", f"chaos {self.plan.seed}", recipe="judge_audit", name=f"chaos {self.plan.seed}", **body
        )["id"]
        return job, int(evaluation)

    def _settle(self, runs: Runs, work: tuple[int, int], hook: int) -> None:
        job, evaluation = work

        def left() -> list[str]:
            row = self.site.get(f"evaluations/{evaluation}")
            if row["state"] == "paused":  # the judge was away for longer than its retries: a person lets it go on
                self.site.ledger.write("resumed", evaluation=evaluation, reason=row["problem"])
                self.site.post(f"evaluations/{evaluation}/resume")
                runs.resumed[f"evaluation: {row['problem'][:140]}"] += 1
            waiting = self.site.rows(
                "SELECT count(*) FROM webhooks_delivery WHERE webhook_id = %s AND state IN ('waiting', 'sending')", hook
            )
            return [
                *(["the import"] if self.site.get(f"imports/{job}")["state"] not in OVER else []),
                *([f"the evaluation ({row['state']})"] if row["state"] not in OVER else []),
                *(["the runs"] if not runs.all_over else []),
                *([f"{waiting[0][0]} messages"] if waiting[0][0] else []),
            ]

        until(left, lambda found: not found, "the end of all that was under way", self.plan.settled_s)


def kill_at_random(storm: Storm, runs: Runs) -> None:
    plan, killer = storm.plan, storm.killer
    draw = random.Random(-plan.seed)  # noqa: S311
    deadline = time.monotonic() + plan.seconds
    steps = -1
    while time.monotonic() < deadline and killer.counts.total() < plan.kills:
        time.sleep(draw.uniform(0.5, 1.5) * plan.every_s)
        moved = runs.steps_made != steps
        kind = killer.strike(sparing=() if moved else ENDS_RUNS)
        if kind in ENDS_RUNS:
            steps = runs.steps_made
        storm.say(f"killed: {kind or 'nothing that lives'}")


def table(outcome: Outcome) -> str:
    """What was compared, and what of it was lost or doubled."""
    lines = [f"{'':38}{'compared':>10}{'lost':>7}{'doubled':>9}"]
    for each in outcome.findings:
        lines.append(f"{each.name:38}{each.compared:>10,}{each.lost:>7,}{each.doubled:>9,}  {each.told}".rstrip())
        lines += [f"    {example}" for example in each.examples if not each.holds]
    kills = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.kills.items()))
    lines += [f"{outcome.kills.total()} kills: {kills}"]
    lines += [f"resumed by hand {count} times: {reason}" for reason, count in sorted(outcome.resumed.items())]
    lines += [f"{name}: {seconds:.0f} s" for name, seconds in outcome.times.items()]
    return "\n".join([*lines, *(f"broken: {each}" for each in outcome.broken)])
