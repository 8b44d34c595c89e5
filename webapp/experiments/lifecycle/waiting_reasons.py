"""Puts into words why each item in the line waits: who has the places and resources, and for about how long."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.conf import settings

from webapp.accounts.administration import quotas

from ..models import Run
from ..serializers import within_limit
from . import claimants, estimates, resources, step_times, utc_times
from .claimants import Claimant
from .line_order import Free, Why, walk
from .resources import Kind, amount

NAMED = 3  # those who have a place that a reason names
TOLD = 100  # of those that wait, whose reason is kept up to date


@dataclass(frozen=True)
class WaitingRun:
    """A waiting run: how many are before it, why it waits (empty: it is about to start), after how many seconds it is its turn, and how long
    it takes then, if that is known."""

    claimant: Claimant
    before: int
    reason: str
    starts_in_s: float | None
    takes_s: float | None = None

    @property
    def run(self) -> Run | None:
        return self.claimant.run


class Holders:
    """All that have places."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.all = claimants.placed()
        runs = [run for each in self.all if each.run for run in (each.run, *each.beside)]
        silent = [run for run in runs if estimates.seconds_left(run, now) is None]
        self._paces = step_times.step_s([run for run in silent if run.state in (Run.State.STARTING, Run.State.RUNNING)])

    def left(self, each: Claimant) -> float | None:
        """Seconds until its place is free. Runs that train together have one place until the last of them is over."""
        if each.job:
            return estimates.left_of_job(each.job, self.now)
        if each.run is None:
            return None
        known = [self._left_of(run) for run in (each.run, *each.beside)]
        found = [seconds for seconds in known if seconds is not None]
        return max(found) if len(found) == len(known) else None

    def _left_of(self, run: Run) -> float | None:
        said = estimates.seconds_left(run, self.now)
        found = step_times.seconds_left(run, self._paces.get(run.pk)) if said is None else said
        return within_limit(run, found, self.now)

    def of(self, workspace_id: int) -> list[Claimant]:
        return [each for each in self.all if each.workspace_id == workspace_id]

    def runs_of(self, workspace_id: int) -> list[Claimant]:
        return [each for each in self.of(workspace_id) if each.run]


def waiting_runs(holders: Holders, free: Free, most: int = TOLD) -> Iterator[WaitingRun]:
    """The first of the line, in its order. Takes their share of what is `free`."""
    known = quotas.limits_by_workspace()
    mine: Counter[int] = Counter()
    needed: Counter[Kind] = Counter()
    last: float | None = None
    pace = step_times.step_s([each.run for each in claimants.waiting() if each.run])
    for before, (each, why) in enumerate(islice(walk(free), most)):
        limits = quotas.limits_of(each.workspace_id, known)
        after: float | None = None
        if why is None:
            reason, after = "", 0.0
        elif why == Why.TIME and each.run:
            reason, after = _until(each.run, holders.now)
        elif why == Why.LIMIT:
            after = _turn(mine[each.workspace_id] + 1, holders, holders.runs_of(each.workspace_id))
            reason = f"Waits: {_may_run(limits.running_runs)}"
        elif why == Why.QUOTA:
            reason = f"Waits: {resources.over_quota(each.gpus, limits.gpus or 0)}"
        elif why == Why.FULL:
            after = _turn(before + 1, holders, holders.all)
            reason = _reason(each, holders, before)
        elif why == Why.MORE:
            reason = _more(each, free)
        else:
            kinds = [kind for kind in Kind if kind in free.counted(each)]
            needed.update({kind: _wants(each, kind, free) for kind in kinds})
            missing = [kind for kind in kinds if needed[kind] > free.of(kind)]
            after = last = _all_free(missing, needed, free, holders) if missing else last
            reason = _for_resources(each, free, (missing or kinds)[0], before, holders)
        mine[each.workspace_id] += each.run is not None
        paced = step_times.seconds_left(each.run, pace.get(each.run.pk)) if each.run else None
        takes = within_limit(each.run, paced, holders.now) if each.run else None
        told = _when(None if why == Why.TIME else after, takes, takes != paced)
        yield WaitingRun(each, before, reason + told if why else "", after, takes)


def _wants(claimant: Claimant, kind: Kind, free: Free) -> float:
    asks = amount(claimant.asks, kind)
    return free.needed(claimant, kind) if claimant.expected and kind == Kind.MEMORY else asks


def _until(run: Run, now: datetime) -> tuple[str, float]:
    """The reason why a run that may not start yet waits, and for how long at least."""
    moment = run.not_before or now
    told = f"Waits until {utc_times.utc_text(moment, now)}"
    if run.losses:  # nobody asked for that time
        told = (
            f"Its process was lost. It tries again at {utc_times.utc_text(moment, now)} ({run.losses} of {run.retries})"
        )
    return told, (moment - now).total_seconds()


