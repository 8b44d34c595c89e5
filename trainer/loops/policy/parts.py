"""The parts that the stage of a sampled policy works with."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from trainer.config import OnPolicyConfig
from trainer.config.on_policy import Rollout
from trainer.curriculum import Schedule
from trainer.inference.sampling import Sampler
from trainer.tasks import TrainingTask

from ..learner.learner import Learner
from ..learner.teachers import Speaks
from ..prompts.data import Prompt, PromptSets
from .token_texts import TokenTexts
from .update import Updater


@dataclass(frozen=True)
class Parts:
    """Everything around one run; a test may use its own parts."""

    config: OnPolicyConfig
    prompts: PromptSets
    tokenizer: Any
    sampler: Sampler
    learner: Learner
    run_dir: Path
    base: Path
    """The directory of the model that the run begins with."""
    teacher: Speaks | None = None
    updater: Updater | None = None
    """Updates the learner, if that does not happen in this process."""
    task: TrainingTask | None = None
    """The task that makes the prompts, if they are not those of the examples."""

    @cached_property
    def schedule(self) -> Schedule:
        """The phases of the run, and which of them holds."""
        return Schedule(self.config.phases)

    @property
    def rollout(self) -> Rollout:
        """The settings of sampling that hold now: those of the config, or those of the present phase."""
        temperature = self.schedule.temperature
        own = self.config.rollout
        return own if temperature is None else own.model_copy(update={"temperature": temperature})

    @cached_property
    def token_texts(self) -> TokenTexts:
        """Texts of tokens, for the records of responses."""
        return TokenTexts(self.tokenizer)

    @cached_property
    def tasks(self) -> dict[str, Prompt]:
        """The prompts by the key of the example."""
        return {prompt.example.key: prompt for prompt in [*self.prompts.train, *self.prompts.heldout]}
