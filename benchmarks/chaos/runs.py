"""Undisturbed runs and runs that are killed: config, data and model are the same, so the results must be the same to the last bit."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e.tiny import RUN

from .installation import JUDGED, MODEL, PROMPTS, Site
from .patience import GivenUp, patiently, until

OVER = ("finished", "failed", "stopped")
KINDS = ("synchronous", "asynchronous")
ASYNC = {"kind": "async", "policy": "urb", "workers": 1, "reward_workers": 1, "ahead": 2, "retries": 50}


@dataclass(frozen=True)
class Launched:
    id: int
    kind: str
    disturbed: bool


class Runs:
    """A synchronous run whose rewards a judge decides, and an asynchronous one under U-RB. A run that ends by a failure
    is resumed, as a person would do it; `resumed` counts the reasons.
    """

    def __init__(self, site: Site, steps: int, judge_url: str) -> None:
        self.site, self.steps, self.judge_url = site, steps, judge_url
        self.launched: list[Launched] = []
        self.resumed: Counter[str] = Counter()
        self._seen: dict[int, dict[str, Any]] = {}
        self._newest: dict[int, int] = {}

    def launch(self, kind: str, disturbed: bool) -> Launched:
        number = sum(each.kind == kind for each in self.launched)
        name = f"{kind} {number}{'' if disturbed else ' undisturbed'}"
        config: dict[str, Any] = {**RUN, "steps": self.steps}
        if kind == "synchronous":
            self.judge(name)
            config["rewards"] = [{"kind": "rubric", "judge": f"{name} v1"}]
        else:
            config |= {"runner": ASYNC, "scaffold": None}
        dataset = JUDGED if kind == "synchronous" else PROMPTS
        body = {"recipe": "policy", "config": config, "dataset": dataset, "model": MODEL, "name": name}
        run = Launched(int(self.site.once("runs", name, **body)["id"]), kind, disturbed)
        self.launched.append(run)
        self.site.ledger.write("launched", run=run.id, runner=kind, disturbed=disturbed)
        return run

    def judge(self, name: str, kind: str = "criterion") -> int:
        """Create a judge that only one run uses, so that no run finds another's verdicts; its model has its name. Returns its id."""
        endpoint = self.site.named("endpoints", name, kind="chat", url=self.judge_url, model=name, retries=10)
        return self.site.named("judges", name, spec={"kind": kind}, endpoint=endpoint)

    def undisturbed(self) -> float:
        """Train one run of each kind side by side; returns the seconds that they took."""
        began = time.monotonic()
        for run in [self.launch(kind, disturbed=False) for kind in KINDS]:
            over = until(lambda run=run: self._read(run), lambda row: row["state"] in OVER, f"run {run.id}", 900)  # type: ignore[misc]
            if over["state"] != "finished":
                raise GivenUp(f"run {run.id}, which nobody disturbed, {over['state']}: {over['state_reason']}")
        return time.monotonic() - began

    def look(self, again: bool) -> None:
        """Resume failed runs. With `again`, a finished run is followed by the next one of its kind."""
        for kind in KINDS:
            mine = [each for each in self.launched if each.kind == kind and each.disturbed]
            if not mine:
                self.launch(kind, disturbed=True)
                continue
            row = self._read(mine[-1])
            if row["state"] in ("failed", "stopped"):
                self._resume(mine[-1], row)
            elif row["state"] == "finished" and again:
                self.launch(kind, disturbed=True)

    def _resume(self, run: Launched, row: dict[str, Any]) -> None:
        reason = row["state_reason"]
        self.resumed[f"{run.kind}: {reason.partition(' (')[0][:140]}"] += 1
        self.site.ledger.write("resumed", run=run.id, reason=reason, attempt=row["attempt"])
        patiently(self.site.api, "POST", f"runs/{run.id}/resume")  # 409: the answer to the first request was lost

    def _read(self, run: Launched) -> dict[str, Any]:
        self._seen[run.id] = row = self.site.get(f"runs/{run.id}")
        return row

    @property
    def under_way(self) -> dict[str, int]:
        """The newest disturbed run of each kind."""
        return {each.kind: each.id for each in self.launched if each.disturbed}

    @property
    def both_under_way(self) -> bool:
        rows = [self._seen[run] for run in self.under_way.values() if run in self._seen]
        return len(rows) == len(KINDS) and all(row["progress"]["step"] > 0 for row in rows)

    @property
    def all_over(self) -> bool:
        """Whether the disturbed runs are over."""
        return all(self.finished(run.id) for run in self.launched if run.disturbed)

    def checkpoint(self, run: int) -> int:
        """The newest checkpoint that the run ever made; 0 for none. It is read from the run's folder, because the web server may be away."""
        there = (self.site.run_folder(run) / "checkpoints").glob("step-*")
        self._newest[run] = max([self._newest.get(run, 0), *(int(each.name.removeprefix("step-")) for each in there)])
        return self._newest[run]

    def finished(self, run: int) -> bool:
        return bool(self._seen.get(run, {}).get("state") == "finished")


class Watching(threading.Thread):
    """Looks at the runs every second, also if the server does not answer. While `again`, a run that has ended is followed by another of its
    kind.
    """

    def __init__(self, again: bool, look: Callable[[bool], None]) -> None:
        super().__init__(daemon=True)
        self._again, self._look = again, look
        self.broken: list[str] = []
        self._stop_asked = threading.Event()
        self._looking = threading.Lock()

    def run(self) -> None:
        while not self._stop_asked.wait(1.0):
            with self._looking:
                try:
                    self._look(self._again)
                except Exception as error:  # reported at the end, and tried again
                    self.broken.append(f"{type(error).__name__}: {error}"[:500])

    def begin_no_more(self) -> None:
        """From the return of this call on, no run begins."""
        with self._looking:
            self._again = False

    def stop(self) -> None:
        self._stop_asked.set()
        if self.is_alive():
            self.join()
