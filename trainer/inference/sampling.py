"""The `Sampler` protocol: token ids in, token ids and their log-probabilities out.

Text is never re-tokenised on the way to the trainer: what the engine sampled is what is trained on.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from torch import Tensor

FinishReason = Literal["stop", "length"]
SamplingProgress = Callable[[int, int], None]
"""Called as `progress(responses finished, responses asked for)`; raising from it ends the sampling."""


class SamplerInvalid(ValueError):
    """This sampler cannot work here; the message says why and what to do."""


class EngineLost(RuntimeError):
    """The process that samples is gone, or cannot be relied on any more."""


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
    """What came back, `tokens` and `logprobs` of equal length T.

    The stop token is part of `tokens`, since the model chose it; `text` is without special tokens and ends before a
    stop text. `logprobs` are those of the distribution that was drawn from, temperature and nucleus applied; a greedy
    choice has probability 1 and so log-probability 0. `version` counts the weight updates the engine had seen.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: FinishReason
    version: int


SampleFinished = Callable[[int, SampleResult], None]
"""Called as `finished(place of the request, its response)` as soon as that response has ended, in the thread that samples."""


class Sampler(Protocol):
    """An engine that samples. Results keep the order of the requests and do not depend on what else is sampled."""

    def sample(
        self,
        requests: Sequence[SampleRequest],
        progress: SamplingProgress | None = None,
        finished: SampleFinished | None = None,
    ) -> list[SampleResult]: ...

    def load_weights(self, weights: Iterable[tuple[str, "Tensor"]], version: int) -> str:
        """Replace the named parameters; later results carry `version`.

        Returns the `Checksum` of these parameters as the engine holds them afterwards: read back from it, not computed
        from what was given.
        """
        ...

    def rest(self) -> None:
        """Nothing is sampled for a while: give back what of a shared card can be had again when it is next asked."""
        ...

    def close(self) -> None:
        """Give back what it holds beyond this process."""
        ...


class Running(Protocol):
    """Responses on their way by one version of the weights. Others join at any time: whatever is beside a response when,
    it has the tokens that it would have alone.
    """

    def join(self, name: Hashable, request: SampleRequest) -> None:
        """Sample this one too. Raises ValueError where it can never be sampled here."""
        ...

    def step(self) -> list[tuple[Hashable, SampleResult]]:
        """Go on with all of them, by a token or more; those that have ended."""
        ...

    def leave(self, names: Collection[Hashable]) -> None:
        """Give these up."""
        ...

    def close(self) -> None:
        """Nothing more is sampled by this version."""
        ...


class JoinableSampler(Sampler, Protocol):
    """A sampler of a worker. It is used by `open` or by `sample`, never by both."""

    versions_at_once: float
    """How many versions of the weights can be open together."""

    def open(self, weights: Iterable[tuple[str, "Tensor"]], version: int) -> tuple[Running, str]:
        """What samples by these weights, and their checksum as `load_weights` returns it."""
        ...
