"""The kinds of task, one module each: what a kind asks, shows and stores, and what becomes of its answers.

A module with a `KIND` is a kind; `static/js/annotate/kinds/NAME.js` is its widget. The other modules are shared by kinds.
"""

from .base import TaskKind
from .frames import to_shown, to_subject
from .records import (
    MAX_CRITERIA,
    MAX_RESPONSES,
    Answered,
    Reason,
    Scale,
    Settings,
    Shown,
    TaskView,
    letters,
    subject_sides,
)
from .registry import COMPARING, KINDS, get_kind

__all__ = [
    "COMPARING",
    "KINDS",
    "MAX_CRITERIA",
    "MAX_RESPONSES",
    "Answered",
    "Reason",
    "Scale",
    "Settings",
    "Shown",
    "TaskKind",
    "TaskView",
    "letters",
    "get_kind",
    "subject_sides",
    "to_shown",
    "to_subject",
]
