"""The model registry, and the endpoints: models elsewhere, and services that score responses."""

from django.conf import settings
from django.db import models

from webapp.core.encryption import EncryptedField

MARK = "@"
STAGES = {"candidate": "Candidate", "production": "In production", "retired": "Retired"}


class RegisteredModel(models.Model):
    """A model under a name: a local directory, a hub id, or the folder that a run has written. Annotators never see `path`.

    `base` is the model that the training began with; an adapter (`format` peft) cannot be loaded without it. `digest` is the digest of
    the folder's files (trainer.outputs.folder_digest), if a run has reported it. `stored` lists the `files` of the folder that lie in the
    artifact store, and the `mark` that shows a change (`folders.stored`). `stage` is the label
    that people gave it, such as candidate; it may be empty.
    """

    class Source(models.TextChoices):
        LOCAL = "local", "Local directory"
        HUB = "hub", "Hub id"
        RUN = "run", "Produced by a run"

    class TrainedAs(models.TextChoices):
        POLICY = "policy", "Policy"
        REWARD_MODEL = "reward_model", "Reward model"
        JUDGE = "judge", "Judge"
        RUBRIC_WRITER = "rubric_writer", "Rubric writer"

    class Format(models.TextChoices):
        HF = "hf", "Whole model"
        PEFT = "peft", "Adapter"

    class Head(models.TextChoices):
        LM = "lm", "Writes text"
        SCALAR = "scalar", "Scores text"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="models")
    name = models.CharField(max_length=120)
    source = models.CharField(max_length=8, choices=Source.choices)
    path = models.CharField(max_length=500)
    description = models.TextField(blank=True)
    facts = models.JSONField(default=dict)  # architecture, parameters, licence: all that is known
    role = models.CharField(max_length=16, choices=TrainedAs.choices, blank=True)  # what a run has trained it to be
    format = models.CharField(max_length=4, choices=Format.choices, default=Format.HF)
    head = models.CharField(max_length=6, choices=Head.choices, default=Head.LM)
    base = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="derived")
    digest = models.CharField(max_length=64, blank=True)
    stored = models.JSONField(default=dict, blank=True)
    stage = models.CharField(max_length=10, choices=list(STAGES.items()), blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_model_per_name")]

    def __str__(self) -> str:
        return self.name


class Endpoint(models.Model):
    """A place that answers judges, or that scores responses for a reward of kind `http`.

    The kind decides which fields are set. A chat API has `url`, `model` and `secret`; a local endpoint has `registered_model`; a recorded
    one has rows of RecordedOutput. A reward service has `url`, to which requests are posted unchanged, and `secret`, which signs them.

    `secret` is sealed (webapp.core.encryption), and no page and no answer of the API shows it. Prices are per million tokens, in the
    currency of the workspace. `capabilities` is what the probe found: see `endpoints.probing`.
    """

    class Kind(models.TextChoices):
        CHAT = "chat", "Chat API"
        LOCAL = "local", "Local model"
        RECORDED = "recorded", "Recorded outputs"
        REWARD = "reward", "Reward service"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="endpoints")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    url = models.CharField(max_length=2000, blank=True)
    model = models.CharField(max_length=200, blank=True)
    registered_model = models.ForeignKey(
        RegisteredModel, null=True, blank=True, on_delete=models.PROTECT, related_name="endpoints"
    )
    secret = EncryptedField(blank=True)
    concurrency = models.PositiveIntegerField(default=8)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    timeout_s = models.FloatField(default=120.0)
    retries = models.PositiveSmallIntegerField(default=3)
    price_prompt = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    price_completion = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    capabilities = models.JSONField(default=dict, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    first_used_at = models.DateTimeField(null=True, blank=True)  # from then on it stands for one model
    archived_at = models.DateTimeField(null=True, blank=True)
    next_turn_at = models.DateTimeField(null=True, blank=True)  # of a request; see `endpoints.sharing`

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_endpoint_per_name")]

    def __str__(self) -> str:
        return self.name


class EndpointLease(models.Model):
    """A run that asks the endpoint at this moment, and how many requests it may have in flight at once: see `endpoints.sharing`."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="leases")
    holder = models.UUIDField()
    granted = models.PositiveIntegerField()
    wanted = models.PositiveIntegerField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "holder"], name="one_lease_per_run")]

    def __str__(self) -> str:
        return f"{self.granted} of {self.endpoint_id}"


class RecordedOutput(models.Model):
    """The answer of a recorded endpoint to the call named `key`. It never changes, because audits rest on it."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="recorded_outputs")
    key = models.CharField(max_length=300)
    text = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "key"], name="one_recorded_output_per_key")]

    def __str__(self) -> str:
        return self.key


class EndpointCheck(models.Model):
    """A test (one tiny request) or a probe (what the endpoint can do), carried out by a worker."""

    class Kind(models.TextChoices):
        TEST = "test", "Test"
        PROBE = "probe", "Probe"

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="checks")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    result = models.JSONField(default=dict)
    code = models.CharField(max_length=20, blank=True)  # of the problem, as in trainer.judges.chat
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["endpoint", "-id"], name="checks_newest_first")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.endpoint_id}"


class EndpointTrouble(models.Model):
    """The number of calls to an endpoint that ended in a kind of problem, and the last message: one row per kind."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="troubles")
    code = models.CharField(max_length=20)
    count = models.PositiveBigIntegerField(default=0)
    message = models.TextField()
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "code"], name="one_trouble_per_code")]

    def __str__(self) -> str:
        return f"{self.code} x {self.count}"


class ModelAlias(models.Model):
    """A name that points at one model of the workspace and can be moved to another, such as `champion`. Written `@champion`."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="model_aliases")
    name = models.CharField(max_length=60)
    model = models.ForeignKey("inference.RegisteredModel", on_delete=models.PROTECT, related_name="aliases")
    moved_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_alias_per_name")]
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{MARK}{self.name}"


class ModelPromotion(models.Model):
    """One move of an alias, or one change of a stage. The row never changes afterwards.

    `name` is the alias; it is empty if the row is about the stage `to`. `model_name` and `before` are names as they were at that time, because
    models can be renamed and taken off the list. `before` is the model that had the alias, or the stage that the model had; it is empty if
    there was none.
    """

    class Kind(models.TextChoices):
        MOVED = "moved", "Alias moved"
        REMOVED = "removed", "Alias removed"
        STAGE = "stage", "Stage changed"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=7, choices=Kind.choices)
    name = models.CharField(max_length=60, blank=True)
    to = models.CharField(max_length=10, blank=True)
    model = models.ForeignKey(
        "inference.RegisteredModel", null=True, on_delete=models.SET_NULL, related_name="promotions"
    )
    model_name = models.CharField(max_length=120)
    before = models.CharField(max_length=120, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="promotions_newest_first")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name or self.to}"

    @property
    def stage_title(self) -> str:
        return STAGES.get(self.to, self.to)

    @property
    def before_title(self) -> str:
        return STAGES.get(self.before, self.before)
