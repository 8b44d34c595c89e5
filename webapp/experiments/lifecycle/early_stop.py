"""The early stop of a run: once a metric has not improved for this many values, the run stops with a checkpoint, like a stopped run.

It counts as Keras and Lightning do: `metrics.patience`.

Only stored values count, in the order of their steps. A value that is missing, or is not finite, is neither good nor bad: it is no value.
Upkeep looks, so nothing is compared while events are stored.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction

from trainer.config.recipe import HELD_OUT
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from .. import recipe_metrics
from ..live import broadcasts
from ..metrics import patience
from ..models import LoggedElsewhere, Run
from .deleted_runs import unless_deleted

SIDES = ("higher", "lower")
MOST_PATIENCE = 10_000
BEGINS = "Stopped early: "
"""The beginning of the reason of each run that a rule has stopped."""


@dataclass(frozen=True)
class EarlyStop:
    """Stop once `patience` values of `metric`, one after the other, were not better by more than `min_delta` than the best value so far.

    `better`: higher or lower; None: as the recipe declares the metric.
    """

    metric: str
    patience: int
    better: str | None = None
    min_delta: float = 0.0

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> "EarlyStop | None":
        """The rule in a request, or in a row that keeps it."""
        return cls(**given) if given else None

    def json(self) -> dict[str, Any]:
        return asdict(self)

    def side(self, recipe: str) -> str:
        """higher or lower; empty if neither the rule nor the recipe says so."""
        return self.better or _declared(recipe, self.metric)

    def problems(self, recipe: str) -> Iterator[tuple[str, str]]:
        """(field, what is wrong with it) for a run of the recipe."""
        found = recipe_metrics.recipe_of(recipe)
        if found is None or found.metric(self.metric) is None:
            yield "metric", f"a run of this recipe reports no metric {self.metric!r}"
        elif self.side(recipe) not in SIDES:
            yield "better", "the recipe does not say which side of this metric is better: choose higher or lower"
        if not 1 <= self.patience <= MOST_PATIENCE:
            yield "patience", f"must be between 1 and {MOST_PATIENCE:,}"
        if not (math.isfinite(self.min_delta) and self.min_delta >= 0):
            yield "min_delta", "must be a number that is 0 or more"

    def named(self, recipe: str) -> str:
        """The metric as people know it, with its key: Held-out score (eval/score); the key alone for a metric that nobody has declared."""
        label = recipe_metrics.label(recipe, self.metric)
        return self.metric if label == self.metric else f"{label} ({self.metric})"

    def words(self, recipe: str) -> str:
        """Held-out score (eval/score) does not improve by more than 0.001 in 5 evaluations."""
        return f"{self.named(recipe)} does not improve{self._enough} in {self._values}"

    def reason(self, recipe: str) -> str:
        """The reason why a run of the recipe was stopped."""
        return f"{BEGINS}{self.named(recipe)} has not improved{self._enough} in {self._values}"

    @property
    def _enough(self) -> str:
        return f" by more than {self.min_delta:g}" if self.min_delta else ""

    @property
    def _values(self) -> str:
        what = "evaluation" if self.metric.startswith(HELD_OUT) else "value"
        return f"{self.patience:,} {what}{'' if self.patience == 1 else 's'}"


def _declared(recipe: str, key: str) -> str:
    found = recipe_metrics.recipe_of(recipe)
    metric = found.metric(key) if found else None
    return metric.better if metric else ""


def choices(recipe: str) -> list[tuple[str, str]]:
    """The metrics of a recipe that a rule can name, (key, words), those of evaluations first."""
    found = recipe_metrics.recipe_of(recipe)
    sided = [each for each in found.metrics if each.better and not each.is_pattern] if found else []
    sided.sort(key=lambda each: not each.key.startswith(HELD_OUT))
    return [(each.key, f"{each.label} ({each.key})") for each in sided]


def used_up(run: Run) -> str:
    """Says that the rule of the run applies; empty if it does not, or if there are too few values. No query without a rule."""
    rule = EarlyStop.of(run.stop_early)
    return rule.reason(run.recipe) if rule and _applies(run, rule) else ""


def still_used_up(run: Run) -> str:
    """Like `used_up`, for a caller that holds the lock of the run: a single piece is read. Empty if there are more points, and a later look
    decides."""
    rule = EarlyStop.of(run.stop_early)
    return rule.reason(run.recipe) if rule and (_waited(run, rule) or 0) >= rule.patience else ""


def _applies(run: Run, rule: EarlyStop) -> bool:
    """Reads all points. The lock of the run is held for one piece at a time: in between, the run stores what it reports."""
    while (waited := _waited(run, rule)) is None:
        pass
    return waited >= rule.patience


def _waited(run: Run, rule: EarlyStop) -> int | None:
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).only("pk").get(pk=run.pk)  # nobody stores points meanwhile
        return patience.waited(run.pk, rule.metric, rule.side(run.recipe) != "lower", rule.min_delta)


def ended(run: Run) -> bool:
    """Whether its rule has ended the run: it was stopped, and its reason begins with that of a rule, which may have been changed since."""
    return run.state == Run.State.STOPPED and run.state_reason.startswith(BEGINS)


def check(run: Run) -> None:
    """Raises Conflict if the run would be stopped again at once."""
    if told := used_up(run):
        raise Conflict(f"{told}. Change or lift the rule first, under Stop early.", "stop_early")


@unless_deleted
def change(membership: Membership, run: Run, rule: EarlyStop | None) -> Run:
    """Sets another rule, or none. The same again changes nothing.

    Raises Invalid at each wrong field, and at `patience` if the run would be stopped at once.
    """
    if run.is_logged:
        raise LoggedElsewhere
    if rule and (wrong := dict(rule.problems(run.recipe))):
        raise Invalid("A run cannot stop early by this rule.", wrong)
    kept = rule.json() if rule else None
    if rule and run.stop_early != kept and _applies(run, rule):
        told = "the run would stop at once: its newest values are not better than those before them"
        raise Invalid("The run has not improved for so long already.", {"patience": told})
    with transaction.atomic():
        held = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        if held.stop_early != kept:
            Run.objects.filter(pk=run.pk).update(stop_early=kept)
            audit.record(membership, membership.user, "run.stop_early", run, stop_early=kept)
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)
    return run