def _turn(place: int, holders: Holders, found: Sequence[Claimant]) -> float | None:
    """The time after which as many of them are over. The runs that start then take places for an unknown time, so nothing is known beyond
    their number."""
    return estimates.until(place, [(holders.left(each), 1) for each in found])


def _all_free(missing: Sequence[Kind], needed: Mapping[Kind, float], free: Free, holders: Holders) -> float | None:
    """The time after which this much is free of each kind. None if it is not known of one of them."""
    if free.lost:
        return None
    found = [
        estimates.until(
            needed[kind] - free.of(kind), [(holders.left(each), amount(each.asks, kind)) for each in holders.all]
        )
        for kind in missing
    ]
    known = [after for after in found if after is not None]
    return max(known) if len(known) == len(found) else None


def _when(after: float | None, takes: float | None, limited: bool) -> str:
    known = " at most, because of its time limit" if limited else ", as earlier runs did"
    lasts = "" if takes is None else f"takes {estimates.about(takes)}{known}"
    if after is None:
        return f". It {lasts}" if lasts else ""
    return f". Its turn comes in {estimates.about(after)}{', and it ' if lasts else ''}{lasts}"


def _more(claimant: Claimant, free: Free) -> str:
    """The reason why one waits that asks for more than the cluster has."""
    for kind in (Kind.GPUS, Kind.CPUS):
        asks, there = amount(claimant.asks, kind), amount(free.there, kind)
        if there and asks > there and not claimant.job:
            why = f"it asks for {resources.of_kind(claimant.asks, kind).words}, the cluster has {kind.words(there)}"
            return f"Waits for {kind.value}: {why}. It starts once there are as many; others pass it"
    why = f"it asks for {free.own(claimant).words}, and no machine of the cluster has as much"
    return f"Waits: {why}. It starts once one has; others pass it"


def _for_resources(claimant: Claimant, free: Free, kind: Kind, before: int, holders: Holders) -> str:
    line = _line(before)
    if free.lost and kind == Kind.GPUS:
        return f"Waits for GPUs{line}: {resources.missing(free.lost)}"
    verb = "is expected to need" if kind == Kind.MEMORY and claimant.expected else "asks for"
    asks = f"it {verb} {resources.of_kind(claimant.asks, kind).words}, the cluster has {kind.words(amount(free.there, kind))}"
    left = free.of(kind)
    return (
        f"Waits for {kind.value}: {asks}, and {kind.words(left)} {'is' if kind == Kind.MEMORY else 'are'} free"
        f"{_held(claimant, kind, holders)}{line}"
    )


def _held(claimant: Claimant, kind: Kind, holders: Holders) -> str:
    """The holders of this kind of resource in words; those of another workspace are only counted."""
    mine = [each for each in holders.of(claimant.workspace_id) if amount(each.asks, kind)][:NAMED]
    named = [f"{_name(each, holders)} has {kind.words(amount(each.asks, kind))}" for each in mine]
    others = sum(amount(each.asks, kind) for each in holders.all if each not in mine)
    if others:
        named.append(f"others have {kind.words(others)}")
    return f" ({', '.join(named)})" if named else ""


def _reason(claimant: Claimant, holders: Holders, before: int) -> str:
    """The reason for waiting, with names; those of another workspace are only counted."""
    mine = holders.of(claimant.workspace_id)[:NAMED]
    names = [_name(each, holders) for each in mine]
    if others := _others([each for each in holders.all if each not in mine]):
        names.append(others)
    most = settings.MAX_RUNNING_RUNS
    return f"Waits for {', '.join(names) or 'its turn'}{_line(before)}: {most} may run at once (MAX_RUNNING_RUNS)"


def _others(found: Sequence[Claimant]) -> str:
    kinds = sorted({"run" if each.run else "job" for each in found}, reverse=True)
    if len(found) == 1:
        return f"another {kinds[0]}"
    return f"{' and '.join(f'{kind}s' for kind in kinds)} of others" if found else ""


def _name(each: Claimant, holders: Holders) -> str:
    after = holders.left(each)
    return name(each) + (f" ({estimates.about(after)} left)" if after is not None else "")


def name(each: Claimant) -> str:
    if each.run:
        return f"{each.run.quoted} of {each.run.experiment.name}"
    return f"job {each.row.pk}, {each.row}".rstrip(", ")


def _line(before: int) -> str:
    return f", and {before} more {'is' if before == 1 else 'are'} before it in the line" if before else ""


def _may_run(limit: int | None) -> str:
    runs = "no run of this workspace may" if limit == 0 else f"{limit} run{'s' * (limit != 1)} of this workspace may"
    return f"{runs} run at once. An administrator of this installation can change that"
