"""The audit log: entries, their chain, and how far they were sent."""

from django.conf import settings
from django.db import models

RECONCILED = ("run.reconciled", "weights_job.reconciled")
"""Actions of the reconciler: see `webapp.core.distributed.reconciling`."""


class AuditEntry(models.Model):
    """An entry of the audit log: who did what to which object, written in the same transaction as the change itself."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="audit_entries")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    action = models.CharField(max_length=60)
    object_type = models.CharField(max_length=40)
    object_id = models.BigIntegerField()
    detail = models.JSONField(default=dict)
    address = models.CharField(max_length=45, blank=True)  # where the request came from; empty: no request
    token = models.CharField(
        max_length=12, blank=True
    )  # the beginning of the API token; empty: a browser, or no request
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-id"], name="audit_newest_first"),
            models.Index(fields=["object_type", "object_id", "-id"], name="audit_of_an_object"),
            # few among millions of entries, and a page of their own
            models.Index(fields=["-id"], name="audit_reconciled", condition=models.Q(action__in=RECONCILED)),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.object_type} {self.object_id}"


class AuditSeal(models.Model):
    """The chain over the log: `digest` is computed from the digest before it and from the entry, as `audit_chain` writes both.

    The order is that of sealing. `actor` is the account that the entry named; when an account is erased, its entries lose their actor.
    """

    entry = models.OneToOneField(AuditEntry, on_delete=models.PROTECT, related_name="seal")
    actor = models.BigIntegerField(null=True, blank=True)
    digest = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.digest[:12]} over entry {self.entry_id}"


class AuditSent(models.Model):
    """The last entry that was sent to the receiver that AUDIT_SYSLOG names: one row. `problem`: why the last round sent nothing."""

    ONLY = 1

    seal = models.BigIntegerField(default=0)
    problem = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"sent up to seal {self.seal}"
