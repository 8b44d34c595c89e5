"""One table says which states follow one another, and one function changes the state of a run."""

from collections.abc import Callable, Collection, Mapping

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.core.auditing import audit
from webapp.webhooks.services import announce

from .. import table_facts
from ..live import broadcasts
from ..models import ALIVE, OVER, Run, RunJudge
from . import time_limit, waiting_line, work_spans

State = Run.State
_when_finished: list[Callable[[Run], None]] = []
_when_over: list[Callable[[Run], None]] = []

WORKING = ALIVE - {State.PAUSING, State.STOPPING}
# target -> the states it may be reached from. A draft is made as one, and leaves that state by being launched. A run leaves `stopped`, `failed` and `paused` only by being resumed, and `finished`
# by being extended. One whose process was lost goes back to the line from where it is.
SOURCES: dict[str, frozenset[str]] = {
    State.DRAFT: frozenset(),
    State.QUEUED: OVER | WORKING | {State.DRAFT, State.PAUSED},
    State.STARTING: frozenset({State.QUEUED}),
    State.RUNNING: frozenset({State.STARTING, State.BLOCKED}),
    State.BLOCKED: frozenset({State.STARTING, State.RUNNING}),
    State.PAUSING: WORKING,
    State.PAUSED: frozenset({State.QUEUED, State.PAUSING}),
    State.STOPPING: WORKING | {State.PAUSING},
    State.STOPPED: ALIVE | {State.QUEUED, State.PAUSED},
    State.FINISHED: ALIVE,
    State.FAILED: ALIVE | {State.QUEUED},
}
ENDS = {State.STOPPING.value: State.STOPPED, State.PAUSING.value: State.PAUSED}
"""The end of a run whose process was asked to save and to end."""
ASKED = {State.STOPPED.value: "run.stopping", State.PAUSED.value: "run.pausing"}
"""The audit entry of the person who asked for the end of a process."""
TOLD = frozenset({State.FINISHED, State.FAILED, State.STOPPED, State.PAUSED})  # to webhooks and people


def move(
    run: Run,
    to: str,
    *,
    actor: User | None = None,
    reason: str = "",
    sources: Collection[str] | None = None,
    told: Mapping[str, object] | None = None,
    **fields: object,
) -> bool:
    """Moves `run` to state `to` and sets `fields` with it. False: it is not in a state, or attempt, that allows this;
    `sources` narrows the states further. `told` is added to the entry of the audit log.

    The update names the states it may start from, so of two people, tabs or workers who try the same, one succeeds.
    `run` is brought up to date either way.
    """
    now = timezone.now()
    gives_back = to in OVER or to == State.PAUSED
    if gives_back:
        fields.setdefault("ended_at", now)
        fields.update(next_try_at=None, eta_s=None)
    fields.update(time_limit.clock(to, now), stalled_at=None)
    with transaction.atomic():
        moved = Run.objects.filter(
            id=run.id,
            attempt=run.attempt,
            state__in=SOURCES[to] if sources is None else SOURCES[to].intersection(sources),
        ).update(state=to, state_reason=reason, state_at=now, **fields)
        run.refresh_from_db(from_queryset=Run.objects.with_names())
        if moved:
            # who asked it to stop is the entry's actor; a name in the detail could not be taken out (`personal_data.erasing`)
            # a blocked run returns to RUNNING too, and its time does not start again
            begins = to == State.RUNNING and run.begun_at == now
            if begins:
                work_spans.begin(run, now)
            elif gives_back or to == State.QUEUED:
                work_spans.end(run, now)
            announce_state(run, actor, reason if to not in ENDS or actor is None else "", begins=begins, told=told)
            if to == State.FINISHED:
                for keep in _when_finished:
                    keep(run)
            if to in OVER:
                table_facts.keep_took(run.experiment.workspace_id, run)
                for note in _when_over:
                    note(run)
            if gives_back:
                # once this is committed: the lock of the line comes before any lock of a run
                transaction.on_commit(waiting_line.let_in)
    return bool(moved)


def announce_state(
    run: Run, actor: User | None, reason: str, *, begins: bool = False, told: Mapping[str, object] | None = None
) -> None:
    """Tells the audit log, the open pages, webhooks and people that a run has come to its state. Call it in the transaction of the change.

    `begins`: an attempt began to run. `told`: what else the entry of the audit log says.
    """
    detail: dict[str, object] = {"attempt": run.attempt, **({"reason": reason} if reason else {}), **(told or {})}
    if run.state == State.PAUSED:
        detail["step"] = run.step  # without it, the entry is older than pauses: see `runs.history`
    audit.record(run.experiment.workspace, actor, f"run.{run.state}", run, **detail)
    broadcasts.run_changed(run)
    by = None if actor is None or run.is_logged else actor.pk  # of a logged run it is the program that speaks
    if actor is None and (asked := ASKED.get(run.state)):
        by = audit.who_asked(run, asked, attempt=run.attempt)
    if run.state == State.BLOCKED:
        announce(run.experiment.workspace_id, "run.blocked", facts(run) | {"judge": waiting_judge(run)})
    elif run.state in TOLD:
        announce(run.experiment.workspace_id, f"run.{run.state}", facts(run), by=by)
    elif begins:
        announce(run.experiment.workspace_id, "run.started", facts(run))


def waiting_judge(run: Run) -> str:
    """The name of a judge that the run cannot ask at present; empty if it can ask all of them."""
    away = RunJudge.objects.filter(run=run).exclude(problem="").select_related("version__judge").order_by("pk").first()
    return str(away.version) if away else ""


def when_finished(write: Callable[[Run], None]) -> Callable[[Run], None]:
    """Decorator of a function that writes rows for a run that has finished, in the same transaction."""
    _when_finished.append(write)
    return write


def when_over(note: Callable[[Run], None]) -> Callable[[Run], None]:
    """Decorator of a function that writes rows for a run that has finished, was stopped or has failed, in the same transaction."""
    _when_over.append(note)
    return note


def facts(run: Run) -> dict[str, object]:
    return {
        "run": run.id,
        "name": str(run),
        "experiment": run.experiment.name,
        "recipe": run.recipe,
        "attempt": run.attempt,
        "step": run.step,
        "reason": run.state_reason,
        "summary": run.summary,
    }
