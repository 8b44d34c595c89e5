"""The memory that a job is expected to need on a machine without GPUs. The line counts it for a job that reserves none, as for a run.

It is the larger of two numbers: the forecast for the model that the job loads, and what the process of the newest job like it has held at
most. After a retry, what its own process has held counts, too.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Q
from pydantic import ValidationError

from trainer.memory.shape import ShapeUnknown

from .kinds import KINDS
from .models import WeightsJob

LIKE = ("sampler", "samples", "max_new_tokens", "texts", "task", "wanted", "run")
"""The params on which memory depends. Jobs of one kind and model are alike if they agree in these."""
LOOKED_AT = 200
"""The newest jobs of the kind and model among which one like it is looked for."""
HELD = "memory_bytes"


def expected_memory(job: WeightsJob) -> int | None:
    """Bytes; None if nothing is known."""
    rows = WeightsJob.objects.filter(workspace_id=job.workspace_id, kind=job.kind, model_id=job.model_id)
    # one that failed early, or has only begun, has not held its most
    rows = rows.filter(Q(acked__gt=0) | Q(state=WeightsJob.State.FINISHED), used__has_key=HELD)
    found = rows.exclude(pk=job.pk).order_by("-pk").values_list("params", "used")[:LOOKED_AT]
    mine = _decisive(job.params)
    held = next((_held(used) for params, used in found if _decisive(params) == mine), 0)
    return max(_forecast(job) or 0, held, _held(job.used)) or None


def _forecast(job: WeightsJob) -> int | None:
    try:
        return KINDS[job.kind].memory(job)
    except (ShapeUnknown, ValidationError):  # the params may be of an older version
        return None


def _decisive(params: Mapping[str, Any]) -> list[Any]:
    return [params.get(name) for name in LIKE]


def _held(used: Mapping[str, Any]) -> int:
    return int(used.get(HELD, 0))
