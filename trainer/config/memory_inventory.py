"""Lists the models and tensors that the process of a run holds in memory, by its config. `trainer.memory` computes their bytes."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Sampling:
    """The sampler, and the most that it has under way.

    `by`: `learner` samples with the weights that are trained, `local` with a copy of them, `vllm` with an engine whose cache has `cache_gb`
    GiB; `elsewhere` is a server that this run does not start. `copies`: workers that sample in processes of their own, each with
    `copy_gpus` GPUs. `sleeps`: the engine shares a card with the learner, and gives its memory back while the learner works. `whole_copy`:
    the copy certainly has all weights in the model's precision: they are not rounded, and not those of the learner with its adapters.
    """

    by: Literal["learner", "local", "vllm", "elsewhere"]
    prompt_tokens: int
    new_tokens: int
    sequences: int
    cache_gb: float = 0.0
    copies: int = 0
    copy_gpus: int = 0
    sleeps: bool = False
    whole_copy: bool = True

    @property
    def longest(self) -> int:
        """The most tokens of a prompt with its response."""
        return self.prompt_tokens + self.new_tokens


@dataclass(frozen=True)
class Holdings:
    """`longest`: the tokens of the longest text that a training pass must hold as a whole, even if `optim.micro_batch_tokens` is less.

    `frozen`: it also holds a copy of the model as it was before the run. `teachers`: the number of other models. `processes`: the model
    and its optimiser are spread over this many. `scores`: the model gives one number for a text, so there are no logits.

    Two more are in the memory of the machine, not of a card. `waiting`: sets of trained weights with their moments, of roles that are
    not trained now. `begun`: sets of trained weights from which the objective may measure the distance.
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
        """The number of GPUs that the run takes, if there are any: one for its own process, which trains or else evaluates; one for each
        of several processes that train together; and those of its workers."""
        together = self.processes if self.processes > 1 else 0
        return 1 + together + (self.sampling.copies * self.sampling.copy_gpus if self.sampling else 0)
