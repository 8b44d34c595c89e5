"""The attempts of runs in the ledger of what work has cost (`webapp.usage`): from its first word on until it gives its place back.

The time is the one that counts towards the time limit. A run that another program logs here has no process of ours, and so no attempts.
"""

from datetime import datetime

from webapp.core.distributed import cluster
from webapp.usage import spans
from webapp.usage.models import WorkKind

from ..models import ALIVE, Run
from ..queries import work_of
from . import resources, together

SPREAD = " of the Ray cluster"
"""The ending of the name of devices if they are other processes, which do not say whether they have GPUs."""


def begin(run: Run, now: datetime) -> None:
    if not run.is_logged:
        spans.begin(work_of(run), run.attempt, now, _gpus(run))


def end(run: Run, now: datetime) -> None:
    if not run.is_logged:
        on_gpu = _on_gpu(run)
        spans.end(WorkKind.RUN, run.pk, now, on_gpu=on_gpu, gpus=_gpus(run) or 1.0 if on_gpu else None)


def _on_gpu(run: Run) -> bool | None:
    """Whether its process said that it computes on a GPU; None if it did not say, or not of all its processes."""
    said = run.learner_device
    if not said or said.endswith(SPREAD):
        return None
    if not said.startswith("the processor"):
        return True
    return None if run.sampler_device.endswith(SPREAD) else False


def _gpus(run: Run) -> float | None:
    """The GPUs that Ray has set aside for the run. Runs that train in one process share its GPUs in equal parts. None: the cluster is not
    known, or it had GPUs that are gone."""
    there = cluster.last_state()
    if there is None or (not there.gpus and cluster.last_reported_gpus()):
        return None
    if not there.gpus:
        return 0.0
    guests = Run.objects.filter(carried_by=together.process(run), state__in=ALIVE).exclude(pk=run.pk).count()
    return resources.requested_resources(run).gpus / (1 + guests + bool(run.carried_by))
