"""Drafts that were discarded."""

from django.db import models
from django.utils import timezone


class DiscardedDraft(models.Model):
    """A draft that can be restored for a day. `run` is the number that it had, `held` its row, tags and the name of its experiment as JSON."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="discarded_drafts")
    run = models.BigIntegerField(unique=True)
    name = models.TextField()
    held = models.TextField()
    discarded_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return self.name
