"""What is sampled next and under which prompt."""

from .order import DataOrder
from .scaffold import ScaffoldText, group_factor, scaffold_for, scaffold_text, shown_count, step_factor

__all__ = [
    "DataOrder",
    "ScaffoldText",
    "group_factor",
    "scaffold_for",
    "scaffold_text",
    "shown_count",
    "step_factor",
]
