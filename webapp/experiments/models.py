"""Experiments, their runs, and the data of a run that no package below declares: questions to judges, alarms, log lines, artifacts."""

import re
from datetime import timedelta

from django.db import models
from django.utils import timezone

from trainer.contracts import TERMINAL_STATES
from webapp.core.background.priorities import Priority
from webapp.core.problems import Conflict
from webapp.datasets.models import DatasetVersion
from webapp.inference.models import RegisteredModel

from .after.models import ChainStep, ChainWait
from .charts.models import CustomChart, PinnedCharts
from .claims.models import ClaimRun, ClaimStudy, ClaimTask
from .launch.models import DiscardedDraft
from .metrics.models import MetricLevel, MetricPoint, MetricProgress, MetricStretch, Point, StepSpans
from .notes.models import TokenNote
from .outputs.retention.models import CheckpointRule
from .repeats.models import RepeatTime, RunRepeat
from .rollouts.models import BlockWords, EpisodeTurn, Rollout, WordBlock
from .sharing.models import SharedRun, ShareLink
from .sweeps.models import Sweep, SweepRun, SweepTrial
from .table.models import (
    KIN,
    SHOWN_NAME,
    FamilyChange,
    FamilyMean,
    RunChange,
    RunColumn,
    RunStar,
    RunTag,
    RunValue,
    RunView,
    RunViewChoice,
)

__all__ = ["ChainStep", "ChainWait", "FamilyChange", "FamilyMean", "RunChange", "RunColumn", "RunStar", "RunTag"]
__all__ += ["RunValue", "RunView", "RunViewChoice"]
__all__ += ["MetricLevel", "MetricPoint", "MetricProgress", "MetricStretch", "Point", "StepSpans"]
__all__ += ["ClaimRun", "ClaimStudy", "ClaimTask", "SharedRun", "ShareLink", "Sweep", "SweepRun", "SweepTrial"]
__all__ += ["CustomChart", "PinnedCharts", "TokenNote", "EpisodeTurn", "Rollout"]
__all__ += ["WordBlock", "BlockWords", "CheckpointRule", "RepeatTime", "RunRepeat", "DiscardedDraft"]

LOGGED = "logged"
"""The recipe of a run that another program trains and logs here: it cannot be started, stopped or resumed here."""


RETRIES = 2
"""The number of processes in a row that a run may lose unless somebody says otherwise: with the next one it is over."""

SEED_AT_END = re.compile(r"(?<=\S),? seed \d+\Z")


