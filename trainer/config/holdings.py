"""What the process of a run holds in memory, as its config says it. How many bytes that is, `trainer.memory` tells."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Sampling:
    """Who samples, and the most that it has under way at once. `copies`: workers that do the same in processes of their own.

    `learner`: with the very weights that are trained. `local`: with a copy of them. `vllm`: an engine, whose cache has
    `cache_gb` GiB. `elsewhere`: a server that runs anyway. `copy_gpus`: of each worker.
    `sleeps`: on a card that it shares with the learner, an engine gives its memory back while that works.
    """

    by: Literal["learner", "local", "vllm", "elsewhere"]
    prompt_tokens: int
    new_tokens: int
    sequences: int
    cache_gb: float = 0.0
    copies: int = 0
    copy_gpus: int = 0
    sleeps: bool = False

    @property
    def longest(self) -> int:
        """Tokens of a prompt with its response."""
        return self.prompt_tokens + self.new_tokens


@dataclass(frozen=True)
class Holdings:
    """`longest`: tokens of the longest text that a training pass has to hold whole, whatever `optim.micro_batch_tokens` says.

    `frozen`: a copy of the model as it was before the run. `teachers`: other models beside it. `processes`: over how many the
    model and its optimiser are spread. `scores`: it ends in one number per text, so there are no logits.

    In the memory of the machine, and not of a card: `waiting` sets of trained weights with their moments, of who is not trained just
    now, and `begun` sets of trained weights that the objective may measure the distance from.
    """

    longest: int = 0
    frozen: bool = False
    teachers: int = 0
    processes: int = 1
    scores: bool = False
    waiting: int = 0
    begun: int = 0
    sampling: Sampling | None = None

    @property
    def gpus(self) -> int:
        """That the run takes where there are any: one for its own process, which trains or else evaluates, one for each of
        several that train together, those of its workers."""
        together = self.processes if self.processes > 1 else 0
        return 1 + together + (self.sampling.copies * self.sampling.copy_gpus if self.sampling else 0)
