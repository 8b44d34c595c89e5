"""One sampler for several runs of a process that merge their adapters: a copy of the weights for all, not one for each."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .local import LocalSampler
from .sampling import SampleFinished, SampleRequest, SampleResult, SamplingProgress


@dataclass
class LentModel:
    """The model, and whose weights it has."""

    model: PreTrainedModel
    holder: "LentSampler | None" = None


class LentSampler(LocalSampler):
    """The sampler of one run. Where others have sampled meanwhile, its weights are put back before it samples."""

    def __init__(self, desk: LentModel, tokenizer: PreTrainedTokenizerBase, max_batch: int = 64) -> None:
        super().__init__(desk.model, tokenizer, max_batch)
        self._desk = desk
        self.put_back: Callable[[], object] = _nobody
        """Pushes what this run samples with."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> str:
        self._desk.holder = self
        return super().load_weights(weights, version)

    def forget(self) -> None:
        """What it holds is not what is to sample next."""
        if self._desk.holder is self:
            self._desk.holder = None

    def sample(
        self,
        requests: Sequence[SampleRequest],
        progress: SamplingProgress | None = None,
        finished: SampleFinished | None = None,
    ) -> list[SampleResult]:
        if self._desk.holder is not self:
            self.put_back()
        return super().sample(requests, progress, finished)


def _nobody() -> None:
    raise RuntimeError("nobody has said which weights this sampler is to have")
