"""Links that show chosen runs, or a report, to the people who have them, without an account."""

from django.db import models
from django.utils import timezone

MAX_NAME = 80
COMPARISON = "comparison"


class ShareLink(models.Model):
    """Shows its runs, and nothing else of the workspace. Only the digest of its secret is stored. `shows` says in which form: one of `kinds.KINDS`.

    It opens by the rights of `created_by`, as an API token does: see `access.opened_by`.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="share_links")
    name = models.CharField(max_length=MAX_NAME)  # for the list; people who open the link do not see it
    shows = models.CharField(max_length=20, default=COMPARISON, db_default=COMPARISON)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="share_links")
    created_at = models.DateTimeField(auto_now_add=True)
    first_opened_at = models.DateTimeField(null=True, blank=True)
    last_opened_at = models.DateTimeField(null=True, blank=True)  # to the minute
    expires_at = models.DateTimeField(null=True, blank=True)  # None: until it is revoked
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="share_link_listing")]

    def __str__(self) -> str:
        return self.name

    @property
    def over(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()


class SharedRun(models.Model):
    """A run that a link shows, at its place among the others. It goes with the run."""

    link = models.ForeignKey(ShareLink, on_delete=models.CASCADE, related_name="runs", db_index=False)
    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="shared")
    place = models.PositiveIntegerField()
    baseline = models.BooleanField(default=False)  # the others are compared with its seeds

    class Meta:
        constraints = [models.UniqueConstraint(fields=["link", "run"], name="one_shared_run_per_link")]

    def __str__(self) -> str:
        return f"run {self.run_id}"
