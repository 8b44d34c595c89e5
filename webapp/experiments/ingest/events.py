"""The one write path of events: a batch from the trainer becomes points, rollouts, log lines, artifacts and a state.

Everything of a batch is written in one transaction under a lock on the run's row, so an event is stored exactly once, even if it is
delivered several times or at the same moment.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone

from trainer.config.metrics.common import GENERATED
from trainer.contracts import (
    AlarmData,
    ArtifactData,
    DevicesData,
    EventBatch,
    IngestReply,
    LogData,
    MetricsData,
    ProgressData,
    RolloutsData,
    RunEvent,
    SpansData,
    StateData,
    TurnsData,
)
from webapp.core import broadcast
from webapp.core.database import prepared
from webapp.core.tasks import enqueue

from .. import bulk, recipe_metrics
from ..alarms import services as alarms
from ..lifecycle import services as lifecycle
from ..lifecycle import tokens
from ..lifecycle.states import ENDS, State, move
from ..live import broadcasts
from ..metrics import facts, spans, writing
from ..models import ALIVE, OVER, LogLine, Run, RunAlarm
from ..outputs import artifacts as outputs
from ..outputs import starting_points
from ..people import human_grades

TOLD_AS = {"paused": State.BLOCKED}
"""A process that waits calls itself paused; for a run, only people pause it."""

LOCKED = prepared.RowBy(lambda: Run.objects.with_names().select_for_update(of=("self",), no_key=True), "pk")


class Fenced(Exception):
    """The token is not that of the run's present attempt: the process that sent it must stop."""


@dataclass
class GatheredEvents:
    """The new events of one batch, sorted by the table into which they go."""

    steps: dict[int, bulk.StepMetrics] = field(default_factory=dict)
    spans: dict[int, SpansData] = field(default_factory=dict)
    rollouts: dict[tuple[int, str, int, int], bulk.RolloutRow] = field(default_factory=dict)
    turns: list[bulk.TurnsRow] = field(default_factory=list)
    lines: list[bulk.ToldLine] = field(default_factory=list)
    artifacts: dict[str, bulk.ArtifactRow] = field(default_factory=dict)
    alarms: dict[tuple[str, str], RunAlarm] = field(default_factory=dict)
    states: list[tuple[RunEvent, StateData]] = field(default_factory=list)
    counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    # keys of an event -> those that the summary keeps
    kept: dict[tuple[str, ...], list[str]] = field(default_factory=dict)


def apply(run_id: int, token: str, batch: EventBatch) -> IngestReply:
    """Stores what is new in `batch` and answers how far everything is stored. An empty batch is a sign of life.

    Numbers up to the run's `last_seq` are dropped as repeats; after a gap nothing is taken, so the trainer sends the
    missing events again. Raises Fenced, and writes nothing, if the token or the attempt is not the present one.
    """
    with transaction.atomic():
        run = LOCKED(run_id)
        if run is None or not tokens.is_current_token(token, run) or batch.attempt != run.attempt:
            raise Fenced
        was_over = run.is_over or run.state == State.PAUSED
        fresh = following(run.last_seq, batch.events)
        if fresh:
            _store(run, fresh, batch.begins)
        else:
            Run.objects.filter(id=run.id).update(heartbeat_at=timezone.now())
        return IngestReply(acked=run.last_seq, command=_command(run, was_over, bool(fresh) or not batch.events))


def following(last: int, events: Iterable[RunEvent]) -> list[RunEvent]:
    """The events numbered last + 1, last + 2, ... without a gap; repeats are dropped."""
    fresh: list[RunEvent] = []
    for event in sorted(events, key=lambda event: event.seq):
        if event.seq == last + 1:
            fresh.append(event)
            last = event.seq
        elif event.seq > last:
            break
    return fresh


def _command(run: Run, was_over: bool, news: bool) -> Any:
    if run.state in ENDS:
        return "stop"
    # a run that was given up (no sign of life for too long) and now speaks: its data is kept, but it must end.
    # A mere repeat is the trainer's last batch whose answer got lost; it has ended by itself.
    return "abandon" if was_over and news else "continue"


