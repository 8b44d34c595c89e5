"""Projects, tasks, assignments and answers.

A task holds a fixed number of seats (`overlap`). A claim takes a seat with a conditional update, so no more than that many people ever work
on it. The resulting assignment is unique per task and person. Answers are never changed: reopening makes the next revision.

Some counters always equal the rows that they count: `Task.taken` and `Task.done` (of tasks with seats; gold tasks have none and count
nothing) and `Participant.submitted`. Only `tasks.seats` writes the first two.
"""

from django.db import models
from django.db.models import F, Q

from webapp.accounts.models import Proof

MAX_OVERLAP = 50


class Project(models.Model):
    """A project: what people are asked about a version of a dataset, how many people, and how. `settings` fits `kinds.Settings`."""

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        OPEN = "open", "Open"
        PAUSED = "paused", "Paused"
        CLOSED = "closed", "Closed"

    class Strategy(models.TextChoices):
        ORDER = "order", "As in the dataset"
        RANDOM = "random", "Random"
        UNCERTAINTY = "uncertainty", "Most uncertain first"
        DISAGREEMENT = "disagreement", "Most disagreement with the judge first"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="projects")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=40)  # a name in `kinds.KINDS`
    version = models.ForeignKey("datasets.DatasetVersion", on_delete=models.PROTECT, related_name="projects")
    overlap = models.PositiveSmallIntegerField(default=2)
    strategy = models.CharField(max_length=12, choices=Strategy.choices, default=Strategy.ORDER)
    settings = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=State.choices, default=State.DRAFT)
    tasks_total = models.PositiveIntegerField(default=0)  # written with the tasks; gold tasks not counted
    tasks_made = models.BooleanField(default=False)  # a worker makes them, because a version may have 100,000 examples
    tasks_problem = models.CharField(max_length=500, blank=True)  # why they could not be made; it is tried again
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="one_project_per_name"),
            models.CheckConstraint(condition=Q(overlap__gte=1, overlap__lte=MAX_OVERLAP), name="overlap_in_bounds"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def kind_title(self) -> str:
        from .kinds import KINDS  # the kinds import what may not be loaded before the models

        return KINDS[self.kind].title


class Guidelines(models.Model):
    """One version of a project's guidelines (Markdown). Each answer names the version that its author saw."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="guidelines")
    number = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="one_guideline_per_number")]

    def __str__(self) -> str:
        return f"guidelines v{self.number} of {self.project_id}"


class Participant(models.Model):
    """A person in a project. `cursor` is the rank up to which they were served, so a claim never reads tasks that they have done already. A
    second, rarer query finds returned seats below it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="participants")
    user = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="participations")
    cursor = models.FloatField(default=-1)
    served = models.PositiveIntegerField(default=0)  # claims so far: each block of `gold_every` holds one gold task
    submitted = models.PositiveIntegerField(default=0)  # assignments with an answer that stands
    paused = models.BooleanField(default=False)
    keys = models.JSONField(default=dict)  # this person's own keys: {action: key}
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="one_participant_per_project")]

    def __str__(self) -> str:
        return f"{self.user_id} in project {self.project_id}"


