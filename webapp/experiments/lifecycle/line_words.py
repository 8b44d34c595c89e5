"""What each run of the line waits for, in words: who has what, and for about how long."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.conf import settings

from trainer.contracts.counted import counted
from webapp.accounts import quotas
from webapp.weights import gpus as weights_gpus

from ..models import Run
from . import estimates, moments, resources
from .line_order import Gpus, Why, launched, walk

NAMED = 3  # runs that a reason names
TOLD = 100  # waiting runs whose reason is kept up to date


@dataclass(frozen=True)
class Waiting:
    """A run of the line: how many are before it, why it waits (empty: it is about to start) and after how many seconds it is its turn,
    where that is known."""

    run: Run
    before: int
    reason: str
    starts_in_s: float | None


class Holders:
    """The runs that have places, and jobs that have GPUs."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.runs = list(launched(resources.RUNNING).with_names().defer("config").order_by("id"))
        self.jobs = weights_gpus.taken()

    def left(self, run: Run) -> float | None:
        return estimates.left(run, self.now)

    def of(self, workspace_id: int) -> list[Run]:
        return [run for run in self.runs if run.experiment.workspace_id == workspace_id]


def standing(holders: Holders, gpus: Gpus, most: int = TOLD) -> Iterator[Waiting]:
    """The first of the line, in its order. Takes of `gpus` what they are given."""
    known = quotas.own()
    mine: Counter[int] = Counter()
    needed = 0
    for before, (run, why) in enumerate(islice(walk(gpus), most)):
        workspace_id = run.experiment.workspace_id
        limits = quotas.of(workspace_id, known)
        after: float | None = None
        if why is None:
            reason, after = "", 0.0
        elif why == Why.TIME:
            reason, after = _until(run, holders.now)
        elif why == Why.LIMIT:
            after = _turn(mine[workspace_id] + 1, holders, holders.of(workspace_id))
            reason = f"Waits: {_may_run(limits.running_runs)}"
        elif why == Why.QUOTA:
            reason = f"Waits: {resources.over_quota(run, limits.gpus or 0)}"
        elif why == Why.FULL:
            after = _turn(before + 1, holders, holders.runs)
            reason = _reason(run, holders, before)
        else:
            needed += resources.asked(run) if why == Why.GPUS else 0
            after = _gpus_free(needed - gpus.free, holders) if why == Why.GPUS and not gpus.lost else None
            reason = _for_gpus(run, gpus, why, before, holders)
        mine[workspace_id] += 1
        told = "" if why == Why.TIME else _when(after)
        yield Waiting(run, before, reason + told if why else "", after)


def _until(run: Run, now: datetime) -> tuple[str, float]:
    """Why one that is not to start yet waits, and for how long at least."""
    moment = run.not_before or now
    told = f"Waits until {moments.words(moment, now)}"
    if run.losses:  # nobody asked for that time
        told = f"Its process was lost. It tries again at {moments.words(moment, now)} ({run.losses} of {run.retries})"
    return told, (moment - now).total_seconds()


def _turn(place: int, holders: Holders, runs: list[Run]) -> float | None:
    """After how long as many of the runs are over. Whoever then starts takes a place as well, for how long nobody knows: beyond the
    number of runs it cannot be told."""
    return estimates.until(place, [(holders.left(run), 1) for run in runs])


def _gpus_free(count: int, holders: Holders) -> float | None:
    return estimates.until(count, [(holders.left(run), resources.asked(run)) for run in holders.runs])


def _when(after: float | None) -> str:
    return "" if after is None else f". Its turn comes in {estimates.about(after)}"


def _for_gpus(run: Run, gpus: Gpus, why: Why, before: int, holders: Holders) -> str:
    line = _line(before)
    if gpus.lost:
        return f"Waits for GPUs{line}: {resources.missing(gpus.lost)}"
    asks = f"it asks for {counted(resources.asked(run), 'GPUs')}, the cluster has {gpus.there}"
    if why == Why.MORE:
        return f"Waits for GPUs: {asks}. It starts once there are as many; others pass it"
    return f"Waits for GPUs: {asks}, and {gpus.free} are free{_held(run, holders)}{line}"


def _held(run: Run, holders: Holders) -> str:
    """Who has the GPUs; of another workspace's runs only that they are there."""
    mine = holders.of(run.experiment.workspace_id)[:NAMED]
    named = [f"{_name(each, holders)} has {resources.asked(each)}" for each in mine]
    others = sum(resources.asked(each) for each in holders.runs) - sum(resources.asked(each) for each in mine)
    if others:
        named.append(f"other runs have {others}")
    if holders.jobs:
        named.append(f"jobs under Models have {holders.jobs:g}")
    return f" ({', '.join(named)})" if named else ""


def _reason(run: Run, holders: Holders, before: int) -> str:
    """Names what it waits for; of another workspace's runs only that they are there."""
    mine = holders.of(run.experiment.workspace_id)[:NAMED]
    names = [_name(other, holders) for other in mine]
    others = len(holders.runs) - len(names)
    if others:
        names.append("runs of others" if others > 1 else "another run")
    most = settings.MAX_RUNNING_RUNS
    return f"Waits for {', '.join(names) or 'its turn'}{_line(before)}: {most} may run at once (MAX_RUNNING_RUNS)"


def _name(run: Run, holders: Holders) -> str:
    after = holders.left(run)
    return f"{run} of {run.experiment.name}" + (f" ({estimates.about(after)} left)" if after is not None else "")


def _line(before: int) -> str:
    return f", and {before} more {'is' if before == 1 else 'are'} before it in the line" if before else ""


def _may_run(limit: int | None) -> str:
    runs = "no run of this workspace may" if limit == 0 else f"{limit} run{'s' * (limit != 1)} of this workspace may"
    return f"{runs} run at once. An administrator of this installation can change that"
