"""Completions of a query: names of fields and columns, then values that runs of the workspace have."""

import re
from dataclasses import dataclass

from django.db.models import Model

from webapp.accounts.models import Membership
from webapp.datasets.models import Dataset
from webapp.inference.models import RegisteredModel

from ..models import Experiment, Run
from . import columns, queries
from .conditions import FIELDS, IS
from .language import quote_text
from .models import RunColumn, RunValue

MOST = 12
# the last term of the query as far as it is typed: a sign in front, a name, an operator, the text after the last comma
LAST = re.compile(
    r"(?:^|\s)-?(?P<name>\"(?:[^\"]|\"\")*\"?|[^\s:=<>!~\"]*)(?:(?P<sign>!=|<=|>=|[:=<>~])(?:[^\s\"]*,)?(?P<value>\"(?:[^\"]|\"\")*|[^\s,\"]*))?\Z"
)
HINTS = {
    "state": "queued, running, finished, …",
    "is": "starred, mine, active, archived",
    "tag": "a tag",
    "group": "a group",
    "experiment": "its name",
    "model": "its name",
    "dataset": "its name",
    "recipe": "policy, sft, …",
    "by": "who launched it, or me",
    "name": "its name",
    "has": "a name: has:eval/score",
    "created": "a day: 2026-11-25",
    "started": "a day: 2026-11-25",
    "ended": "a day: 2026-11-25",
    "age": "a length of time: age<7d",
    "took": "a length of time: took>1h",
    "step": "steps done",
    "run": "the number in its address",
    "sweep": "the number in the address of a sweep",
    "result": "what the list shows as result",
    "gain": "result now, minus result before",
}


@dataclass(frozen=True)
class Suggestion:
    """`text` replaces the characters between `start` and `end`."""

    text: str
    hint: str
    start: int
    end: int


def suggestions(membership: Membership, query: str, at: int) -> list[Suggestion]:
    """Suggestions for a cursor after `at` characters. At most three queries."""
    before = query[:at]
    found = LAST.search(before)
    if not found:
        return []
    if found["sign"]:
        name = found["name"].strip('"')
        start = found.start("value")
        values = _values(membership, name, found["value"].removeprefix('"').replace('""', '"').lower())
        return [Suggestion(quote_text(value), "", start, at) for value in values[:MOST]]
    start, typed = found.start("name"), found["name"].strip('"').lower()
    return [Suggestion(f"{text}{sign}", hint, start, at) for text, sign, hint in _names(membership, typed)[:MOST]]


def _names(membership: Membership, typed: str) -> list[tuple[str, str, str]]:
    """(name, the sign that most often follows, its kind): names that begin with the typed text, then names that contain it."""
    known = [
        (name, "" if name in ("age", "created", "started", "ended", "step") else ":", HINTS.get(name, ""))
        for name in FIELDS
    ]
    known += [(name, "", HINTS[name]) for name in ("result", "gain", "took")]
    rows = RunColumn.objects.filter(workspace_id=membership.workspace_id).exclude(source=columns.Source.RUN)
    bare = typed.removeprefix("config.")
    bare = (measure[2] if (measure := columns.MEASURE.match(f"{bare})")) else bare).strip()
    for source, path in (
        rows.filter(path__icontains=bare).order_by("source", "path").values_list("source", "path")[:400]
    ):
        if source == columns.Source.CONFIG:
            known.append((quote_text(f"config.{path}"), "", "config"))
        else:
            metric = columns.declared_metrics().get(path)
            known.append((quote_text(path), "", metric.label if metric else "metric, last value"))
            known += [
                (quote_text(f"{each}({path})"), "", "metric") for each in ("max", "min") if typed.startswith(each)
            ]
    fitting = [each for each in known if typed in each[0].lower()]
    return sorted(fitting, key=lambda each: not each[0].lower().lstrip('"').startswith(typed))


def _values(membership: Membership, name: str, typed: str) -> list[str]:
    """Values that begin with the typed text, for fields with few values."""
    workspace = membership.workspace_id
    if name == "state":
        found = [*Run.State.values, "active", "over"]
    elif name == "is":
        found = list(IS)
    elif name == "tag":
        found = queries.tags(workspace)
    elif name == "by":
        found = ["me"]
    elif name in ("experiment", "model", "dataset"):
        source: type[Model] = {"experiment": Experiment, "model": RegisteredModel, "dataset": Dataset}[name]
        rows = source._default_manager.filter(workspace_id=workspace, name__icontains=typed)
        named = rows.order_by("-pk")
        found = list(named.values_list("name", flat=True)[:MOST])
    elif name in ("group", "recipe"):
        runs = Run.objects.filter(experiment__workspace_id=workspace).exclude(**{name: ""}).order_by(name)
        found = list(runs.values_list(name, flat=True).distinct()[:200])
    elif name.startswith(columns.CONFIG):
        held = RunValue.objects.filter(
            column__workspace_id=workspace, column__source="config", column__path=name.removeprefix(columns.CONFIG)
        )
        words = held.filter(text__isnull=False).order_by("text").values_list("text", flat=True).distinct()
        found = [word for word in words[:50] if word is not None]
    else:
        found = []
    return [value for value in found if typed in value.lower()]
