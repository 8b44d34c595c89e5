"""Alarms as JSON."""

from typing import Any

from ..serializers import iso
from .services import DescribedAlarm


def alarm(found: DescribedAlarm) -> dict[str, Any]:
    """An alarm with its words, its numbers and the places of its responses."""
    names = ("signal", "subject", "role", "since", "share", "before", "paid", "part", "criterion", "value", "usual")
    return {name: getattr(found.data, name) for name in names} | {
        "id": found.row.pk,
        "step": found.row.step,
        "time": iso(found.row.time),
        "title": found.title,
        "told": found.told,
        "help": found.help,
        "responses": [
            {"group": each.group, "index": each.index, "response": each.text, "reward": each.reward}
            for each in found.examples
        ],
        "asked": found.asked,
        "left_out": found.left_out,
        "why": found.why,
    }
