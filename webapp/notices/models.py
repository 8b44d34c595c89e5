"""Watches of people, and their notices."""

from functools import reduce
from operator import or_
from uuid import uuid4

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

FIELDS = {
    "run": "run",
    "sweep": "sweep",
    "project": "project",
    "dataset": "dataset",
    "judge": "judge",
    "model": "model",
    "evaluation": "evaluation",
    "import": "import_job",
    "curation": "curation",
    "weights_job": "weights_job",
}
"""{kind of what people watch: the field of `Watch` that points at it}"""
SUBJECTS = tuple(FIELDS)
NOUNS = {"weights_job": "job"}


def noun(kind: str) -> str:
    """The kind as people call it."""
    return NOUNS.get(kind, kind)


def _alone(kind: str) -> Q:
    """A condition: a row is about one thing of this kind, and about nothing else."""
    return Q(**{f"{field}__isnull": each != kind for each, field in FIELDS.items()})


class Watch(models.Model):
    """A person's own choice about one thing: watch it, or (`on` false) do not, although I launched it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="watches")
    run = models.ForeignKey("experiments.Run", null=True, on_delete=models.CASCADE, related_name="+")
    sweep = models.ForeignKey("experiments.Sweep", null=True, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey("annotation.Project", null=True, on_delete=models.CASCADE, related_name="+")
    dataset = models.ForeignKey("datasets.Dataset", null=True, on_delete=models.CASCADE, related_name="+")
    judge = models.ForeignKey("judging.Judge", null=True, on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey("inference.RegisteredModel", null=True, on_delete=models.CASCADE, related_name="+")
    evaluation = models.ForeignKey("evaluation.Evaluation", null=True, on_delete=models.CASCADE, related_name="+")
    import_job = models.ForeignKey("datasets.ImportJob", null=True, on_delete=models.CASCADE, related_name="+")
    curation = models.ForeignKey("datasets.CurationJob", null=True, on_delete=models.CASCADE, related_name="+")
    weights_job = models.ForeignKey("weights.WeightsJob", null=True, on_delete=models.CASCADE, related_name="+")
    on = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "watches"
        constraints = [
            *(
                models.UniqueConstraint(fields=["user", field], name=f"one_watch_per_{kind}")
                for kind, field in FIELDS.items()
            ),
            models.CheckConstraint(condition=reduce(or_, map(_alone, SUBJECTS)), name="a_watch_has_one_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}"

    @property
    def kind(self) -> str:
        return next(kind for kind, field in FIELDS.items() if getattr(self, f"{field}_id") is not None)

    @property
    def noun(self) -> str:
        return noun(self.kind)

    @property
    def subject_id(self) -> int:
        found: int = getattr(self, f"{FIELDS[self.kind]}_id")
        return found

    @property
    def name(self) -> str:
        """The name of what it is about."""
        if self.curation is not None:
            return f"{self.curation.get_kind_display()}: {self.curation.version}"
        return str(getattr(self, FIELDS[self.kind]))


class Mails(models.TextChoices):
    """The notices that come by mail."""

    NEVER = "never", "Nothing"
    TROUBLE = "trouble", "What went wrong"
    ALL = "all", "Everything I am told"


class NoticeSettings(models.Model):
    """The way in which a person gets notices; a person without a row has the defaults."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="notice_settings"
    )
    own = models.BooleanField(default=True)  # whether what one launches oneself is watched
    mail = models.CharField(max_length=8, choices=Mails.choices, default=Mails.NEVER, db_default=Mails.NEVER)

    class Meta:
        verbose_name_plural = "notice settings"

    def __str__(self) -> str:
        return f"notices of {self.user_id}"


class Letter(models.Model):
    """One mail with all notices for one person at that time.

    `attempts` is also the fence: a task names the number for which it was made, and a worker claims the row by raising it. `next_try_at` is
    when a waiting row is due, or when a row that is being sent counts as lost.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        SENDING = "sending"
        SENT = "sent"
        FAILED = "failed"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="letters")
    message_id = models.UUIDField(default=uuid4, unique=True)  # the same at every attempt: who gets it twice can tell
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)  # of the last attempt
    created_at = models.DateTimeField()
    next_try_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["user", "-created_at"], name="letters_newest_first"),
            models.Index(fields=["next_try_at"], name="letters_due", condition=Q(state__in=["waiting", "sending"])),
        ]

    def __str__(self) -> str:
        return str(self.message_id)


class Notice(models.Model):
    """One event, for one person. `about` and `subject` name the page to which it links; `facts` has the data for its words.

    `sweep` is the id of the run's sweep: the list folds the notices of its runs. The row has ids instead of foreign keys, because the
    notice stays when its thing is deleted.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices")
    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="+")
    event = models.CharField(max_length=40)
    event_id = models.UUIDField()
    about = models.CharField(max_length=12)
    subject = models.BigIntegerField()
    sweep = models.BigIntegerField(null=True, blank=True)
    facts = models.JSONField(encoder=DjangoJSONEncoder)
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)
    mail = models.BooleanField(default=False, db_default=False)  # still to be put into a letter
    letter = models.ForeignKey(Letter, null=True, blank=True, on_delete=models.SET_NULL, related_name="notices")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "event_id"], name="one_notice_per_person_and_event")]
        indexes = [
            models.Index(fields=["user", "workspace", "-id"], name="notices_newest_first"),
            models.Index(fields=["user", "workspace"], name="notices_unread", condition=Q(read_at=None)),
            models.Index(fields=["created_at"], name="notices_by_age"),
            models.Index(fields=["user", "created_at"], name="notices_to_mail", condition=Q(mail=True)),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.subject}"
