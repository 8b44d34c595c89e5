"""Everything that another program does with the runs that it logs here: begin, log, end, delete and restore.

Each function checks, changes rows under the lock of the run, and tells pages and webhooks after commit. What is logged twice is
stored once, and what comes late never replaces what is newer.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.utils import timezone

from trainer.contracts.plurals import with_noun
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.core.tasks import enqueue
from webapp.experiments import names, table_facts
from webapp.experiments.bulk import StepMetrics
from webapp.experiments.launch.services import create_experiment
from webapp.experiments.lifecycle.states import State, announce_state, facts
from webapp.experiments.live import broadcasts
from webapp.experiments.metrics import facts as metric_facts
from webapp.experiments.metrics import series, writing
from webapp.experiments.metrics.points import LoggedPoint
from webapp.experiments.models import LOGGED, OVER, Artifact, Experiment, Run
from webapp.experiments.table.models import MAX_PATH
from webapp.webhooks.services import announce

from . import alerts
from .models import ExperimentTags, LoggedRun

MOST_PARAMS, MOST_TAGS = 5_000, 1_000  # of one run
LONGEST_KEY, LONGEST_PARAM, LONGEST_TAG = 250, 6_000, 8_000  # characters
LAST_STEP = 2**31 - 1
ERROR = "touchstone.error"  # the tag in which a program says why its run failed
NO_REASON = "Its program reported a failure without a reason. The output of the program may say more."
IN_SUMMARY = 100  # metrics of a run whose last value its lists have
RESTORABLE = timedelta(days=30)
HEARD_AFTER = timedelta(minutes=10)  # after an outage of ours: programs try again that often at least


def experiment(membership: Membership, name: str, tags: Mapping[str, str] | None = None) -> Experiment:
    """Creates an experiment. Raises Invalid at `name`."""
    with transaction.atomic():
        row = create_experiment(membership, name)
        if tags:
            tag_experiment(row, tags)
    return row


def experiment_named(membership: Membership, name: str) -> Experiment:
    """The experiment of this name, made if it is not there."""
    found = Experiment.objects.filter(workspace=membership.workspace, name=name).first()
    if found is not None:
        return found
    try:
        return experiment(membership, name)
    except Invalid:  # made meanwhile
        return Experiment.objects.get(workspace=membership.workspace, name=name)


def tag_experiment(row: Experiment, tags: Mapping[str, str]) -> None:
    """Gives an experiment tags. Raises Invalid at a tag that is too long, or one too many."""
    with transaction.atomic():
        Experiment.objects.select_for_update(no_key=True).get(pk=row.pk)
        kept, _ = ExperimentTags.objects.get_or_create(experiment=row)
        kept.tags = merged(kept.tags, tags, "tags", MOST_TAGS, LONGEST_TAG)
        kept.save(update_fields=["tags"])


def begin(
    membership: Membership,
    where: Experiment,
    door: str,
    *,
    name: str = "",
    started_at: datetime | None = None,
    tags: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> LoggedRun:
    """A new run that is under way. The same `key` begins one run, however often it comes. Raises Invalid, KeyReused."""
    asked = idempotency.key(key, "logged", where.pk, name)
    mine = Run.objects.filter(created_by=membership.user, experiment__workspace=membership.workspace, recipe=LOGGED)
    if earlier := idempotency.row_of_key(mine, asked):
        return LoggedRun.objects.select_related("run__experiment__workspace", "run__created_by").get(run=earlier)
    kept = merged({}, tags or {}, "tags", MOST_TAGS, LONGEST_TAG)
    started = started_at or timezone.now()
    try:
        with transaction.atomic():
            Experiment.objects.select_for_update(no_key=True).get(pk=where.pk)  # two at once never take one number
            last = where.runs.aggregate(last=Max("number"))["last"] or 0
            run = Run.objects.create(
                experiment=where,
                number=last + 1,
                name=names.optional_name(name, "run_name"),
                recipe=LOGGED,
                config=dict(params or {}),
                state=State.RUNNING,
                started_at=started,
                heartbeat_at=timezone.now(),
                created_by=membership.user,
                launch_key=asked and asked.text,
                launch_digest=asked.digest if asked else "",
            )
            table_facts.keep_config(membership.workspace_id, run)
            Run.objects.filter(pk=run.pk).update(family=run.family)
            row = LoggedRun.objects.create(run=run, key=uuid4().hex, door=door, tags=kept)
            audit.record(membership, membership.user, "run.logged", run, name=str(run), door=door)
            broadcasts.run_changed(run)
            announce(membership.workspace_id, "run.started", facts(run), by=membership.user_id)
    except IntegrityError:
        if earlier := idempotency.made_meanwhile(Run, membership.user, mine, asked):
            return LoggedRun.objects.get(run=earlier)
        raise
    return row


def log(
    row: LoggedRun,
    points: Iterable[LoggedPoint] = (),
    params: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    without: Iterable[str] = (),
) -> None:
    """All of it or nothing; tags `without` are removed. Raises Invalid if a value has no place here or a param would change,
    and Conflict for a run that its program has deleted."""
    news = list(points)
    for place, point in enumerate(news):
        if not 0 <= point.step <= LAST_STEP:
            raise Invalid("This step cannot be stored.", {f"metrics.{place}.step": f"must be 0 to {LAST_STEP:,}"})
    with transaction.atomic():
        run = locked_run(row)
        note_sign_of_life(row, run)
        fields: dict[str, Any] = {}
        if params:
            fields["config"] = _with_params(run.config, params)
        if tags or without:
            gone = set(without)
            kept = {key: value for key, value in row.tags.items() if key not in gone}
            said, alerted = alerts.split(tags or {}, row.tags)
            row.tags = merged(kept, said, "tags", MOST_TAGS, LONGEST_TAG)
            row.save(update_fields=["tags"])
            alerts.announce_alerts(run, alerted)
        if news:
            writing.logged(run.pk, news)
            fields |= _progress(run, news)
        if fields:
            Run.objects.filter(pk=run.pk).update(**fields)
            run.refresh_from_db(from_queryset=Run.objects.with_names())
            _keep_facts(run, news, "config" in fields)
            broadcasts.metrics(run.pk, _by_step(news))
            broadcasts.run_changed(run)
    row.run = run


def settle(
    membership: Membership,
    row: LoggedRun,
    *,
    state: str | None = None,
    ended_at: datetime | None = None,
    name: str | None = None,
) -> None:
    """The state that the program reports: it may end a run and continue with it as often as it likes. Raises Invalid, Conflict."""
    with transaction.atomic():
        run = locked_run(row)
        LoggedRun.objects.filter(pk=row.pk).update(lost_at=None)
        run.heartbeat_at = timezone.now()
        moved = state is not None and state != run.state
        if name is not None:
            run.name = names.optional_name(name, "run_name")
        if state is not None:
            run.state = state
            run.ended_at = (ended_at or run.ended_at or timezone.now()) if state in OVER else None
            if run.ended_at and run.started_at:
                # a file may name only the end, and the clock of a program may be set back while it runs
                run.started_at = min(run.started_at, run.ended_at)
        if moved:
            run.state_at, run.state_reason = timezone.now(), _why(row) if state == State.FAILED else ""
        run.save(update_fields=["name", "state", "state_at", "state_reason", "started_at", "ended_at", "heartbeat_at"])
        if moved:
            if run.state in OVER:
                table_facts.keep_took(membership.workspace_id, run)
            announce_state(run, membership.user, run.state_reason)
        else:
            broadcasts.run_changed(run)
    row.run = run


def _why(row: LoggedRun) -> str:
    """The reason of a failure that the program gives. The tag goes, because it explains only this failure: the program may continue the
    run. The caller holds the lock of the run."""
    said = row.tags.pop(ERROR, "").strip()
    if said:
        row.save(update_fields=["tags"])
    return said or NO_REASON


def note_sign_of_life(row: LoggedRun, run: Run) -> None:
    """Notes a sign of life of the run's program: a run that was given up continues. The caller holds the lock of the run."""
    run.heartbeat_at = timezone.now()
    Run.objects.filter(pk=run.pk).update(heartbeat_at=run.heartbeat_at)
    if LoggedRun.objects.filter(pk=row.pk).exclude(lost_at=None).update(lost_at=None) and run.state == State.FAILED:
        run.state, run.state_at, run.ended_at = State.RUNNING, run.heartbeat_at, None
        run.state_reason = "Its program spoke again"
        run.save(update_fields=["state", "state_at", "state_reason", "ended_at"])
        announce_state(run, None, run.state_reason)


