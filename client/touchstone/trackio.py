"""Reads Trackio's database of a project: one SQLite file."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from . import distributions
from .tensorboard import Scalar
from .values import flatten, number

MAGIC = b"SQLite format 3\0"
HISTOGRAM = "trackio.histogram"  # the kind of such a value
RUNS = (
    "metrics",
    "configs",
    "system_metrics",
    "alerts",
    "traces",
)  # tables with rows of runs; that of the metrics says when one began
TIMES = ("timestamp", "created_at")
UNREAD = {
    "traces": "traces",
    "run_artifact_links": "artifacts",
}  # tables that are only counted, and the word for their rows
NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # such numbers are texts, because JSON has none for them


class Database:
    """An open database. Raises ValueError if it is not one of Trackio's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns = {table: self._of(table) for table in (*RUNS, *UNREAD)}
        if not {"run_name", "step", "metrics"} <= self._columns["metrics"]:
            raise ValueError(
                f"{path} is not a database of Trackio: it has no table of metrics with run_name, step and metrics."
            )

    def _ask(self, statement: str, *given: Any) -> Iterator[tuple[Any, ...]]:
        try:
            with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)) as opened:
                yield from opened.execute(statement, given)
        except sqlite3.Error as error:
            raise ValueError(f"{self.path} cannot be read: {error}") from None

    def _of(self, table: str) -> set[str]:
        return {row[1] for row in self._ask(f"PRAGMA table_info({table})")}

    def _key(self, table: str) -> str:
        """The column that tells runs apart: the id, or the name in databases of earlier versions."""
        return "run_id" if "run_id" in self._columns[table] else "run_name"

    def runs(self) -> list[tuple[str, str, str]]:
        """(key, name, identity) in the order in which they began. A run that logged no metrics has rows in other tables only.

        The identity of a run is its id, without the time when it began: this time changes when a run gets its first metrics. A run that has
        only a name is told apart by the time from a run of the same name on another machine.
        """
        found: dict[str, tuple[str, str, str]] = {}
        for table in RUNS:
            time = next((name for name in TIMES if name in self._columns[table]), "")
            if time and "run_name" in self._columns[table]:
                key = self._key(table)
                asked = f"SELECT {key}, min(run_name), min({time}) FROM {table} GROUP BY {key}"  # noqa: S608  columns
                for run, name, began in self._ask(asked):
                    found.setdefault(run, (run, name, str(began)))
        in_order = sorted(found.values(), key=itemgetter(2))
        return [(key, name, key if key != name else f"{key}\n{began}") for key, name, began in in_order]

    def config(self, run: str) -> dict[str, Any]:
        if not self._columns["configs"]:
            return {}
        rows = self._ask(f"SELECT config FROM configs WHERE {self._key('configs')} = ?", run)  # noqa: S608
        return {name: value for (text,) in rows for name, value in _object(text).items()}

    def alerts(self, run: str) -> list[str]:
        if not self._columns["alerts"]:
            return []
        rows = self._ask(f"SELECT level, title, text FROM alerts WHERE {self._key('alerts')} = ? ORDER BY id", run)  # noqa: S608
        return [f"{str(level).upper()}: {title}" + (f" · {text}" if text else "") for level, title, text in rows]

    def scalars(self, run: str, unsaid: "Counter[str]") -> Iterator[Scalar]:
        """Metrics by their steps. Measures of the machine have no steps, so they are numbered."""
        key = self._key("metrics")
        rows = self._ask(f"SELECT step, timestamp, metrics FROM metrics WHERE {key} = ? ORDER BY id", run)  # noqa: S608
        for step, time, text in rows:
            yield from _scalars(step, time, text, "", unsaid)
        if self._columns["system_metrics"]:
            key = self._key("system_metrics")
            rows = self._ask(f"SELECT timestamp, metrics FROM system_metrics WHERE {key} = ? ORDER BY id", run)  # noqa: S608
            for step, (time, text) in enumerate(rows):
                yield from _scalars(step, time, text, "system/", unsaid)
        for table, name in UNREAD.items():
            if "run_id" in self._columns[table] and (count := self._count(table, run)):
                unsaid[name] += count

    def _count(self, table: str, run: str) -> int:
        ((count,),) = self._ask(f"SELECT count(*) FROM {table} WHERE run_id = ?", run)  # noqa: S608  a table of ours
        return int(count)


def _scalars(step: Any, time: Any, text: Any, before: str, unsaid: "Counter[str]") -> Iterator[Scalar]:
    for key, value in flatten(_plain(_object(text), unsaid)):
        found = float(value) if value in NOT_FINITE else number(value)
        if found is None:
            unsaid[f"{type(value).__name__} of {key}"] += 1
        else:
            yield Scalar(before + key, int(step), _ms(time), found)


def _plain(values: dict[str, Any], unsaid: "Counter[str]") -> dict[str, Any]:
    """The values without images, tables and the like, and with the quantiles of a histogram in its place."""
    found = dict[str, Any]()
    for key, value in values.items():
        kind = value.get("_type") if isinstance(value, dict) else None
        if not kind:
            found[key] = value
        elif kind != HISTOGRAM:
            unsaid[f"{str(kind).removeprefix('trackio.')} of {key}"] += 1
        elif quantiles := distributions.of_counts(value.get("bins", []), value.get("values", [])):
            found |= {f"{key}/{name}": number for name, number in quantiles.items()}
        else:
            unsaid[f"histograms of {key} without values"] += 1
    return found


def _object(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _ms(text: Any) -> int:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return 0
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
