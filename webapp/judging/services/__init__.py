"""All writes to judges, verdicts and trials, one module per concern."""

from .calls import Counts, ask, asked, judge_calls
from .judges import archive, begin_use, create_judge, fix_examples, new_version, rename, restore
from .recorded import Kept, keep_recorded
from .store import COUNTED, store, taken
from .suggesting import ask_judge
from .trials import start_comparison, start_trial

__all__ = [
    "COUNTED",
    "Counts",
    "Kept",
    "archive",
    "ask_judge",
    "ask",
    "asked",
    "begin_use",
    "create_judge",
    "fix_examples",
    "judge_calls",
    "keep_recorded",
    "new_version",
    "rename",
    "restore",
    "start_comparison",
    "start_trial",
    "store",
    "taken",
]
