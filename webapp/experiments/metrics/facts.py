"""Last, lowest and highest value of each metric of a run, for the table of runs: brought up to date with each batch of points."""

from collections.abc import Mapping

from webapp.core.database import prepared

from .. import table_facts
from ..models import Run
from ..table_facts import Fact, Source
from . import points
from .series import Series

STANDING = """
SELECT path, number, low, high, step FROM experiments_runcolumn AS known
JOIN experiments_runvalue AS value ON value.column_id = known.id AND value.run_id = %(run)s::bigint
WHERE known.workspace_id = %(workspace)s::bigint AND known.source = 'metric' AND known.path = ANY(%(paths)s::text[])
"""


def keep_metrics(workspace_id: int, run: Run, told: Mapping[str, Series]) -> None:
    """Brings last, lowest and highest value up to date with points that are stored already. The caller holds the lock of the run."""
    news = {key: finite for key, one in told.items() if (finite := one.finite()) is not None}
    if not news:
        return
    standing = _standing(workspace_id, run.pk, list(news))
    again = [key for key, fact in standing.items() if fact.step is not None and news[key].first_step <= fact.step]
    facts = [*_anew(run.pk, again)] if again else []
    facts += [_joined(key, standing.get(key), new) for key, new in news.items() if key not in set(again)]
    table_facts.keep(workspace_id, run.pk, [*facts, *table_facts.result_facts(run)])


def _joined(key: str, old: Fact | None, told: Series) -> Fact:
    low, high = float(told.numbers.min()), float(told.numbers.max())
    if old is not None:
        low = low if old.low is None else min(low, old.low)
        high = high if old.high is None else max(high, old.high)
    last, step = float(told.numbers[-1]), int(told.grid.steps[-1])
    return Fact(Source.METRIC, key, number=last, low=low, high=high, step=step)


def _standing(workspace_id: int, run_id: int, keys: list[str]) -> dict[str, Fact]:
    found = prepared.rows(STANDING, {"run": run_id, "workspace": workspace_id, "paths": keys})
    return {key: _fact(key, *rest) for key, *rest in found}


# of keys whose steps came again: a repeat replaces a point, and an extreme may be gone with it
def _anew(run_id: int, keys: list[str]) -> list[Fact]:
    return [_fact(each.key, each.last, each.low, each.high, each.last_step) for each in points.summaries(run_id, keys)]


def _fact(key: str, number: float, low: float, high: float, step: int) -> Fact:
    return Fact(Source.METRIC, key, number=number, low=low, high=high, step=step)
