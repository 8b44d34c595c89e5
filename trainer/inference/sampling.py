"""The `Sampler` protocol: token ids in, token ids and their log-probabilities out.

Text is never tokenised again on the way to the trainer: the trainer learns from the very tokens that the engine sampled.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from torch import Tensor

FinishReason = Literal["stop", "length"]
SamplingProgress = Callable[[int, int], None]
"""Called as `progress(responses finished, responses asked for)`; an exception of it ends the sampling."""


class SamplerInvalid(ValueError):
    """The sampler cannot work here; the message says why and what to do."""


class EngineLost(RuntimeError):
    """The process that samples has ended, or can no longer be trusted."""


@dataclass(frozen=True)
class SampleRequest:
    """One response to sample. `temperature` 0 decodes greedily; `stop` texts end a response once they appear in it."""

    prompt_tokens: tuple[int, ...]
    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class SampleResult:
    """A sampled response; `tokens` and `logprobs` have equal length T.

    The stop token is part of `tokens`, because the model chose it; `text` is without special tokens and ends before a
    stop text. `logprobs` are those of the distribution that was drawn from, with temperature and nucleus applied; a greedy
    choice has probability 1 and so log-probability 0. `version` counts the weight updates that the engine had seen.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: FinishReason
    version: int


def tokens_of(results: Iterable[SampleResult]) -> int:
    return sum(len(result.tokens) for result in results)


SampleFinished = Callable[[int, SampleResult], None]
"""Called as `finished(place of the request, its response)` when that response has ended, in the thread that samples."""


class Sampler(Protocol):
    """An engine that samples. Results keep the order of the requests and do not depend on what else is sampled."""

    generated: int
    """Tokens of all responses that `sample` has returned."""

    def sample(
        self,
        requests: Sequence[SampleRequest],
        progress: SamplingProgress | None = None,
        finished: SampleFinished | None = None,
    ) -> list[SampleResult]: ...

    def load_weights(self, weights: Iterable[tuple[str, "Tensor"]], version: int) -> str:
        """Replace the named parameters; later results carry `version`.

        Returns the `Checksum` of these parameters as the engine then holds them: read back from the engine, not computed
        from what was given.
        """
        ...

    def rest(self) -> None:
        """Give back memory of a shared GPU that can be taken again: nothing is sampled for a while."""
        ...

    def close(self) -> None:
        """Give back what the sampler holds outside this process."""
        ...


class Running(Protocol):
    """Responses that are sampled by one version of the weights. Others join at any time: a response has the tokens that it would
    have alone.
    """

    def join(self, name: Hashable, request: SampleRequest) -> None:
        """Sample this response too. Raises ValueError if it can never be sampled here."""
        ...

    def step(self) -> list[tuple[Hashable, SampleResult]]:
        """Sample one token or more of each response; returns those that have ended."""
        ...

    def leave(self, names: Collection[Hashable]) -> None:
        """Stop sampling these responses."""
        ...

    def close(self) -> None:
        """End this version: it samples nothing more."""
        ...


class JoinableSampler(Sampler, Protocol):
    """A sampler of a worker. A caller uses `open` or `sample`, never both."""

    versions_at_once: float
    """The number of versions of the weights that can be open together."""

    def open(self, weights: Iterable[tuple[str, "Tensor"]], version: int) -> tuple[Running, str]:
        """Sample by these weights; returns what samples, and the checksum as `load_weights` returns it."""
        ...