class Task(models.Model):
    """One thing to judge. `subject` names the part of the example: {"a": id, "b": id}, {"response": id}, {"responses": [...]}, {"a": id,
    "b": id, "preference": index}, {"a": id, "b": id, "arm": name} (judged by the rubric of that arm of a study; nobody sees both) or {}.
    `gold` holds the known answer in the subject's frame; gold tasks have no seat limit."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    example = models.ForeignKey("datasets.Example", on_delete=models.PROTECT, related_name="+")
    subject = models.JSONField(default=dict)
    rank = models.FloatField()  # tasks are served in ascending order
    overlap = models.PositiveSmallIntegerField(null=True)  # None: everybody may answer it (gold)
    taken = models.PositiveIntegerField(default=0)  # claimed or submitted; not skipped or returned
    done = models.PositiveIntegerField(default=0)  # submitted
    # a separate column, not the index's condition: then counting up leaves the indexes alone until the last seat goes
    open = models.GeneratedField(
        expression=models.ExpressionWrapper(Q(taken__lt=F("overlap")), models.BooleanField()),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )
    gold = models.JSONField(null=True, blank=True)
    suggestion = models.JSONField(null=True, blank=True)  # what a judge says: see `work.suggestions`
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(overlap=None) | Q(taken__lte=F("overlap")), name="no_more_than_overlap"),
            models.UniqueConstraint(fields=["project", "example", "subject"], name="one_task_per_subject"),
        ]
        indexes = [
            models.Index(fields=["project", "rank"], name="open_tasks", condition=Q(open=True)),
            models.Index(fields=["project", "rank"], name="gold_tasks", condition=Q(overlap=None)),
            models.Index(fields=["project", "id"], name="task_listing"),
        ]

    def __str__(self) -> str:
        return f"task {self.pk} of project {self.project_id}"


class Assignment(models.Model):
    """A seat: this person works, or has worked, on this task. `order` is how the sides or responses were arranged for them (indices into
    the subject's own order). Answers are stored in the subject's frame, never in the shown one."""

    class State(models.TextChoices):
        CLAIMED = "claimed", "Open"
        SUBMITTED = "submitted", "Submitted"
        SKIPPED = "skipped", "Skipped"
        RETURNED = "returned", "Returned"  # the lease ran out, or a manager took it back

    # each of these is the head of an index below; one more each would only slow down every claim
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    user = models.ForeignKey("accounts.User", on_delete=models.PROTECT, related_name="assignments", db_index=False)
    guidelines = models.ForeignKey(Guidelines, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    state = models.CharField(max_length=10, choices=State.choices, default=State.CLAIMED)
    order = models.JSONField(default=list)
    claimed_at = models.DateTimeField()
    lease_until = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True, blank=True)  # while an answer stands, reopened or not
    draft = models.JSONField(null=True, blank=True)  # in the shown frame, as the page sent it
    draft_revision = models.PositiveIntegerField(default=0)  # a save names the revision it read
    draft_at = models.DateTimeField(null=True, blank=True)
    skip_reason = models.CharField(max_length=500, blank=True)
    sent_back = models.CharField(max_length=2000, blank=True)  # a reviewer's words when the answer was sent back
    seconds = models.FloatField(default=0)  # time spent on it, as the page measured (idle time left out)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "user"], name="one_seat_per_person")]
        indexes = [
            models.Index(fields=["project", "user"], name="own_open_work", condition=Q(state="claimed")),
            models.Index(
                fields=["project", "user", "-submitted_at"],
                name="own_submissions",
                condition=Q(submitted_at__isnull=False),
            ),
            models.Index(fields=["lease_until"], name="running_leases", condition=Q(state="claimed")),
            models.Index(fields=["project", "state", "submitted_at"], name="submitted_work"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} on task {self.task_id}"


class Answer(models.Model):
    """One submission. `content` fits the `answer` of its kind, in the subject's frame. If it is reopened and submitted again, the next
    revision stands and this one is kept."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="answers", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="answers", db_index=False)
    revision = models.PositiveIntegerField(default=1)
    current = models.BooleanField(default=True)
    content = models.JSONField()
    guidelines = models.ForeignKey(Guidelines, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    suggestion = models.CharField(max_length=8, default="never")  # never, before, after: when a model's view was shown
    suggested_by = models.CharField(
        max_length=200, blank=True
    )  # whose view that was: a judge's version, or the dataset
    seconds = models.FloatField(default=0)  # 0: the time was not measured; pages, API and files say that it is missing
    gold_right = models.BooleanField(null=True)  # None: not a gold task, or not matched with the known answer yet
    gold_detail = models.JSONField(null=True)  # how it was matched: see `gold.matched`
    submitted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assignment", "revision"], name="one_answer_per_revision"),
            models.UniqueConstraint(fields=["assignment"], condition=Q(current=True), name="one_current_answer"),
        ]
        indexes = [models.Index(fields=["project", "id"], name="answer_listing", condition=Q(current=True))]

    def __str__(self) -> str:
        return f"answer {self.revision} to assignment {self.assignment_id}"


class Resolution(models.Model):
    """The result for a task after consolidation, and its source."""

    class Source(models.TextChoices):
        UNANIMOUS = "unanimous", "Unanimous"
        CONSOLIDATED = "consolidated", "Consolidated by a reviewer"
        MAJORITY = "majority", "Majority"
        UNRESOLVED = "unresolved", "Unresolved"

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="resolution")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="resolutions")
    source = models.CharField(max_length=12, choices=Source.choices)
    content = models.JSONField(null=True)  # fits the `answer` of its kind; None while unresolved
    trace = models.JSONField(default=list)  # the answers whose parts were kept, merged, edited or dropped
    decided_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    decided_at = models.DateTimeField(auto_now=True)

    BY_A_PERSON = ~Q(
        source=Source.UNANIMOUS
    )  # also after the account of this person is gone, and `decided_by` is empty

    def __str__(self) -> str:
        return f"{self.source} for task {self.task_id}"

    @property
    def by_a_person(self) -> bool:
        return self.source != self.Source.UNANIMOUS


