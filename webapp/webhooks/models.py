"""Addresses that receive the events of a workspace, and every message to them."""

from uuid import uuid4

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from webapp.core.encryption import EncryptedField


class Webhook(models.Model):
    """`secret` is sealed: see webapp.core.encryption. `failures` counts the last attempts in a row that got no answer at all; until
    `quiet_until` nothing is sent to such a receiver."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2000)
    events = ArrayField(models.CharField(max_length=40))
    secret = EncryptedField()
    active = models.BooleanField(default=True)
    failures = models.PositiveIntegerField(default=0)
    quiet_until = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.url


class Delivery(models.Model):
    """One event for one hook. `status`, `duration_ms`, `answer` and `error` are of the last attempt.

    `attempts` is also the fence: a task names the number it was made for, and a worker claims the row by raising it.
    `next_try_at` is when a waiting row is due, or when a row that is being sent counts as lost.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        SENDING = "sending"
        DELIVERED = "delivered"
        FAILED = "failed"

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event_id = models.UUIDField(default=uuid4)
    event = models.CharField(max_length=40)
    payload = models.JSONField(encoder=DjangoJSONEncoder)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()
    give_up_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    answer = models.TextField(blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["webhook", "event_id"], name="one_delivery_per_hook_and_event")]
        indexes = [
            models.Index(fields=["webhook", "-id"], name="deliveries_newest_first"),
            models.Index(fields=["next_try_at"], name="deliveries_due", condition=Q(state__in=["waiting", "sending"])),
            models.Index(fields=["created_at"], name="deliveries_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.event_id}"

    @property
    def about(self) -> str:
        """The name of the thing that the event is about, if it has one."""
        told = self.payload.get("name") or self.payload.get("title")
        return str(told) if told else ""
