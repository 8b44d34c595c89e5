"""The ledger of costs: when processes ran, and how much the calls of endpoints used.

Rows stay when the work itself is deleted, because the work has cost something.
"""

from django.db import models


class WorkKind(models.TextChoices):
    RUN = "run", "Run"
    JOB = "job", "Job on the cluster"
    EVALUATION = "evaluation", "Evaluation"
    PROJECT = "project", "Annotation project"
    TRIAL = "trial", "Trial of a judge"
    TRIED = "tried", "Answer scored on Try it"
    JUDGE = "judge", "Judge, asked for itself"


class WorkSpan(models.Model):
    """The time during which the process of one attempt ran. `webapp.usage.spans` alone writes it.

    `place` is the experiment of a run, and null for other work. `gpus` is how many the attempt held; null: nobody knows. `told`: the
    process itself has named what it computes on. `measured` is false if it is not known when the attempt ended: such attempts are older
    than the ledger.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=10, choices=WorkKind.choices)
    work = models.BigIntegerField()
    attempt = models.PositiveIntegerField()
    place = models.BigIntegerField(null=True, blank=True)
    person = models.ForeignKey("accounts.User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    began = models.DateTimeField()
    ended = models.DateTimeField(null=True, blank=True)  # null while it is under way
    gpus = models.FloatField(null=True, blank=True)
    told = models.BooleanField(default=False, db_default=False)
    measured = models.BooleanField(default=True, db_default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "work", "attempt"], name="one_span_per_attempt"),
            models.CheckConstraint(
                condition=models.Q(ended=None) | models.Q(ended__gte=models.F("began")),
                name="a_span_ends_after_it_began",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "began"], name="spans_of_a_workspace")]

    def __str__(self) -> str:
        return f"{self.kind} {self.work}, attempt {self.attempt}"


class MonthlyUse(models.Model):
    """The use of one endpoint by the calls of one piece of work in one month (UTC; `month` is its first day). `webapp.usage.counters` alone
    writes it.

    `calls` are those that were answered. `untold` of them did not report their tokens, and `unpriced` of them have no price: neither is in
    the sums. `other_tokens` are of prompts and replies together, from before the ledger.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="+")
    month = models.DateField()
    kind = models.CharField(max_length=10, choices=WorkKind.choices)
    work = models.BigIntegerField()
    place = models.BigIntegerField(null=True, blank=True)
    person = models.ForeignKey("accounts.User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    endpoint = models.ForeignKey(
        "inference.Endpoint", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    calls = models.BigIntegerField(default=0)
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    other_tokens = models.BigIntegerField(default=0, db_default=0)
    money = models.DecimalField(max_digits=20, decimal_places=8, default=0)
    untold = models.BigIntegerField(default=0)
    unpriced = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "work", "endpoint", "month"], name="one_counter_per_work_endpoint_and_month"
            )
        ]
        indexes = [models.Index(fields=["workspace", "month"], name="uses_of_a_workspace")]

    def __str__(self) -> str:
        return f"{self.kind} {self.work} in {self.month:%Y-%m}"
