"""The form that makes a sweep from a run or from another sweep: the keys and their values, how the next trial is chosen, the metric that decides."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

from trainer.config import RECIPES, ConfigInvalid, Recipe, resolve
from trainer.config.recipe import Metric
from webapp.accounts.models import Membership
from webapp.core.forms.formtree import Input
from webapp.core.problems import Problem
from webapp.core.requests import idempotency
from webapp.core.requests.numbers import whole_number

from ..launch.typed_limits import LABELS, TypedLimits
from ..lifecycle.limits import NONE
from ..models import Sweep
from ..recipes import gallery
from . import bases, checking, choosing, keys, services, tpe
from .bases import SweepBase
from .checking import Wish
from .space import SweepAxis

RANGE = re.compile(r"\s*(\S+)\s+to\s+(\S+)\s*\Z")
NUMBERS = {"trials": "10", "seeds": "3", "at_once": "2", "seed": "0", "first_rung": "0", "factor": "3"}
WORDS = {"name": "", "experiment": "", "method": "random", "metric": "", "better": "", "together": ""}
MOST_TEXT = 2000


@dataclass
class AxisRow:
    """A key that changes, as typed: "1e-4, 3e-4", or a range, "1e-5 to 1e-3"."""

    place: int
    path: str = ""
    text: str = ""
    scale: str = "linear"
    points: str = ""
    key: Input | None = None
    now: str = ""  # what the base has
    problem: str = ""

    @property
    def is_range(self) -> bool:
        return RANGE.match(self.text) is not None

    @property
    def hint(self) -> str:
        """The fields that a person may fill in."""
        if self.key is None:
            return "Values separated by commas, or a range: 1e-5 to 1e-3"
        if self.key.kind in ("int", "float"):
            bounds = f" ({self.key.bounds})" if self.key.bounds else ""
            return f"Values separated by commas, or a range such as 2 to 8{bounds}"
        choices = ("true", "false") if self.key.kind == "bool" else self.key.choices
        return f"Values separated by commas{': ' if choices else ''}{', '.join(map(str, choices))}"

    def raw(self) -> dict[str, Any]:
        """Like `checking.Wish` takes it."""
        ends = RANGE.match(self.text)
        if ends and self.key and self.key.kind in ("int", "float"):
            low, high = (keys.read(self.key, end) for end in ends.groups())
            points = whole_number(self.points, 4) if self.points.strip() else None
            return {"path": self.path, "low": low, "high": high, "scale": self.scale, "points": points}
        texts = [each for each in self.text.split(",") if each.strip()]
        values = [keys.read(self.key, each) if self.key else each for each in texts]
        return {"path": self.path, "values": values}


@dataclass
class SweepForm:
    """State of the form between two requests."""

    membership: Membership
    base: SweepBase
    rows: list[AxisRow] = field(default_factory=lambda: [AxisRow(0)])
    given: dict[str, str] = field(default_factory=lambda: NUMBERS | WORDS)
    limits: TypedLimits = field(default_factory=lambda: TypedLimits("policy"))
    key: str = field(default_factory=lambda: uuid4().hex)
    problems: dict[str, str] = field(default_factory=dict)
    checked: checking.Checked | None = None

    @classmethod
    def blank(cls, membership: Membership, base: SweepBase) -> "SweepForm":
        form = cls(membership, base)
        form.given = NUMBERS | WORDS | {"experiment": base.experiment, "metric": form.recipe.headline}
        form.given |= {
            name: str(value) for name, value in base.search.items() if name in NUMBERS | WORDS and name != "together"
        }
        form.given["together"] = "on" if base.search.get("together") else ""
        form.limits = TypedLimits.of(base.recipe, base.search.get("limits", NONE))
        form.rows = [cls._of(place, axis) for place, axis in enumerate(base.axes)] or form.rows
        form._known()
        return form

    @staticmethod
    def _of(place: int, axis: SweepAxis) -> AxisRow:
        return AxisRow(place, axis.path, bases.typed(axis), axis.scale, str(axis.points or ""))

    @classmethod
    def posted(cls, membership: Membership, base: SweepBase, post: Mapping[str, str]) -> "SweepForm":
        """The form as typed, changed by the pressed button: one key more or less."""
        form = cls(membership, base)
        form.key = post.get("key", "")[:64] or form.key
        form.given = {name: post.get(name, usual)[:200] for name, usual in (NUMBERS | WORDS).items()}
        form.limits = TypedLimits.posted(base.recipe, post)
        count = min(whole_number(post.get("rows", ""), 2) or 1, checking.MOST_AXES)
        form.rows = [form._row(post, place) for place in range(count)]
        verb, _, place = post.get("action", "").partition(":")
        if verb == "add" and count < checking.MOST_AXES:
            form.rows.append(AxisRow(count))
        elif verb == "remove" and (at := whole_number(place, 2)) is not None:
            form.rows = [row for row in form.rows if row.place != at] or [AxisRow(0)]
        for i, row in enumerate(form.rows):
            row.place = i
        form._known()
        return form

    @staticmethod
    def _row(post: Mapping[str, str], place: int) -> AxisRow:
        path, text, scale, points = (
            post.get(f"{name}.{place}", "")[:MOST_TEXT] for name in ("path", "values", "scale", "points")
        )
        return AxisRow(place, path, text, scale or "linear", points)

    def _known(self) -> None:
        for row in self.rows:
            row.key = self.keys.get(row.path)
            row.now = row.key.value if row.key else ""

    @property
    def recipe(self) -> Recipe:
        return RECIPES[self.base.recipe]

    @property
    def config(self) -> dict[str, Any]:
        return self.base.config

    @cached_property
    def keys(self) -> dict[str, Input]:
        return keys.sweepable_keys(self.base.recipe, self.config)

    @cached_property
    def sections(self) -> list[tuple[str, list[str]]]:
        """The paths to choose from, by their section."""
        found: dict[str, list[str]] = {}
        for path in self.keys:
            section, dot, _ = path.partition(".")
            found.setdefault(section if dot else "run", []).append(path)
        return list(found.items())

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that can decide: those with a better side."""
        return [each for each in self.recipe.metrics if each.better and not each.is_pattern]

    @property
    def methods(self) -> list[tuple[str, str, bool]]:
        """(name, title, whether it is installed)."""
        there = choosing.offered()
        return [(str(name), str(title), name in there) for name, title in Sweep.Chooses.choices]

    @property
    def tpe_missing(self) -> str:
        return "" if tpe.is_installed() else tpe.MISSING

    @property
    def is_grid(self) -> bool:
        return self.given["method"] == "grid"

    @property
    def other_problems(self) -> dict[str, str]:
        """The problems that no field shows."""
        shown = {*NUMBERS, *WORDS, *LABELS, "axes"}
        return {path: why for path, why in self.problems.items() if path not in shown and not path.startswith("axes.")}

    @property
    def to_fix(self) -> list[tuple[str, str]]:
        found = [(f"f-values-{row.place}", row.path or f"Key {row.place + 1}") for row in self.rows if row.problem]
        named = [name for name in (*WORDS, *NUMBERS) if name in self.problems]
        limits = [(f"f-{name}", label) for name, label in LABELS.items() if name in self.problems]
        return found + [(f"f-{name}", name.replace("_", " ").capitalize()) for name in named] + limits

    @property
    def trials(self) -> int | None:
        """The number of trials that the sweep will have; None: not known yet."""
        if self.checked is None or self.problems:
            return None
        return self.checked.trials

    @property
    def apart(self) -> str:
        """The reason why its runs cannot train in one process; empty if they can, or if nothing is known of them yet."""
        return self.checked.apart if self.checked else ""

    @property
    def asks_judges(self) -> bool:
        """Whether its runs ask judges; True if a limit on them is typed."""
        typed = self.limits.budget_tokens or self.limits.budget_money
        slots = self.recipe.filled(resolve(self.base.recipe, self.config))
        return bool(typed) or any(slot.kind == "judge" for slot in slots)

    @property
    def runs(self) -> int | None:
        return None if self.trials is None else self.trials * int(self.given["seeds"])

    @property
    def seconds(self) -> float | None:
        """Seconds of all runs one after the other, at the pace of this workspace; None: not known."""
        pace = gallery.pace_by_recipe(self.membership.workspace_id).get(self.base.recipe)
        return pace.total_s(self.config["steps"] * self.runs) if pace and self.runs else None

    @property
    def rungs(self) -> list[int]:
        """The steps at which trials are compared; none are told if the trials have different numbers of steps."""
        if any(row.path == "steps" for row in self.rows):
            return []
        first, factor = (whole_number(self.given[name], 9) or 0 for name in ("first_rung", "factor"))
        return choosing.rungs(first, factor, self.config["steps"]) if 2 <= factor <= 10 else []

    def wish(self, rows: list[AxisRow]) -> Wish:
        numbers: dict[str, Any] = {
            name: -1 if (n := whole_number(self.given[name].strip(), 10)) is None else n for name in NUMBERS
        }
        words: dict[str, Any] = {name: self.given[name] for name in WORDS}
        words["together"] = bool(words["together"])
        return Wish(
            recipe=self.base.recipe,
            config=self.config,
            dataset=self.base.dataset,
            axes=[row.raw() for row in rows],
            source=self.base.run,
            limits=self.limits.read(),
            **(words | numbers),
        )

    def check(self, *, whole_form: bool = False) -> bool:
        """Fills `problems`. Before the launch, rows that are not filled in yet are not a problem."""
        rows = [row for row in self.rows if whole_form or (row.path and row.text.strip())]
        self.limits.read()
        if not rows:
            self.problems = dict(self.limits.problems)
            return False
        self.checked = checking.check(self.membership, self.wish(rows))
        self._show(self.checked.problems, rows)
        self.problems |= self.limits.problems
        return not self.problems

    def launch(self) -> Sweep | None:
        """The sweep, or None with `problems` filled."""
        if not self.check(whole_form=True):
            return None
        try:
            return idempotency.sent(self, self._launch)
        except ConfigInvalid as error:  # something else changed between the check and the launch
            self._show(error.problems, self.rows)
        except Problem as error:
            self.problems = dict(error.fields) or {"": error.message}
        return None

    def _launch(self) -> Sweep:
        return services.launch(self.membership, self.wish(self.rows), self.key)

    def _show(self, problems: list[Any], rows: list[AxisRow]) -> None:
        self.problems = {each.path: each.message for each in reversed(problems)}
        for each in reversed(problems):
            parts = each.path.split(".")
            if parts[0] == "axes" and len(parts) > 1:
                rows[int(parts[1])].problem = each.message