class Experiment(models.Model):
    """A question that several runs answer together."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="experiments")
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_experiment_per_name")]

    def __str__(self) -> str:
        return self.name


NAMES = ("experiment__workspace", "dataset_version__dataset", "model")


class RunQuerySet(models.QuerySet["Run"]):
    def with_names(self) -> "RunQuerySet":
        """Loads the rows whose names every Run object shows, too: one query, however many runs."""
        return self.select_related(*NAMES)

    def sharing_names(self) -> "RunQuerySet":
        """Like `with_names`, in six queries: what many of the runs share is read once, and is one object."""
        return self.select_related(None).prefetch_related(*NAMES)

    def present(self) -> "RunQuerySet":
        """Leaves out the runs that the program that logged them has deleted, and may restore.

        As EXISTS: for an outer join Postgres expects one row in two hundred to be left, and then reads all runs instead of walking an
        index.
        """
        deleted = Run.objects.filter(pk=models.OuterRef("pk"), logged__deleted_at__isnull=False)
        return self.exclude(models.Exists(deleted))


class Run(models.Model):
    """One training or evaluation process. Only conditional updates in `services` change its state."""

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"  # kept to be launched later; it is in no line, and may have problems
        QUEUED = "queued", "Queued"
        STARTING = "starting", "Starting"
        RUNNING = "running", "Running"
        BLOCKED = "blocked", "Blocked"  # its process waits for what is not its own: a judge, room on the disk
        PAUSING = "pausing", "Pausing"
        PAUSED = "paused", "Paused"  # by a person, without a process or a place, and meant to continue
        STOPPING = "stopping", "Stopping"
        STOPPED = "stopped", "Stopped"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"

    Priority = Priority

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()  # counts within the experiment
    name = models.CharField(max_length=120, blank=True)
    recipe = models.CharField(max_length=40)
    config = models.JSONField()  # resolved: every default filled in; of a draft with problems as somebody wrote it
    # of a draft: the dataset that it names, {"id", "name", "version"}; null of every other run
    draft = models.JSONField(null=True, blank=True)
    # null of drafts, and of a run that was logged from outside
    dataset_version = models.ForeignKey(
        "datasets.DatasetVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="runs"
    )
    model = models.ForeignKey(
        "inference.RegisteredModel", null=True, blank=True, on_delete=models.PROTECT, related_name="runs"
    )
    forked_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks")
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    state_reason = models.TextField(blank=True)
    state_at = models.DateTimeField(default=timezone.now)  # when the state last changed
    attempt = models.PositiveIntegerField(default=1)  # 1 + number of resumes
    memory_needed = models.BigIntegerField(null=True, blank=True)  # bytes: `lifecycle.memory_needs`; null: not known
    attempt_at = models.DateTimeField(default=timezone.now)  # when this attempt was asked for
    token_digest = models.CharField(max_length=64, blank=True)  # of this attempt's run token
    ray_job_id = models.CharField(max_length=80, blank=True)  # set once Ray has accepted this attempt
    # the Ray job of another run, in whose process this attempt trains or is about to; empty: it has its own
    carried_by = models.CharField(max_length=80, blank=True, default="", db_default="")
    # among the runs of its workspace, while it waits in the line
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL, db_default=0)
    tries = models.PositiveIntegerField(default=0)  # submissions of this attempt that Ray did not answer
    # processes lost in a row, without a checkpoint or a wish of somebody's between
    losses = models.PositiveSmallIntegerField(default=0, db_default=0)
    retries = models.PositiveSmallIntegerField(default=RETRIES, db_default=RETRIES)  # after which it continues itself
    next_try_at = models.DateTimeField(null=True, blank=True)  # the launch is due; null once Ray has accepted
    not_before = models.DateTimeField(null=True, blank=True)  # until then it takes no place
    # somebody wants it to stop by then, done with its step or not; null: it has the time that its steps take
    stop_by = models.DateTimeField(null=True, blank=True)
    # for how long its attempts ran, without the one that runs since `begun_at`, and may run in all (null: no limit)
    under_way = models.DurationField(default=timedelta, db_default=models.Value(timedelta()))
    begun_at = models.DateTimeField(null=True, blank=True)
    time_limit = models.DurationField(null=True, blank=True)
    token_limit = models.BigIntegerField(null=True, blank=True)  # what it may generate in all (null: no limit)
    # what all its judges together may use: tokens of prompts and replies, money in the unit of their prices (null: no limit)
    judge_token_limit = models.BigIntegerField(null=True, blank=True)
    judge_money_limit = models.DecimalField(max_digits=16, decimal_places=8, null=True, blank=True)
    stop_early = models.JSONField(null=True, blank=True)  # `lifecycle.early_stop.EarlyStop`; null: it does not
    launch_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 null: nothing to be unique with
    launch_digest = models.CharField(max_length=64, blank=True)  # of what was asked for with the key
    start_step = models.PositiveIntegerField(default=0)  # the step of the checkpoint of `forked_from`
    step = models.PositiveIntegerField(default=0)
    steps_total = models.PositiveIntegerField(default=0)
    phase = models.CharField(max_length=40, blank=True)
    phase_done = models.PositiveIntegerField(default=0)
    phase_total = models.PositiveIntegerField(default=0)
    eta_s = models.FloatField(null=True, blank=True)
    summary = models.JSONField(default=dict)  # last value of the headline metrics; `<eval key>:first` is the first
    # what trains and what samples, in the process's words; empty until it has said so
    learner_device = models.CharField(max_length=200, blank=True, default="", db_default="")
    sampler_device = models.CharField(max_length=200, blank=True, default="", db_default="")
    notes = models.TextField(blank=True, default="", db_default="")  # what people write on it, with the group
    group = models.CharField(max_length=80, blank=True, default="", db_default="")
    keep_checkpoints = models.BooleanField(default=False, db_default=False)  # independent of the rule of the workspace
    archived_at = models.DateTimeField(null=True, blank=True)  # then the table leaves it out unless asked
    # equal for runs of one recipe, model and data whose configs differ by the seed alone
    family = models.CharField(max_length=32, blank=True, default="", db_default="", editable=False)
    last_seq = models.BigIntegerField(default=0)  # highest event number below which nothing is missing
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    # in which people grade what its judge grades; null: the standing project
    graded_in = models.ForeignKey(
        "annotation.Project", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    first_metric_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)  # of one that is over, and of one that is paused
    stalled_at = models.DateTimeField(null=True, blank=True)  # since when it was told that its steps do not come
    # rollouts came after a worker last looked; words of theirs are not in the index yet (`rollouts.indexing`)
    words_due = models.BooleanField(default=False, db_default=False, editable=False)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["experiment", "number"], name="one_run_per_number"),
            models.UniqueConstraint(fields=["created_by", "launch_key"], name="one_run_per_launch_key"),
            models.CheckConstraint(
                condition=models.Q(recipe=LOGGED)
                | models.Q(state="draft")
                | models.Q(dataset_version__isnull=False, model__isnull=False),
                name="a_launched_run_has_data_and_model",
            ),
        ]
        indexes = [
            models.Index(fields=["state", "heartbeat_at"], name="run_liveness"),
            models.Index(fields=["id"], name="runs_to_index", condition=models.Q(words_due=True)),
            models.Index(SHOWN_NAME, "id", name="runs_by_shown_name"),
            models.Index("experiment", KIN, name="runs_of_a_family"),
            # all that filters of the table ask of a run: a config makes the rows themselves wide
            models.Index(
                fields=["experiment", "id"],
                name="run_facts",
                include=[
                    *("number", "name", "state", "archived_at", "recipe"),
                    *("model", "dataset_version", "group", "family"),
                    *("created_by", "created_at", "started_at", "ended_at"),
                ],
            ),
        ]

    def __str__(self) -> str:
        return self.name or f"run {self.number}"

    @property
    def quoted(self) -> str:
        """The name as a part of a sentence."""
        return f"“{self.name}”" if self.name else str(self)

    @property
    def name_over_seeds(self) -> str:
        """The name of all the runs that differ from it only by their seed: without the seed at its end, which sweeps and claims give."""
        return SEED_AT_END.sub("", str(self))

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL_STATES

    @property
    def is_logged(self) -> bool:
        """Whether another program trains it and only logs it here."""
        return self.recipe == LOGGED

    @property
    def is_draft(self) -> bool:
        return self.state == Run.State.DRAFT

    @property
    def not_here(self) -> "Conflict | None":
        """The reason why it has no data, model and job of this server; None of a run that was launched here."""
        if self.is_draft:
            return NotLaunched()
        return LoggedElsewhere() if self.is_logged else None

    @property
    def data(self) -> DatasetVersion:
        """The version on which a run that was launched here trains. Raises Conflict for a draft, or a run that was logged from outside."""
        if self.dataset_version is None:
            raise self.not_here or LoggedElsewhere
        return self.dataset_version

    @property
    def base(self) -> RegisteredModel:
        """The model with which a run that was launched here begins. Raises Conflict for a draft, or a run that was logged from outside."""
        if self.model is None:
            raise self.not_here or LoggedElsewhere
        return self.model


class LoggedElsewhere(Conflict):
    """The request needs something that only a run launched here has (409)."""

    def __init__(self) -> None:
        super().__init__("Another program logged this run here: it has no data, model or job of this server.", "logged")


class NotLaunched(Conflict):
    """The request needs a run that was launched, and this one is a draft (409)."""

    def __init__(self) -> None:
        super().__init__("This run is a draft. Launch it first.", "draft")


class RunSlot(models.Model):
    """A row that the config of a run names: the model or the version of a judge at `path`. The base model is one of them (`Run.model`)."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="slots")
    role = models.CharField(max_length=40)
    path = models.CharField(max_length=120)
    model = models.ForeignKey(
        "inference.RegisteredModel", null=True, blank=True, on_delete=models.PROTECT, related_name="run_slots"
    )
    judge = models.ForeignKey(
        "judging.JudgeVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="run_slots"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "path"], name="one_row_per_slot"),
            models.CheckConstraint(
                condition=models.Q(model__isnull=False, judge__isnull=True)
                | models.Q(model__isnull=True, judge__isnull=False),
                name="a_slot_holds_one_row",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role}: {self.model or self.judge}"


class RunJudge(models.Model):
    """A judge that a run asks through this server: its budget, its use, and why it cannot be asked, if so.

    If a budget is null, there is no limit. Tokens are those of prompts and replies, money is in the unit of the endpoint's prices.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="judges")
    version = models.ForeignKey("judging.JudgeVersion", on_delete=models.PROTECT, related_name="run_judges")
    budget_tokens = models.BigIntegerField(null=True, blank=True)
    budget_money = models.DecimalField(max_digits=16, decimal_places=8, null=True, blank=True)
    calls = models.BigIntegerField(
        default=0
    )  # calls that were answered; a verdict that was stored already is not a call
    failed = models.BigIntegerField(default=0)  # that nobody answered
    tokens = models.BigIntegerField(default=0)
    money = models.DecimalField(max_digits=16, decimal_places=8, default=0)
    problem = models.TextField(blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)  # when a worker last looked for its questions

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "version"], name="one_row_per_judge_of_a_run")]

    def __str__(self) -> str:
        return str(self.version)


class RunQuestion(models.Model):
    """A question of a run (`trainer.contracts.JudgeQuestion`). Once it is answered, the row only names the verdicts that answer it.

    `calls` are the keys of these verdicts, `made` the keys of those that were called for this question, 32 bytes each.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        DONE = "done", "Done"
        AWAY = "away", "The judge cannot be asked"

    judge = models.ForeignKey(RunJudge, on_delete=models.CASCADE, related_name="questions")
    key = models.CharField(max_length=64)
    state = models.CharField(max_length=6, choices=State.choices, default=State.QUEUED)
    content = models.JSONField(null=True)
    calls = models.BinaryField(default=bytes)
    made = models.BinaryField(default=bytes)
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["judge", "key"], name="one_question_per_key")]
        indexes = [
            models.Index(fields=["judge", "id"], name="queued_questions", condition=models.Q(state="queued")),
            models.Index(fields=["created_at"], name="old_questions"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.key[:12]}"


ALIVE = frozenset({Run.State.STARTING, Run.State.RUNNING, Run.State.BLOCKED, Run.State.PAUSING, Run.State.STOPPING})
ACTIVE = (Run.State.QUEUED, *sorted(ALIVE), Run.State.PAUSED)
OVER = frozenset({Run.State.STOPPED, Run.State.FINISHED, Run.State.FAILED})


class GradedResponse(models.Model):
    """A judged response that was drawn for people to grade as well, or that an alarm sent them, by its place in the run: a response that is
    sent twice is drawn once. `verdicts` are the judge's when the task was made, {criterion id: met}."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting for its task"
        ASKED = "asked", "People are asked"
        LEFT_OUT = "left_out", "Left out"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="graded")
    step = models.PositiveIntegerField()
    phase = models.CharField(max_length=8)
    group = models.PositiveIntegerField()
    index = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    problem = models.CharField(max_length=500, blank=True)  # why it was left out
    verdicts = models.JSONField(default=dict)
    # a person asked for it: it is not a random draw, and says nothing of how often judge and people agree
    alarm = models.ForeignKey("RunAlarm", null=True, blank=True, on_delete=models.CASCADE, related_name="graded")
    task = models.ForeignKey("annotation.Task", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step", "phase", "group", "index"], name="one_grading_per_place")
        ]
        indexes = [models.Index(fields=["run", "id"], name="waiting_gradings", condition=models.Q(state="waiting"))]

    def __str__(self) -> str:
        return f"{self.phase} {self.step}/{self.group}/{self.index} of run {self.run_id}"


class RunAlarm(models.Model):
    """More responses than usual show a sign that the policy games its reward (`trainer.contracts.AlarmData`).

    There is one row for each signal and subject: if a resumed run repeats steps, the repeat replaces the row.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="alarms")
    signal = models.CharField(max_length=40)
    subject = models.CharField(max_length=200, blank=True)
    step = models.PositiveIntegerField()
    content = models.JSONField()
    time = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "signal", "subject"], name="one_alarm_per_subject")]

    def __str__(self) -> str:
        return f"{self.signal} {self.subject} of run {self.run_id}"