def _store(run: Run, fresh: list[RunEvent], begins: int) -> None:
    gathered = GatheredEvents()
    fields: dict[str, Any] = {"heartbeat_at": timezone.now(), "last_seq": fresh[-1].seq}
    for event in fresh:
        _gather(run, event, gathered, fields)
    shown = bool(fields.keys() - {"heartbeat_at", "last_seq"})
    if gathered.rollouts:
        fields["words_due"] = True
    told = sorted(gathered.steps.values(), key=lambda each: each.step)
    measured = writing.steps(run.id, told)
    if gathered.spans:
        spans.store(run.id, gathered.spans)
    bulk.upsert_turns(run.id, gathered.turns)
    bulk.upsert_rollouts(run.id, gathered.rollouts.values())
    human_grades.draw(run, gathered.rollouts.values())
    bulk.upsert_artifacts(run.id, gathered.artifacts.values())
    outputs.register(run, gathered.artifacts.values())
    alarms.store(run, gathered.alarms.values())
    if any(row.data.role == starting_points.CHECKPOINT and row.data.files for row in gathered.artifacts.values()):
        enqueue("workers.runs.prune", run.id)
    lines = bulk.insert_lines(run.id, gathered.lines)
    for name, value in fields.items():
        setattr(run, name, value)
    Run.objects.filter(id=run.id).update(**fields)
    facts.keep_metrics(run.experiment.workspace_id, run, measured)
    with broadcast.together():
        broadcasts.metrics(run.id, told)
        broadcasts.rollouts(run.id, gathered.counts)
        broadcasts.log(run.id, lines)
        if shown and not gathered.states:
            broadcasts.run_changed(run)
    moved = [
        _follow(run, event, data, begins) for event, data in gathered.states
    ]  # every one in turn: a batch may hold a whole life
    if shown and moved and not any(moved):
        broadcasts.run_changed(run)
    if any(GENERATED.key in each.values for each in told) and run.state in ALIVE:
        lifecycle.stop_at_tokens(run)  # the answer to this batch asks it to stop


def _gather(run: Run, event: RunEvent, gathered: GatheredEvents, fields: dict[str, Any]) -> None:
    data = event.data
    if isinstance(data, MetricsData):
        _gather_metrics(run, event, data, gathered, fields)
    elif isinstance(data, SpansData):
        gathered.spans[event.step] = data
    elif isinstance(data, RolloutsData):
        for record in data.rollouts:
            place = (event.step, record.phase, record.group, record.index)
            gathered.rollouts[place] = bulk.RolloutRow(event.step, record)
            gathered.counts[event.step, record.phase] += 1
    elif isinstance(data, TurnsData):
        gathered.turns.append(bulk.TurnsRow(event.step, data))
    elif isinstance(data, LogData):
        gathered.lines.append(bulk.ToldLine(event.seq, event.time, event.step, data.level, data.message))
    elif isinstance(data, ProgressData):
        fields.update(phase=data.phase, phase_done=data.done, phase_total=data.total, eta_s=data.eta_s)
        if event.step:  # while it loads, a resumed run does not know its step yet
            fields["step"] = _completed(fields.get("step", run.step), event.step)
    elif isinstance(data, DevicesData):
        fields.update(learner_device=data.learner, sampler_device=data.sampler)
    elif isinstance(data, ArtifactData):
        gathered.artifacts[data.path] = bulk.ArtifactRow(event.step, data)
        if data.role == starting_points.CHECKPOINT:
            fields["losses"] = 0
    elif isinstance(data, AlarmData):
        row = alarms.row(run, event, data)
        gathered.alarms[row.signal, row.subject] = row
    else:
        gathered.states.append((event, data))
        if data.state == "stopped" or (data.state == "failed" and event.step):  # 0 where it failed before it knew
            fields["step"] = event.step  # a step that was given up half way has told some of its metrics
        if data.summary:
            fields["summary"] = {**fields.get("summary", run.summary), **data.summary}


def _completed(known: int, under_way: int) -> int:
    """The number of complete steps while `under_way` runs: a step's own metrics complete it, and its work may continue after them."""
    return known if under_way - 1 <= known <= under_way else under_way - 1


