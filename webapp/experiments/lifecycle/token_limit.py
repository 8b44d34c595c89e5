"""The limit on the tokens that a run generates, for all its attempts together. At the limit it stops as if somebody had stopped it: with a
checkpoint.

A run reports at the end of each step what it has generated since the step before. The sum over the stored steps is what counts, so a step
that a resumed run repeats counts once, as it was reported last. Steps are added up when a run with a limit reports one.
"""

from typing import Any

from django.db import transaction

from trainer.config.metrics.common import GENERATED
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from .. import recipe_metrics
from ..live import broadcasts
from ..metrics import points
from ..models import LoggedElsewhere, Run
from .deleted_runs import unless_deleted

MOST = 2**53


def applies(run: Run) -> bool:
    """Whether the recipe of the run samples from its model."""
    return samples(run.recipe)


def samples(recipe: str) -> bool:
    """Whether the runs of a recipe sample from their model."""
    found = recipe_metrics.recipe_of(recipe)
    return found is not None and found.metric(GENERATED.key) is not None


def generated(run: Run) -> int | None:
    """Tokens that the run has reported, in all attempts; None if its recipe generates nothing. One query."""
    return round(points.total(run.pk, GENERATED.key)) if applies(run) else None


def used_up(run: Run) -> str:
    """Says that the limit is used up; empty if it is not."""
    if run.token_limit is None or (generated(run) or 0) < run.token_limit:
        return ""
    return f"The {run.token_limit:,} tokens that it may generate are used up"


def check(run: Run) -> None:
    """Raises Conflict if the run would be stopped again at once."""
    if told := used_up(run):
        raise Conflict(f"{told}. Raise or lift the limit first, under Token limit.", "token_limit")


@unless_deleted
def change(membership: Membership, run: Run, limit: int | None) -> Run:
    """Sets a new limit, or none. The same again changes nothing.

    Raises Conflict if the run generates nothing, and Invalid at `tokens` if that much is used already.
    """
    if run.is_logged:
        raise LoggedElsewhere
    if not applies(run):
        raise Conflict("A run of this recipe samples no responses: a limit on tokens does not apply.", "no_tokens")
    with transaction.atomic():
        held = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        used = generated(held) or 0
        if limit is not None and not used < limit < MOST:
            told = f"more than the {used:,} that it has generated" if limit <= used else f"less than {MOST:,}"
            raise Invalid("This is not a token limit.", {"tokens": f"must be {told}"})
        if held.token_limit != limit:
            Run.objects.filter(pk=run.pk).update(token_limit=limit)
            audit.record(membership, membership.user, "run.token_limit", run, tokens=limit)
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)
    return run


def shown(run: Run) -> dict[str, Any]:
    """The limit and the use as the API returns them."""
    return {"token_limit": run.token_limit, "generated_tokens": generated(run)}
