"""A priority decides the place of work in the line of its workspace."""

from django.db.models import IntegerChoices


class Priority(IntegerChoices):
    LOW = -1, "Low"
    NORMAL = 0, "Normal"
    HIGH = 1, "High"
