"""The axes of a run's charts besides step and time: what it had sampled or learned from up to a step."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from .. import recipe_metrics
from ..metrics import points
from ..models import Run


@dataclass(frozen=True)
class UsageMetric:
    """A metric that tells how much a run has used: at each step, so that it is to be summed, or of all steps so far."""

    key: str
    summed: bool

    @property
    def expression(self) -> str:
        return f"total({self.key})" if self.summed else self.key


# The first that a run has. Other programs count up themselves: TRL, transformers.
USAGE = {
    "tokens": (
        *(UsageMetric(key, summed=True) for key in ("rollout/tokens", "train/tokens")),
        *(UsageMetric(f"{prefix}num_tokens", summed=False) for prefix in ("", "train/")),
        *(UsageMetric(f"{prefix}num_input_tokens_seen", summed=False) for prefix in ("", "train/")),
    ),
    "samples": (UsageMetric("rollout/responses", summed=True),),
}


def usage(keys: Collection[str]) -> list[dict[str, Any]]:
    """`[{"name", "metrics"}]` for several runs that together have these metrics. The first of `metrics` that a run has counts for it."""
    told = {name: [each for each in known if each.key in keys] for name, known in USAGE.items()}
    return [{"name": name, "metrics": [vars(each) for each in found]} for name, found in told.items() if found]


def axes(run: Run) -> list[dict[str, str]]:
    """`[{"name", "label", "expression"}]` of those that its metrics tell."""
    known = {each.key for each in points.newest([run.pk])[run.pk]}
    recipe = recipe_metrics.recipe_of(run.recipe)

    def has(key: str) -> bool:
        declared = recipe.metric(key) if recipe and not run.is_over else None
        return key in known or (declared is not None and not declared.optional)

    tokens, samples = (_first(each for each in USAGE[name] if has(each.key)) for name in ("tokens", "samples"))
    samples = samples or _of_batches(run, has("train/loss"))
    found = [("tokens", "Tokens", tokens), ("samples", "Samples", samples)]
    return [{"name": name, "label": label, "expression": given} for name, label, given in found if given]


def _first(found: Iterable[UsageMetric]) -> str:
    return next((each.expression for each in found), "")


def _of_batches(run: Run, has_loss: bool) -> str:
    """The samples of a recipe that learns from a batch of stored texts at every step. Another program may not log every step."""
    size = run.config.get("batch_size")
    known = has_loss and isinstance(size, int) and not run.is_logged
    return f"{size} * total(1 + 0 * train/loss)" if known else ""