def mark_lost(since: datetime) -> int:
    """Gives up runs whose program has said nothing for LOGGED_SILENCE_HOURS: they count as failed until it speaks again. Returns how many.

    `since` is when we began to hear programs: after an outage of ours each has a while to be heard.
    """
    now, silence = timezone.now(), timedelta(hours=settings.LOGGED_SILENCE_HOURS)
    if not silence or now - since < HEARD_AFTER:
        return 0
    under_way = Run.objects.filter(recipe=LOGGED, state__in=(State.STARTING, State.RUNNING), logged__deleted_at=None)
    quiet = under_way.filter(Q(heartbeat_at__lt=now - silence) | Q(heartbeat_at=None, state_at__lt=now - silence))
    lost = 0
    for pk in list(quiet.values_list("pk", flat=True)[:1_000]):
        with transaction.atomic():
            run = quiet.with_names().select_for_update(of=("self",), no_key=True).filter(pk=pk).first()
            if run is None:  # it has spoken meanwhile
                continue
            LoggedRun.objects.filter(run=run).update(lost_at=now)
            run.state, run.state_at, run.ended_at = State.FAILED, now, run.heartbeat_at or run.state_at
            hours = with_noun(settings.LOGGED_SILENCE_HOURS, "hours")
            run.state_reason = (
                f"Lost: its program said nothing for {hours}. The run continues when its program sends something again."
            )
            run.save(update_fields=["state", "state_at", "state_reason", "ended_at"])
            table_facts.keep_took(run.experiment.workspace_id, run)
            announce_state(run, None, run.state_reason)
            lost += 1
    return lost


