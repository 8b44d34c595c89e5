"""One sampler for several runs of a process that merge their adapters: they share one copy of the weights."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .common import once
from .local import LocalSampler
from .sampling import SampleFinished, SampleRequest, SampleResult, SamplingProgress, tokens_of


@dataclass
class LentModel:
    """The shared model, and the run whose weights it has."""

    model: PreTrainedModel
    holder: "LentSampler | None" = None
    checksum: str = ""
    """The checksum of its weights."""


class LentSampler(LocalSampler):
    """The sampler of one run. If other runs have sampled meanwhile, its weights are put back before it samples.

    Before their first update, adapters change nothing, so runs sample from the same weights. What several of them ask for then (their first
    evaluation, and their first steps if seed and data are the same) is sampled once.
    """

    def __init__(self, desk: LentModel, tokenizer: PreTrainedTokenizerBase, max_batch: int = 64) -> None:
        super().__init__(desk.model, tokenizer, max_batch)
        self._desk = desk
        self.put_back: Callable[[], object] = _nobody
        """Pushes the weights with which this run samples."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> str:
        self._desk.holder = self
        self._desk.checksum = super().load_weights(weights, version)
        return self._desk.checksum

    def forget(self) -> None:
        """Note that the held weights are not those that sample next."""
        if self._desk.holder is self:
            self._desk.holder = None

    def sample(
        self,
        requests: Sequence[SampleRequest],
        progress: SamplingProgress | None = None,
        finished: SampleFinished | None = None,
    ) -> list[SampleResult]:
        before = self.generated
        if self._desk.holder is not self:
            self.put_back()
        if self.version:
            return super().sample(requests, progress, finished)
        key = ("sampled", id(self._desk), self._desk.checksum, self._max_batch, tuple(requests))
        told: set[int] = set()

        def tell(place: int, result: SampleResult) -> None:
            told.add(place)
            if finished:
                finished(place, result)

        results: list[SampleResult] = once(key, lambda: super(LentSampler, self).sample(requests, progress, tell))
        for place in range(len(results)):
            if place not in told:
                tell(place, results[place])
        self.generated = before + tokens_of(results)  # also if another run has sampled them
        return list(results)


def _nobody() -> None:
    raise RuntimeError("this sampler was given no weights")
