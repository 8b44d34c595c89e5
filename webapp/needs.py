"""Everything that needs attention: failures, stalled runs, alarms, answers to decide on, and work that ended since yesterday."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone

from trainer.config.alarms import concern
from trainer.config.alarms import title as alarm_title
from trainer.contracts.plurals import counted
from trainer.metrics.claims import PLANS
from webapp.accounts.models import Membership, Role
from webapp.annotation.models import Comment, Project, Task
from webapp.annotation.models import Job as ProjectJob
from webapp.annotation.review import queries as review
from webapp.backups.models import Backup
from webapp.core.models import AuditEntry
from webapp.datasets.models import CurationJob, ImportJob
from webapp.evaluation.models import Evaluation
from webapp.experiments import queries, recipe_metrics
from webapp.experiments.lifecycle import stalls
from webapp.experiments.models import ChainStep, ClaimStudy, Run, RunAlarm, RunJudge, Sweep
from webapp.weights.models import WeightsJob

LATELY = timedelta(days=3)
"""The time for which failures and alarms are listed."""
NEWS = timedelta(days=1)
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
    """The most urgent first."""
    news: list[AttentionItem]
    """Work that ended well since yesterday."""
    waiting: list[AttentionItem] = field(default_factory=list)
    """Evaluations that wait in the line, in the order in which they were asked for."""


def of(membership: Membership) -> Needs:
    """The rows that need attention, for reviewers and above. The number of queries has a bound, for any number of rows."""
    workspace = membership.workspace.pk
    now = [
        *_failed_runs(workspace),
        *_failed(_evaluations(workspace), "Evaluation", "evaluations", "evaluation", "evaluations"),
        *_failed(_imports(workspace), "Import", "imports", "import_job", "datasets"),
        *_failed_jobs(workspace),
        *_failed(_sweeps(workspace), "Sweep", "sweeps", "sweep", "sweeps"),
        *_failed(_weights_jobs(workspace), "Job", "jobs", "weights_job", "weights_jobs"),
        *_failed(_curations(workspace), "Curation", "curations", "curation", "datasets"),
        *_refused_steps(workspace),
        *_refused_claims(workspace),
        *_failed_backup(membership),
        *_paused(workspace),
        *_blocked(workspace),
        *_still(workspace),
        *_alarms(workspace),
        *_to_decide(workspace),
        *_remarks(workspace),
    ]
    return Needs(now, _news(workspace), _waiting(workspace))


def _failed_runs(workspace: int) -> list[AttentionItem]:
    """Failed runs, without those after which a run of the same experiment finished: somebody has dealt with them."""
    runs = _runs(workspace)
    later = Run.objects.filter(experiment=OuterRef("experiment"), id__gt=OuterRef("id"), state=Run.State.FINISHED)
    failed = runs.filter(state=Run.State.FAILED, ended_at__gt=timezone.now() - LATELY).exclude(Exists(later))
    rows = list(failed.order_by("-ended_at")[: SINGLY + 1])
    if len(rows) > SINGLY:
        href = _table("failed", LATELY)
        text = f"The last is {_named(rows[0])}: {_reason(rows[0])}"
        return [AttentionItem("bad", f"{counted(failed.count(), 'runs')} failed", text, href, icon="circle-x")]
    return [
        AttentionItem("bad", f"{_named(run)} failed", _reason(run), _at("run_tab", run.pk, "log"), icon="circle-x")
        for run in rows
    ]


def _waiting(workspace: int) -> list[AttentionItem]:
    """Work that waits in the line, without the runs, which the page shows itself."""
    rows = Evaluation.objects.filter(workspace_id=workspace, state=Evaluation.State.QUEUED).exclude(problem="")
    found = list(rows.order_by("-priority", "asked_at", "pk")[: SINGLY + 1])
    if len(found) > SINGLY:
        text = f"The first is “{found[0].name}”. {_reason(found[0])}"
        return [
            AttentionItem(
                "info", f"{counted(rows.count(), 'evaluations')} wait", text, reverse("runs_line"), "hourglass"
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
            AttentionItem("bad", f"{counted(rows.count(), many)} failed", text, reverse(everything), icon="circle-x")
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
    return (
        shorten(str(said).partition("\n")[0], MOST_WORDS, placeholder=" …")
        or "The reason is not known; its page has the log."
    )


def _evaluations(workspace: int) -> QuerySet[Evaluation]:
    """Failed evaluations, without those that were run again since."""
    rows = Evaluation.objects.filter(workspace_id=workspace, reruns=None)
    return rows.filter(state=Evaluation.State.FAILED, ended_at__gt=timezone.now() - LATELY).order_by("-ended_at")


def _imports(workspace: int) -> QuerySet[ImportJob]:
    """Failed imports, without those after which an import into the same dataset finished."""
    rows = ImportJob.objects.filter(workspace_id=workspace, finished_at__gt=timezone.now() - LATELY)
    later = ImportJob.objects.filter(
        workspace_id=workspace,
        dataset_name=OuterRef("dataset_name"),
        id__gt=OuterRef("id"),
        state=ImportJob.State.FINISHED,
    )
    return rows.filter(state=ImportJob.State.FAILED).exclude(Exists(later)).order_by("-finished_at")


def _sweeps(workspace: int) -> QuerySet[Sweep]:
    """Failed sweeps; one that somebody resumes is under way again."""
    rows = Sweep.objects.filter(workspace_id=workspace, state=Sweep.State.FAILED)
    return rows.filter(ended_at__gt=timezone.now() - LATELY).order_by("-ended_at")


def _weights_jobs(workspace: int) -> QuerySet[WeightsJob]:
    """Failed jobs that need weights, without those of evaluations, which fail themselves."""
    rows = WeightsJob.objects.filter(workspace_id=workspace, state=WeightsJob.State.FAILED, evaluations=None)
    return rows.filter(ended_at__gt=timezone.now() - LATELY).order_by("-ended_at")


def _curations(workspace: int) -> QuerySet[CurationJob]:
    """Failed curations, without those after which a curation of the same kind finished for the same version."""
    later = CurationJob.objects.filter(
        version=OuterRef("version"), kind=OuterRef("kind"), id__gt=OuterRef("id"), state=CurationJob.State.FINISHED
    )
    rows = CurationJob.objects.filter(version__dataset__workspace_id=workspace, state=CurationJob.State.FAILED)
    lately = rows.filter(finished_at__gt=timezone.now() - LATELY).exclude(Exists(later))
    return lately.select_related("version__dataset").order_by("-finished_at")


def _refused_steps(workspace: int) -> list[AttentionItem]:
    """Steps of chains that could not be launched, the newest first."""
    rows = ChainStep.objects.filter(workspace_id=workspace, state=ChainStep.State.REFUSED, after__archived_at=None)
    rows = rows.filter(decided_at__gt=timezone.now() - LATELY).select_related("after__experiment", "project")
    return [
        AttentionItem(
            "bad",
            f"“{step}” after {_before(step)} could not be launched",
            _reason(step),
            _at("run_tab", step.after_id, "chain") if step.after else _at("project", step.project_id),
            icon="circle-x",
        )
        for step in rows.exclude(after=None, project=None).order_by("-decided_at")[:SINGLY]
    ]


def _before(step: ChainStep) -> str:
    """The run or the project for which the step waited."""
    return f"{step.after} of {step.after.experiment.name}" if step.after else f"the project “{step.project}”"


def _refused_claims(workspace: int) -> list[AttentionItem]:
    """Claims whose runs could not be launched. They have no time of that, so those are shown that were asked for lately."""
    rows = ClaimStudy.objects.filter(workspace_id=workspace, state=ClaimStudy.State.REFUSED, plan__in=PLANS)
    return [
        AttentionItem(
            "bad",
            f"The runs of the claim “{PLANS[study.plan].title}” could not be launched",
            _reason(study),
            _at("claim_study", study.pk),
            icon="circle-x",
        )
        for study in rows.filter(created_at__gt=timezone.now() - LATELY).order_by("-id")[:SINGLY]
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


def _paused(workspace: int) -> list[AttentionItem]:
    """Evaluations that paused by themselves. If a person has paused one, it says no reason."""
    rows = Evaluation.objects.filter(workspace_id=workspace, state=Evaluation.State.PAUSED).exclude(problem="")
    return [
        AttentionItem(
            "warn", f"Evaluation “{row.name}” paused", _reason(row), _at("evaluation", row.pk), "circle-pause"
        )
        for row in rows.order_by("-seen_at")[:SINGLY]
    ]


def _failed_jobs(workspace: int) -> list[AttentionItem]:
    """A project keeps the last job of each kind, so one that was repeated is not among them."""
    rows = ProjectJob.objects.filter(project__workspace_id=workspace, state=ProjectJob.State.FAILED)
    rows = rows.filter(finished_at__gt=timezone.now() - LATELY).select_related("project")
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


def _blocked(workspace: int) -> list[AttentionItem]:
    """Runs that wait for something outside them. Their reasons say for what, and what a person can do."""
    away = RunJudge.objects.filter(run=OuterRef("pk")).exclude(problem="")
    blocked = _runs(workspace).filter(state=Run.State.BLOCKED)
    rows = list(blocked.annotate(judge_away=Exists(away)).order_by("state_at")[: SINGLY + 1])
    if len(rows) > SINGLY:
        text = f"The first is {_named(rows[0])}: {_reason(rows[0])}"
        href = f"{reverse('runs')}?{urlencode({'q': 'state:blocked'})}"
        return [AttentionItem("warn", f"{counted(blocked.count(), 'runs')} are blocked", text, href, "hourglass")]
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


def _still(workspace: int) -> list[AttentionItem]:
    """Runs whose process is alive but whose steps do not advance."""
    running = _runs(workspace).filter(state=Run.State.RUNNING, first_metric_at__isnull=False)
    found = stalls.find(list(running.order_by("id")[:MOST_RUNNING]))
    return [_standing(each) for each in found[:SINGLY]]


def _standing(stall: stalls.Stall) -> AttentionItem:
    text = f"No step has ended for {counted(int(stall.quiet.total_seconds() // 60), 'minutes')}. Its log says what it does."
    title, href = f"{_named(stall.run)} stands still", _at("run_tab", stall.run.pk, "log")
    return AttentionItem("warn", title, text, href, icon="hourglass")


def _alarms(workspace: int) -> list[AttentionItem]:
    """A line for each run with alarms, which names the newest alarm."""
    rows = RunAlarm.objects.filter(run__in=_runs(workspace), time__gt=timezone.now() - LATELY)
    rows = rows.select_related("run__experiment").order_by("-time", "-id")
    by_run: dict[int, list[RunAlarm]] = {}
    for alarm in rows[: 10 * SINGLY]:
        by_run.setdefault(alarm.run_id, []).append(alarm)
    return [_alarm(alarms) for alarms in list(by_run.values())[:SINGLY]]


def _alarm(alarms: Sequence[RunAlarm]) -> AttentionItem:
    newest = alarms[0]
    more = f", and {counted(len(alarms) - 1, 'more alarms')}" if len(alarms) > 1 else ""
    text = f"{alarm_title(newest.signal, newest.subject)}, step {newest.step}{more}."
    title = f"{_named(newest.run)} {concern(newest.signal)}"
    return AttentionItem("warn", title, text, f"{_at('run', newest.run_id)}#alarms", icon="siren")


def _to_decide(workspace: int) -> list[AttentionItem]:
    """Projects with tasks that have all their answers but no decision, most tasks first."""
    return [_deciding(row) for row in review.undecided_by_project(workspace, MOST_PROJECTS)]


def _deciding(row: dict[str, Any]) -> AttentionItem:
    what = "to decide" if row["apart"] else "to accept"
    title = f"{counted(row['apart'] or row['alike'], 'tasks')} of “{row['project__name']}” {what}"
    return AttentionItem(
        "info", title, _apart(row["apart"], row["alike"]), _at("project_review", row["project_id"]), icon="scale"
    )


def _apart(apart: int, alike: int) -> str:
    if not apart:
        return "People agree on all of them, so you can accept them all at once."
    text = "People disagree there."
    return f"{text} On {counted(alike, 'more tasks')} they agree." if alike else text


def _remarks(workspace: int) -> list[AttentionItem]:
    rows = Comment.objects.filter(project__workspace_id=workspace, resolved_at=None)
    rows = rows.exclude(project__state=Project.State.CLOSED)
    found = rows.values("project_id", "project__name").annotate(count=Count("id")).order_by("-count")
    return [
        AttentionItem(
            "info",
            f"{counted(row['count'], 'remarks')} on “{row['project__name']}”",
            "An annotator noticed something about a task or the guidelines.",
            f"{_at('project_review', row['project_id'])}#remarks",
            icon="message-square",
        )
        for row in found[:MOST_PROJECTS]
    ]


def _news(workspace: int) -> list[AttentionItem]:
    since = timezone.now() - NEWS
    ended = _runs(workspace).filter(state=Run.State.FINISHED, ended_at__gt=since).order_by("-ended_at")
    runs, news = list(ended[: SINGLY + 1]), []
    if len(runs) > SINGLY:
        text = f"The last is {_named(runs[0])}."
        title = f"{counted(ended.count(), 'runs')} finished"
        news.append(AttentionItem("good", title, text, _table("finished", NEWS), icon="check"))
    else:
        news += [
            AttentionItem("good", f"{_named(run)} finished", _result(run), _at("run", run.pk), icon="check")
            for run in runs
        ]
    sweeps = Sweep.objects.filter(workspace_id=workspace, state=Sweep.State.FINISHED, ended_at__gt=since)
    news += _finished(sweeps.order_by("-ended_at"), "Sweep", "sweeps", "sweep", "sweeps")
    done = Evaluation.objects.filter(workspace_id=workspace, state=Evaluation.State.FINISHED, ended_at__gt=since)
    news += _finished(done.order_by("-ended_at"), "Evaluation", "evaluations", "evaluation", "evaluations")
    imports = ImportJob.objects.filter(workspace_id=workspace, state=ImportJob.State.FINISHED, finished_at__gt=since)
    news += _finished(imports.order_by("-finished_at"), "Import", "imports", "import_job", "datasets")
    return news + _complete_projects(workspace, since)


def _finished(rows: QuerySet[Any], one: str, many: str, page: str, everything: str) -> list[AttentionItem]:
    """Lines for the rows, newest first. Many share a line."""
    found = list(rows[: SINGLY + 1])
    if len(found) > SINGLY:
        text = f"The last is “{_name(found[0])}”."
        title = f"{counted(rows.count(), many)} finished"
        return [AttentionItem("good", title, text, reverse(everything), icon="check")]
    return [
        AttentionItem("good", f"{one} “{_name(row)}” finished", _came_of(row), _at(page, row.pk), icon="check")
        for row in found
    ]


def _came_of(row: Evaluation | ImportJob | Sweep) -> str:
    """The result that a person wants to know first, if the row itself has it."""
    if isinstance(row, ImportJob):
        known = "Its content was there already." if row.unchanged else ""
        return known or (f"{counted(row.rows_done, 'rows')}." if row.rows_done else "")
    return f"{counted(row.wanted, 'trials')}." if isinstance(row, Sweep) else ""


def _complete_projects(workspace: int, since: datetime) -> list[AttentionItem]:
    """Projects whose last answer came since then, and which wait for no new one. The audit log knows when it came."""
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


def _runs(workspace: int) -> QuerySet[Run]:
    return queries.runs(workspace).filter(archived_at=None)


def _named(run: Run) -> str:
    """The name of the run as the start of a sentence, in quotes because it may be any words: "Run 3 of …" if nobody has named it."""
    return f"{f'“{run.name}”' if run.name else f'Run {run.number}'} of {run.experiment.name}"


def _at(page: str, *parts: object) -> str:
    return reverse(page, args=parts)
