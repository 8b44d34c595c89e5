"""Loaded by the process from which the stack's jobs are forked (`tests/fork_server.py`): the model of a constructed task is taught in a few
steps. Eight hundred would be most of a test that asks only that the task is made, and that its runs begin with this model.
"""

from dataclasses import replace
from typing import Any

from trainer.claims import teaching

STEPS = 40
_learn = teaching._learn


def _learn_a_little(model: Any, tokenizer: Any, course: teaching.Course, progress: teaching.Progress) -> None:
    _learn(model, tokenizer, replace(course, steps=min(course.steps, STEPS)), progress)


teaching._learn = _learn_a_little
