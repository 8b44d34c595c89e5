"""Runs of one sweep that train in one process: which ones belong together, and how they count.

One of them has the Ray job and carries the others (`Run.carried_by`, the name of that job). Each run keeps its own state, attempt, token
and checkpoints, and its own outcome if the process is lost. Places and GPUs are counted by process.
"""

from collections.abc import Iterable, Iterator

from django.db.models import Count, Q
from django.utils import timezone

from ..live import broadcasts
from ..models import ALIVE, Run, RunQuerySet, Sweep, SweepTrial

MOST = 8
"""Runs of one process."""
State = Run.State


def process(run: Run) -> str:
    """The name of the Ray job that this attempt is in, or will be."""
    return run.carried_by or own_job(run)


def own_job(run: Run) -> str:
    return f"run-{run.pk}-{run.attempt}"


def by_process(runs: Iterable[Run]) -> Iterator[Run]:
    """One run for each process."""
    return (first for first, *_ in processes(runs))


def processes(runs: Iterable[Run]) -> Iterable[list[Run]]:
    """The runs of each process, in the order of their first ones."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(process(run), []).append(run)
    return found.values()


def is_waited_for(run: Run) -> bool:
    """Whether its sweep, whose runs train together, is still launching others for the same process."""
    sweep = Sweep.objects.filter(trials__runs__run=run, together=True, state=Sweep.State.RUNNING).first()
    if sweep is None:
        return False
    count = sweep.trials.aggregate(all=Count("pk"), now=Count("pk", filter=Q(state=SweepTrial.State.RUNNING)))
    return bool(count["all"] < sweep.wanted and count["now"] < sweep.at_once)


def company(run: Run) -> list[Run]:
    """The queued runs of its sweep that can start now, in its process."""
    now = timezone.now()
    mine = Sweep.objects.filter(trials__runs__run=run, together=True)
    rows = Run.objects.filter(state=State.QUEUED, swept__trial__sweep__in=mine).exclude(pk=run.pk)
    rows = rows.filter(Q(not_before=None) | Q(not_before__lte=now))
    return list(rows.with_names().order_by("-priority", "attempt_at", "pk")[: MOST - 1])


def carried(run: Run) -> RunQuerySet:
    """The runs that start with this run, which has the job."""
    return Run.objects.filter(carried_by=own_job(run), state__in=ALIVE)


def others(run: Run) -> RunQuerySet:
    """Runs that are alive in the same process."""
    if not run.ray_job_id:
        return Run.objects.none()
    return Run.objects.filter(ray_job_id=run.ray_job_id, state__in=ALIVE).exclude(pk=run.pk)


def goes_on(job: str) -> bool:
    """Whether the Ray job of this name has a run whose attempt is under way."""
    return Run.objects.filter(ray_job_id=job, state__in=ALIVE).exists()


def handed_over(run: Run) -> None:
    """Notes whether Ray has the job of `run`, also for the runs that it carries."""
    noted = Run.objects.filter(pk=run.pk).values_list("ray_job_id", flat=True).first()
    if noted != own_job(run):  # also if it was deleted meanwhile
        return
    starting = carried(run).filter(state=State.STARTING, ray_job_id="")
    for guest in list(starting.with_names()):
        if starting.filter(pk=guest.pk, attempt=guest.attempt).update(ray_job_id=noted, state_reason=""):
            guest.refresh_from_db(from_queryset=Run.objects.with_names())
            broadcasts.run_changed(guest)


def let_go() -> list[Run]:
    """Puts runs back into the line whose carrier does not start any more. Runs whose carrier has its job by now are noted with it."""
    back = []
    for guest in Run.objects.filter(state=State.STARTING, ray_job_id="").exclude(carried_by="").with_names():
        _, pk, attempt = guest.carried_by.split("-")
        carrier = Run.objects.filter(pk=int(pk), attempt=int(attempt)).first()
        if carrier is not None and carrier.ray_job_id == guest.carried_by:
            handed_over(carrier)
        elif carrier is None or carrier.state != State.STARTING:
            back.append(guest)
    return back
