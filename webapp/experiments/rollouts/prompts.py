"""One prompt through training: the steps at which it was sampled, read from an index of the prompts of a run."""

from typing import Any

from django.db.models import Aggregate, Avg, Count, FloatField, Func, IntegerField, Max, Min, StdDev, Value
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Length, NullIf

from webapp.core.problems import Invalid

from ..models import Rollout, Run
from .queries import decode, encode

MOST = 2_000
"""Steps of a page without lengths."""
MOST_WITH_LENGTHS = 100
"""Lengths are read from the responses, which are stored apart from the rows: each must be fetched."""
PHASES = ("train", "eval")
ORDER, COLUMNS = "prompt", ("-step",)


def steps(
    run: Run, example_key: str, phase: str, *, lengths: bool = True, cursor: str | None = None, limit: int = 50
) -> dict[str, Any]:
    """`{"example_key", "phase", "phases", "prompt", "items": [a step, the newest first], "next"}`.

    The time of a page depends on its steps and not on the run's rollouts. Raises Invalid at `cursor`, and at `limit` if lengths of more
    than MOST_WITH_LENGTHS steps are asked for.
    """
    if lengths and limit > MOST_WITH_LENGTHS:
        reason = f"at most {MOST_WITH_LENGTHS} with lengths; lengths=false allows {MOST:,}"
        raise Invalid("These are too many steps at once.", {"limit": reason})
    whole = Rollout.objects.filter(run=run, example_key=example_key)
    rows = whole.filter(phase=phase)
    if cursor:
        (before,) = decode(cursor, ORDER, COLUMNS)
        rows = rows.filter(step__lt=before)
    measured = rows.values("step").annotate(**REWARDS, **(LENGTHS if lengths else {}))
    found = list(measured.order_by("-step")[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    newest = whole.filter(phase=phase).order_by("-step", "-phase", "-group", "-index")
    return {
        "example_key": example_key,
        "phase": phase,
        "phases": [each for each in PHASES if whole.filter(phase=each).exists()],
        "prompt": newest.values_list(KeyTextTransform("prompt", "content"), flat=True).first(),
        "items": found,
        "next": encode(ORDER, [found[-1]["step"]]) if more else None,
    }


REWARDS: dict[str, Aggregate] = {
    "responses": Count("*"),
    "rewarded": Count("reward"),
    "mean": Avg("reward"),
    "spread": StdDev("reward", sample=True),
    "low": Min("reward"),
    "high": Max("reward"),
}
_count = Func(KeyTransform("tokens", "content"), function="jsonb_array_length", output_field=IntegerField())
LENGTHS: dict[str, Aggregate] = {
    # an empty list says that tokens were not recorded, not that there were none
    "tokens": Avg(NullIf(_count, Value(0)), output_field=FloatField()),
    "characters": Avg(Length(KeyTextTransform("response", "content")), output_field=FloatField()),
}
