"""The tasks, by the recipe that trains on them. Torch-free."""

from collections.abc import Callable
from typing import Any

from .base import AnsweredQuestion, Posed, TrainingTask
from .judging_pairs import JudgingPairs
from .rubric_writing import RubricWriting

__all__ = ["TASKS", "AnsweredQuestion", "Posed", "TrainingTask"]

TASKS: dict[str, Callable[[Any], TrainingTask]] = {"judge": JudgingPairs, "rubric_writer": RubricWriting}
"""For each recipe, the function that makes the task from its config."""
