"""The failed runs of a sweep are resumed together, each as by its own *Resume*: from its last checkpoint, or from its beginning."""

from collections import Counter
from dataclasses import dataclass

from django.db import transaction

from trainer.config import ConfigInvalid, resolve, upgrade_stored
from trainer.contracts.plurals import noun, with_noun
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict
from webapp.core.tasks import enqueue

from ..lifecycle import services as lifecycle
from ..models import Run, Sweep, SweepRun
from . import rounds
from .services import ADVANCE, State, move

MOST_REASONS = 5
NONE_LEFT = "No failed run is left: somebody may have resumed them already."


@dataclass(frozen=True)
class RefusedRun:
    run: int
    reason: str


@dataclass(frozen=True)
class ResumedRuns:
    """The runs that one request has put into the line again, and those that it left as they are. Runs that another request resumed first
    are in neither."""

    runs: list[int]
    refused: list[RefusedRun]

    @property
    def words(self) -> str:
        """The result for people: the number of runs, and the most frequent reasons."""
        if not self.runs and not self.refused:
            return NONE_LEFT
        waits = "waits" if len(self.runs) == 1 else "wait"
        told = f"{with_noun(len(self.runs), 'failed runs')} {waits} in the line again."
        counted = Counter(each.reason for each in self.refused).most_common(MOST_REASONS)
        reasons = " ".join(f"{count} × {reason.rstrip('.')}." for reason, count in counted)
        left = len(self.refused)
        return f"{told} {left:,} {noun(left, 'runs')} stayed as before: {reasons}" if left else told


def resume_failed(membership: Membership, sweep: Sweep) -> ResumedRuns:
    """Resumes every failed run of the sweep that can be resumed; a sweep that was over is under way again. Of two requests at once, one
    resumes a run. Raises Conflict if the sweep is stopping, or if it is over before all of its trials were launched."""
    _check(sweep)
    rows = SweepRun.objects.filter(trial__sweep=sweep, run__state=Run.State.FAILED).select_related("trial", "run")
    found = ResumedRuns([], [])
    for row in list(rows.defer("run__config", "run__summary").order_by("run_id")):
        try:
            if _resume(membership, row):
                found.runs.append(row.run_id)
        except Conflict as problem:
            found.refused.append(RefusedRun(row.run_id, problem.message))
    if found.runs:
        _follow(membership, sweep, len(found.runs))
    return found


def may_resume(sweep: Sweep, launched: int) -> bool:
    """Whether the failed runs of the sweep, of which so many trials were launched, can be resumed together."""
    return sweep.state != State.STOPPING and not (_ended_early(sweep) and launched < sweep.wanted)


def _ended_early(sweep: Sweep) -> bool:
    return sweep.state in (State.STOPPED, State.FAILED)


def _check(sweep: Sweep) -> None:
    if sweep.state == State.STOPPING:
        raise Conflict("The sweep is stopping. Resume its failed runs when it has stopped.", "stopping")
    if not may_resume(sweep, sweep.trials.count()):
        ended = "was stopped" if sweep.state == State.STOPPED else "failed"
        told = (
            f"The sweep {ended} before all of its trials were launched. Resume the sweep first, or resume single runs."
        )
        raise Conflict(told, "trials_left")


def _resume(membership: Membership, row: SweepRun) -> bool:
    """False: another request was first, or the run has been deleted. Raises Conflict with the reason why the run cannot be resumed."""
    if rounds.stopped_at(row.trial):
        step = row.trial.rungs[-1]["step"]
        raise Conflict(f"Its trial was stopped early at step {step}, because it was not among the best")
    with transaction.atomic():
        held = Run.objects.with_names().select_for_update(of=("self",), no_key=True)
        run = held.filter(pk=row.run_id, attempt=row.run.attempt, state=Run.State.FAILED).first()
        if run is None:
            return False
        _check_config(run)
        lifecycle.resume(membership, run)
    return True


def _check_config(run: Run) -> None:
    """Raises Conflict if this version of the program refuses the config of the run."""
    try:
        resolve(run.recipe, upgrade_stored(run.recipe, run.config))
    except ConfigInvalid as error:
        told = "; ".join(f"{each.path}: {each.message}" for each in error.problems)
        raise Conflict(f"Its config is no longer valid: {told}", "config_invalid") from error


def _follow(membership: Membership, sweep: Sweep, count: int) -> None:
    """Lets the sweep wait for the resumed runs. It launches nothing for them: all of its trials are there, or it was under way anyway."""
    with transaction.atomic():
        row = Sweep.objects.select_for_update().get(pk=sweep.pk)
        audit.record(membership, membership.user, "sweep.resume_failed", row, runs=count)
        if row.is_over and may_resume(row, row.trials.count()):
            move(row, State.RUNNING, row.state_reason if row.state == State.FINISHED else "")
        enqueue(ADVANCE, row.pk)
    sweep.refresh_from_db()
