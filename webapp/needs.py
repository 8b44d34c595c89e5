"""Everything that needs attention: failures, stalled runs, alarms, answers to decide on, and work that ended since yesterday."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone

from trainer.config.alarms import concern
from trainer.config.alarms import title as alarm_title
from trainer.contracts.plurals import with_noun
from trainer.metrics.claims import PLANS
from webapp.accounts.models import Membership, Role, Workspace
from webapp.annotation.models import Comment, Project, Task
from webapp.annotation.models import Job as ProjectJob
from webapp.annotation.review import queries as review
from webapp.backups.models import Backup
from webapp.core.database.made_once import StatementOfId
from webapp.core.models import AuditEntry
from webapp.core.text.texts import shortened
from webapp.datasets.models import CurationJob, ImportJob
from webapp.evaluation.models import Evaluation
from webapp.experiments import recipe_metrics
from webapp.experiments.lifecycle import stalls
from webapp.experiments.models import ChainStep, ClaimStudy, Run, RunAlarm, RunJudge, Sweep
from webapp.experiments.sweeps import outcomes
from webapp.weights.models import WeightsJob

from . import attention_rows as rows_of
from .attention_rows import LATELY, NEWS

SINGLY = 3
"""Up to this many of a kind have a line each; more share one."""
MOST_RUNNING = 50
MOST_PROJECTS = 5
MOST_WORDS = 300


@dataclass(frozen=True)
class AttentionItem:
    """One thing to look at. `tone` is one of the interface's: bad, warn, info, good."""

    tone: str
    title: str
    text: str
    href: str
    icon: str


@dataclass(frozen=True)
class Needs:
    now: list[AttentionItem]
    """Items that need attention, the most urgent first."""
    news: list[AttentionItem]
    """Work that ended well since yesterday."""
    waiting: list[AttentionItem] = field(default_factory=list)
    """Evaluations that wait in the line, in the order in which they were asked for."""


@dataclass(frozen=True)
class NeedKind:
    """Rows of one kind that need attention: the rows of a workspace, and the lines for them."""

    rows: Callable[[int], QuerySet[Any]]
    lines: Callable[[QuerySet[Any]], list[AttentionItem]]


def rows_that_need_attention(membership: Membership) -> Needs:
    """The rows that need attention, for reviewers and above. The number of queries has a bound, for any number of rows: one query says which
    kinds have rows, and only the rows of these are read."""
    workspace = membership.workspace.pk
    there = _present_kinds(workspace)
    now = [
        *_lines(FAILED, there),
        *_failed_backup(membership),
        *_lines(STANDING, there),
        *_to_decide(workspace),
        *_lines(REMARKED, there),
    ]
    return Needs(now, _lines(NEW, there) + _complete_projects(workspace), _lines(WAITING, there))


def _present_kinds(workspace: int) -> dict[NeedKind, QuerySet[Any]]:
    told = _PRESENT.rows(workspace)
    return {kind: kind.rows(workspace) for kind, there in zip(_kinds(), *told, strict=True) if there} if told else {}


def _kinds() -> tuple[NeedKind, ...]:
    return (*FAILED, *STANDING, *REMARKED, *NEW, *WAITING)


_PRESENT = StatementOfId(
    lambda workspace: Workspace.objects.filter(pk=workspace).values_list(
        *(Exists(kind.rows(workspace)) for kind in _kinds())
    )
)


def _lines(kinds: Iterable[NeedKind], there: Mapping[NeedKind, QuerySet[Any]]) -> list[AttentionItem]:
    return [line for kind in kinds if kind in there for line in kind.lines(there[kind])]


def _failed_runs(failed: QuerySet[Run]) -> list[AttentionItem]:
    rows = list(failed.order_by("-ended_at")[: SINGLY + 1])
    if len(rows) > SINGLY:
        href = _table("failed", LATELY)
        text = f"The last is {_named(rows[0])}: {_reason(rows[0])}"
        return [AttentionItem("bad", f"{with_noun(failed.count(), 'runs')} failed", text, href, icon="circle-x")]
    return [
        AttentionItem("bad", f"{_named(run)} failed", _reason(run), _where_it_says_why(run), icon="circle-x")
        for run in rows
    ]


def _where_it_says_why(run: Run) -> str:
    """The log of the run, or the page of a run that another program logs here, which has no log."""
    return _at("run", run.pk) if run.is_logged else _at("run_tab", run.pk, "log")