def delete(membership: Membership, row: LoggedRun) -> None:
    """Takes the run from all lists; for `RESTORABLE` its program may restore it. Deleting twice changes nothing."""
    with transaction.atomic():
        if LoggedRun.objects.filter(pk=row.pk, deleted_at=None).update(deleted_at=timezone.now()):
            audit.record(membership, membership.user, "run.hidden", row.run, name=str(row.run))


def restore(membership: Membership, row: LoggedRun) -> None:
    with transaction.atomic():
        if LoggedRun.objects.filter(pk=row.pk).exclude(deleted_at=None).update(deleted_at=None):
            audit.record(membership, membership.user, "run.restored", row.run, name=str(row.run))


def erase_deleted() -> int:
    """Erases the runs that were deleted so long ago that nobody can restore them any more. Returns how many. A run stays while the registry
    has a model of its files."""
    models = Artifact.objects.filter(run=OuterRef("run")).exclude(registered=None)
    old = LoggedRun.objects.filter(~Exists(models), deleted_at__lt=timezone.now() - RESTORABLE)
    erased = 0
    for pk in list(old.values_list("pk", flat=True)[:1_000]):
        with transaction.atomic():
            rows = LoggedRun.objects.select_for_update(of=("self", "run")).select_related("run__experiment__workspace")
            row = rows.filter(pk=pk, deleted_at__lt=timezone.now() - RESTORABLE).first()
            # restored meanwhile; and the lock may have waited for a model that joined the registry
            if row is None or not old.filter(pk=pk).exists():
                continue
            run = row.run
            audit.record(run.experiment.workspace, None, "run.delete", run, name=str(run), number=run.number)
            enqueue("workers.runs.remove_folder", run.pk)
            run.delete()
            erased += 1
    return erased


def locked_run(row: LoggedRun) -> Run:
    """The run under its lock, and `row` as it is now: two programs that log at once wait for one another."""
    run = Run.objects.with_names().select_for_update(of=("self",), no_key=True).get(pk=row.run_id)
    row.refresh_from_db(fields=["tags", "deleted_at"])
    if row.deleted_at is not None:
        raise Conflict("This run is deleted; restore it first.", "deleted")
    return run


def _with_params(known: Mapping[str, Any], params: Mapping[str, str]) -> dict[str, Any]:
    """The params with the new ones. The same value again changes nothing; another value is refused as a mistake of the program."""
    for key, value in params.items():
        if key in known and known[key] != value:
            raise Invalid(
                "A param cannot change.", {f"params.{key}": f"was logged as {str(known[key])[:200]!r} before"}
            )
    return merged(known, params, "params", MOST_PARAMS, LONGEST_PARAM)


def merged(known: Mapping[str, Any], news: Mapping[str, str], what: str, most: int, longest: int) -> dict[str, Any]:
    for key, value in news.items():
        if not 0 < len(key) <= LONGEST_KEY:
            raise Invalid("This key cannot be stored.", {f"{what}.{key[:80]}": f"has 1 to {LONGEST_KEY} characters"})
        if isinstance(value, str) and len(value) > longest:
            raise Invalid("A value is too long.", {f"{what}.{key}": f"has at most {longest:,} characters"})
    merged = {**known, **news}
    if len(merged) > most:
        raise Invalid(f"The run would have too many {what}.", {what: f"a run has at most {most:,}"})
    return merged


def _progress(run: Run, points: list[LoggedPoint]) -> dict[str, Any]:
    """The columns that say how far the run is, with the last values for lists. Values of a step that comes late are not among them."""
    summary: dict[str, float] = dict(run.summary)
    for point in sorted(points, key=lambda each: (each.step, each.time)):
        if point.step < run.step or not math.isfinite(point.value):
            continue
        if point.key in summary or len(summary) < IN_SUMMARY:
            summary[point.key] = point.value
    step = max(run.step, *(point.step for point in points))
    return {"summary": summary, "step": step, "first_metric_at": run.first_metric_at or timezone.now()}


def _keep_facts(run: Run, points: Iterable[LoggedPoint], config: bool) -> None:
    """Keeps what the table of runs sorts and filters by."""
    workspace_id = run.experiment.workspace_id
    if config:
        table_facts.keep_config(workspace_id, run)
        Run.objects.filter(pk=run.pk).update(family=run.family)
    short = [point for point in points if len(point.key) <= MAX_PATH]
    metric_facts.keep_metrics(workspace_id, run, series.of_steps(_by_step(short)))


def _by_step(points: Iterable[LoggedPoint]) -> list[StepMetrics]:
    steps: dict[int, StepMetrics] = {}
    for point in points:
        if math.isfinite(point.value):
            steps.setdefault(point.step, StepMetrics(point.step, point.time)).values[point.key] = point.value
    return sorted(steps.values(), key=lambda each: each.step)
