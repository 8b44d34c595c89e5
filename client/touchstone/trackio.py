"""Reads Trackio's database of a project: one SQLite file."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import distributions
from .tensorboard import Scalar
from .values import flat, number

MAGIC = b"SQLite format 3\0"
HISTOGRAM = "trackio.histogram"  # the kind of such a value


class Database:
    """An open database. Raises ValueError if it is not one of Trackio's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns = {table: self._of(table) for table in ("metrics", "configs", "system_metrics", "alerts")}
        if not {"run_name", "step", "metrics"} <= self._columns["metrics"]:
            raise ValueError(
                f"{path} is not a database of Trackio: it has no table of metrics with run_name, step and metrics."
            )

    def _ask(self, statement: str, *given: Any) -> Iterator[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)) as opened:
            yield from opened.execute(statement, given)

    def _of(self, table: str) -> set[str]:
        return {row[1] for row in self._ask(f"PRAGMA table_info({table})")}

    def _key(self, table: str) -> str:
        """The column that tells runs apart: the id, or the name in databases of earlier versions."""
        return "run_id" if "run_id" in self._columns[table] else "run_name"

    def runs(self) -> list[tuple[str, str, str]]:
        """(key, name, when it began) in the order in which they began."""
        key = self._key("metrics")
        asked = f"SELECT {key}, min(run_name), min(timestamp) FROM metrics GROUP BY {key} ORDER BY min(id)"  # noqa: S608  a column
        return list(self._ask(asked))

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


def _scalars(step: Any, time: Any, text: Any, before: str, unsaid: "Counter[str]") -> Iterator[Scalar]:
    for key, value in flat(_with_quantiles(_object(text), unsaid)):
        if key.endswith("._type"):
            unsaid[f"{value} of {key.removesuffix('._type')}"] += 1
        elif (found := number(value)) is None:
            unsaid[f"{type(value).__name__} of {key}"] += 1
        else:
            yield Scalar(before + key, int(step), _ms(time), found)


def _with_quantiles(values: dict[str, Any], unsaid: "Counter[str]") -> dict[str, Any]:
    """The values, with the quantiles of a histogram in its place."""
    found = dict[str, Any]()
    for key, value in values.items():
        if not (isinstance(value, dict) and value.get("_type") == HISTOGRAM):
            found[key] = value
        elif quantiles := distributions.of_counts(value.get("bins", []), value.get("values", [])):
            found |= {f"{key}/{name}": number for name, number in quantiles.items()}
        else:
            unsaid[f"histograms of {key} without values"] += 1
    return found


def _object(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _ms(text: Any) -> int:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return 0
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