def _waiting(rows: QuerySet[Evaluation]) -> list[AttentionItem]:
    found = list(rows.order_by("-priority", "asked_at", "pk")[: SINGLY + 1])
    if len(found) > SINGLY:
        text = f"The first is “{found[0].name}”. {_reason(found[0])}"
        return [
            AttentionItem(
                "info", f"{with_noun(rows.count(), 'evaluations')} wait", text, reverse("runs_line"), "hourglass"
            )
        ]
    return [
        AttentionItem("info", f"Evaluation “{row.name}” waits", _reason(row), _at("evaluation", row.pk), "hourglass")
        for row in found
    ]


def _failed(rows: QuerySet[Any], one: str, many: str, page: str, everything: str) -> list[AttentionItem]:
    """Rows of evaluations or imports, the newest first."""
    found = list(rows[: SINGLY + 1])
    if len(found) > SINGLY:
        text = f"The last is “{_name(found[0])}”: {_reason(found[0])}"
        return [
            AttentionItem("bad", f"{with_noun(rows.count(), many)} failed", text, reverse(everything), icon="circle-x")
        ]
    return [
        AttentionItem("bad", f"{one} “{_name(row)}” failed", _reason(row), _at(page, row.pk), icon="circle-x")
        for row in found
    ]


def _name(row: Evaluation | ImportJob | Sweep | WeightsJob | CurationJob) -> str:
    if isinstance(row, ImportJob):
        return row.dataset_name
    if isinstance(row, CurationJob):
        return f"{row.get_kind_display()}: {row.version}"
    return row.title if isinstance(row, WeightsJob) else row.name


def _reason(row: Any) -> str:
    """The first line of what is known about the failure. Each kind of work stores it in a field of another name."""
    fields = ("state_reason", "problem", "error", "reason")
    said = next((text for field in fields if (text := getattr(row, field, ""))), "")
    first = str(said).strip().partition("\n")[0]
    log = "" if getattr(row, "is_logged", False) else "; its page has the log"
    return shortened(first, MOST_WORDS) or f"The reason is not known{log}."


def _refused_steps(rows: QuerySet[ChainStep]) -> list[AttentionItem]:
    """Items of refused steps, the newest first."""
    return [
        AttentionItem(
            "bad",
            f"“{step}” after {_before(step)} could not be launched",
            _reason(step),
            _at("run_tab", step.after_id, "chain") if step.after else _at("project", step.project_id),
            icon="circle-x",
        )
        for step in rows.order_by("-decided_at")[:SINGLY]
    ]


def _before(step: ChainStep) -> str:
    """The run or the project for which the step waited."""
    return f"{step.after} of {step.after.experiment.name}" if step.after else f"the project “{step.project}”"


def _refused_claims(rows: QuerySet[ClaimStudy]) -> list[AttentionItem]:
    return [
        AttentionItem(
            "bad",
            f"The runs of the claim “{PLANS[study.plan].title}” could not be launched",
            _reason(study),
            _at("claim_study", study.pk),
            icon="circle-x",
        )
        for study in rows.order_by("-id")[:SINGLY]
    ]


def _failed_backup(membership: Membership) -> list[AttentionItem]:
    """The last backup, if it failed. Only for administrators who own the workspace: nobody else can open the page."""
    if not (membership.may(Role.OWNER) and membership.user.is_administrator):
        return []
    over = Backup.objects.filter(state__in=(Backup.State.FINISHED, Backup.State.FAILED))
    last = over.order_by("-id").first()
    if last is None or last.state != Backup.State.FAILED:
        return []
    there = _at("installation_backups")
    return [AttentionItem("bad", "The last backup failed", _reason(last), there, icon="circle-x")]


def _paused(rows: QuerySet[Evaluation]) -> list[AttentionItem]:
    return [
        AttentionItem(
            "warn", f"Evaluation “{row.name}” paused", _reason(row), _at("evaluation", row.pk), "circle-pause"
        )
        for row in rows.order_by("-seen_at")[:SINGLY]
    ]


def _failed_jobs(rows: QuerySet[ProjectJob]) -> list[AttentionItem]:
    return [
        AttentionItem(
            "bad",
            f"“{job.get_kind_display()}” failed in “{job.project}”",
            _reason(job),
            _at("project", job.project_id),
            icon="circle-x",
        )
        for job in rows.order_by("-finished_at")[:SINGLY]
    ]


def _blocked(blocked: QuerySet[Run]) -> list[AttentionItem]:
    away = RunJudge.objects.filter(run=OuterRef("pk")).exclude(problem="")
    rows = list(blocked.annotate(judge_away=Exists(away)).order_by("state_at")[: SINGLY + 1])
    if len(rows) > SINGLY:
        text = f"The first is {_named(rows[0])}: {_reason(rows[0])}"
        href = f"{reverse('runs')}?{urlencode({'q': 'state:blocked'})}"
        return [AttentionItem("warn", f"{with_noun(blocked.count(), 'runs')} are blocked", text, href, "hourglass")]
    return [
        AttentionItem(
            "warn",
            f"{_named(run)} is blocked",
            _reason(run),
            f"{_at('run', run.pk)}{'#judges' if run.judge_away else ''}",
            icon="hourglass",
        )
        for run in rows
    ]


