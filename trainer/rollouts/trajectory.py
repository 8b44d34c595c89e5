"""One sampled response on its way from the sampler to the update."""

from dataclasses import dataclass, field

from trainer.contracts import CriterionResult, PartResult
from trainer.inference.sampling import FinishReason


@dataclass(frozen=True)
class PromptPlan:
    """What is about to be sampled. Without a scaffold the two prompts are the same tokens."""

    example_key: str
    group: int
    index: int
    prompt_text: str
    prompt_tokens: tuple[int, ...]
    """What the log-probabilities in training are conditioned on: the prompt without scaffold."""
    sampled_prompt_tokens: tuple[int, ...]
    """What the sampler sees."""
    seed: int
    scaffold: str = ""
    scaffold_shown: int = 0


@dataclass(frozen=True)
class Reward:
    """`total` is None when the response gets no training signal; `excluded` then says why."""

    total: float | None
    components: dict[str, float] = field(default_factory=dict)
    criteria: tuple[CriterionResult, ...] = ()
    score: float | None = None
    """The rubric score, whatever the components; `clipped` is the same in [0, 1]."""
    clipped: float | None = None
    excluded: str = ""
    parts: tuple[PartResult, ...] = ()
    """Every part as it was measured, those without a value and those that are not trained on too."""
    away: bool = False
    """Whether it is excluded because somebody could not be asked and their part says to go on without them."""


@dataclass(frozen=True)
class Trajectory:
    """Tokens and log-probabilities exactly as the sampler gave them, and what they were worth."""

    plan: PromptPlan
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: FinishReason
    version: int
    reward: Reward
    versions: tuple[tuple[int, int, int], ...] = ()
    """(version, start, end) of each run of tokens, where several weights may have sampled them; `version` is the oldest."""

    @property
    def spans(self) -> tuple[tuple[int, int, int], ...]:
        """(version, start, end) of each run of tokens."""
        return self.versions or ((self.version, 0, len(self.tokens)),)
