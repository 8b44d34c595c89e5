"""The order of the prompts, their hints, and the number of responses to each."""

from .group_sizes import GroupSizes
from .order import DataOrder
from .pass_rates import PassCounts, Reach
from .plateau import highest_good_temperature, level
from .prompt_order import KnownPrompt, PromptOrder, known_of
from .scaffold import ScaffoldText, group_factor, scaffold_for, scaffold_text, shown_count, step_factor
from .schedule import Schedule

__all__ = [
    "DataOrder",
    "GroupSizes",
    "KnownPrompt",
    "PassCounts",
    "PromptOrder",
    "Reach",
    "ScaffoldText",
    "Schedule",
    "group_factor",
    "known_of",
    "level",
    "scaffold_for",
    "scaffold_text",
    "shown_count",
    "step_factor",
    "highest_good_temperature",
]
