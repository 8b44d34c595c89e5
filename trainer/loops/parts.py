"""What a loop works with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.config import PolicyConfig
from trainer.inference.sampling import Sampler
from trainer.monitors import RunMonitor

from .data import PromptSets
from .learner import Learner, Teacher
from .update import Updater


@dataclass(frozen=True)
class Parts:
    """Everything around one run of recipe `policy`; a test may put its own parts in."""

    config: PolicyConfig
    prompts: PromptSets
    tokenizer: Any
    sampler: Sampler
    learner: Learner
    monitor: RunMonitor
    run_dir: Path
    teacher: Teacher | None = None
    updater: Updater | None = None
    """What updates the learner, where that does not happen in this process."""