def _still(running: QuerySet[Run]) -> list[AttentionItem]:
    """Runs whose process is alive but whose steps do not advance."""
    found = stalls.find(list(running.order_by("id")[:MOST_RUNNING]))
    return [_standing(each) for each in found[:SINGLY]]


def _standing(stall: stalls.Stall) -> AttentionItem:
    text = f"No step has ended for {with_noun(int(stall.quiet.total_seconds() // 60), 'minutes')}. Its log says what it does."
    title, href = f"{_named(stall.run)} stands still", _at("run_tab", stall.run.pk, "log")
    return AttentionItem("warn", title, text, href, icon="hourglass")


def _alarms(rows: QuerySet[RunAlarm]) -> list[AttentionItem]:
    """A line for each run with alarms, which names the newest alarm."""
    by_run: dict[int, list[RunAlarm]] = {}
    for alarm in rows.order_by("-time", "-id")[: 10 * SINGLY]:
        by_run.setdefault(alarm.run_id, []).append(alarm)
    return [_alarm(alarms) for alarms in list(by_run.values())[:SINGLY]]


def _alarm(alarms: Sequence[RunAlarm]) -> AttentionItem:
    newest = alarms[0]
    more = f", and {with_noun(len(alarms) - 1, 'more alarms')}" if len(alarms) > 1 else ""
    text = f"{alarm_title(newest.signal, newest.subject)}, step {newest.step}{more}."
    title = f"{_named(newest.run)} {concern(newest.signal)}"
    return AttentionItem("warn", title, text, f"{_at('run', newest.run_id)}#alarms", icon="siren")


def _to_decide(workspace: int) -> list[AttentionItem]:
    """Projects with tasks that have all their answers but no decision, most tasks first."""
    return [_deciding(row) for row in review.undecided_by_project(workspace, MOST_PROJECTS)]


def _deciding(row: dict[str, Any]) -> AttentionItem:
    what = "to decide" if row["apart"] else "to accept"
    title = f"{with_noun(row['apart'] or row['alike'], 'tasks')} of “{row['project__name']}” {what}"
    return AttentionItem(
        "info", title, _apart(row["apart"], row["alike"]), _at("project_review", row["project_id"]), icon="scale"
    )


def _apart(apart: int, alike: int) -> str:
    if not apart:
        return "People agree on all of them, so you can accept them all at once."
    text = "People disagree there."
    return f"{text} On {with_noun(alike, 'more tasks')} they agree." if alike else text


def _remarks(rows: QuerySet[Comment]) -> list[AttentionItem]:
    found = rows.values("project_id", "project__name").annotate(count=Count("id")).order_by("-count")
    return [
        AttentionItem(
            "info",
            f"{with_noun(row['count'], 'remarks')} on “{row['project__name']}”",
            "An annotator noticed something about a task or the guidelines.",
            f"{_at('project_review', row['project_id'])}#remarks",
            icon="message-square",
        )
        for row in found[:MOST_PROJECTS]
    ]


def _finished_runs(rows: QuerySet[Run]) -> list[AttentionItem]:
    """Lines for the runs, newest first. Many share a line."""
    runs = list(rows.order_by("-ended_at")[: SINGLY + 1])
    if len(runs) > SINGLY:
        text = f"The last is {_named(runs[0])}."
        title = f"{with_noun(rows.count(), 'runs')} finished"
        return [AttentionItem("good", title, text, _table("finished", NEWS), icon="check")]
    return [
        AttentionItem("good", f"{_named(run)} finished", _result(run), _at("run", run.pk), icon="check") for run in runs
    ]


def _finished(rows: QuerySet[Any], one: str, many: str, page: str, everything: str) -> list[AttentionItem]:
    """Lines for the rows, newest first. Many share a line."""
    found = list(rows[: SINGLY + 1])
    if len(found) > SINGLY:
        text = f"The last is “{_name(found[0])}”."
        title = f"{with_noun(rows.count(), many)} finished"
        return [AttentionItem("good", title, text, reverse(everything), icon="check")]
    return [_ended(row, f"{one} “{_name(row)}” finished", _at(page, row.pk)) for row in found]


def _finished_sweeps(rows: QuerySet[Sweep]) -> list[AttentionItem]:
    return _finished(outcomes.with_outcomes(rows), "Sweep", "sweeps", "sweep", "sweeps")


