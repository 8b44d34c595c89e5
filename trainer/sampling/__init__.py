"""What is sampled next and under which prompt."""

from .order import DataOrder
from .plateau import level, warmest
from .scaffold import ScaffoldText, group_factor, scaffold_for, scaffold_text, shown_count, step_factor
from .schedule import Schedule

__all__ = [
    "DataOrder",
    "ScaffoldText",
    "Schedule",
    "group_factor",
    "level",
    "scaffold_for",
    "scaffold_text",
    "shown_count",
    "step_factor",
    "warmest",
]