class Publication(models.Model):
    """A version made of a project's answers, and the fate of every label: see `publishing.services`.

    `counts` has {fate: {reason: number}} for the labels of judged examples; `answers`, the answers behind the labels in the version; and
    `untouched` and `left_out`, the preferences of all other examples of the base.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="publications")
    version = models.ForeignKey("datasets.DatasetVersion", on_delete=models.CASCADE, related_name="publications")
    choice = models.JSONField()
    counts = models.JSONField()
    made_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"publication {self.pk} of project {self.project_id}"


class PublishedCase(models.Model):
    """One label of a judged example, and its fate."""

    class Fate(models.TextChoices):
        KEPT = "kept", "In the version"
        REPLACED = "replaced", "Replaced"
        IMPORTED = "imported", "Imported, beside them"
        DROPPED = "dropped", "Not in the version"

    class Reason(models.TextChoices):
        OTHERS = "others", "of another project"
        JUDGED = "judged", "judged again in this project"
        EARLIER = "earlier", "published by this project before"
        GOLD = "gold", "a gold task, whose answer is known"
        OPEN = "open", "opened again, and not submitted since"
        ALONE = "alone", "fewer than two answers, so there is no agreement"
        AGREEMENT = "agreement", "less agreement than was asked for"
        UNDECIDED = "undecided", "nothing stands for the task yet"
        STALE = "stale", "the answers have changed since one of them stood"
        UNRESOLVED = "unresolved", "left unresolved by a reviewer"
        SOURCE = "source", "stands by a way that was not chosen"
        GONE = "gone", "the base version has no such example"
        CHANGED = "changed", "its responses differ from those in the base version"

    publication = models.ForeignKey(Publication, on_delete=models.CASCADE, related_name="cases", db_index=False)
    fate = models.CharField(max_length=8, choices=Fate.choices)
    reason = models.CharField(max_length=10, choices=Reason.choices, blank=True)
    example = models.CharField(max_length=200)
    task = models.ForeignKey(Task, null=True, on_delete=models.SET_NULL, related_name="+")
    whose = models.CharField(max_length=200)
    says = models.CharField(max_length=200)
    answers = models.PositiveIntegerField(default=0)  # the number of answers of the project that it represents

    class Meta:
        indexes = [models.Index(fields=["publication", "fate", "id"], name="published_listing")]

    def __str__(self) -> str:
        return f"{self.fate}: {self.example}"


class Comment(models.Model):
    """A remark about a task, or a request to change the guidelines, until somebody resolves it."""

    class Kind(models.TextChoices):
        REMARK = "remark", "Remark"
        GUIDELINES = "guidelines", "Guidelines need an update"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="comments")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="comments")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.REMARK)
    text = models.CharField(max_length=4000)
    author = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    resolved_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.text[:60]


class ProjectInvite(models.Model):
    """A link that lets its holder work in one project, as an annotator of the workspace.

    With `email` it is for that address alone, once, and opening it shows that the address is theirs. `mailed`: it was sent there and shown
    to nobody.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invites")
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    uses_left = models.PositiveIntegerField(default=1)
    revoked_at = models.DateTimeField(null=True, blank=True)
    email = models.EmailField(blank=True)
    mailed = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"invitation into project {self.project_id}"

    @property
    def proof(self) -> Proof:
        if not self.email:
            return Proof.NONE
        return Proof.MAIL if self.mailed else Proof.INVITATION


class TaskReview(models.Model):
    """The parts in which the answers to one task agree, stored so that a list of 100,000 tasks can be ordered by agreement.

    `answers` are the answers that were compared: if they are no longer the current ones, the review is made again.
    `groups` holds the items of rubrics or reasons that say the same: [[[answer id, index], ...], ...].
    """

    task = models.OneToOneField(Task, on_delete=models.CASCADE, related_name="review")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="reviews")
    answers = models.JSONField(default=list)
    agreement = models.FloatField(null=True)  # 1: all the same, 0: as far apart as can be; None: fewer than two answers
    groups = models.JSONField(null=True)
    matcher = models.CharField(max_length=80, blank=True)  # the matcher: a model's name, "words", or "a reviewer"
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [models.Index(fields=["project", "agreement", "task"], name="review_listing")]

    def __str__(self) -> str:
        return f"review of task {self.task_id}"


class AgreementReport(models.Model):
    """A project's coefficients and its people's figures up to the answer `through`, and how far the tasks' reviews are."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="agreement_report")
    through = models.BigIntegerField(default=0)  # the newest answer counted in `body`
    reviewed = models.BigIntegerField(default=0)  # the newest answer that `TaskReview` rows know
    body = models.JSONField(null=True)
    people = models.JSONField(null=True)  # see `agreement.person_figures.measure`
    computed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)  # a job works on it since then; None: no job

    def __str__(self) -> str:
        return f"agreement of project {self.project_id}"


class Job(models.Model):
    """Work over a whole project that a worker does, at most one of a kind at a time: see `jobs.runner`.

    All finished work is in the database, so the job can be started again at any point. The last job of each kind is kept.
    """

    class Kind(models.TextChoices):
        MATCH = "match", "Match items by meaning"
        MAJORITY = "majority", "Accept majorities"
        PUBLISH = "publish", "Publish"
        SUGGEST = "suggest", "Ask a judge"

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="jobs")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    # the person who asked for it; None: nobody in particular. Deleted with the person: nothing runs in the name of who has left
    membership = models.ForeignKey("accounts.Membership", null=True, on_delete=models.CASCADE, related_name="+")
    params = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True)  # unknown before it runs
    result = models.JSONField(default=dict)
    problem = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now_add=True)  # the worker's last sign of life
    finished_at = models.DateTimeField(null=True, blank=True)
    stopping = models.BooleanField(default=False)  # somebody wants it to end; kinds that cost money check it

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "kind"], condition=Q(finished_at=None), name="one_open_job_per_kind"
            )
        ]
        indexes = [models.Index(fields=["seen_at"], name="open_jobs", condition=Q(finished_at=None))]

    def __str__(self) -> str:
        return f"{self.kind} of project {self.project_id}"

    @property
    def open(self) -> bool:
        return self.finished_at is None
