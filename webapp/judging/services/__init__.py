"""All writes to judges, verdicts and trials, one module per concern."""

from .brought import outcomes, used
from .calls import Counts, ask, asked, judge_calls
from .judges import archive, begin_use, create_judge, fix_examples, new_version, rename, restore
from .recorded import Kept, keep_recorded
from .store import COUNTED, store, taken
from .suggesting import ask_judge
from .trials import start_comparison, start_trial
from .weighing import Errand, job_for, needs_job, spent

__all__ = [
    "COUNTED",
    "Counts",
    "Errand",
    "Kept",
    "archive",
    "ask_judge",
    "ask",
    "asked",
    "begin_use",
    "create_judge",
    "fix_examples",
    "job_for",
    "judge_calls",
    "keep_recorded",
    "needs_job",
    "new_version",
    "outcomes",
    "rename",
    "restore",
    "spent",
    "start_comparison",
    "start_trial",
    "store",
    "taken",
    "used",
]
