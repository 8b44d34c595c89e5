"""How urgent something is among what its workspace has in the line."""

from django.db.models import IntegerChoices


class Priority(IntegerChoices):
    LOW = -1, "Low"
    NORMAL = 0, "Normal"
    HIGH = 1, "High"
