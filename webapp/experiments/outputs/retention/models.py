"""The rule by which a workspace lets checkpoints of runs be deleted after some time."""

from django.db import models
from django.utils import timezone

DAYS = 30


class CheckpointRule(models.Model):
    """While it is `on`, checkpoints of runs that ended more than `days` ago are deleted if nothing needs them (`candidates`).

    `after` is the last run at which the round under way has looked, `next_at` is when the next piece of work is due. `deleted` and
    `deleted_bytes` count all that the rule has deleted.
    """

    workspace = models.OneToOneField("accounts.Workspace", on_delete=models.CASCADE, related_name="checkpoint_rule")
    on = models.BooleanField(default=False)
    days = models.PositiveIntegerField(default=DAYS)
    after = models.BigIntegerField(default=0, editable=False)
    next_at = models.DateTimeField(default=timezone.now, editable=False)
    deleted = models.BigIntegerField(default=0, editable=False)
    deleted_bytes = models.BigIntegerField(default=0, editable=False)

    def __str__(self) -> str:
        return f"checkpoints of {self.workspace}: {f'after {self.days} days' if self.on else 'kept'}"