def _ended(row: Evaluation | ImportJob | Sweep, title: str, href: str) -> AttentionItem:
    """The line of one row; a warning for a sweep in which no trial has a value."""
    if isinstance(row, Sweep) and not outcomes.outcome(row).measured_trials:
        return AttentionItem("warn", title, _came_of(row), href, icon="triangle-alert")
    return AttentionItem("good", title, _came_of(row), href, icon="check")


def _came_of(row: Evaluation | ImportJob | Sweep) -> str:
    """The result that a person wants to know first, if the row itself has it."""
    if isinstance(row, ImportJob):
        known = "Its content was there already." if row.unchanged else ""
        return known or (f"{with_noun(row.rows_done, 'rows')}." if row.rows_done else "")
    if isinstance(row, Sweep):
        found = outcomes.outcome(row)
        return outcomes.words(row.wanted, found.failed_trials, found.measured_trials)
    return ""


def _complete_projects(workspace: int) -> list[AttentionItem]:
    """Projects whose last answer came lately, and which wait for no new one. The audit log knows when it came."""
    since = timezone.now() - NEWS
    last = AuditEntry.objects.filter(
        object_type="project", object_id=OuterRef("pk"), action="project.complete", created_at__gt=since
    )
    rows = Project.objects.filter(Exists(last), workspace_id=workspace)
    rows = rows.exclude(Exists(Task.objects.filter(project=OuterRef("pk"), open=True)))
    return [
        AttentionItem("good", f"Project “{row.name}” has all its answers", "", _at("project", row.pk), icon="check")
        for row in rows.order_by("-id")[:MOST_PROJECTS]
    ]


def _result(run: Run) -> str:
    """The run's result in its recipe's words, from first to last."""
    found = recipe_metrics.result(run)
    if found.metric is None or found.last is None:
        return "It has no result of its own."
    first = "" if found.first is None else f", {recipe_metrics.measured(found.first, found.metric)} at first"
    return f"{found.metric.label} {recipe_metrics.measured(found.last, found.metric)}{first}."


def _table(state: str, lately: timedelta) -> str:
    """The address of the table of runs that reached this state lately."""
    since = (timezone.now() - lately).date()
    return f"{reverse('runs')}?{urlencode({'q': f'state:{state} ended>={since}'})}"


def _named(run: Run) -> str:
    """The name of the run as the start of a sentence, in quotes because it may be any words: "Run 3 of …" if nobody has named it."""
    return f"{f'“{run.name}”' if run.name else f'Run {run.number}'} of {run.experiment.name}"


def _at(page: str, *parts: object) -> str:
    return reverse(page, args=parts)


def _failure(rows: Callable[[int], QuerySet[Any]], one: str, many: str, page: str, everything: str) -> NeedKind:
    return NeedKind(rows, partial(_failed, one=one, many=many, page=page, everything=everything))


def _ending(rows: Callable[[int], QuerySet[Any]], one: str, many: str, page: str, everything: str) -> NeedKind:
    return NeedKind(rows, partial(_finished, one=one, many=many, page=page, everything=everything))


# the most urgent first
FAILED = (
    NeedKind(rows_of.failed_runs, _failed_runs),
    _failure(rows_of.failed_evaluations, "Evaluation", "evaluations", "evaluation", "evaluations"),
    _failure(rows_of.failed_imports, "Import", "imports", "import_job", "datasets"),
    NeedKind(rows_of.failed_project_jobs, _failed_jobs),
    _failure(rows_of.failed_sweeps, "Sweep", "sweeps", "sweep", "sweeps"),
    _failure(rows_of.failed_weights_jobs, "Job", "jobs", "weights_job", "weights_jobs"),
    _failure(rows_of.failed_curations, "Curation", "curations", "curation", "datasets"),
    NeedKind(rows_of.refused_steps, _refused_steps),
    NeedKind(rows_of.refused_claims, _refused_claims),
)
STANDING = (
    NeedKind(rows_of.paused_evaluations, _paused),
    NeedKind(rows_of.blocked_runs, _blocked),
    NeedKind(rows_of.stepping_runs, _still),
    NeedKind(rows_of.alarms, _alarms),
)
REMARKED = (NeedKind(rows_of.remarks, _remarks),)
NEW = (
    NeedKind(rows_of.finished_runs, _finished_runs),
    NeedKind(rows_of.finished_sweeps, _finished_sweeps),
    _ending(rows_of.finished_evaluations, "Evaluation", "evaluations", "evaluation", "evaluations"),
    _ending(rows_of.finished_imports, "Import", "imports", "import_job", "datasets"),
)
WAITING = (NeedKind(rows_of.waiting_evaluations, _waiting),)