def _gather_metrics(
    run: Run, event: RunEvent, data: MetricsData, gathered: GatheredEvents, fields: dict[str, Any]
) -> None:
    step = gathered.steps.setdefault(event.step, bulk.StepMetrics(event.step, event.time))
    step.time = event.time
    step.values |= data.values
    for key, histogram in data.histograms.items():
        step.histograms[key] = {"edges": list(histogram.edges), "counts": list(histogram.counts)}
    fields["step"] = event.step
    keys = tuple(data.values)
    if keys not in gathered.kept:  # the steps of a batch mostly have the same
        gathered.kept[keys] = [key for key in keys if recipe_metrics.remembers(run.recipe, key)]
    if kept := gathered.kept[keys]:
        news = {key: data.values[key] for key in kept}
        fields["summary"] = _summary(run, fields.get("summary", run.summary), news)
    if run.first_metric_at is None:
        fields.setdefault("first_metric_at", timezone.now())


def _summary(run: Run, summary: dict[str, float], news: dict[str, float]) -> dict[str, float]:
    """The last values of the metrics that the recipe shows on top and of the evaluations; for these, and for the headline, also the first
    value, to show what training has changed."""
    firsts = {
        key + recipe_metrics.FIRST: value for key, value in news.items() if recipe_metrics.keeps_first(run.recipe, key)
    }
    return {**firsts, **summary, **news}


def _follow(run: Run, event: RunEvent, data: StateData, begins: int) -> bool:
    """The state the trainer reports, if the run may go there: a run that was asked to stop does not run again."""
    if data.state in OVER and run.attempt > 1 and _of_an_earlier_attempt(run, event, begins):
        return False  # how that one ended, spooled while nobody heard it; this attempt only delivers it
    if data.lost:
        return _lose(run, event, data.reason)
    if data.state == State.RUNNING.value and run.started_at is None:
        return move(run, State.RUNNING, started_at=timezone.now())
    if data.state == State.STOPPED.value and run.state == State.PAUSING:
        return move(run, State.PAUSED, reason=data.reason.replace("Stopped", "Paused", 1))
    return move(run, TOLD_AS.get(data.state, data.state), reason=_limit_that_stopped(run, data) + data.reason)


def _limit_that_stopped(run: Run, data: StateData) -> str:
    """The limit at which the run was stopped, as the beginning of its reason; empty if a person stopped it, though a limit is used up too."""
    if data.state != State.STOPPED.value or run.state != State.STOPPING:
        return ""
    told = lifecycle.limit_used_up(run)
    return f"{told}. " if told and run.state_reason.startswith(told) else ""


def _lose(run: Run, event: RunEvent, reason: str) -> bool:
    """Lets a run that has lost one of its processes continue by itself, like a run whose main process was lost (`jobs`).

    If it has neither finished a step nor kept a checkpoint, it does not continue: a model that does not fit would fill the machine's memory
    again.
    """
    has_made = event.step > run.start_step or bool(starting_points.checkpoints(run))
    if run.state in ENDS:
        left = starting_points.remains(run).capitalize() if has_made else "It had not made a step"
        return move(run, ENDS[run.state], reason=f"{reason}. {left}")
    if not has_made:
        return move(
            run, State.FAILED, reason=f"{reason}. It had not finished a step, so it does not continue by itself"
        )
    if lifecycle.may_go_on(run) and lifecycle.go_on(run, reason):
        message = f"{run.state_reason}, as attempt {run.attempt}."
        line = LogLine(run=run, time=event.time, step=run.step, level="warning", message=message)
        broadcasts.log(run.id, LogLine.objects.bulk_create([line]))
        return True
    return move(run, State.FAILED, reason=f"{reason}. {starting_points.resuming(run)}")


def _of_an_earlier_attempt(run: Run, event: RunEvent, begins: int) -> bool:
    """Whether an event is from an earlier attempt, by its number. The clock decides only if the program does not send the number with which
    its own events begin: if the clock went back, the end of this attempt would be ignored, and the run would never be over."""
    return event.seq < begins if begins else event.time < run.attempt_at
