"""A large file that is imported, and a judge that grades, one after the other for as long as the storm lasts."""

from collections import Counter
from pathlib import Path
from typing import Any

from .installation import GRADED, OVER, Site, pair, send, written
from .judge import COMPARES
from .patience import GivenUp, patiently
from .runs import Runs


class PausedWork:
    """An evaluation that was paused, because its judge was away for longer than calls are repeated, is resumed as a person would do
    it; `resumed` counts the reasons.
    """

    def __init__(self, site: Site, runs: Runs, name: str, rows: int, folder: Path) -> None:
        self.site, self._runs, self._name, self._rows, self._folder = site, runs, name, rows, folder
        self.resumed: Counter[str] = Counter()
        self.imports: list[int] = []
        self.evaluations: list[int] = []

    def look(self, again: bool) -> None:
        """Begin what has not begun. With `again`, work that has ended is followed by the next of its kind."""
        if not self.imports or (again and self._import()["state"] in OVER):
            self._send()
        if not self.evaluations or (self._gone_on()["state"] in OVER and again):
            self._grade()

    def left(self) -> list[str]:
        """The work that has not ended."""
        now = {"the import": self._import()["state"], "the evaluation": self._evaluation()["state"]}
        return [f"{what} ({state})" for what, state in now.items() if state not in OVER]

    def failed(self) -> list[str]:
        rows = {number: self.site.get(f"evaluations/{number}") for number in self.evaluations}
        return [
            f"evaluation {number}: {row['state']} {row['problem']}"
            for number, row in rows.items()
            if row["state"] != "finished"
        ]

    def _import(self) -> dict[str, Any]:
        return self.site.get(f"imports/{self.imports[-1]}")

    def _evaluation(self) -> dict[str, Any]:
        return self.site.get(f"evaluations/{self.evaluations[-1]}")

    def _gone_on(self) -> dict[str, Any]:
        row = self._evaluation()
        if row["state"] == "paused":
            self.site.ledger.write("resumed", evaluation=row["id"], reason=row["problem"])
            self.resumed[f"evaluation: {row['problem'][:140]}"] += 1
            patiently(
                self.site.api, "POST", f"evaluations/{row['id']}/resume"
            )  # 409: the answer to the first request was lost
        return row

    def _send(self) -> None:
        """Send rows that differ from those before, so that each file makes its own version."""
        first = len(self.imports) * self._rows
        rows = written(self._folder / "large.jsonl", (pair(number) for number in range(first, first + self._rows)))
        try:
            self.imports.append(send(self.site, f"chaos large {len(self.imports)}", rows))
        except GivenUp as refused:  # a disk without room: reported, and sent again with the next look
            self.site.ledger.write("refused", what="import", why=str(refused))

    def _grade(self) -> None:
        name = f"{COMPARES} pairs {self._name} {len(self.evaluations)}"
        judge = self._runs.judge(name, "pairwise")
        version = self.site.get(f"judges/{judge}/versions")["items"][0]["id"]
        body = {"config": {"judges": [{"version": version}]}, "dataset": {"id": self.site.find("datasets", GRADED)}}
        made = self.site.once("evaluations", name, recipe="judge_audit", name=name, **body)
        self.evaluations.append(int(made["id"]))
