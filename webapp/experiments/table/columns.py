"""The meaning of column names, in queries, orders and the list of shown columns.

`config.optim.lr` is a path of the config; `eval/score` a metric's last value, `max(eval/score)` its highest, `min(...)` its lowest,
`best(...)` the better of the two by the recipe's declaration; `state`, `took` and the like are facts that every run has.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from trainer.config import RECIPES
from trainer.config.recipe import Metric

from ..table_facts import GAIN, RESULT, TOOK
from .models import RunColumn

Source = RunColumn.Source
CONFIG = "config."
MEASURE = re.compile(r"(last|min|max|best)\((.+)\)\Z", re.DOTALL)
ATTRIBUTES = {"last": "number", "min": "low", "max": "high"}
# facts that every run has: name -> words of the head
FACTS = {
    "created": "Created",
    "name": "Run",
    "state": "State",
    "experiment": "Experiment",
    "recipe": "Recipe",
    "model": "Model",
    "dataset": "Dataset",
    "group": "Group",
    "by": "Person",
    "step": "Progress",
    "started": "Started",
    "ended": "Ended",
    "result": "Result",
    "gain": "Gain",
    "took": "Duration",
}
STORED_FACTS = {"result": RESULT, "gain": GAIN, "took": TOOK}  # facts that are rows of `RunValue`
# columns that show something and have no order
PICTURES = {"curve": "Curve", "notes": "Notes"}
USUAL = ("state", "step", "result", "curve", "model", "took")
MAX_SHOWN = 40


class UnknownColumn(LookupError):
    """There is no such column. `message` names similar ones."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True)
class Column:
    """`pk` is the row of `RunColumn` whose values it shows, None for a fact of the run itself."""

    name: str
    label: str
    source: str
    path: str
    attribute: str = "number"
    pk: int | None = None
    metric: Metric | None = None

    @property
    def has_order(self) -> bool:
        return self.name not in PICTURES

    @property
    def of_values(self) -> bool:
        """Whether its cells show a value of the config or of a metric, unchanged."""
        return self.source != Source.RUN

    @property
    def is_text(self) -> bool:
        """Whether its cells are aligned to the left."""
        return self.source == Source.RUN and self.name not in (*STORED_FACTS, "step")


CREATED = Column("created", "Created", Source.RUN, "created")


@dataclass(frozen=True)
class _NamedColumn:
    source: str
    path: str
    attribute: str = "number"


@cache
def declared_metrics() -> Mapping[str, Metric]:
    """The metrics that recipes declare, by key: the first recipe that knows the key counts."""
    found: dict[str, Metric] = {}
    for recipe in RECIPES.values():
        for metric in recipe.metrics:
            found.setdefault(metric.key, metric)
    return found


def metric_of(key: str, recipes: Iterable[str]) -> Metric | None:
    """The declaration of a key that runs of these recipes send; None if there is none. The same pattern means different things in different
    recipes, so only theirs count; an exact key is the same in all."""
    if exact := declared_metrics().get(key):
        return exact
    own = (RECIPES[name].metric(key) for name in dict.fromkeys(recipes) if name in RECIPES)
    return next((metric for metric in own if metric), None)


def metric_label(key: str, recipes: Iterable[str]) -> str:
    """The name of a metric where no chart stands around it. A pattern's is its chart and the part that the config named, such as
    `Criteria met: bullet count`; a key that nobody has declared is its own name."""
    metric = metric_of(key, recipes)
    if metric is None:
        return key
    if not metric.is_pattern:
        return metric.label
    before, _, after = metric.key.partition("*")
    return f"{metric.chart or metric.title}: {key[len(before) : len(key) - len(after)].replace('_', ' ')}"


def resolve(workspace_id: int, names: Iterable[str]) -> dict[str, Column | UnknownColumn]:
    """Every name with its column, or with the reason why there is none. At most two queries for any number of names."""
    wanted = {name: _named(name) for name in dict.fromkeys(names)}
    paths = {each.path for each in wanted.values() if isinstance(each, _NamedColumn) and not _on_the_run(each)}
    rows = RunColumn.objects.filter(workspace_id=workspace_id, path__in=paths) if paths else []
    known = {(row.source, row.path): row.pk for row in rows}
    found: dict[str, Column | UnknownColumn] = {}
    for name, each in wanted.items():
        if isinstance(each, UnknownColumn):
            found[name] = each
        elif _on_the_run(each) or (each.source, each.path) in known or each.source == Source.RUN:
            found[name] = _column(name, each, known.get((each.source, each.path)))
        else:
            found[name] = UnknownColumn("")
    if missing := [name for name, each in found.items() if isinstance(each, UnknownColumn) and not each.message]:
        found.update(_unknown(workspace_id, missing))
    return found


def _on_the_run(named: _NamedColumn) -> bool:
    return named.source == Source.RUN and named.path not in STORED_FACTS.values()


def _column(name: str, named: _NamedColumn, pk: int | None) -> Column:
    metric = declared_metrics().get(named.path) if named.source == Source.METRIC else None
    return Column(name, label(name), named.source, named.path, named.attribute, pk, metric)


def label(name: str) -> str:
    """The words of a column's head: those of the fact, or the name as in a query."""
    return FACTS.get(name) or PICTURES.get(name) or name.removeprefix(CONFIG)


def _named(name: str) -> "_NamedColumn | UnknownColumn":
    if name in STORED_FACTS:
        return _NamedColumn(Source.RUN, STORED_FACTS[name])
    if name in FACTS or name in PICTURES:
        return _NamedColumn(Source.RUN, name)
    if name.startswith(CONFIG):
        return _NamedColumn(Source.CONFIG, name.removeprefix(CONFIG))
    if name == "seed":
        return _NamedColumn(Source.CONFIG, name)
    if measure := MEASURE.match(name):
        return _measured(*measure.groups())
    return _NamedColumn(Source.METRIC, name)


def _measured(measure: str, key: str) -> "_NamedColumn | UnknownColumn":
    if measure != "best":
        return _NamedColumn(Source.METRIC, key, ATTRIBUTES[measure])
    better = (metric := declared_metrics().get(key)) and metric.better
    if not better:
        return UnknownColumn(f"No recipe says which values of {key} are better. Write max({key}) or min({key}).")
    return _NamedColumn(Source.METRIC, key, "high" if better == "higher" else "low")


def _unknown(workspace_id: int, names: list[str]) -> dict[str, UnknownColumn]:
    known = names_of(workspace_id)
    return {name: UnknownColumn(f"No run here has {name}.{_near(name, known)}") for name in names}


def _near(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.6) or [each for each in known if each.endswith(f".{name}")][:1]
    return f" Did you mean {close[0]}?" if close else ""


def names_of(workspace_id: int) -> list[str]:
    """Every name that can be in a query or a head: first facts, then config, then metrics."""
    rows = RunColumn.objects.filter(workspace_id=workspace_id).exclude(source=Source.RUN).order_by("source", "path")
    found = [CONFIG + row.path if row.source == Source.CONFIG else row.path for row in rows]
    return [*FACTS, *found]
