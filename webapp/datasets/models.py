"""Datasets, their immutable examples, and the versions that list them.

The row of an example never changes, and its content is addressed by digest. A version is a list of examples, so a new version that
changes 3 of 100,000 rows adds 3 examples and 100,000 small membership rows.
"""

import json
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from trainer.contracts import Example as ExampleRecord

from .bounds import MAX_LABEL

NOT_IMPORTED = "not imported: "  # the beginning of the names of such counts of an import


class Ready(models.Manager["Dataset"]):
    """The datasets without those whose first import is still running."""

    def get_queryset(self) -> "models.QuerySet[Dataset]":
        return super().get_queryset().filter(ready=True)


class Dataset(models.Model):
    """`heldout_share` splits examples that come without a split; None leaves them without one. `group_by` names the field whose value is
    the group of examples that come without a group: `domain`, `source` or `meta.NAME`; empty for none."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    licence = models.CharField(max_length=120, blank=True)
    heldout_share = models.FloatField(null=True, blank=True)
    group_by = models.CharField(max_length=80, blank=True)
    ready = models.BooleanField(
        default=True
    )  # False until its first import has made a version; until then nobody sees it
    archived_at = models.DateTimeField(null=True, blank=True)  # no longer listed, and nothing is imported into it
    created_at = models.DateTimeField(auto_now_add=True)
    deleting_at = models.DateTimeField(null=True, blank=True)  # a worker deletes it, or will do so
    deleting_by = models.ForeignKey("accounts.User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    delete_problem = models.TextField(blank=True, db_default="")  # why the worker did not delete it

    objects = Ready()
    every = models.Manager["Dataset"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_dataset_per_name")]

    def __str__(self) -> str:
        return self.name


class Whole(models.Manager["DatasetVersion"]):
    """The versions without those that are still being filled, which have no digest yet."""

    def get_queryset(self) -> "models.QuerySet[DatasetVersion]":
        return super().get_queryset().exclude(digest="")


class DatasetVersion(models.Model):
    """The list of examples under one number. It never changes. Freezing only promises that it is kept.

    While an import fills it, its `digest` is empty and only `every` finds it.
    """

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        FROZEN = "frozen", "Frozen"

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.DRAFT)
    digest = models.CharField(max_length=64)  # SHA-256 over the sorted example digests; see `versions.digests`
    counts = models.JSONField(default=dict)  # {"examples": n, "train": n, "heldout": n, "rubrics": n, ...}
    facets = models.JSONField(default=dict)  # {"domain": {value: n}, "source": ..., "verifier": ...}: the filters
    training = models.JSONField(
        null=True
    )  # the counts of recipes, once somebody has asked; see `versions.training_counts`
    lineage = models.JSONField(default=dict)  # {"from": "import", "file": ..., "format": ..., "sha256": ...}
    created_at = models.DateTimeField(auto_now_add=True)
    frozen_at = models.DateTimeField(null=True, blank=True)

    objects = Whole()
    every = models.Manager["DatasetVersion"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="one_version_per_number")]
        indexes = [
            models.Index(fields=["dataset", "digest"], name="version_digest"),
            # finds what was made from a version, a run or an evaluation: see `webapp.lineage`
            GinIndex(fields=["lineage"], opclasses=["jsonb_path_ops"], name="version_lineage", fastupdate=False),
        ]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"


class Example(models.Model):
    """`canonical` is the text of `trainer.contracts.Example.canonical`; the other columns are derived from it.

    The text is kept as it was digested, and not as jsonb, which would rewrite numbers and so change the digest.
    """

    # two indexes of several columns begin with it; another index would only make imports slower. A trigger checks that the dataset
    # exists, as with members
    dataset = models.ForeignKey(
        Dataset, on_delete=models.CASCADE, related_name="examples", db_index=False, db_constraint=False
    )
    # both are sorted by their bytes, because an index of a million rows compares them twenty million times
    key = models.CharField(max_length=MAX_LABEL, db_collation="C")
    digest = models.CharField(max_length=64, db_collation="C")
    canonical = models.TextField()
    excerpt = models.CharField(max_length=300)  # start of the last user message, for lists
    prompt_hash = models.BigIntegerField(default=0)  # see `prompt_hashes`: equal for prompts that count as one
    group_hash = models.BigIntegerField(default=0)  # 0: no group
    split = models.CharField(max_length=8, blank=True)
    domain = models.CharField(max_length=MAX_LABEL, blank=True)
    source = models.CharField(max_length=MAX_LABEL, blank=True)
    criteria_count = models.PositiveIntegerField(default=0)
    verifiable_count = models.PositiveIntegerField(default=0)
    response_count = models.PositiveIntegerField(default=0)
    preference_count = models.PositiveIntegerField(default=0)
    prompt_length = models.PositiveIntegerField(default=0)  # characters of all messages
    response_length = models.PositiveIntegerField(null=True)  # characters, mean over the responses
    length_ratio = models.FloatField(null=True)  # rejected over chosen answer of the judged pair
    strength = models.FloatField(null=True)  # mean of the raters, -3 (the earlier response is better) to 3
    agreement = models.FloatField(null=True)  # share of rater pairs on the same side
    pass_rate = models.FloatField(null=True)  # share of answers that were right, if the file says so
    constraints = models.PositiveIntegerField(default=0)  # explicit constraints in the prompt
    marks = ArrayField(models.CharField(max_length=40), default=list)  # kind:hard, rejected:longer, ...
    verifiers = ArrayField(models.CharField(max_length=80), default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "digest"], name="one_row_per_content")]
        indexes = [
            models.Index(fields=["dataset", "key"], name="example_key"),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def content(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.canonical)
        return data

    @property
    def record(self) -> ExampleRecord:
        return ExampleRecord.model_validate(self.content)


class VersionMember(models.Model):
    """Example `example` is at `position` in version `version`. Paging walks the (version, position) index.

    Triggers check that every example exists (see the migration), once for each statement that writes members or deletes examples. A
    constraint would check every row separately, which takes a fifth of an import's time.
    """

    pk = models.CompositePrimaryKey("version", "position")
    version = models.ForeignKey(
        DatasetVersion, on_delete=models.CASCADE, related_name="members", db_index=False, db_constraint=False
    )
    example = models.ForeignKey(
        Example, on_delete=models.CASCADE, related_name="memberships", db_index=False, db_constraint=False
    )
    position = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["example", "version"], name="example_once_per_version"),
        ]

    def __str__(self) -> str:
        return f"{self.version_id}:{self.position}"


class WordHits(models.Model):
    """The examples with a word whose ids are in one block; see `index.postings`. `origin` is the version that was filled with them, while
    an import may still remove them. The migration makes no index of the id, because nobody uses it, and a million examples have more than a
    million such rows."""

    dataset = models.ForeignKey(
        Dataset, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    origin = models.PositiveBigIntegerField(default=0)
    word = models.CharField(max_length=64, db_collation="C")  # a search for the start of a word needs this order
    block = models.PositiveIntegerField()
    offsets = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["dataset", "word"], name="word_hits")]

    def __str__(self) -> str:
        return f"{self.word} in block {self.block}"


class PackedColumn(models.Model):
    """One small column of a version as an array of numbers, in the order of its positions; see `columns.packed`."""

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="packed")
    name = models.CharField(max_length=40)
    kind = models.CharField(max_length=8)  # the type of the numbers, as numpy writes it
    data = models.BinaryField()
    values = models.JSONField(default=list)  # the values of the codes

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "name"], name="one_column_per_name")]

    def __str__(self) -> str:
        return f"{self.name} of {self.version_id}"


class LeakSearch(models.Model):
    """The result of a search for prompts of `tried` that are nearly the same as a prompt in train of `trained`; see `near_leaks`. `side` is
    that of the compared examples; empty for all."""

    trained = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="+")
    tried = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="+")
    side = models.CharField(max_length=8, blank=True)
    form = models.PositiveSmallIntegerField()
    found = models.JSONField()
    made_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trained", "tried", "side"], name="one_search_per_pair")]

    def __str__(self) -> str:
        return f"{self.trained_id} in {self.tried_id}"


class Probe(models.Model):
    """The share of right answers of a model to the prompts of `version`: of `tried` answers with a score, `passed` reached `threshold`. It
    is stored beside the version, which never changes. Both columns have one byte for each position.

    `evaluation` measured it, and `place` is the position of the model among those of the evaluation.
    """

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="probes")
    model = models.CharField(max_length=200)
    evaluation = models.PositiveBigIntegerField()  # the id of a row in an app above this one
    place = models.PositiveSmallIntegerField()
    samples = models.PositiveSmallIntegerField()  # requested answers
    threshold = models.FloatField()
    passed = models.BinaryField()
    tried = models.BinaryField()  # 0: no answer has a score, so the pass rate is not known
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "place"], name="one_probe_per_model")]

    def __str__(self) -> str:
        return f"{self.model}, {self.samples} answers"


class VersionTag(models.Model):
    """A name for one version of a dataset, such as `paper`; it can be moved to another."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="tags")
    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=40)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "name"], name="one_version_per_tag")]

    def __str__(self) -> str:
        return self.name


