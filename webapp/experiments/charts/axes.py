"""By what the charts of a run can be drawn besides step and time: what it had sampled or learned from up to a step."""

from collections.abc import Callable, Iterable

from .. import recipe_metrics
from ..metrics import points
from ..models import Run

# The first whose metric the run has. The latter of each are counted up by other programs: TRL, transformers.
TOKENS = ("total(rollout/tokens)", "total(train/tokens)")
COUNTED = ("num_tokens", "train/num_tokens", "num_input_tokens_seen", "train/num_input_tokens_seen")
SAMPLES = ("total(rollout/responses)",)


def axes(run: Run) -> list[dict[str, str]]:
    """`[{"name", "label", "expression"}]` of those that its metrics tell."""
    known = {each.key for each in points.newest([run.pk])[run.pk]}
    recipe = recipe_metrics.recipe_of(run.recipe)

    def has(key: str) -> bool:
        declared = recipe.metric(key) if recipe and not run.is_over else None
        return key in known or (declared is not None and not declared.optional)

    tokens = _first([*TOKENS, *COUNTED], has_key=has)
    samples = _first(SAMPLES, has_key=has) or _of_batches(run, has("train/loss"))
    found = [("tokens", "Tokens", tokens), ("samples", "Samples", samples)]
    return [{"name": name, "label": label, "expression": given} for name, label, given in found if given]


def _first(expressions: Iterable[str], has_key: Callable[[str], bool]) -> str:
    named = (each for each in expressions if has_key(each.removeprefix("total(").removesuffix(")")))
    return next(named, "")


def _of_batches(run: Run, has_loss: bool) -> str:
    """The samples of a recipe that learns from a batch of stored texts at every step. Another program may not log every step."""
    size = run.config.get("batch_size")
    known = has_loss and isinstance(size, int) and not run.is_logged
    return f"{size} * total(1 + 0 * train/loss)" if known else ""
