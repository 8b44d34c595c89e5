"""The one writer of `RunValue`: called where a run is made or a draft is changed, told of metrics (`metrics.facts`), or over, in the transaction of that change."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.db import connection

from webapp.core.database import prepared

from . import recipe_metrics
from .models import LOGGED, Run
from .table.models import MAX_PATH, MAX_TEXT, RunColumn, RunValue

Source = RunColumn.Source
RESULT, GAIN, TOOK = "result", "gain", "took"
SEED = "seed"
RESERVED = "resources"  # of a run that was launched here
NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?\Z")
"""A text that is a number and nothing else. What begins with 0 like a code, or has more digits than a number keeps, is a text."""


@dataclass(frozen=True)
class Fact:
    """A value of one column. `low` and `high` are a metric's; of a config's value either `number` or `text` is given."""

    source: str
    path: str
    number: float | None = None
    text: str | None = None
    low: float | None = None
    high: float | None = None
    step: int | None = None


# a statement of its own takes the conflicts: a column that another transaction makes just now is there once that is over
COLUMNS = """
INSERT INTO experiments_runcolumn (workspace_id, source, path)
SELECT %(workspace)s, source, path FROM unnest(%(sources)s::text[], %(paths)s::text[]) AS wanted(source, path)
ORDER BY source, path
ON CONFLICT DO NOTHING
"""

VALUES = """
INSERT INTO experiments_runvalue (run_id, column_id, number, low, high, text, step)
SELECT %(run)s::bigint, known.id, number, low, high, text, step
FROM jsonb_to_recordset(%(facts)s::jsonb)
    AS given(source text, path text, number float8, low float8, high float8, text text, step int)
JOIN experiments_runcolumn AS known USING (source, path)
WHERE known.workspace_id = %(workspace)s::bigint
ON CONFLICT (run_id, column_id) DO UPDATE SET
    number = EXCLUDED.number, low = EXCLUDED.low, high = EXCLUDED.high, text = EXCLUDED.text, step = EXCLUDED.step
"""


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """`{"optim": {"lr": 1}}` -> `{"optim.lr": 1}`; a list of plain values is one value, other lists are numbered."""
    if isinstance(config, dict) and config:
        items = [(str(key), value) for key, value in config.items()]
    elif isinstance(config, list) and any(isinstance(item, (dict, list)) for item in config):
        items = [(str(place), item) for place, item in enumerate(config)]
    else:
        return {prefix: config}
    out: dict[str, Any] = {}
    for key, value in items:
        out.update(flatten(value, f"{prefix}.{key}" if prefix else key))
    return out


def value_text(value: Any) -> str:
    """A config's value as people type it in a query."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read(value: Any) -> Any:
    """The value of a text that a program elsewhere logs: a number if the text is one, else the text."""
    return float(value) if isinstance(value, str) and len(value) <= 40 and NUMBER.match(value) else value


def config_facts(config: dict[str, Any], *, texts: bool = False) -> list[Fact]:
    """One for each path. Paths longer than `MAX_PATH` have no column: nobody types them. `texts`: all values are texts, as programs
    elsewhere log them, and those that are numbers count as such."""
    found = []
    for path, given in flatten(config).items():
        if not path or len(path) > MAX_PATH:
            continue
        value = read(given) if texts else given
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if math.isfinite(value):
                found.append(Fact(Source.CONFIG, path, number=float(value)))
        else:
            found.append(Fact(Source.CONFIG, path, text=value_text(value)[:MAX_TEXT].replace("\0", "")))
    return found


def family(recipe: str, config: Mapping[str, Any], version_id: int | None, model_id: int | None) -> str:
    """Equal for runs that differ by their seed alone. What they reserve of the cluster does not count: it changes no result."""
    left_out = {SEED} if recipe == LOGGED else {SEED, RESERVED}
    rest = {key: value for key, value in config.items() if key not in left_out}
    text = json.dumps([recipe, rest, version_id, model_id], sort_keys=True, ensure_ascii=False)
    return sha256(text.encode()).hexdigest()[:32]


def keep_config(workspace_id: int, run: Run) -> None:
    """After its config has changed, or when it is made. Sets `family`, which the caller saves."""
    run.family = family(run.recipe, run.config, run.dataset_version_id, run.model_id)
    keep(workspace_id, run.pk, config_facts(run.config, texts=run.is_logged))


def replace_config(workspace_id: int, run: Run) -> None:
    """Stores the facts of a draft that was changed: its config may have lost fields."""
    RunValue.objects.filter(run=run, column__source=Source.CONFIG).delete()
    keep_config(workspace_id, run)


def keep_took(workspace_id: int, run: Run) -> None:
    """Stores the duration of a run that is over: the seconds from its first start to its end."""
    if run.started_at and run.ended_at:
        keep(workspace_id, run.pk, [Fact(Source.RUN, TOOK, number=(run.ended_at - run.started_at).total_seconds())])


def result_facts(run: Run) -> list[Fact]:
    """The run's result in the list, and its gain since the first time it was measured."""
    found = recipe_metrics.result(run)
    values = {RESULT: found.last, GAIN: found.gain}
    return [Fact(Source.RUN, path, number=value) for path, value in values.items() if value is not None]


def keep(workspace_id: int, run_id: int, facts: Iterable[Fact]) -> None:
    """Writes values of a run, over those that it has in the same columns. No two may share a column."""
    rows = list(facts)
    if not rows:
        return
    asked: dict[str, Any] = {
        "workspace": workspace_id,
        "sources": [row.source for row in rows],
        "paths": [row.path for row in rows],
    }
    written = json.dumps([vars(row) for row in rows])
    given: dict[str, Any] = {"run": run_id, "workspace": workspace_id, "facts": written}
    if prepared.run(VALUES, given) < len(rows):  # some columns are new to the workspace
        with connection.cursor() as cursor:
            cursor.execute(COLUMNS, asked)
        prepared.run(VALUES, given)