class SavedView(models.Model):
    """Filters under a name, for everybody in the workspace; `query` is what `filters.query` writes."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="saved_views")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=80)
    query = models.JSONField(default=dict)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "name"], name="one_view_per_name")]

    def __str__(self) -> str:
        return self.name


class CurationJob(models.Model):
    """Work of a worker over a whole version, such as deriving a version, or finding duplicates or idle criteria."""

    class Kind(models.TextChoices):
        DERIVE = "derive", "Derive a version"
        DUPLICATES = "duplicates", "Find duplicates"
        LEAKS = "leaks", "Find leaks"
        CRITERIA = "criteria", "Find criteria that never discriminate"
        STRUCTURE = "structure", "Check rubrics"
        SHORTEST = "shortest", "Drop the shortest responses"
        BALANCE = "balance", "Balance domains"
        HARDEST = "hardest", "Keep what is hard for a model"
        COVER = "cover", "Keep what covers the rest"
        MEANING = "meaning", "Find near duplicates by meaning"
        FAULTY = "faulty", "Keep what provokes rare faults"

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="curations")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    params = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    result = models.JSONField(default=dict)  # counts and the first findings, for people
    error = models.TextField(blank=True)
    made = models.ForeignKey(DatasetVersion, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["version", "kind", "-id"], name="curation_listing")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.version_id}"


class Finding(models.Model):
    """The finding of a curation job about one position of its version. `removes` says that the filter of the job would drop the example."""

    job = models.ForeignKey(CurationJob, on_delete=models.CASCADE, related_name="findings")
    position = models.PositiveIntegerField()
    group = models.PositiveIntegerField(default=0)  # duplicates: the position of the example that stays
    removes = models.BooleanField(default=True)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["job", "position"], name="finding_listing")]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.position}"


class ImportJob(models.Model):
    """One import: its file, its progress, and every line it refused with the reason."""

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="imports")
    dataset_name = models.CharField(max_length=120)
    file_name = models.CharField(max_length=255)
    file_path = models.CharField(max_length=500)
    format = models.CharField(max_length=40)
    mapping = models.JSONField(default=dict)  # {our field: column of the file}
    heldout_share = models.FloatField(null=True, blank=True)
    group_by = models.CharField(max_length=80, blank=True)
    keep_good = models.BooleanField(default=False)
    # the source from which a worker writes the file, see `ingest.generated_files`: {"from": "run", "run": id, ...}; empty: a file was sent
    origin = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    cancel_asked = models.BooleanField(default=False)  # somebody asked the worker to end it
    bytes_total = models.BigIntegerField(default=0)
    bytes_done = models.BigIntegerField(default=0)
    rows_done = models.PositiveIntegerField(default=0)
    taken = models.JSONField(default=dict)  # the committed part, and where reading continues; see `ingest.checkpoint`
    counts = models.JSONField(default=dict)
    overlaps = models.JSONField(
        default=dict
    )  # prompts that other datasets have on the other side; see `leaks.Overlaps`
    rejected = models.JSONField(default=list)  # the first 1,000: {"line", "field", "reason"}
    rejected_count = models.PositiveIntegerField(default=0)
    # parts of rows that examples cannot hold: {reason in words: rows}, and files of an archive without examples
    unsaid = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    unchanged = models.BooleanField(default=False)  # the content was there already; `version` is that version
    error = models.TextField(blank=True)
    version = models.ForeignKey(DatasetVersion, null=True, blank=True, on_delete=models.SET_NULL)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now_add=True)  # last sign of life of the worker
    finished_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"import of {self.file_name}"

    @property
    def not_imported(self) -> dict[str, int]:
        """{part of a trace that an example has no place for: how many times}."""
        return {
            name.removeprefix(NOT_IMPORTED): count
            for name, count in self.counts.items()
            if name.startswith(NOT_IMPORTED)
        }