class LogLine(models.Model):
    """A line of the log, in the order of `id`. `event` is null for lines of the server and of Ray."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="log_lines", db_index=False)
    event = models.BigIntegerField(null=True)
    time = models.DateTimeField()
    step = models.PositiveIntegerField(default=0)
    level = models.CharField(max_length=8)
    message = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "event"], name="one_log_line_per_event")]
        indexes = [models.Index(fields=["run", "id"], name="log_in_order")]

    def __str__(self) -> str:
        return self.message


class Artifact(models.Model):
    """Files that a run has left in its folder or, if `files` lists them, in the artifact store. `registered` is the model of
    the registry that such files are; `model` is what the run said of it (`trainer.contracts.ModelFacts`). A rule deleted it at `removed_at`
    (`outputs.retention`); while `erase_due`, its files may still be there."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts", db_index=False)
    step = models.PositiveIntegerField()
    role = models.CharField(max_length=16)
    path = models.CharField(max_length=500)
    bytes = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    model = models.JSONField(null=True, blank=True)
    files = models.JSONField(default=list, blank=True)
    registered = models.OneToOneField(
        "inference.RegisteredModel", null=True, blank=True, on_delete=models.SET_NULL, related_name="artifact"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)
    erase_due = models.BooleanField(default=False, db_default=False, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "path"], name="one_artifact_per_path")]
        indexes = [models.Index(fields=["id"], name="artifacts_to_erase", condition=models.Q(erase_due=True))]

    def __str__(self) -> str:
        return self.path


class ReasonMatching(models.Model):
    """A person's decision which reasons of a judgement say the same as which human reasons. The person does not see the matcher's result.

    A judgement by its place in the run is matched once. `matches` and `found`, the matcher's, hold [human, model] places in the two
    lists, of `human` and `model` reasons; a copy, for rollouts may be deleted.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="reason_matchings")
    step = models.PositiveIntegerField()
    phase = models.CharField(max_length=8)
    group = models.PositiveIntegerField()
    index = models.PositiveIntegerField()
    human = models.PositiveIntegerField()
    model = models.PositiveIntegerField()
    matches = models.JSONField(default=list)
    found = models.JSONField(default=list)
    matcher = models.CharField(max_length=200)
    made_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step", "phase", "group", "index"], name="one_matching_per_place")
        ]

    def __str__(self) -> str:
        return f"{self.phase} {self.step}/{self.group}/{self.index} of run {self.run_id}"
